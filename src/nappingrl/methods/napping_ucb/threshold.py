"""A threshold from what the agent's own actions scored before the novelty.

An action fails where its score and the running mean of its episode's scores are both below the threshold: bad now, and
bad of late. The threshold is the `false_rate`-quantile of the greater of both over the episodes before the novelty, so
that in the unchanged world at most that share of steps fails; scores that lie at the quantile itself fail just as often
as that needs, and a score that was always the same never does. The last episodes before an alarm are left out: most
detectors need some to see a change.

A score with a supremum has a unit of its own. One without is measured in units of its root mean square in the world at
hand: what counts is not that pushes have become weaker, but that they go the wrong way.
"""

import numpy as np

from nappingrl.score import Score
from nappingrl.types import Flags, Floats, Rows

FEWEST = 50
"""Scores that a quantile needs; with fewer the score's own threshold is taken."""
HELD_BACK = 5
"""Episodes before the alarm that may already be of the other world: the window of the paper's detector."""
REMEMBERED = 10_000
"""Scores of a trial that are kept, the latest."""
MEMORY = 0.5
"""What the scores before weigh in the running mean."""
_ROUNDING = 1e-9


class Calibration:
    """Scores and thresholds of n trials."""

    def __init__(self, n: int, score: Score, false_rate: float) -> None:
        self._score, self._false_rate = score, false_rate
        self._has_unit = np.isfinite(score.supremum) or score.supremum_of is not None
        self._seen = np.zeros((n, REMEMBERED))
        self._n_seen = np.zeros(n, np.int64)
        self._n_episodes = np.zeros(n, np.int64)
        self._marks = np.zeros((n, HELD_BACK + 1), np.int64)  # scores seen at the ends of the last episodes
        self._running = np.full(n, np.nan)
        self._quantile, self._tie = np.zeros(n), np.zeros(n)
        self._is_relative = np.zeros(n, np.bool_)
        self._size, self._n_sized = np.zeros(n), np.zeros(n, np.int64)  # sum of squares in the other world

    def start(self, rows: Rows) -> None:
        """A new trial begins."""
        for array in (self._n_seen, self._n_episodes, self._marks, self._size, self._n_sized, self._tie):
            array[rows] = 0
        self._running[rows] = np.nan
        self._quantile[rows], self._is_relative[rows] = self._score.threshold, False

    def watch(self, rows: Rows, scores: Floats) -> None:
        """The agent's own actions scored this in the world it knows."""
        values = self._of_late(rows, scores)
        self._seen[rows, self._n_seen[rows] % REMEMBERED] = values
        self._n_seen[rows] += 1

    def end_episode(self, rows: Rows, is_known: Flags) -> None:
        """An episode ended, in the known world or in another one."""
        self._running[rows] = np.nan
        known = rows[is_known]
        self._n_episodes[known] += 1
        self._marks[known, self._n_episodes[known] % (HELD_BACK + 1)] = self._n_seen[known]

    def settle(self, row: int) -> None:
        """Another world is entered: fix the threshold."""
        self._size[row] = self._n_sized[row] = 0
        self._quantile[row], self._tie[row], self._is_relative[row] = self._score.threshold, 0.0, False
        before = int(self._n_episodes[row]) - HELD_BACK
        last = int(self._marks[row, before % (HELD_BACK + 1)]) if before > 0 else 0
        seen = self._seen[row, np.arange(max(0, int(self._n_seen[row]) - REMEMBERED), last) % REMEMBERED]
        if len(seen) < FEWEST:
            return
        size = float(np.sqrt((seen**2).mean()))
        if not self._has_unit and size > 0:
            self._is_relative[row], seen = True, seen / size
        quantile = float(np.quantile(seen, self._false_rate, method="inverted_cdf"))
        self._quantile[row] = quantile
        if seen.min() < seen.max() and quantile < self._score.supremum:
            below, at = float((seen < quantile).mean()), float((seen == quantile).mean())
            self._tie[row] = max(0.0, self._false_rate - below) / at

    def threshold(self, rows: Rows) -> Floats:
        """The thresholds in force."""
        sizes = np.sqrt(self._size[rows] / np.maximum(self._n_sized[rows], 1))
        thresholds: Floats = self._quantile[rows] * np.where(self._is_relative[rows], sizes, 1.0)
        return thresholds

    def judge(self, rows: Rows, scores: Floats, suprema: float | Floats, uniforms: Floats) -> Flags:
        """Which actions failed in the other world; `uniforms` decide between scores at the threshold itself."""
        self._size[rows] += scores**2
        self._n_sized[rows] += 1
        values, thresholds = self._of_late(rows, scores), self.threshold(rows)
        slack = _ROUNDING * np.abs(thresholds)
        is_tie = np.abs(values - thresholds) <= slack
        fails: Flags = (values < thresholds - slack) | (is_tie & (uniforms < self._tie[rows]))
        return fails & (scores < suprema)

    def _of_late(self, rows: Rows, scores: Floats) -> Floats:
        """The greater of a score and the running mean of its episode."""
        before = self._running[rows]
        running = np.where(np.isnan(before), scores, MEMORY * before + (1 - MEMORY) * scores)
        self._running[rows] = running
        return np.maximum(scores, running)
