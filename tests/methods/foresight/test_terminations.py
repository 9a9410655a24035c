"""When imagined episodes end: half-spaces and surfaces found from where real ones ended."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.methods.foresight.quadric import find_surface, is_beyond
from nappingrl.methods.foresight.terminations import Endings, ending_of, find_endings, greatest_last_reward, last_reward
from nappingrl.world_model.transitions import Seen
from world_model.toy_worlds import seen_of

HORIZON = 100
BAD, WANTED = 1.0, -1.0
"""Rewards of every step, the last one too: going on is good, or it is what is to be avoided."""


def episodes(survived: Any, last: Any, reward: float, at_end: Any = None) -> Seen:
    """Steps from each survived state to itself, and one from the centre to each state in which an episode ended."""
    survived, last = np.atleast_2d(np.asarray(survived, float)), np.asarray(last, float)
    last = last.reshape(-1, survived.shape[1])
    n, m = len(survived), len(last)
    rewards = np.full(n + m, reward)
    if at_end is not None:
        rewards[n:] = at_end
    states = np.vstack([survived, np.repeat(survived[:1], m, axis=0)])
    return seen_of(states, np.ones((n + m, 1)), np.vstack([survived, last]), rewards, np.arange(n + m) >= n)


def find(seen: Seen, horizon: int = HORIZON) -> Endings:
    d = seen.states.shape[1]
    return find_endings([seen], np.zeros(d), np.ones(d), horizon)


def conditions(endings: Endings) -> list[list[tuple[int, int, float]]]:
    """Of each ending: (observation, side, limit)."""
    return [
        [(int(d), int(s), round(float(x), 9)) for d, s, x in zip(*row, strict=True) if d >= 0]
        for row in zip(endings.dims, endings.sides, endings.limits, strict=True)
    ]


def holds(endings: Endings, *state: float) -> bool:
    return bool(ending_of(endings, np.array(state)) >= 0)


LINE = [[0.0], [0.9], [-0.5]]


# ---- half-spaces --------------------------------------------------------------------------------------------------


def test_a_bad_ending_begins_a_quarter_of_the_way_from_the_survivors() -> None:
    endings = find(episodes([*LINE, [-3.0]], [[1.3], [1.1]], BAD))
    assert conditions(endings) == [[(0, 1, 0.95)]]
    assert holds(endings, 0.96)
    assert not holds(endings, 0.94)
    assert endings.n_unexplained == 0
    assert endings.is_known


def test_a_wanted_ending_begins_three_quarters_of_the_way() -> None:
    endings = find(episodes(LINE, [[1.3], [1.1]], WANTED))
    assert conditions(endings) == [[(0, 1, 1.05)]]
    assert holds(endings, 1.06)
    assert not holds(endings, 1.04)
    assert not holds(endings, -1.06)


@pytest.mark.parametrize("sign", [1, -1])
def test_either_side(sign: int) -> None:
    survived = [[0.0, 0.0], [0.0, 0.5], [0.0, -3.0], [0.0, 3.0]]
    endings = find(episodes(survived, [[0.0, sign * 4.0]], BAD))
    assert conditions(endings)[0] == [(1, sign, sign * 3.25)]


def test_endings_on_both_sides_are_two() -> None:
    endings = find(episodes(LINE, [[1.3], [1.1], [-1.5]], BAD))
    assert conditions(endings) == [[(0, 1, 0.95)], [(0, -1, -0.75)]]  # each has its own border: no mirror


def test_whether_an_ending_is_bad_is_judged_by_what_half_the_horizon_earns() -> None:
    """Going on earns 1 a step, 50 in half the horizon: an ending that gives 51 is wanted, one that gives 49 is not."""
    for at_end, limit in ((49.0, 0.95), (51.0, 1.05)):
        endings = find(episodes([*LINE, [-3.0]], [[1.1]], 1.0, at_end))
        assert conditions(endings) == [[(0, 1, limit)]]
        assert endings.rewards.tolist() == [at_end]


def test_what_was_seen_before_and_since_counts_together() -> None:
    """A state survived in one of them moves the border of an ending in the other."""
    old, new = episodes([[0.0], [0.3], [-5.0]], [], BAD), episodes([[0.0]], [[1.0], [0.2]], BAD)
    endings = find_endings([old, new], np.zeros(1), np.ones(1), HORIZON)
    assert conditions(endings) == [[(0, 1, 0.475)]]
    assert endings.n_unexplained == 1  # the one at 0.2


def test_nothing_ended_nothing_known() -> None:
    endings = find(episodes(LINE, [], BAD))
    assert not endings.is_known
    assert not holds(endings, 1e9)
    assert endings.n_unexplained == 0
    assert greatest_last_reward(endings) == 0.0


# ---- the mirror ---------------------------------------------------------------------------------------------------


def test_a_bad_ending_is_expected_on_the_opposite_side_until_a_state_there_is_survived() -> None:
    last = [[1.1]]
    assert conditions(find(episodes(LINE, last, BAD))) == [[(0, 1, 0.95)], [(0, -1, -0.95)]]
    assert conditions(find(episodes([*LINE, [-0.94]], last, BAD))) == [[(0, 1, 0.95)], [(0, -1, -0.95)]]
    assert conditions(find(episodes([*LINE, [-0.96]], last, BAD))) == [[(0, 1, 0.95)]]


def test_the_mirror_stands_at_the_centre_and_ends_with_the_same_reward() -> None:
    seen = episodes([[0.0], [1.0]], [[2.0]], 1.0, -7.0)
    endings = find_endings([seen], np.array([0.5]), np.ones(1), HORIZON)
    assert conditions(endings) == [[(0, 1, 1.25)], [(0, -1, -0.25)]]
    assert endings.rewards.tolist() == [-7.0, -7.0]


def test_a_wanted_ending_seen_beyond_it_refutes_the_mirror() -> None:
    """Falling off on the left loses 100, the goal on the right gives 100: the goal is not to be feared."""
    endings = find(episodes([[0.0], [0.9], [-0.9]], [[-1.1], [1.1]], 0.0, [-100.0, 100.0]))
    found = ending_of(endings, np.array([1.2]))
    assert found >= 0
    assert last_reward(endings, found) == 100.0


# ---- several explanations -----------------------------------------------------------------------------------------

SQUARE = [[0.0, 0.0], [0.9, 0.4], [-2.0, -2.0]]
CORNER = [[1.1, 0.6], [1.3, 0.8]]


def test_a_wanted_ending_is_hoped_for_where_all_equally_good_conditions_hold() -> None:
    endings = find(episodes(SQUARE, CORNER, WANTED))
    assert conditions(endings) == [[(0, 1, 1.05), (1, 1, 0.55)]]
    assert holds(endings, 1.06, 0.56)
    assert not holds(endings, 5.0, 0.54)
    assert not holds(endings, 1.04, 5.0)


def test_a_bad_ending_is_feared_by_each_of_them() -> None:
    endings = find(episodes(SQUARE, CORNER, BAD))
    assert conditions(endings) == [[(0, 1, 0.95)], [(1, 1, 0.45)]]
    assert holds(endings, 0.96, -1.0)
    assert holds(endings, 0.0, 0.46)


def test_the_better_explanation_is_taken_alone() -> None:
    """x explains both endings, y only one."""
    endings = find(episodes(SQUARE, [[1.1, 0.6], [1.3, 0.0]], WANTED))
    assert conditions(endings) == [[(0, 1, 1.05)]]


def test_two_goals_apart_are_two_wanted_endings() -> None:
    """As many episodes ended beyond x as beyond y, but no state was beyond both: not two explanations of one thing."""
    endings = find(episodes(SQUARE, [[1.1, 0.0], [0.0, 0.6]], WANTED))
    assert holds(endings, 1.1, 0.0)
    assert holds(endings, 0.0, 0.6)


def test_each_of_two_bad_endings_has_its_own_reward() -> None:
    """One loses 10, the other 50; as many episodes ended in the one as in the other."""
    endings = find(episodes(SQUARE, [[1.1, 0.0], [0.0, 0.6]], 1.0, [-10.0, -50.0]))
    assert last_reward(endings, ending_of(endings, np.array([1.1, 0.0]))) == -10.0
    assert last_reward(endings, ending_of(endings, np.array([0.0, 0.6]))) == -50.0


def test_endings_among_the_survivors_are_counted() -> None:
    inside = [[0.1, 0.1], [-0.3, 0.2], [0.5, -0.5]]
    for reward in (BAD, WANTED):
        endings = find(episodes(SQUARE, inside, reward))
        assert endings.n_unexplained == 3
        assert not endings.is_known
    assert find(episodes(SQUARE, [*inside, [1.1, 0.0]], BAD)).n_unexplained == 3


def test_the_greatest_last_reward() -> None:
    seen = episodes(LINE, [[1.1], [-1.2], [-1.3]], 0.0, [-5.0, -3.0, -4.0])
    assert greatest_last_reward(find(seen)) == -3.5  # the mean of those two on the left


POINTS = st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=1, max_size=20)
FEW = st.lists(st.tuples(st.integers(-8, 8), st.integers(-8, 8)), max_size=7)  # too few for a surface


@given(POINTS, FEW, st.lists(st.sampled_from([-100.0, -1.0, 1.0, 100.0]), min_size=7, max_size=7))
@settings(max_examples=60, deadline=None)
def test_no_survived_state_is_inside(survived: list[Any], last: list[Any], rewards: list[float]) -> None:
    endings = find(episodes(survived, last, 0.0, rewards[: len(last)]))
    assert not any(holds(endings, *map(float, state)) for state in survived)


@given(POINTS, FEW)
@settings(max_examples=60, deadline=None)
def test_each_bad_ending_is_inside_or_counted(survived: list[Any], last: list[Any]) -> None:
    endings = find(episodes(survived, last, BAD))
    assert endings.n_unexplained == sum(not holds(endings, *map(float, state)) for state in last)


@given(POINTS, FEW)
@settings(max_examples=60, deadline=None)
def test_each_wanted_ending_is_inside_or_counted(survived: list[Any], last: list[Any]) -> None:
    endings = find(episodes(survived, last, WANTED))
    assert endings.n_unexplained == sum(not holds(endings, *map(float, state)) for state in last)


# ---- surfaces -----------------------------------------------------------------------------------------------------


def on_circle(n: int, least: float, most: float, seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(least**2, most**2, n))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


@pytest.mark.parametrize("reward", [BAD, WANTED])
def test_a_circle_is_found_as_a_surface(reward: float) -> None:
    """Episodes end where x^2 + y^2 > 1: no half-space holds the diagonal ones."""
    survived, last = on_circle(2000, 0, 1, seed=0), on_circle(60, 1, 1.1, seed=1)
    endings = find(episodes(survived, last, reward))
    surface = endings.bad if reward == BAD else endings.wanted
    assert len(surface.weights) == 5
    assert endings.n_unexplained == 0
    inside, outside = on_circle(300, 0, 0.95, seed=2), on_circle(300, 1.15, 1.5, seed=3)
    assert not any(holds(endings, *state) for state in inside)
    assert all(holds(endings, *state) for state in outside)
    diagonal = np.array([0.9, 0.9])
    assert last_reward(endings, ending_of(endings, diagonal)) == reward
    assert np.mean([holds(endings, *state) for state in survived]) <= 0.006
    assert np.mean([holds(endings, *state) for state in last]) >= 0.9


def test_endings_anywhere_are_no_surface() -> None:
    """They come by chance, among the survivors: nothing can tell where."""
    endings = find(episodes(on_circle(2000, 0, 1, seed=0), on_circle(40, 0, 0.9, seed=1), BAD))
    assert not endings.is_known
    assert endings.n_unexplained == 40


@pytest.mark.parametrize("n", [7, 8, 10, 15, 30, 37])
def test_eight_endings_that_lie_apart_are_enough_for_a_surface(n: int) -> None:
    """All survivors within a circle, all endings clearly outside: a border holds at least nine tenths of them."""
    survived, last = on_circle(1000, 0, 1, seed=0), on_circle(n, 1.2, 1.3, seed=1)
    surface = find_surface(survived, last, -1.0, np.zeros(2), np.ones(2))
    if n < 8:
        assert len(surface.weights) == 0
        return
    assert len(surface.weights) == 5
    assert np.mean([is_beyond(surface, state) for state in last]) >= 0.9
    assert np.mean([is_beyond(surface, state) for state in survived]) <= 0.005
