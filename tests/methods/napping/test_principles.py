"""The batched principles against the one-trial oracle, and against values worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from methods.napping.pseudo_code import Oracle
from nappingrl.methods.napping.principles import Principles
from nappingrl.methods.napping.rules import RULES

Ints = npt.NDArray[np.int64]
Table = dict[str, npt.NDArray[np.generic]]

AS_SELECTED, AS_WANTED = -1, -2  # for Move.executed: what select gave, what the agent wanted (else an action)
N_ACTIONS = (2, 3, 5, 64, 65, 300)  # 64 and 65: around one machine word
SCORES = (-2.0, -1.0, -1 / 3, 0.0, 0.1, 0.5, 1.0)
FAIL, GOOD = -1.0, 0.5  # with thre = 0 and sup = 1


# ---- tools ------------------------------------------------------------------------------------------------------


def as_rows(values: Sequence[int]) -> Ints:
    return np.asarray(values, dtype=np.int64)


def as_keys(values: Sequence[int]) -> npt.NDArray[np.uint64]:
    return np.asarray(values, dtype=np.uint64)


def as_states(values: Sequence[Sequence[float]] | npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    return np.asarray(values, dtype=np.float32)


def actions_of(mask: npt.NDArray[np.generic]) -> set[int]:
    return {int(action) for action in np.flatnonzero(mask)}


def assert_table(table: Table, oracle: Oracle, n_actions: int) -> None:
    """Every field of every principle."""
    known = oracle.principles
    assert table["site"].dtype == np.float32
    assert table["best"].dtype == np.float64
    assert table["candidates"].shape == table["tested"].shape == (len(known), n_actions)
    assert table["candidates"].dtype == table["tested"].dtype == np.bool_
    assert [tuple(site) for site in table["site"].tolist()] == [p.site for p in known]
    assert table["wanted"].tolist() == [p.key for p in known]
    assert [actions_of(mask) for mask in table["candidates"]] == [p.candidates for p in known]
    assert [actions_of(mask) for mask in table["tested"]] == [p.tested for p in known]
    assert table["best"].tolist() == [p.best for p in known]
    assert table["visits"].tolist() == [p.visits for p in known]


def assert_same_table(left: Table, right: Table) -> None:
    for name in ("site", "wanted", "candidates", "tested", "best", "visits"):
        np.testing.assert_array_equal(left[name], right[name], err_msg=name)


# ---- random scenarios ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """One step of one trial."""

    row: int
    point: tuple[float, ...]
    wanted: int
    score: float
    executed: int
    thre: float
    sup: float


@dataclass(frozen=True)
class Batch:
    """One call of select and of update; `restarts` are the (row, key) pairs that start anew before it."""

    moves: tuple[Move, ...]
    restarts: tuple[tuple[int, int], ...] = ()
    order_seed: int | None = None  # None: random candidates
    scalar: bool = False  # threshold and supremum of the first move, for all


@dataclass(frozen=True)
class Scenario:
    n: int
    n_actions: int
    dim: int
    keys: tuple[int, ...]
    batches: tuple[Batch, ...]


@st.composite
def scenarios(draw: st.DrawFn, max_batches: int = 25) -> Scenario:
    n = draw(st.integers(1, 5))
    n_actions = draw(st.sampled_from(N_ACTIONS))
    dim = draw(st.integers(1, 6))
    scale, reach = draw(st.sampled_from([(1.0, 1), (1.0, 3), (0.125, 20)]))  # exact in float32, with many ties
    some = sorted({0, 1, n_actions - 1, n_actions // 2})  # few actions, or keys would never match
    thresholds = draw(st.sampled_from([(0.0,), (0.1,), (-1.0, 0.5), SCORES]))
    suprema = draw(st.sampled_from([(1.0,), (float("inf"),), (0.5, 1.0), SCORES]))
    key = st.integers(0, 2**64 - 1)
    coordinate = st.integers(-reach, reach)
    executed = st.sampled_from([AS_SELECTED] * 4 + [AS_WANTED, *some])

    batches = []
    for _ in range(draw(st.integers(1, max_batches))):
        rows = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
        moves = tuple(
            Move(
                row=row,
                point=tuple(scale * x for x in draw(st.tuples(*[coordinate] * dim))),
                wanted=draw(st.sampled_from(some)),
                score=draw(st.sampled_from(SCORES)),
                executed=draw(executed),
                thre=draw(st.sampled_from(thresholds)),
                sup=draw(st.sampled_from(suprema)),
            )
            for row in rows
        )
        restarts: tuple[tuple[int, int], ...] = ()
        if draw(st.integers(0, 15)) == 15:
            restarts = ((draw(st.integers(0, n - 1)), draw(key)),)
        order_seed = draw(st.none() | st.integers(0, 1000))
        batches.append(Batch(moves, restarts, order_seed, draw(st.booleans())))
    return Scenario(n, n_actions, dim, tuple(draw(key) for _ in range(n)), tuple(batches))


def random_scenario(seed: int, n_actions: int, n_batches: int) -> Scenario:
    """As `scenarios`, but long: few points in few dimensions, so that principles are visited often."""
    rng = np.random.default_rng(seed)
    n, dim = 3, int(rng.integers(1, 4))
    some = sorted({0, 1, n_actions - 1, n_actions // 2})
    weights = [0.7] + [0.3 / (len(some) - 1)] * (len(some) - 1)

    def batches() -> Iterator[Batch]:
        for _ in range(n_batches):
            rows = rng.permutation(n)[: rng.integers(1, n + 1)]
            moves = tuple(
                Move(
                    row=int(row),
                    point=tuple((rng.integers(-6, 7, dim) / 8).tolist()),
                    wanted=int(rng.choice(some, p=weights)),
                    score=float(rng.choice(SCORES)),
                    executed=int(rng.choice([AS_SELECTED] * 16 + [AS_WANTED] * 2 + some)),
                    thre=float(rng.choice([0.0, 0.1, 0.5])),
                    sup=1.0,
                )
                for row in rows
            )
            restarts = ((int(rng.integers(n)), int(rng.integers(2**63))),) if rng.random() < 0.01 else ()
            order_seed = int(rng.integers(1000)) if rng.random() < 0.3 else None
            yield Batch(moves, restarts, order_seed, bool(rng.random() < 0.5))

    keys = tuple(int(key) for key in rng.integers(0, 2**63, n))
    return Scenario(n, n_actions, dim, keys, tuple(batches()))


def play(
    scenario: Scenario,
    rule: str,
    rows: Sequence[int] | None = None,
    oracles: dict[int, Oracle] | None = None,
    backwards: bool = False,
    match_wanted: bool = False,
) -> tuple[dict[int, list[tuple[int, int]]], dict[int, Table]]:
    """The (action, region) pairs and the final table of each trial, played together.

    rows: play only these trials. oracles: filled with one oracle per trial and compared at every step.
    backwards: the rows of each batch in reverse.
    """
    rows = list(range(scenario.n)) if rows is None else list(rows)
    place = {row: i for i, row in enumerate(rows)}  # where a trial is kept
    n_actions = scenario.n_actions
    principles = Principles(len(rows), n_actions, scenario.dim, rule=rule, match_wanted=match_wanted)
    principles.start(as_rows(list(place.values())), as_keys([scenario.keys[row] for row in rows]))
    if oracles is not None:
        oracles.update({row: Oracle(n_actions, rule, match_wanted) for row in rows})
    seen: dict[int, list[tuple[int, int]]] = {row: [] for row in rows}

    for batch in scenario.batches:
        restarts = [(row, key) for row, key in batch.restarts if row in place]
        if restarts:
            principles.start(as_rows([place[row] for row, _ in restarts]), as_keys([key for _, key in restarts]))
            if oracles is not None:
                oracles.update({row: Oracle(n_actions, rule, match_wanted) for row, _ in restarts})
        moves = [move for move in batch.moves if move.row in place]
        if backwards:
            moves.reverse()
        if not moves:
            continue

        where = as_rows([place[move.row] for move in moves])
        states = as_states([move.point for move in moves])
        wanted = as_rows([move.wanted for move in moves])
        order = None
        if batch.order_seed is not None:
            order = np.stack([np.random.default_rng([batch.order_seed, m.row]).permutation(n_actions) for m in moves])
        actions, regions = principles.select(where, states, wanted, order)
        assert actions.shape == regions.shape == (len(moves),)
        executed = [
            {AS_SELECTED: int(action), AS_WANTED: move.wanted}.get(move.executed, move.executed)
            for move, action in zip(moves, actions, strict=True)
        ]
        first = batch.moves[0]
        thre = [first.thre if batch.scalar else move.thre for move in moves]
        sup = [first.sup if batch.scalar else move.sup for move in moves]
        scores = np.array([move.score for move in moves])
        principles.update(
            where,
            states,
            wanted,
            as_rows(executed),
            regions,
            scores,
            first.thre if batch.scalar else np.array(thre),
            first.sup if batch.scalar else np.array(sup),
        )
        states[:] = 99  # what was stored must be a copy

        for i, move in enumerate(moves):
            seen[move.row].append((int(actions[i]), int(regions[i])))
            if oracles is not None:
                oracle = oracles[move.row]
                assert regions[i] == oracle.nearest(move.point, move.wanted)
                if order is None:
                    assert actions[i] in oracle.eligible(move.point, move.wanted)
                else:
                    assert actions[i] == oracle.select(move.point, move.wanted, order[i].tolist())
                oracle.update(move.point, move.wanted, executed[i], move.score, thre[i], sup[i])
                assert principles.n_regions[where[i]] == len(oracle.principles)
                assert principles.n_open[where[i]] == sum(p.is_open for p in oracle.principles)
                if len(scenario.batches) < 100:
                    assert_table(principles.table(int(where[i])), oracle, n_actions)

    tables = {row: principles.table(place[row]) for row in rows}
    if oracles is not None:
        for row in rows:
            assert_table(tables[row], oracles[row], n_actions)
        assert principles.n_regions.tolist() == [len(oracles[row].principles) for row in rows]
        assert principles.n_open.tolist() == [sum(p.is_open for p in oracles[row].principles) for row in rows]
    return seen, tables


FEW = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("rule", RULES)
@FEW
@given(scenario=scenarios())
def test_agrees_with_the_oracle(rule: str, scenario: Scenario) -> None:
    play(scenario, rule, oracles={})


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_actions", [2, 3, 5, 300])
def test_agrees_with_the_oracle_over_long_trials(rule: str, n_actions: int) -> None:
    oracles: dict[int, Oracle] = {}
    play(random_scenario(n_actions, n_actions, n_batches=400), rule, oracles=oracles)
    known = [p for oracle in oracles.values() for p in oracle.principles]
    assert max(p.visits for p in known) > 5  # the scenario does exercise the update
    assert len({p.is_open for p in known}) == 2 or n_actions == 2


@pytest.mark.parametrize("rule", RULES)
@settings(FEW, max_examples=20)
@given(scenario=scenarios())
def test_same_key_search_agrees_with_the_oracle(rule: str, scenario: Scenario) -> None:
    play(scenario, rule, oracles={}, match_wanted=True)


@pytest.mark.parametrize("rule", RULES)
def test_same_key_search_agrees_with_the_oracle_over_long_trials(rule: str) -> None:
    scenario = random_scenario(1, 3, n_batches=400)
    seen, _ = play(scenario, rule, oracles={}, match_wanted=True)
    assert (seen == play(scenario, rule)[0]) == (rule == "text"), "the prose searches so anyway"


@pytest.mark.parametrize("rule", RULES)
@settings(FEW, max_examples=20)
@given(scenario=scenarios(max_batches=15))
def test_a_trial_does_not_depend_on_its_batch(rule: str, scenario: Scenario) -> None:
    """Alone, or together in another order: the same actions (random ones too), regions and tables."""
    seen, tables = play(scenario, rule)
    seen_backwards, tables_backwards = play(scenario, rule, backwards=True)
    assert seen_backwards == seen
    for row in range(scenario.n):
        assert_same_table(tables_backwards[row], tables[row])
        seen_alone, tables_alone = play(scenario, rule, rows=[row])
        assert seen_alone[row] == seen[row]
        assert_same_table(tables_alone[row], tables[row])


# ---- one trial by hand ----------------------------------------------------------------------------------------------


class Trial:
    """One trial in one dimension, thre = 0 and sup = 1 unless told, for tests written by hand."""

    def __init__(self, rule: str, n_actions: int, key: int = 7) -> None:
        self.principles = Principles(1, n_actions, 1, rule=rule)
        self.principles.start(as_rows([0]), as_keys([key]))
        self.n_actions = n_actions

    def select(self, at: float, wanted: int, order: Sequence[int] | None = None) -> tuple[int, int]:
        """(action, region)"""
        priorities = None if order is None else as_rows(order)[None]
        actions, regions = self.principles.select(as_rows([0]), as_states([[at]]), as_rows([wanted]), priorities)
        return int(actions[0]), int(regions[0])

    def update(self, at: float, wanted: int, executed: int, score: float, thre: float = 0.0, sup: float = 1.0) -> None:
        _, region = self.select(at, wanted)
        self.principles.update(
            as_rows([0]),
            as_states([[at]]),
            as_rows([wanted]),
            as_rows([executed]),
            as_rows([region]),
            np.array([score]),
            thre,
            sup,
        )

    def known(self) -> list[tuple[float, int, set[int], set[int], float, int]]:
        """(site, key, candidates, tested, best, visits) of each principle."""
        t = self.principles.table(0)
        return [
            (
                float(t["site"][i, 0]),
                int(t["wanted"][i]),
                actions_of(t["candidates"][i]),
                actions_of(t["tested"][i]),
                float(t["best"][i]),
                int(t["visits"][i]),
            )
            for i in range(len(t["wanted"]))
        ]


def test_the_rules_are_named() -> None:
    assert tuple(RULES) == ("printed", "text", "revised", "fallback")


@pytest.mark.parametrize("rule", RULES)
def test_a_new_trial_knows_nothing(rule: str) -> None:
    trial = Trial(rule, 5)
    assert trial.select(0.0, 3) == (3, -1)
    assert trial.known() == []
    table = trial.principles.table(0)
    assert table["site"].shape == (0, 1)
    assert table["candidates"].shape == table["tested"].shape == (0, 5)
    assert trial.principles.n_regions.tolist() == trial.principles.n_open.tolist() == [0]


def test_the_worked_example_of_the_paper() -> None:
    """Rule text. The paper's actions 1, 2, 3 are 0, 1, 2 here."""
    trial = Trial("text", 3)

    # time t: the agent wants 1, which fails; the principle opens with {2, 3} over all of action 1's space
    assert trial.select(0.0, 0) == (0, -1)
    trial.update(0.0, 0, 0, FAIL)
    assert trial.known() == [(0.0, 0, {1, 2}, {0}, FAIL, 1)]
    for far in (-1000.0, 0.0, 1000.0):
        assert trial.select(far, 0)[1] == 0
        assert trial.select(far, 1) == (1, -1)  # where the agent wants another action there is no region
        assert trial.select(far, 2) == (2, -1)

    # time t+1: action 3 is drawn in that region and reaches the supremum: closed on 3
    assert trial.select(5.0, 0, order=[2, 1, 0]) == (2, 0)
    trial.update(5.0, 0, 2, 1.0)
    assert trial.known() == [(0.0, 0, {2}, {0, 2}, 1.0, 2)]
    assert trial.principles.n_open.tolist() == [0]
    assert trial.select(-3.0, 0) == (2, 0)

    # time t+2: in the same region action 3 fails: the region is split, the new principle opens, the old one stays
    assert trial.select(8.0, 0) == (2, 0)
    trial.update(8.0, 0, 2, FAIL)
    assert trial.known() == [(0.0, 0, {2}, {0, 2}, 1.0, 3), (8.0, 0, {1, 2}, {2}, FAIL, 1)]
    assert trial.principles.n_open.tolist() == [1]
    assert trial.select(3.5, 0) == (2, 0)
    assert trial.select(4.0, 0) == (2, 0)  # halfway: the older one
    assert trial.select(4.5, 0, order=[0, 1, 2]) == (1, 1)
    assert trial.select(8.0, 1) == (1, -1)


def test_text_ignores_good_actions() -> None:
    trial = Trial("text", 3)
    trial.update(0.0, 0, 0, 0.0)  # exactly thre
    trial.update(1.0, 1, 1, 1.0)
    assert trial.known() == []
    trial.update(2.0, 1, 1, FAIL)
    trial.update(3.0, 0, 0, GOOD)  # another key has a site, this one has none
    assert trial.known() == [(2.0, 1, {0, 2}, {1}, FAIL, 1)]


# rule, number of actions, the steps (at, wanted, executed, score), the principles after them. thre = 0, sup = 1.
Steps = list[tuple[float, int, int, float]]
Known = list[tuple[float, int, set[int], set[int], float, int]]
OPEN: Steps = [(0, 0, 0, FAIL)]
BY_HAND: dict[str, tuple[str, int, Steps, Known]] = {
    "printed: good at creation": ("printed", 4, [(0, 2, 2, 0.0)], [(0, 2, {2}, {2}, 0.0, 1)]),
    "printed: fails at creation": ("printed", 4, OPEN, [(0, 0, {1, 2, 3}, {0}, FAIL, 1)]),
    "printed: born closed with two actions": ("printed", 2, OPEN, [(0, 0, {1}, {0}, FAIL, 1)]),
    "printed: supremum": ("printed", 4, [*OPEN, (0, 0, 2, 1.0)], [(0, 0, {2}, {0, 2}, 1.0, 2)]),
    "printed: supremum by an action that is no candidate": (
        "printed", 4, [*OPEN, (0, 0, 0, 1.0)], [(0, 0, {0}, {0}, 1.0, 2)],
    ),
    "printed: better, other tested go": (
        "printed", 4, [*OPEN, (0, 0, 1, -0.5), (0, 0, 2, GOOD)], [(0, 0, {2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "printed: better though failing": ("printed", 4, [*OPEN, (0, 0, 1, -0.5)], [(0, 0, {1, 2, 3}, {0, 1}, -0.5, 2)]),
    "printed: equal and good, other tested go": (
        "printed", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, GOOD)], [(0, 0, {2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "printed: equal and failing goes": ("printed", 4, [*OPEN, (0, 0, 1, FAIL)], [(0, 0, {2, 3}, {0, 1}, FAIL, 2)]),
    "printed: worse and failing goes": ("printed", 4, [*OPEN, (0, 0, 1, -2.0)], [(0, 0, {2, 3}, {0, 1}, FAIL, 2)]),
    "printed: worse but good changes nothing": (
        "printed", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, 0.25)], [(0, 0, {1, 2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "printed: closed by elimination": (
        "printed", 3, [*OPEN, (0, 0, 1, -0.5), (0, 0, 2, -0.25), (0, 0, 0, GOOD)],
        # step 3 leaves {2}: closed, so step 4 changes the tested actions only
        [(0, 0, {2}, {0, 1, 2}, -0.25, 4)],
    ),
    "printed: all candidates tested, then another action is better": (
        "printed", 3, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, 0.25), (0, 0, 0, 0.75)],
        # step 3 changes nothing, so {1, 2} are both tested; step 4 by 0 would remove both: they stay
        [(0, 0, {1, 2}, {0, 1, 2}, 0.75, 4)],
    ),
    "printed: closed ignores better, equal and supremum": (
        "printed", 2, [*OPEN, (0, 0, 1, FAIL), (0, 0, 1, GOOD), (0, 0, 1, 1.0)], [(0, 0, {1}, {0, 1}, FAIL, 4)],
    ),
    "printed: closed fails again, same action again": (
        "printed", 2, [*OPEN, (3, 0, 1, -2.0)], [(0, 0, {1}, {0, 1}, FAIL, 2), (3, 0, {1}, {1}, -2.0, 1)],
    ),
    "printed: closed, worse but good": (
        "printed", 2, [(0, 0, 0, GOOD), (3, 0, 0, 0.0)], [(0, 0, {0}, {0}, GOOD, 2)],
    ),
    "printed: another key at the same point is never found": (
        "printed", 3, [(0, 0, 0, FAIL), (0, 1, 1, GOOD), (0, 1, 1, FAIL)],
        [(0, 0, {1, 2}, {0}, FAIL, 1), (0, 1, {1}, {1}, GOOD, 1), (0, 1, {0, 2}, {1}, FAIL, 1)],
    ),
    "text: another key at the same point is found": (
        "text", 3, [(0, 0, 0, FAIL), (0, 1, 1, FAIL), (0, 1, 0, GOOD)],
        [(0, 0, {1, 2}, {0}, FAIL, 1), (0, 1, {0, 2}, {0, 1}, GOOD, 2)],
    ),
    "text: better but failing goes, best stays": (
        "text", 4, [*OPEN, (0, 0, 1, -0.5)], [(0, 0, {2, 3}, {0, 1}, FAIL, 2)],
    ),
    "text: good but below best goes": (
        "text", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, 0.25)], [(0, 0, {1, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "text: equal and good, other tested go": (
        "text", 4, [*OPEN, (0, 0, 1, GOOD), (0, 0, 2, GOOD)], [(0, 0, {2, 3}, {0, 1, 2}, GOOD, 3)],
    ),
    "text: closed fails, A without the wanted": (
        "text", 3, [*OPEN, (0, 0, 1, 1.0), (3, 0, 1, FAIL)],
        [(0, 0, {1}, {0, 1}, 1.0, 3), (3, 0, {1, 2}, {1}, FAIL, 1)],
    ),
    "text: closed, as bad as ever": ("text", 2, [*OPEN, (3, 0, 1, FAIL)], [(0, 0, {1}, {0, 1}, FAIL, 2)]),
    "revised: closed fails, A without the executed": (
        "revised", 2, [*OPEN, (3, 0, 1, -2.0)], [(0, 0, {1}, {0, 1}, FAIL, 2), (3, 0, {0}, {1}, -2.0, 1)],
    ),
    "revised: best of a closed one rises, then it can fail": (
        "revised", 2, [*OPEN, (3, 0, 1, GOOD), (4, 0, 1, FAIL)],
        [(0, 0, {1}, {0, 1}, GOOD, 3), (4, 0, {0}, {1}, FAIL, 1)],
    ),
    "revised: best of a closed one rises to the supremum": (
        "revised", 2, [*OPEN, (3, 0, 1, 1.0)], [(0, 0, {1}, {0, 1}, 1.0, 2)],
    ),
    "revised: creation as printed, whatever was executed": (
        "revised", 3, [(0, 0, 1, FAIL)], [(0, 0, {1, 2}, {1}, FAIL, 1)],
    ),
    "fallback: good at creation": ("fallback", 3, [(0, 1, 1, 0.0)], [(0, 1, {1}, {1}, 0.0, 1)]),
    "fallback: fails at creation": ("fallback", 3, OPEN, [(0, 0, {0, 1, 2}, {0}, FAIL, 1)]),
    "fallback: good enough closes": ("fallback", 3, [*OPEN, (0, 0, 2, 0.0)], [(0, 0, {2}, {0, 2}, 0.0, 2)]),
    "fallback: supremum closes": ("fallback", 3, [*OPEN, (0, 0, 2, 1.0)], [(0, 0, {2}, {0, 2}, 1.0, 2)]),
    "fallback: better but failing leads": (
        "fallback", 4, [*OPEN, (0, 0, 2, -0.5)], [(0, 0, {1, 2, 3}, {0, 2}, -0.5, 2)],
    ),
    "fallback: equal does not lead": ("fallback", 4, [*OPEN, (0, 0, 2, FAIL)], [(0, 0, {0, 1, 3}, {0, 2}, FAIL, 2)]),
    "fallback: all failed, the best one stays": (
        "fallback", 3, [*OPEN, (0, 0, 2, -0.5), (0, 0, 1, -2.0)], [(0, 0, {2}, {0, 1, 2}, -0.5, 3)],
    ),
    "fallback: all failed, back to the agent's own action": (
        "fallback", 2, [*OPEN, (0, 0, 1, -2.0)], [(0, 0, {0}, {0, 1}, FAIL, 2)],
    ),
    "fallback: closed fails, everything again": (
        "fallback", 2, [*OPEN, (0, 0, 1, GOOD), (3, 0, 1, FAIL)],
        [(0, 0, {1}, {0, 1}, GOOD, 3), (3, 0, {0, 1}, {1}, FAIL, 1)],
    ),
    "fallback: best of a closed one does not rise": (
        "fallback", 2, [*OPEN, (0, 0, 1, GOOD), (3, 0, 1, 1.0)], [(0, 0, {1}, {0, 1}, GOOD, 3)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND.values(), ids=BY_HAND.keys())
def test_by_hand(case: tuple[str, int, Steps, Known]) -> None:
    rule, n_actions, steps, known = case
    trial = Trial(rule, n_actions)
    oracle = Oracle(n_actions, rule)
    for at, wanted, executed, score in steps:
        trial.update(at, wanted, executed, score)
        oracle.update((at,), wanted, executed, score, thre=0.0, sup=1.0)
    judged = [(p.site[0], p.key, p.candidates, p.tested, p.best, p.visits) for p in oracle.principles]
    assert judged == known  # the oracle is held to the same values
    assert trial.known() == known
    assert trial.principles.n_open.tolist() == [sum(len(candidates) > 1 for _, _, candidates, *_ in known)]


def test_a_region_with_another_key_leaves_the_agent_alone() -> None:
    for rule in ("printed", "revised", "fallback"):
        trial = Trial(rule, 3)
        trial.update(0.0, 0, 0, FAIL)
        assert trial.select(0.0, 1) == (1, 0)  # found, but it is not about action 1
        trial.update(0.0, 1, 1, FAIL)
        assert [key for _, key, *_ in trial.known()] == [0, 1]
        assert trial.known()[0][-1] == 1  # not a visit


@pytest.mark.parametrize("rule", RULES)
def test_select_changes_nothing(rule: str) -> None:
    trial = Trial(rule, 5)
    trial.update(0.0, 0, 0, FAIL)
    before = trial.known()
    states, wanted, order = as_states([[1.0]]), as_rows([0]), as_rows([4, 3, 2, 1, 0])[None]
    for priorities in (None, order):
        trial.principles.select(as_rows([0]), states, wanted, priorities)
    assert trial.known() == before
    assert (states.tolist(), wanted.tolist(), order.tolist()) == ([[1.0]], [0], [[4, 3, 2, 1, 0]])


@pytest.mark.parametrize("rule", RULES)
def test_start_forgets(rule: str) -> None:
    """Only the rows that start anew are emptied."""
    principles = Principles(3, 3, 2, rule=rule)
    rows = as_rows([0, 1, 2])
    principles.start(rows, as_keys([1, 2, 3]))
    states = as_states([[0, 0], [1, 1], [2, 2]])
    wanted = as_rows([0, 1, 2])
    _, regions = principles.select(rows, states, wanted)
    principles.update(rows, states, wanted, wanted, regions, np.full(3, FAIL), 0.0, 1.0)
    assert principles.n_regions.tolist() == principles.n_open.tolist() == [1, 1, 1]
    kept = [principles.table(0), principles.table(2)]
    principles.start(as_rows([1]), as_keys([4]))
    assert principles.n_regions.tolist() == principles.n_open.tolist() == [1, 0, 1]
    assert len(principles.table(1)["wanted"]) == 0
    actions, regions = principles.select(rows, states, wanted, order=np.tile(as_rows([0, 1, 2]), (3, 1)))
    assert regions.tolist() == [0, -1, 0]
    assert actions.tolist() == [1, 1, 0]
    assert_same_table(principles.table(0), kept[0])
    assert_same_table(principles.table(2), kept[1])


# ---- the choice of a candidate --------------------------------------------------------------------------------------


def draws(key: int, n_actions: int, n_draws: int) -> list[int]:
    """The actions drawn, one per step, from one open principle (key action 0) that learns nothing."""
    trial = Trial("printed", n_actions, key)
    trial.update(0.0, 0, 0, FAIL)
    drawn = []
    for _ in range(n_draws):
        drawn.append(trial.select(0.0, 0)[0])
        trial.update(0.0, 0, 1, -2.0, thre=-3.0)  # worse but good: nothing happens
    assert trial.principles.n_open.tolist() == [1]
    return drawn


def assert_about_uniform(drawn: Sequence[int], over: Sequence[int]) -> None:
    """Chi-square within six standard deviations of its mean. Keys are fixed, so the outcome never changes."""
    assert set(drawn) <= set(over)
    expected = len(drawn) / len(over)
    counts = np.bincount(drawn, minlength=max(over) + 1)[list(over)]
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    freedom = len(over) - 1
    assert chi_square < freedom + 6 * (2 * freedom) ** 0.5
    assert chi_square > freedom - 6 * (2 * freedom) ** 0.5 or freedom < 80  # nor suspiciously even


def test_the_key_decides_the_draws() -> None:
    first = draws(11, 5, 64)
    assert draws(11, 5, 64) == first
    others = [draws(key, 5, 64) for key in (0, 1, 2, 12, 11 + 2**32, 2**63, 2**64 - 1)]
    for i, one in enumerate([first, *others]):
        for other in others[i:]:
            agree = sum(a == b for a, b in zip(one, other, strict=True))
            assert agree < 40  # 16 expected of 64


def test_start_with_the_same_key_draws_the_same_again() -> None:
    trial = Trial("printed", 5, key=3)
    seen = []
    for _ in range(2):
        trial.principles.start(as_rows([0]), as_keys([3]))
        trial.update(0.0, 0, 0, FAIL)
        seen.append([trial.select(0.0, 0)[0] for _ in range(40)])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("n_actions", [3, 5, 65])
def test_random_candidates_are_about_uniform(n_actions: int) -> None:
    assert_about_uniform(draws(5, n_actions, 30 * n_actions + 400), range(1, n_actions))


def test_draws_in_sequence_are_independent() -> None:
    drawn = draws(6, 5, 1600)
    assert_about_uniform([4 * (a - 1) + b - 1 for a, b in itertools.pairwise(drawn)], range(16))


@pytest.mark.parametrize("n_actions", [4, 65])
def test_rows_with_neighbouring_keys_draw_independently(n_actions: int) -> None:
    n = 40 * n_actions
    rows = np.arange(n)
    principles = Principles(n, n_actions, 1, rule="printed")
    principles.start(rows, rows.astype(np.uint64))
    states, wanted = np.zeros((n, 1), np.float32), np.full(n, n_actions - 1)
    _, regions = principles.select(rows, states, wanted)
    principles.update(rows, states, wanted, wanted, regions, np.full(n, FAIL), 0.0, 1.0)
    drawn = principles.select(rows, states, wanted)[0].tolist()
    assert_about_uniform(drawn, range(n_actions - 1))
    if n_actions == 4:
        assert_about_uniform([3 * a + b for a, b in zip(drawn[::2], drawn[1::2], strict=True)], range(9))


def test_fallback_draws_only_what_was_not_tested() -> None:
    trial = Trial("fallback", 6)
    trial.update(0.0, 2, 2, FAIL)
    tested = {2}
    while trial.principles.n_open[0]:
        drawn = {trial.select(0.0, 2)[0] for _ in range(200)}
        assert drawn == set(range(6)) - tested
        action = min(drawn)
        trial.update(0.0, 2, action, -0.5 if action == 3 else FAIL)
        tested.add(action)
    assert tested == set(range(6))
    assert trial.select(0.0, 2) == (3, 0)


@pytest.mark.parametrize("rule", RULES)
def test_an_order_is_gone_through(rule: str) -> None:
    """Every try fails: the order's actions come one after the other, without the agent's own."""
    trial = Trial(rule, 5)
    trial.update(0.0, 1, 1, FAIL)
    order = [3, 1, 4, 0, 2]
    tried = []
    while trial.principles.n_open[0]:
        action, region = trial.select(0.0, 1, order)
        assert region == 0
        tried.append(action)
        trial.update(0.0, 1, action, -2.0)
    last = trial.select(0.0, 1, order)[0]
    if rule == "fallback":
        assert (tried, last) == ([3, 4, 0, 2], 1)  # all were judged: the agent's own was the best
    else:
        assert (tried, last) == ([3, 4, 0], 2)  # the last candidate stays


def test_an_order_is_per_row() -> None:
    principles = Principles(4, 3, 1, rule="printed")
    rows, states, wanted = np.arange(4), np.zeros((4, 1), np.float32), np.zeros(4, np.int64)
    principles.start(rows, rows.astype(np.uint64))
    _, regions = principles.select(rows, states, wanted)
    principles.update(rows, states, wanted, wanted, regions, np.full(4, FAIL), 0.0, 1.0)
    order = np.array([[0, 1, 2], [2, 1, 0], [0, 2, 1], [1, 0, 2]])
    assert principles.select(rows, states, wanted, order)[0].tolist() == [1, 2, 2, 1]
    assert principles.select(rows[::-1].copy(), states, wanted, order)[0].tolist() == [1, 2, 2, 1]


# ---- many regions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["printed", "fallback"])
def test_growth(rule: str) -> None:
    """Trials of very different size side by side; one starts anew when it is large, and its room is used again."""
    n_actions = 3
    rng = np.random.default_rng(1)
    principles = Principles(3, n_actions, 1, rule=rule)
    principles.start(as_rows([0, 1, 2]), as_keys([1, 2, 3]))
    oracles = {row: Oracle(n_actions, rule) for row in range(3)}

    scores = itertools.count(-1.0, -1.0)  # ever worse: every principle gets closed, every closed one is split

    def step(rows: list[int], count: int) -> None:
        for _ in range(count):
            points = (rng.integers(-4000, 4000, len(rows)) / 8).tolist()
            wanted = rng.integers(0, n_actions, len(rows)).tolist()
            states = as_states([[point] for point in points])
            score = next(scores)
            actions, regions = principles.select(as_rows(rows), states, as_rows(wanted))
            principles.update(
                as_rows(rows), states, as_rows(wanted), actions, regions, np.full(len(rows), score), 0.0, 1.0
            )
            for i, row in enumerate(rows):
                at = (points[i],)
                assert regions[i] == oracles[row].nearest(at, wanted[i])
                oracles[row].update(at, wanted[i], int(actions[i]), score, thre=0.0, sup=1.0)

    step([0, 1, 2], 30)
    while len(oracles[1].principles) < 1001:
        step([1], 20)
    step([2, 0], 100)
    for row in range(3):
        assert_table(principles.table(row), oracles[row], n_actions)
    for restarted, growing in ((1, [1, 0]), (0, [2, 1]), (2, [2, 0]), (1, [0, 1, 2]), (2, [1])):
        principles.start(as_rows([restarted]), as_keys([4]))
        oracles[restarted] = Oracle(n_actions, rule)
        step([restarted], 1)
        step(growing, 150)
        for row in range(3):
            assert_table(principles.table(row), oracles[row], n_actions)
    assert principles.n_regions.tolist() == [len(oracles[row].principles) for row in range(3)]
    assert principles.n_open.tolist() == [sum(p.is_open for p in oracles[row].principles) for row in range(3)]


@pytest.mark.parametrize(
    ("rule", "dim", "offset"),
    [
        ("printed", 64, 0.0),
        ("printed", 256, 0.0),
        ("printed", 64, 50.0),  # far from the origin: |x|^2 - 2xy + |y|^2 in float32 would lose the difference
        ("text", 64, 0.0),
        ("text", 256, 50.0),
    ],
)
def test_search_is_exact(rule: str, dim: int, offset: float) -> None:
    """Against a float64 argmin, wherever the nearest two differ by more than rounding."""
    n_steps, n_rows = 1100, 2
    rng = np.random.default_rng(dim)
    steps = rng.normal(size=(n_rows, n_steps, dim)) * np.where(rng.random((n_rows, n_steps, 1)) < 0.5, 0.05, 1.0)
    points = as_states(offset + steps.cumsum(axis=1) / 8)  # a walk: near neighbours, with jumps
    centred = points.astype(np.float64) - points.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=2)
    all_distances = squares[:, :, None] + squares[:, None] - 2 * centred @ centred.transpose(0, 2, 1)
    wanted = rng.integers(0, 2, (n_steps, n_rows))
    principles = Principles(n_rows, 2, dim, rule=rule)
    rows = np.arange(n_rows)
    principles.start(rows, as_keys([1, 2]))

    judged = 0
    for t in range(n_steps):
        states = np.ascontiguousarray(points[:, t])
        actions, regions = principles.select(rows, states, wanted[t])
        for row in rows:
            distances = all_distances[row, t, :t].copy()
            if rule == "text":
                distances[wanted[:t, row] != wanted[t, row]] = np.inf
            if not np.isfinite(distances).any():
                assert regions[row] == -1
                continue
            nearest, second = np.argsort(distances, kind="stable")[:2] if t > 1 else (0, 0)
            if nearest == second or distances[second] > distances[nearest] * (1 + 1e-4):
                assert regions[row] == nearest
                judged += 1
        # two actions and scores that only get worse: every step adds a point
        principles.update(rows, states, wanted[t], actions, regions, np.full(n_rows, -1.0 - t), 0.0, 1.0)
    assert principles.n_regions.tolist() == [n_steps] * n_rows
    assert judged > 0.95 * n_rows * n_steps

    for t in rng.permutation(n_steps)[:200]:  # a stored point is its own nearest
        states = np.ascontiguousarray(points[:, t])
        assert principles.select(rows, states, wanted[t])[1].tolist() == [t, t]
    np.testing.assert_array_equal(principles.table(1)["site"], points[1])


@pytest.mark.parametrize("rule", ["printed", "text"])
@pytest.mark.parametrize(("dim", "used", "offset"), [(9, 9, 0.0), (20, 3, 0.0), (20, 3, 2.0**17), (64, 64, 1000.0)])
def test_search_with_many_ties(rule: str, dim: int, used: int, offset: float) -> None:
    """On a grid every distance is exact in float32, so ties are ties; alone or in a batch, the same is found.

    With few coordinates in use the sites lie in a plane, where a lower bound from a projection is as good as exact and
    must not rule out a site by its own rounding.
    """
    n_steps, n_rows = 300, 3
    rng = np.random.default_rng(dim)
    moved = rng.integers(-1, 2, (n_rows, n_steps, dim)) * (rng.random((n_rows, n_steps, dim)) < 4 / dim)
    if used < dim:
        moved = np.zeros_like(moved)
        moved[..., :used] = rng.integers(-4, 5, (n_rows, n_steps, used))
    exact = offset + moved / 8
    points = as_states(exact)
    assert (points == exact).all()
    wanted = rng.integers(0, 2, (n_steps, n_rows))
    rows = np.arange(n_rows)
    together = Principles(n_rows, 2, dim, rule=rule)
    together.start(rows, as_keys([1, 2, 3]))
    alone = Principles(1, 2, dim, rule=rule)
    alone.start(as_rows([0]), as_keys([3]))
    ties = 0
    for t in range(n_steps):
        states = np.ascontiguousarray(points[:, t])
        score = np.full(n_rows, -1.0 - t)
        actions, regions = together.select(rows, states, wanted[t])
        also_actions, also_regions = alone.select(as_rows([0]), states[2:], wanted[t, 2:])
        assert (also_actions[0], also_regions[0]) == (actions[2], regions[2])
        for row in rows:
            distances = ((exact[row, :t] - exact[row, t]) ** 2).sum(axis=1)
            if rule == "text":
                distances[wanted[:t, row] != wanted[t, row]] = np.inf
            expected = int(distances.argmin()) if np.isfinite(distances).any() else -1
            assert regions[row] == expected
            ties += expected >= 0 and int((distances == distances[expected]).sum()) > 1
        together.update(rows, states, wanted[t], actions, regions, score, 0.0, 1.0)
        alone.update(as_rows([0]), states[2:], wanted[t, 2:], also_actions, also_regions, score[:1], 0.0, 1.0)
    assert ties > n_steps // 2
    assert_same_table(alone.table(0), together.table(2))


def test_everything_forgotten_after_many_regions() -> None:
    """Many regions at once, then none at all: the search structure has nothing left to look at."""
    n, dim = 2100, 16
    rows, wanted = np.arange(n), np.zeros(n, np.int64)
    states = as_states(np.random.default_rng(0).normal(size=(n, dim)))
    principles = Principles(n, 3, dim, rule="text")
    for score, n_regions in ((FAIL, n), (GOOD, 0), (FAIL, n)):
        principles.start(rows, rows.astype(np.uint64))
        actions, regions = principles.select(rows, states, wanted)
        assert set(regions.tolist()) == {-1}
        principles.update(rows, states, wanted, actions, regions, np.full(n, score), 0.0, 1.0)
        assert principles.n_regions.sum() == n_regions


def test_search_tells_neighbouring_floats_apart() -> None:
    """Sites one rounding step apart, far from the origin, and each of them twice."""
    dim, n_sites = 64, 40
    sites = np.full((n_sites, dim), 50.0, np.float32)
    for i in range(1, n_sites):
        sites[i] = sites[i - 1]
        sites[i, i] = np.nextafter(sites[i, i], np.float32(100))
    principles = Principles(1, 2, dim, rule="printed")
    principles.start(as_rows([0]), as_keys([1]))
    for t, site in enumerate([*sites, *sites]):
        actions, regions = principles.select(as_rows([0]), site[None], as_rows([0]))
        assert regions[0] == (t - 1 if t < n_sites else t - n_sites)  # of equal points, the first
        principles.update(as_rows([0]), site[None], as_rows([0]), actions, regions, np.array([-1.0 - t]), 0.0, 1.0)
    assert principles.n_regions.tolist() == [2 * n_sites]


@pytest.mark.parametrize("rule", RULES)
def test_situations_do_not_matter_for_learning(rule: str) -> None:
    plain, described = Principles(2, 3, 1, rule=rule), Principles(2, 3, 1, rule=rule, situation_dim=4)
    rng = np.random.default_rng(2)
    rows = np.arange(2)
    for principles in (plain, described):
        principles.start(rows, as_keys([1, 2]))
    for _ in range(60):
        states = as_states(rng.integers(-3, 4, (2, 1)))
        wanted, scores = rng.integers(0, 3, 2), rng.choice(SCORES, 2)
        situations = as_states(rng.normal(size=(2, 4)))
        actions, regions = plain.select(rows, states, wanted)
        also = described.select(rows, states, wanted)
        assert (also[0].tolist(), also[1].tolist()) == (actions.tolist(), regions.tolist())
        plain.update(rows, states, wanted, actions, regions, scores, 0.0, 1.0)
        described.update(rows, states, wanted, actions, regions, scores, 0.0, 1.0, situations=situations)
    for row in range(2):
        assert_same_table(plain.table(row), described.table(row))
