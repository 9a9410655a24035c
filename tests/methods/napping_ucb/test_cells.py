"""Cells: the choice by hand, and what cells learn from one another."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.methods.napping_ucb.cells import PRIOR_WEIGHT, SHARED_WEIGHT, Cells

N_ACTIONS = 4
ORDER = list(range(N_ACTIONS))


class CellTrial:
    """CellTrial trial on a line; a step is (x, wanted)."""

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
        """Learn a score in the cell that `choose` found."""
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


def test_without_cells_the_wanted_action_is_chosen():
    assert CellTrial().choose(0.0, 2) == 2


def test_good_wanted_action_is_kept():
    trial = CellTrial()
    trial.learn(0.0, 2, 2, 1.5)
    assert trial.choose(0.3, 2) == 2


def test_low_score_without_failure_keeps_the_wanted_action():
    trial = CellTrial()
    trial.learn(0.0, 2, 2, 0.5, has_failed=False)
    assert trial.choose(0.0, 2) == 2
    trial.learn(0.0, 2, 2, 0.5, has_failed=True)
    assert trial.choose(0.0, 2) != 2


def test_failing_actions_are_replaced_in_order():
    trial = CellTrial()
    order = [2, 3, 0, 1]
    tried = []
    for _ in range(4):
        tried.append(trial.choose(0.0, 2, order))
        trial.learn(0.0, 2, tried[-1], 0.0)
    assert tried == order


def test_first_good_action_is_kept():
    trial = CellTrial()
    trial.learn(0.0, 2, 2, 0.0)
    trial.learn(0.0, 2, 0, 1.2)
    assert [trial.choose(x, 2) for x in (0.0, 5.0)] == [0, 0]


def test_cell_of_another_action_does_not_apply():
    trial = CellTrial()
    trial.learn(0.0, 2, 2, 0.0)
    assert trial.choose(1.0, 3) == 3
    assert trial.at[0] == -1
    trial.learn(1.0, 3, 3, 1.0)
    assert len(trial.table["site"]) == 2


def test_new_cell_shares_scores_of_the_same_wanted_action():
    trial = CellTrial()
    for _ in range(3):
        trial.learn(0.0, 0, 0, 0.0)
        trial.learn(0.0, 0, 3, 2.0)
    trial.learn(1.0, 1, 1, 1.0)  # a cell between
    trial.learn(2.0, 0, 0, 0.0)  # a new trial, where only the agent's action was tried
    assert trial.choose(2.0, 0) == 3, "not 1 or 2, which come first in the order"


def test_new_cell_shares_scores_of_other_wanted_actions():
    trial = CellTrial()
    for _ in range(3):
        trial.learn(0.0, 0, 3, 2.0)
    trial.learn(1.0, 1, 1, 0.0)
    assert trial.choose(1.0, 1) == 3


def test_untried_actions_come_before_those_that_failed_elsewhere():
    trial = CellTrial()
    trial.learn(0.0, 0, 0, 0.0)
    trial.learn(0.0, 0, 1, 0.0)
    trial.learn(1.0, 2, 2, 1.0)
    trial.learn(2.0, 0, 0, 0.0)
    assert trial.choose(2.0, 0) == 2


def test_mask_excludes_actions():
    trial = CellTrial()
    trial.learn(0.0, 0, 0, 0.0)
    assert trial.choose(0.0, 0, mask=[True, False, False, True]) == 3
    trial.learn(0.0, 0, 3, 2.0)
    assert trial.choose(0.0, 0, mask=[True, True, False, False]) == 1
    assert trial.choose(0.0, 0, mask=[False, False, True, False]) == 2
    assert trial.choose(0.0, 0, mask=[False] * 4) == 0


def test_failure_away_from_the_site_creates_a_cell():
    trial = CellTrial()
    trial.learn(0.0, 0, 0, 0.0)
    trial.learn(0.0, 0, 2, 1.5)
    trial.learn(4.0, 0, 2, 0.0)
    table = trial.table
    assert table["site"][:, 0].tolist() == [0.0, 4.0]
    assert table["means"].tolist() == [[0, 0, 1.5, 0], [0, 0, 0, 0]], "the failure does not count in the old cell"
    assert table["counts"].tolist() == [[1, 0, 1, 0], [0, 0, 1, 0]]
    assert (trial.choose(1.9, 0), trial.choose(2.1, 0)) == (2, 0)


def test_good_or_noisy_score_creates_no_cell():
    trial = CellTrial()
    trial.learn(0.0, 0, 2, 2.0)
    trial.learn(4.0, 0, 2, 1.0)
    trial.learn(0.0, 0, 2, 0.0)  # at the site: scores 2, 1, 0, noise 1
    trial.learn(5.0, 0, 2, 0.5)
    assert trial.table["counts"].tolist() == [[0, 0, 4, 0]]
    trial.learn(5.0, 0, 2, -0.5)
    assert len(trial.table["counts"]) == 2


def test_failure_at_the_site_is_averaged():
    trial = CellTrial()
    trial.learn(0.0, 0, 2, 1.5)
    trial.learn(0.0, 0, 2, 0.5)
    assert trial.table["means"].tolist() == [[0, 0, 1.0, 0]]


def test_wanted_action_gets_min_visits_before_it_is_judged():
    choices = []
    for min_visits in (1, 3):
        trial = CellTrial(min_visits)
        for _ in range(2):
            trial.learn(0.0, 0, 0, 0.0)
        choices.append(trial.choose(0.0, 0))
    assert choices == [1, 0]


def test_gain_within_noise_keeps_the_wanted_action():
    for gain, expected in ((0.2, 0), (2.0, 1)):
        trial = CellTrial(threshold=-5.0)
        for i in range(8):
            trial.learn(0.0, 0, 0, (-1.0) ** i)
            trial.learn(0.0, 0, 1, (-1.0) ** i + gain)
        # the noise of a mean of eight scores of +-1 is 1.07 / sqrt(8) = .38
        assert trial.choose(0.0, 0) == expected


def by_hand(trial: CellTrial, history: list[tuple[int, float]], explore: float) -> int:
    """The choice in the only cell, with wanted action 0, computed from the history."""
    threshold = float(trial.threshold[0])
    scores = {a: [score for b, score in history if b == a] for a in ORDER}
    squares = sum(sum((s - np.mean(v)) ** 2 for s in v) for v in scores.values() if v)
    freedom = sum(len(v) - 1 for v in scores.values() if v)
    noise = math.sqrt(squares / freedom) if freedom else 0.0
    worth, bound = {}, {}
    for a, v in scores.items():
        trial_mean = (PRIOR_WEIGHT * threshold + sum(v)) / (PRIOR_WEIGHT + len(v))
        keyed = (SHARED_WEIGHT * trial_mean + sum(v)) / (SHARED_WEIGHT + len(v))
        worth[a] = (SHARED_WEIGHT * keyed + sum(v)) / (SHARED_WEIGHT + len(v))
        bonus = explore * noise * math.sqrt(math.log(1 + len(history)) / (len(v) + SHARED_WEIGHT)) if v else 0.0
        has_not_failed = a == 0 and not any(score < threshold for score in v)
        worth[a] = max(worth[a], threshold) if has_not_failed else worth[a]
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
def test_choice_follows_the_formula(history, explore):
    trial = CellTrial(explore=explore)
    for action, score in history:
        trial.learn(0.0, 0, action, score)
    assert trial.choose(0.0, 0) == by_hand(trial, history, explore)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_trials_are_independent(seed):
    rng = np.random.default_rng(seed)
    alone, beside = CellTrial(), CellTrial(n=3)
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


def test_open_cells():
    trial = CellTrial()
    trial.learn(0.0, 0, 0, 0.0)
    assert trial.cells.n_open(trial.row, trial.threshold).tolist() == [1]
    assert trial.table["candidates"].tolist() == [[False, True, True, True]]
    trial.learn(0.0, 0, 2, 1.0)
    assert trial.cells.n_open(trial.row, trial.threshold).tolist() == [0]
    assert trial.table["candidates"].tolist() == [[False, False, True, False]]
    assert (trial.table["best"][0], trial.table["best_action"][0], trial.table["visits"][0]) == (1.0, 2, 2)


def test_state_and_restore():
    trial = CellTrial()
    rng = np.random.default_rng(0)
    for _ in range(300):
        trial.learn(float(rng.normal()), int(rng.integers(4)), int(rng.integers(4)), float(rng.normal()))
    state, places = trial.cells.state(0), [(float(rng.normal()), int(rng.integers(4))) for _ in range(50)]
    before = [trial.choose(*place) for place in places]
    trial.cells.forget(trial.row)
    assert [trial.choose(*place) for place in places] == [wanted for _, wanted in places]
    trial.cells.restore(0, state)
    assert [trial.choose(*place) for place in places] == before
    assert before != [wanted for _, wanted in places]
    again = trial.cells.state(0)
    assert all((again[name] == array).all() for name, array in state.items())


@pytest.mark.parametrize("n", [0, 1])
def test_table_has_the_columns_of_principles(n):
    trial = CellTrial()
    for _ in range(n):
        trial.learn(0.5, 1, 1, 0.0)
    names = {"site", "wanted", "candidates", "tested", "best", "best_action", "visits", "situation"}
    assert names <= set(trial.table)
    assert {len(array) for array in trial.table.values()} == {n}
