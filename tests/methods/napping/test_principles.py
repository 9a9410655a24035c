"""The batched principles against the pseudo-code, and the choice of candidates."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from methods.napping.pseudo_code import PseudoCode
from methods.napping.scenarios import Scenario, play, random_scenario, scenarios
from methods.napping.trial import FAIL, SCORES, Trial, as_keys, as_rows, as_states, assert_same_table
from nappingrl.methods.napping.principles import Principles
from nappingrl.methods.napping.rules import RULES

FEW = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.parametrize("rule", RULES)
@FEW
@given(scenario=scenarios())
def test_matches_pseudo_code(rule: str, scenario: Scenario) -> None:
    play(scenario, rule, references={})


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_actions", [2, 3, 5, 300])
def test_long_trials_match_pseudo_code(rule: str, n_actions: int) -> None:
    references: dict[int, PseudoCode] = {}
    play(random_scenario(n_actions, n_actions, n_batches=400), rule, references=references)
    known = [p for reference in references.values() for p in reference.principles]
    assert max(p.visits for p in known) > 5  # the scenario does exercise the update
    assert len({p.is_open for p in known}) == 2 or n_actions == 2


@pytest.mark.parametrize("rule", RULES)
@settings(FEW, max_examples=20)
@given(scenario=scenarios())
def test_match_wanted_matches_pseudo_code(rule: str, scenario: Scenario) -> None:
    play(scenario, rule, references={}, match_wanted=True)


@pytest.mark.parametrize("rule", RULES)
def test_match_wanted_matches_pseudo_code_in_long_trials(rule: str) -> None:
    scenario = random_scenario(1, 3, n_batches=400)
    seen, _ = play(scenario, rule, references={}, match_wanted=True)
    assert (seen == play(scenario, rule)[0]) == (rule == "text"), "the text rule always matches the wanted action"


@pytest.mark.parametrize("rule", RULES)
@settings(FEW, max_examples=20)
@given(scenario=scenarios(max_batches=15))
def test_trials_are_independent_of_their_batch(rule: str, scenario: Scenario) -> None:
    """Alone or together, in any order: the same actions (random ones too), regions and tables."""
    seen, tables = play(scenario, rule)
    seen_backwards, tables_backwards = play(scenario, rule, backwards=True)
    assert seen_backwards == seen
    for row in range(scenario.n):
        assert_same_table(tables_backwards[row], tables[row])
        seen_alone, tables_alone = play(scenario, rule, rows=[row])
        assert seen_alone[row] == seen[row]
        assert_same_table(tables_alone[row], tables[row])


@pytest.mark.parametrize("rule", RULES)
def test_new_trial_is_empty(rule: str) -> None:
    trial = Trial(rule, 5)
    assert trial.select(0.0, 3) == (3, -1)
    assert trial.known() == []
    table = trial.principles.table(0)
    assert table["site"].shape == (0, 1)
    assert table["candidates"].shape == table["tested"].shape == (0, 5)
    assert trial.principles.n_regions.tolist() == trial.principles.n_open.tolist() == [0]


def test_region_of_another_action_returns_the_wanted_action() -> None:
    for rule in ("printed", "revised", "fallback"):
        trial = Trial(rule, 3)
        trial.update(0.0, 0, 0, FAIL)
        assert trial.select(0.0, 1) == (1, 0)  # found, but created for action 0
        trial.update(0.0, 1, 1, FAIL)
        assert [wanted for _, wanted, *_ in trial.known()] == [0, 1]
        assert trial.known()[0][-1] == 1  # not counted as a visit


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
def test_start_clears_only_its_rows(rule: str) -> None:
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


@pytest.mark.parametrize("rule", RULES)
def test_situations_do_not_affect_learning(rule: str) -> None:
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


# ---- the choice of a candidate --------------------------------------------------------------------------------------


def draws(key: int, n_actions: int, n_draws: int) -> list[int]:
    """The actions drawn, one per step, from one open principle (wanted action 0) that learns nothing."""
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


def test_key_determines_draws() -> None:
    first = draws(11, 5, 64)
    assert draws(11, 5, 64) == first
    others = [draws(key, 5, 64) for key in (0, 1, 2, 12, 11 + 2**32, 2**63, 2**64 - 1)]
    for i, one in enumerate([first, *others]):
        for other in others[i:]:
            agree = sum(a == b for a, b in zip(one, other, strict=True))
            assert agree < 40  # 16 expected of 64


def test_same_key_repeats_draws() -> None:
    trial = Trial("printed", 5, key=3)
    seen = []
    for _ in range(2):
        trial.principles.start(as_rows([0]), as_keys([3]))
        trial.update(0.0, 0, 0, FAIL)
        seen.append([trial.select(0.0, 0)[0] for _ in range(40)])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("n_actions", [3, 5, 65])
def test_random_candidates_are_uniform(n_actions: int) -> None:
    assert_about_uniform(draws(5, n_actions, 30 * n_actions + 400), range(1, n_actions))


def test_successive_draws_are_independent() -> None:
    drawn = draws(6, 5, 1600)
    assert_about_uniform([4 * (a - 1) + b - 1 for a, b in itertools.pairwise(drawn)], range(16))


@pytest.mark.parametrize("n_actions", [4, 65])
def test_adjacent_keys_draw_independently(n_actions: int) -> None:
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


def test_fallback_draws_untested_actions_only() -> None:
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
def test_order_is_followed(rule: str) -> None:
    """If every action fails, the actions come in the given order, without the wanted one."""
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
        assert (tried, last) == ([3, 4, 0, 2], 1)  # all were judged: the wanted one was the best
    else:
        assert (tried, last) == ([3, 4, 0], 2)  # the last candidate stays


def test_order_is_per_row() -> None:
    principles = Principles(4, 3, 1, rule="printed")
    rows, states, wanted = np.arange(4), np.zeros((4, 1), np.float32), np.zeros(4, np.int64)
    principles.start(rows, rows.astype(np.uint64))
    _, regions = principles.select(rows, states, wanted)
    principles.update(rows, states, wanted, wanted, regions, np.full(4, FAIL), 0.0, 1.0)
    order = np.array([[0, 1, 2], [2, 1, 0], [0, 2, 1], [1, 0, 2]])
    assert principles.select(rows, states, wanted, order)[0].tolist() == [1, 2, 2, 1]
    assert principles.select(rows[::-1].copy(), states, wanted, order)[0].tolist() == [1, 2, 2, 1]
