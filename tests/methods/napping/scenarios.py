"""Random scenarios for the batched principles, compared with the pseudo-code at every step."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from methods.napping.pseudo_code import PseudoCode
from methods.napping.trial import SCORES, Table, as_keys, as_rows, as_states, assert_table
from nappingrl.methods.napping.principles import Principles

AS_SELECTED, AS_WANTED = -1, -2  # for Move.executed: the selected action, the wanted action (otherwise an action)
N_ACTIONS = (2, 3, 5, 64, 65, 300)  # 64 and 65: around one machine word


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
    """One call of select and of update; `restarts` are the (row, key) pairs of trials that restart before it."""

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
    some = sorted({0, 1, n_actions - 1, n_actions // 2})  # few actions, or wanted actions would never match
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
    """A long scenario with few points in few dimensions, so that principles are visited often."""
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
    references: dict[int, PseudoCode] | None = None,
    backwards: bool = False,
    match_wanted: bool = False,
) -> tuple[dict[int, list[tuple[int, int]]], dict[int, Table]]:
    """The (action, region) pairs and the final table of each trial, played together.

    rows: play only these trials. references: filled with one reference per trial and compared at every step.
    backwards: the rows of each batch in reverse.
    """
    rows = list(range(scenario.n)) if rows is None else list(rows)
    place = {row: i for i, row in enumerate(rows)}  # where a trial is kept
    n_actions = scenario.n_actions
    principles = Principles(len(rows), n_actions, scenario.dim, rule=rule, match_wanted=match_wanted)
    principles.start(as_rows(list(place.values())), as_keys([scenario.keys[row] for row in rows]))
    if references is not None:
        references.update({row: PseudoCode(n_actions, rule, match_wanted) for row in rows})
    seen: dict[int, list[tuple[int, int]]] = {row: [] for row in rows}

    for batch in scenario.batches:
        restarts = [(row, key) for row, key in batch.restarts if row in place]
        if restarts:
            principles.start(as_rows([place[row] for row, _ in restarts]), as_keys([key for _, key in restarts]))
            if references is not None:
                references.update({row: PseudoCode(n_actions, rule, match_wanted) for row, _ in restarts})
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
            if references is not None:
                reference = references[move.row]
                assert regions[i] == reference.nearest(move.point, move.wanted)
                if order is None:
                    assert actions[i] in reference.eligible(move.point, move.wanted)
                else:
                    assert actions[i] == reference.select(move.point, move.wanted, order[i].tolist())
                reference.update(move.point, move.wanted, executed[i], move.score, thre[i], sup[i])
                assert principles.n_regions[where[i]] == len(reference.principles)
                assert principles.n_open[where[i]] == sum(p.is_open for p in reference.principles)
                if len(scenario.batches) < 100:
                    assert_table(principles.table(int(where[i])), reference, n_actions)

    tables = {row: principles.table(place[row]) for row in rows}
    if references is not None:
        for row in rows:
            assert_table(tables[row], references[row], n_actions)
        assert principles.n_regions.tolist() == [len(references[row].principles) for row in rows]
        assert principles.n_open.tolist() == [sum(p.is_open for p in references[row].principles) for row in rows]
    return seen, tables
