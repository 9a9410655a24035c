"""Starts: episodes that begin where none of the calibration did; a shifted sensor may show in nothing else."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Rows

LEAST_RANGE = 0.05
"""Least range of initial values, in standard deviations of the observation."""


class Starts:
    """Adds up how far initial observations lie outside their calibrated range, over successive episodes.

    An episode within the range on that side starts the sum anew.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "range": Expected(low=0, with_inf=True), "above": Expected(low=0), "below": Expected(low=0),
        "n_starts": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, dim: int, config: ResidualConfig) -> None:
        self.config = config
        self.low, self.high, self.range = np.zeros((n, dim)), np.zeros((n, dim)), np.full((n, dim), np.inf)
        self.above, self.below = np.zeros((2, n, dim))
        self.n_starts = np.zeros(n, np.int64)
        """Calibrated ones."""
        self.is_first = np.ones(n, np.bool_)
        """Whether the next step is the first one of its episode."""

    def start(self, rows: Rows) -> None:
        """Nothing is calibrated yet."""
        self.range[rows], self.n_starts[rows] = np.inf, 0
        self.above[rows] = self.below[rows] = 0.0
        self.is_first[rows] = True

    def calibrate(self, row: int, starts: NDArray[np.float64], states: NDArray[np.float64]) -> None:
        """Learn where episodes begin; `states` tell the scale of an observation."""
        self.n_starts[row] = len(starts)
        if len(starts) >= self.config.min_starts:
            self.low[row], self.high[row] = starts.min(axis=0), starts.max(axis=0)
            least = LEAST_RANGE * states.std(axis=0) + 1e-6
            self.range[row] = np.maximum(self.high[row] - self.low[row], least)

    def judge(self, rows: Rows, observations: NDArray[np.float64]) -> Flags:
        """Judge the initial observations of these rows; returns where they have been outside for too long."""
        config = self.config
        above, below = (self._scores(rows, outside) for outside in (
            observations - self.high[rows], self.low[rows] - observations,
        ))  # fmt: skip
        self.above[rows] = np.where(above > 0, self.above[rows] + above, 0.0)
        self.below[rows] = np.where(below > 0, self.below[rows] + below, 0.0)
        return np.asarray(self.evidence(rows).max(axis=1) > config.start_limit)

    def _scores(self, rows: Rows, outside: NDArray[np.float64]) -> NDArray[np.float64]:
        """What episodes count that begin so far outside the range."""
        config = self.config
        outside = np.maximum(outside / self.range[rows], 0.0)
        is_far = (outside > config.far_start) & (self.n_starts[rows, None] >= config.min_starts_at_once)
        return np.where(is_far, config.start_limit + 1.0, np.minimum(outside, config.max_start_score))

    def evidence(self, rows: Rows) -> NDArray[np.float64]:
        """(m, d) what has added up."""
        return np.maximum(self.above[rows], self.below[rows])

    def is_usual(self, rows: Rows) -> Flags:
        """Whether the latest episode began within the range."""
        return np.asarray((self.evidence(rows) == 0).all(axis=1))
