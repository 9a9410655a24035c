"""Surprise: single steps that do not lead where the model predicts."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.residual.model import HeldOut
from nappingrl.detectors.tail_limits import hill_limit
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Floats, Rows


class Surprise:
    """Counts the steps of each trial's episode whose largest residual is beyond a limit.

    The limit follows from the tail of the calibration episodes' surprises (of each its second largest step, if two
    steps raise an alarm), by Hill's estimator.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "limit": Expected(low=0, with_inf=True), "n_beyond": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, config: ResidualConfig) -> None:
        self.config = config
        self.limit = np.full(n, np.inf)
        self.n_beyond = np.zeros(n, np.int64)
        """Steps of this episode beyond the limit."""

    def start(self, rows: Rows) -> None:
        """There is no limit yet."""
        self.limit[rows] = np.inf
        self.forget_episode(rows)

    def forget_episode(self, rows: Rows) -> None:
        """A new episode begins."""
        self.n_beyond[rows] = 0

    def calibrate(self, row: int, held_out: HeldOut) -> None:
        """Set the limit."""
        config = self.config
        largest = [np.abs(episode.residuals).max(axis=1) for episode in held_out.by_episode()]
        surprises = np.array([np.sort(steps)[-config.n_alarm_steps :][0] for steps in largest])
        limit = min(hill_limit(surprises, config.false_alarms), config.max_limit_factor * float(surprises.max()))
        self.limit[row] = max(limit, config.min_limit)

    def update(self, rows: Rows, largest: Floats) -> Flags:
        """Judge a step of each row by the size of its largest residual; returns which are beyond the limit."""
        limit = self.limit[rows]
        is_beyond: Flags = largest > limit
        if is_beyond.any():
            self.n_beyond[rows] += is_beyond.astype(np.int64) + (largest > self.config.far_factor * limit)
        return is_beyond

    def is_alarm(self, rows: Rows) -> Flags:
        """Whether enough steps of this episode are beyond the limit."""
        return np.asarray(self.n_beyond[rows] >= self.config.n_alarm_steps)
