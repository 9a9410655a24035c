"""A threshold calibrated on the scores of the agent's own actions before the novelty.

An action fails if both its score and the running mean of the scores of its episode are below the threshold: bad now
and bad recently. The threshold is the `false_rate` quantile of the larger of the two over the episodes before the
novelty, so that in the unchanged domain at most that share of steps fails. Scores equal to the quantile fail at random,
just often enough to reach that share; a score that never varied does not fail at all. The last episodes before an alarm
are left out, because most detectors need a few to notice a change.

A score with a supremum has a natural unit. A score without one is measured in units of its root mean square in the
current context: pushes that became weaker are no failure, pushes in the wrong direction are.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError
from nappingrl.score import Score
from nappingrl.snapshot import Expected, restore_arrays
from nappingrl.types import Flags, Floats, Rows

MIN_SCORES = 50
"""Scores that a quantile needs; with fewer, the score's own threshold is used."""
HELD_OUT_EPISODES = 5
"""Episodes before the alarm that may already contain the novelty: the window of the paper's detector."""
MAX_SCORES = 10_000
"""Scores kept per trial, the latest ones."""
DECAY = 0.5
"""Weight of the earlier scores in the running mean."""
_ROUNDING = 1e-9


class Calibration:
    """Scores and thresholds of n trials."""

    saved: ClassVar[Mapping[str, Expected]] = {
        "_n_scores": Expected(low=0), "_n_episodes": Expected(low=0), "_episode_ends": Expected(low=0),
        "_running_mean": Expected(with_nan=True), "_quantile": Expected(with_inf=True), "_tie_rate": Expected(low=0),
        "_sum_of_squares": Expected(low=0), "_n_squares": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, score: Score, false_rate: float) -> None:
        self._score = score
        self._false_rate = false_rate
        self._has_unit = np.isfinite(score.supremum) or score.supremum_of is not None
        self._scores = np.zeros((n, MAX_SCORES))  # a ring buffer per trial
        self._n_scores = np.zeros(n, np.int64)
        self._n_episodes = np.zeros(n, np.int64)
        self._episode_ends = np.zeros((n, HELD_OUT_EPISODES + 1), np.int64)  # n_scores when the last episodes ended
        self._running_mean = np.full(n, np.nan)
        self._quantile = np.zeros(n)
        self._tie_rate = np.zeros(n)  # share of the scores equal to the quantile that fail
        self._is_relative = np.zeros(n, np.bool_)
        self._sum_of_squares = np.zeros(n)  # of the scores since the context changed
        self._n_squares = np.zeros(n, np.int64)

    def restore(self, state: Mapping[str, NDArray[Any]], prefix: str) -> None:
        """Continue with saved arrays."""
        restore_arrays(self, state, prefix)
        if (self._episode_ends > self._n_scores[:, None]).any():
            raise BadAgentError("array 'calibration._episode_ends' counts more scores than there are")

    def start(self, rows: Rows) -> None:
        """Begin new trials."""
        for array in (self._n_scores, self._n_episodes, self._episode_ends):
            array[rows] = 0
        self._running_mean[rows] = np.nan
        self._reset_threshold(rows)

    def record(self, rows: Rows, scores: Floats) -> None:
        """Record what the agent's own actions scored in the original context."""
        self._scores[rows, self._n_scores[rows] % MAX_SCORES] = self._smoothed(rows, scores)
        self._n_scores[rows] += 1

    def end_episode(self, rows: Rows, is_original: Flags) -> None:
        """End an episode, in the original context or in another one."""
        self._running_mean[rows] = np.nan
        original = rows[is_original]
        self._n_episodes[original] += 1
        slots = self._n_episodes[original] % (HELD_OUT_EPISODES + 1)
        self._episode_ends[original, slots] = self._n_scores[original]

    def calibrate(self, row: int) -> None:
        """Set the threshold of a trial that leaves the original context."""
        self._reset_threshold(np.array([row]))
        scores = self._recorded(row)
        if len(scores) < MIN_SCORES:
            return
        root_mean_square = float(np.sqrt((scores**2).mean()))
        if not self._has_unit and root_mean_square > 0:
            self._is_relative[row] = True
            scores = scores / root_mean_square
        quantile = float(np.quantile(scores, self._false_rate, method="inverted_cdf"))
        self._quantile[row] = quantile
        if scores.min() < scores.max() and quantile < self._score.supremum:
            share_below = float((scores < quantile).mean())
            share_equal = float((scores == quantile).mean())
            self._tie_rate[row] = max(0.0, self._false_rate - share_below) / share_equal

    def threshold(self, rows: Rows) -> Floats:
        """The current thresholds, (m,)."""
        root_mean_squares = np.sqrt(self._sum_of_squares[rows] / np.maximum(self._n_squares[rows], 1))
        thresholds: Floats = self._quantile[rows] * np.where(self._is_relative[rows], root_mean_squares, 1.0)
        return thresholds

    def measure(self, rows: Rows, scores: Floats) -> None:
        """Take scores of the changed context into the unit that the threshold is measured in."""
        self._sum_of_squares[rows] += scores**2
        self._n_squares[rows] += 1

    def judge(self, rows: Rows, scores: Floats, suprema: float | Floats, uniforms: Floats) -> Flags:
        """Which actions fail in the changed context, (m,); `uniforms` decide for scores equal to the threshold."""
        self.measure(rows, scores)
        values, thresholds = self._smoothed(rows, scores), self.threshold(rows)
        slack = _ROUNDING * np.abs(thresholds)
        is_tie = np.abs(values - thresholds) <= slack
        fails: Flags = (values < thresholds - slack) | (is_tie & (uniforms < self._tie_rate[rows]))
        return fails & (scores < suprema)

    def _reset_threshold(self, rows: Rows) -> None:
        """Use the score's own threshold."""
        for array in (self._sum_of_squares, self._n_squares, self._tie_rate):
            array[rows] = 0
        self._quantile[rows] = self._score.threshold
        self._is_relative[rows] = False

    def _recorded(self, row: int) -> Floats:
        """The recorded scores of a trial, without those of the last episodes."""
        n_episodes = int(self._n_episodes[row]) - HELD_OUT_EPISODES
        end = int(self._episode_ends[row, n_episodes % (HELD_OUT_EPISODES + 1)]) if n_episodes > 0 else 0
        start = max(0, int(self._n_scores[row]) - MAX_SCORES)
        scores: Floats = self._scores[row, np.arange(start, end) % MAX_SCORES]
        return scores

    def _smoothed(self, rows: Rows, scores: Floats) -> Floats:
        """The larger of a score and the running mean of its episode."""
        before = self._running_mean[rows]
        mean = np.where(np.isnan(before), scores, DECAY * before + (1 - DECAY) * scores)
        self._running_mean[rows] = mean
        return np.maximum(scores, mean)
