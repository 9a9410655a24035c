"""Terminations: half-spaces and quadrics, found from terminal and survived states."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.methods.foresight.config import ForesightConfig
from nappingrl.methods.foresight.quadric import fit_quadric, outside
from nappingrl.methods.foresight.terminations import Terminations, find_terminations, terminal_reward, termination_at
from nappingrl.world_model.transitions import Transitions
from world_model.toy_domains import transitions_of

HORIZON = 100
CONFIG = ForesightConfig()
BAD, WANTED = 1.0, -1.0
"""Rewards of every step, the last one too: going on is good, or it is what is to be avoided."""


def episodes(survived: Any, last: Any, reward: float, at_end: Any = None) -> Transitions:
    """Steps from each survived state to itself, and one from the centre to each terminal state."""
    survived, last = np.atleast_2d(np.asarray(survived, float)), np.asarray(last, float)
    last = last.reshape(-1, survived.shape[1])
    n, m = len(survived), len(last)
    rewards = np.full(n + m, reward)
    if at_end is not None:
        rewards[n:] = at_end
    states = np.vstack([survived, np.repeat(survived[:1], m, axis=0)])
    return transitions_of(states, np.ones((n + m, 1)), np.vstack([survived, last]), rewards, np.arange(n + m) >= n)


def find(transitions: Transitions, horizon: int = HORIZON) -> Terminations:
    d = transitions.states.shape[1]
    return find_terminations([transitions], np.zeros(d), np.ones(d), horizon, CONFIG)


def conditions(terminations: Terminations) -> list[list[tuple[int, int, float]]]:
    """Of each termination: (observation, side, limit)."""
    return [
        [(int(d), int(s), round(float(x), 9)) for d, s, x in zip(*row, strict=True) if d >= 0]
        for row in zip(terminations.observations, terminations.sides, terminations.limits, strict=True)
    ]


def holds(terminations: Terminations, *state: float) -> bool:
    return bool(termination_at(terminations, np.array(state)) >= 0)


LINE = [[0.0], [0.9], [-0.5]]


# ---- half-spaces --------------------------------------------------------------------------------------------------


def test_a_bad_termination_begins_a_quarter_of_the_way_from_the_survivors() -> None:
    terminations = find(episodes([*LINE, [-3.0]], [[1.3], [1.1]], BAD))
    assert conditions(terminations) == [[(0, 1, 0.95)]]
    assert holds(terminations, 0.96)
    assert not holds(terminations, 0.94)
    assert terminations.n_unexplained == 0
    assert terminations.is_known


def test_a_wanted_termination_begins_three_quarters_of_the_way() -> None:
    terminations = find(episodes(LINE, [[1.3], [1.1]], WANTED))
    assert conditions(terminations) == [[(0, 1, 1.05)]]
    assert holds(terminations, 1.06)
    assert not holds(terminations, 1.04)
    assert not holds(terminations, -1.06)


@pytest.mark.parametrize("sign", [1, -1])
def test_either_side(sign: int) -> None:
    survived = [[0.0, 0.0], [0.0, 0.5], [0.0, -3.0], [0.0, 3.0]]
    terminations = find(episodes(survived, [[0.0, sign * 4.0]], BAD))
    assert conditions(terminations)[0] == [(1, sign, sign * 3.25)]


def test_terminations_on_both_sides_are_two() -> None:
    terminations = find(episodes(LINE, [[1.3], [1.1], [-1.5]], BAD))
    assert conditions(terminations) == [[(0, 1, 0.95)], [(0, -1, -0.75)]]  # each has its own border: no mirror


def test_whether_an_termination_is_bad_is_judged_by_what_half_the_horizon_earns() -> None:
    """Going on earns 50 in half the horizon: a termination that gives 51 is wanted, one that gives 49 is not."""
    for at_end, limit in ((49.0, 0.95), (51.0, 1.05)):
        terminations = find(episodes([*LINE, [-3.0]], [[1.1]], 1.0, at_end))
        assert conditions(terminations) == [[(0, 1, limit)]]
        assert terminations.rewards.tolist() == [at_end]


def test_what_was_seen_before_and_since_counts_together() -> None:
    """A state survived in one of them moves the border of a termination in the other."""
    old, new = episodes([[0.0], [0.3], [-5.0]], [], BAD), episodes([[0.0]], [[1.0], [0.2]], BAD)
    terminations = find_terminations([old, new], np.zeros(1), np.ones(1), HORIZON, CONFIG)
    assert conditions(terminations) == [[(0, 1, 0.475)]]
    assert terminations.n_unexplained == 1  # the one at 0.2


def test_nothing_ended_nothing_known() -> None:
    terminations = find(episodes(LINE, [], BAD))
    assert not terminations.is_known
    assert not holds(terminations, 1e9)
    assert terminations.n_unexplained == 0
    assert terminations.max_reward == 0.0


# ---- the mirror ---------------------------------------------------------------------------------------------------


def test_a_bad_termination_is_expected_on_the_opposite_side_until_a_state_there_is_survived() -> None:
    last = [[1.1]]
    assert conditions(find(episodes(LINE, last, BAD))) == [[(0, 1, 0.95)], [(0, -1, -0.95)]]
    assert conditions(find(episodes([*LINE, [-0.94]], last, BAD))) == [[(0, 1, 0.95)], [(0, -1, -0.95)]]
    assert conditions(find(episodes([*LINE, [-0.96]], last, BAD))) == [[(0, 1, 0.95)]]


def test_the_mirror_stands_at_the_centre_and_ends_with_the_same_reward() -> None:
    transitions = episodes([[0.0], [1.0]], [[2.0]], 1.0, -7.0)
    terminations = find_terminations([transitions], np.array([0.5]), np.ones(1), HORIZON, CONFIG)
    assert conditions(terminations) == [[(0, 1, 1.25)], [(0, -1, -0.25)]]
    assert terminations.rewards.tolist() == [-7.0, -7.0]


def test_a_wanted_termination_seen_beyond_it_refutes_the_mirror() -> None:
    """Falling off on the left loses 100, the goal on the right gives 100: the goal is not to be feared."""
    terminations = find(episodes([[0.0], [0.9], [-0.9]], [[-1.1], [1.1]], 0.0, [-100.0, 100.0]))
    found = termination_at(terminations, np.array([1.2]))
    assert found >= 0
    assert terminal_reward(terminations, found) == 100.0


# ---- several explanations -----------------------------------------------------------------------------------------

SQUARE = [[0.0, 0.0], [0.9, 0.4], [-2.0, -2.0]]
CORNER = [[1.1, 0.6], [1.3, 0.8]]


def test_a_wanted_termination_is_hoped_for_where_all_equally_good_conditions_hold() -> None:
    terminations = find(episodes(SQUARE, CORNER, WANTED))
    assert conditions(terminations) == [[(0, 1, 1.05), (1, 1, 0.55)]]
    assert holds(terminations, 1.06, 0.56)
    assert not holds(terminations, 5.0, 0.54)
    assert not holds(terminations, 1.04, 5.0)


def test_a_bad_termination_is_feared_by_each_of_them() -> None:
    terminations = find(episodes(SQUARE, CORNER, BAD))
    assert conditions(terminations) == [[(0, 1, 0.95)], [(1, 1, 0.45)]]
    assert holds(terminations, 0.96, -1.0)
    assert holds(terminations, 0.0, 0.46)


def test_the_better_explanation_is_taken_alone() -> None:
    """x explains both terminations, y only one."""
    terminations = find(episodes(SQUARE, [[1.1, 0.6], [1.3, 0.0]], WANTED))
    assert conditions(terminations) == [[(0, 1, 1.05)]]


def test_two_goals_apart_are_two_wanted_terminations() -> None:
    """As many episodes end beyond x as beyond y, but no state is beyond both: not two explanations of one thing."""
    terminations = find(episodes(SQUARE, [[1.1, 0.0], [0.0, 0.6]], WANTED))
    assert holds(terminations, 1.1, 0.0)
    assert holds(terminations, 0.0, 0.6)


def test_each_of_two_bad_terminations_has_its_own_reward() -> None:
    """One loses 10, the other 50; as many episodes terminated in the one as in the other."""
    terminations = find(episodes(SQUARE, [[1.1, 0.0], [0.0, 0.6]], 1.0, [-10.0, -50.0]))
    assert terminal_reward(terminations, termination_at(terminations, np.array([1.1, 0.0]))) == -10.0
    assert terminal_reward(terminations, termination_at(terminations, np.array([0.0, 0.6]))) == -50.0


def test_terminations_among_the_survivors_are_counted() -> None:
    inside = [[0.1, 0.1], [-0.3, 0.2], [0.5, -0.5]]
    for reward in (BAD, WANTED):
        terminations = find(episodes(SQUARE, inside, reward))
        assert terminations.n_unexplained == 3
        assert not terminations.is_known
    assert find(episodes(SQUARE, [*inside, [1.1, 0.0]], BAD)).n_unexplained == 3


def test_the_greatest_last_reward() -> None:
    transitions = episodes(LINE, [[1.1], [-1.2], [-1.3]], 0.0, [-5.0, -3.0, -4.0])
    assert find(transitions).max_reward == -3.5  # the mean of those two on the left


POINTS = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=1, max_size=20)
FEW = st.lists(st.tuples(st.integers(-8, 8), st.integers(-8, 8)), max_size=7)  # too few for a quadric


@given(POINTS, FEW, st.lists(st.sampled_from([-100.0, -1.0, 1.0, 100.0]), min_size=7, max_size=7))
@settings(max_examples=60, deadline=None)
def test_no_survived_state_is_inside(survived: list[Any], last: list[Any], rewards: list[float]) -> None:
    terminations = find(episodes(survived, last, 0.0, rewards[: len(last)]))
    assert not any(holds(terminations, *map(float, state)) for state in survived)


@given(POINTS, FEW)
@settings(max_examples=60, deadline=None)
def test_each_bad_termination_is_inside_or_counted(survived: list[Any], last: list[Any]) -> None:
    terminations = find(episodes(survived, last, BAD))
    assert terminations.n_unexplained == sum(not holds(terminations, *map(float, state)) for state in last)


@given(POINTS, FEW)
@settings(max_examples=60, deadline=None)
def test_each_wanted_termination_is_inside_or_counted(survived: list[Any], last: list[Any]) -> None:
    terminations = find(episodes(survived, last, WANTED))
    assert terminations.n_unexplained == sum(not holds(terminations, *map(float, state)) for state in last)


# ---- quadrics -----------------------------------------------------------------------------------------------------


def on_circle(n: int, least: float, most: float, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(least**2, most**2, n))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


@pytest.mark.parametrize("reward", [BAD, WANTED])
def test_a_circle_is_found_as_a_quadric(reward: float) -> None:
    """Episodes end where x^2 + y^2 > 1: no half-space holds the diagonal ones."""
    survived, last = on_circle(2000, 0, 1, seed=0), on_circle(60, 1, 1.1, seed=1)
    terminations = find(episodes(survived, last, reward))
    quadric = terminations.bad if reward == BAD else terminations.wanted
    assert len(quadric.weights) == 5
    assert terminations.n_unexplained == 0
    inside, outside = on_circle(300, 0, 0.95, seed=2), on_circle(300, 1.15, 1.5, seed=3)
    assert not any(holds(terminations, *state) for state in inside)
    assert all(holds(terminations, *state) for state in outside)
    diagonal = np.array([0.9, 0.9])
    assert terminal_reward(terminations, termination_at(terminations, diagonal)) == reward
    assert np.mean([holds(terminations, *state) for state in survived]) <= 0.006
    assert np.mean([holds(terminations, *state) for state in last]) >= 0.9


def test_terminations_anywhere_are_no_quadric() -> None:
    """They come by chance, among the survivors: nothing can tell where."""
    terminations = find(episodes(on_circle(2000, 0, 1, seed=0), on_circle(40, 0, 0.9, seed=1), BAD))
    assert not terminations.is_known
    assert terminations.n_unexplained == 40


@pytest.mark.parametrize("n", [7, 8, 10, 15, 30, 37])
def test_eight_terminations_that_lie_apart_are_enough_for_a_quadric(n: int) -> None:
    """All survivors within a circle, all terminations clearly outside: a border holds at least nine tenths of them."""
    survived, last = on_circle(1000, 0, 1, seed=0), on_circle(n, 1.2, 1.3, seed=1)
    quadric = fit_quadric(survived, last, -1.0, np.zeros(2), np.ones(2), CONFIG)
    if n < 8:
        assert len(quadric.weights) == 0
        return
    assert len(quadric.weights) == 5
    assert np.mean([outside(quadric, state) for state in last]) >= 0.9
    assert np.mean([outside(quadric, state) for state in survived]) <= 0.005
