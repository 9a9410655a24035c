"""Cells: the choice by hand, and what they learn from one another."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.methods.napping_ucb.cells import PRIOR_WEIGHT, SHARED_WEIGHT, Cells

N_ACTIONS = 4
ORDER = list(range(N_ACTIONS))


class One:
    """One trial on a line; a step is (x, wanted)."""

    def __init__(self, min_visits: int = 1, explore: float = 0.0, threshold: float = 1.0, n: int = 1) -> None:
        self.cells = Cells(n, N_ACTIONS, 1, 1, min_visits, explore)
        self.row = np.array([n - 1])
        self.cells.forget(np.arange(n))
        self.threshold = np.array([threshold])

    def choose(self, x: float, wanted: int, order: list[int] | None = None, mask: list[bool] | None = None) -> int:
        point = np.array([[x]], np.float32)
        allowed = None if mask is None else np.array([mask])
        order_ = np.array([order or [wanted, *(a for a in ORDER if a != wanted)]])
        actions, self.at = self.cells.select(self.row, point, np.array([wanted]), order_, self.threshold, allowed)
        return int(actions[0])

    def learn(self, x: float, wanted: int, action: int, score: float, has_failed: bool | None = None) -> None:
        """What the action gave, in the cell that the choice has found."""
        self.choose(x, wanted)
        point = np.array([[x]], np.float32)
        fails = np.array([score < self.threshold[0] if has_failed is None else has_failed])
        self.cells.update(
            self.row, point, np.array([wanted]), np.array([action]), self.at, np.array([score]), self.threshold, fails,
            point,
        )  # fmt: skip

    @property
    def table(self) -> dict[str, NDArray[np.generic]]:
        return self.cells.table(int(self.row[0]), float(self.threshold[0]))


def test_without_cells_the_agent_acts():
    assert One().choose(0.0, 2) == 2


def test_where_the_agent_s_action_is_good_enough_it_stays():
    one = One()
    one.learn(0.0, 2, 2, 1.5)
    assert one.choose(0.3, 2) == 2


def test_a_low_score_that_is_no_failure_gives_no_untried_action_a_chance():
    one = One()
    one.learn(0.0, 2, 2, 0.5, has_failed=False)
    assert one.choose(0.0, 2) == 2
    one.learn(0.0, 2, 2, 0.5, has_failed=True)
    assert one.choose(0.0, 2) != 2


def test_what_fails_gives_way_to_the_others_in_the_agent_s_order():
    one = One()
    order = [2, 3, 0, 1]
    tried = []
    for _ in range(4):
        tried.append(one.choose(0.0, 2, order))
        one.learn(0.0, 2, tried[-1], 0.0)
    assert tried == order


def test_the_first_action_that_is_good_enough_is_kept():
    one = One()
    one.learn(0.0, 2, 2, 0.0)
    one.learn(0.0, 2, 0, 1.2)
    assert [one.choose(x, 2) for x in (0.0, 5.0)] == [0, 0]


def test_a_place_where_the_nearest_cell_is_of_another_action_is_not_covered():
    one = One()
    one.learn(0.0, 2, 2, 0.0)
    assert one.choose(1.0, 3) == 3
    assert one.at[0] == -1
    one.learn(1.0, 3, 3, 1.0)
    assert len(one.table["site"]) == 2


def test_a_new_cell_begins_with_what_was_learned_where_the_same_action_was_wanted():
    one = One()
    for _ in range(3):
        one.learn(0.0, 0, 0, 0.0)
        one.learn(0.0, 0, 3, 2.0)
    one.learn(1.0, 1, 1, 1.0)  # a cell between
    one.learn(2.0, 0, 0, 0.0)  # a new one, where only the agent's action was tried
    assert one.choose(2.0, 0) == 3, "not 1 or 2, which are before it"


def test_what_worked_helps_where_another_action_is_wanted_too():
    one = One()
    for _ in range(3):
        one.learn(0.0, 0, 3, 2.0)
    one.learn(1.0, 1, 1, 0.0)
    assert one.choose(1.0, 1) == 3


def test_what_failed_elsewhere_is_tried_after_what_nobody_has_tried():
    one = One()
    one.learn(0.0, 0, 0, 0.0)
    one.learn(0.0, 0, 1, 0.0)
    one.learn(1.0, 2, 2, 1.0)
    one.learn(2.0, 0, 0, 0.0)
    assert one.choose(2.0, 0) == 2


def test_masks_leave_out_actions_and_an_empty_one_leaves_the_agent_s():
    one = One()
    one.learn(0.0, 0, 0, 0.0)
    assert one.choose(0.0, 0, mask=[True, False, False, True]) == 3
    one.learn(0.0, 0, 3, 2.0)
    assert one.choose(0.0, 0, mask=[True, True, False, False]) == 1
    assert one.choose(0.0, 0, mask=[False, False, True, False]) == 2
    assert one.choose(0.0, 0, mask=[False] * 4) == 0


def test_an_action_that_fails_away_from_the_site_where_it_did_better_gets_a_cell_of_its_own():
    one = One()
    one.learn(0.0, 0, 0, 0.0)
    one.learn(0.0, 0, 2, 1.5)
    one.learn(4.0, 0, 2, 0.0)
    table = one.table
    assert table["site"][:, 0].tolist() == [0.0, 4.0]
    assert table["means"].tolist() == [[0, 0, 1.5, 0], [0, 0, 0, 0]], "the failure does not count where it worked"
    assert table["counts"].tolist() == [[1, 0, 1, 0], [0, 0, 1, 0]]
    assert (one.choose(1.9, 0), one.choose(2.1, 0)) == (2, 0)


def test_a_score_that_is_good_enough_or_within_the_noise_makes_no_new_cell():
    one = One()
    one.learn(0.0, 0, 2, 2.0)
    one.learn(4.0, 0, 2, 1.0)
    one.learn(0.0, 0, 2, 0.0)  # at the site: scores 2, 1, 0, noise 1
    one.learn(5.0, 0, 2, 0.5)
    assert one.table["counts"].tolist() == [[0, 0, 4, 0]]
    one.learn(5.0, 0, 2, -0.5)
    assert len(one.table["counts"]) == 2


def test_at_the_site_itself_a_failure_counts_as_one_more_score():
    one = One()
    one.learn(0.0, 0, 2, 1.5)
    one.learn(0.0, 0, 2, 0.5)
    assert one.table["means"].tolist() == [[0, 0, 1.0, 0]]


def test_the_agent_s_own_action_gets_its_visits_before_it_is_judged():
    choices = []
    for min_visits in (1, 3):
        one = One(min_visits)
        for _ in range(2):
            one.learn(0.0, 0, 0, 0.0)
        choices.append(one.choose(0.0, 0))
    assert choices == [1, 0]


def test_a_gain_within_the_noise_does_not_displace_the_agent_s_action():
    for gain, expected in ((0.2, 0), (2.0, 1)):
        one = One(threshold=-5.0)
        for i in range(8):
            one.learn(0.0, 0, 0, (-1.0) ** i)
            one.learn(0.0, 0, 1, (-1.0) ** i + gain)
        # the noise of a mean of eight scores of +-1 is 1.07 / sqrt(8) = .38
        assert one.choose(0.0, 0) == expected


def by_hand(one: One, history: list[tuple[int, float]], explore: float) -> int:
    """The choice at the only cell, where 0 is wanted, written down anew."""
    threshold = float(one.threshold[0])
    scores = {a: [score for b, score in history if b == a] for a in ORDER}
    squares = sum(sum((s - np.mean(v)) ** 2 for s in v) for v in scores.values() if v)
    freedom = sum(len(v) - 1 for v in scores.values() if v)
    noise = math.sqrt(squares / freedom) if freedom else 0.0
    worth, bound = {}, {}
    for a, v in scores.items():
        together = (PRIOR_WEIGHT * threshold + sum(v)) / (PRIOR_WEIGHT + len(v))
        keyed = (SHARED_WEIGHT * together + sum(v)) / (SHARED_WEIGHT + len(v))
        worth[a] = (SHARED_WEIGHT * keyed + sum(v)) / (SHARED_WEIGHT + len(v))
        bonus = explore * noise * math.sqrt(math.log(1 + len(history)) / (len(v) + SHARED_WEIGHT)) if v else 0.0
        is_unproven = a == 0 and not any(score < threshold for score in v)
        worth[a] = max(worth[a], threshold) if is_unproven else worth[a]
        bound[a] = worth[a] + bonus
    chosen = max(ORDER, key=lambda a: (round(bound[a], 9), -a))
    if scores[0] and scores[chosen] and worth[chosen] - worth[0] <= noise / math.sqrt(len(scores[chosen])):
        return 0
    return chosen


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-4, 8).map(lambda i: i / 4)), min_size=1, max_size=25),
    st.sampled_from([0.0, 0.2, 1.0]),
)
def test_the_choice_is_the_one_that_the_formula_gives(history, explore):
    one = One(explore=explore)
    for action, score in history:
        one.learn(0.0, 0, action, score)
    assert one.choose(0.0, 0) == by_hand(one, history, explore)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_trial_does_not_depend_on_its_neighbours(seed):
    rng = np.random.default_rng(seed)
    alone, beside = One(), One(n=3)
    choices = []
    for _ in range(60):
        x, wanted, scores = rng.normal(size=3), rng.integers(4, size=3), rng.normal(1, 1, size=3)
        action = alone.choose(float(x[2]), int(wanted[2]))
        alone.learn(float(x[2]), int(wanted[2]), action, float(scores[2]))
        rows, points = np.arange(3), x[:, None].astype(np.float32)
        order = np.array([[w, *(a for a in ORDER if a != w)] for w in wanted])
        actions, at = beside.cells.select(rows, points, wanted, order, np.ones(3))
        beside.cells.update(rows, points, wanted, actions, at, scores, np.ones(3), scores < 1)
        choices.append((action, int(actions[2])))
    assert all(a == b for a, b in choices)
    assert alone.cells.n_cells[0] == beside.cells.n_cells[2] > 1


def test_open_cells_know_nothing_good_and_have_something_left():
    one = One()
    one.learn(0.0, 0, 0, 0.0)
    assert one.cells.n_open(one.row, one.threshold).tolist() == [1]
    assert one.table["candidates"].tolist() == [[False, True, True, True]]
    one.learn(0.0, 0, 2, 1.0)
    assert one.cells.n_open(one.row, one.threshold).tolist() == [0]
    assert one.table["candidates"].tolist() == [[False, False, True, False]]
    assert (one.table["best"][0], one.table["best_action"][0], one.table["visits"][0]) == (1.0, 2, 2)


def test_what_was_learned_can_be_put_away_and_back():
    one = One()
    rng = np.random.default_rng(0)
    for _ in range(300):
        one.learn(float(rng.normal()), int(rng.integers(4)), int(rng.integers(4)), float(rng.normal()))
    state, places = one.cells.state(0), [(float(rng.normal()), int(rng.integers(4))) for _ in range(50)]
    before = [one.choose(*place) for place in places]
    one.cells.forget(one.row)
    assert [one.choose(*place) for place in places] == [wanted for _, wanted in places]
    one.cells.restore(0, state)
    assert [one.choose(*place) for place in places] == before
    assert before != [wanted for _, wanted in places]
    again = one.cells.state(0)
    assert all((again[name] == array).all() for name, array in state.items())


@pytest.mark.parametrize("n", [0, 1])
def test_tables_have_the_names_of_principles(n):
    one = One()
    for _ in range(n):
        one.learn(0.5, 1, 1, 0.0)
    names = {"site", "wanted", "candidates", "tested", "best", "best_action", "visits", "situation"}
    assert names <= set(one.table)
    assert {len(array) for array in one.table.values()} == {n}
