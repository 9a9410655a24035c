"""Drift: residuals too small to surprise that correlate with the actions over an episode."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.residual.model import HeldOut
from nappingrl.detectors.tail_limits import gumbel_limit
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Rows


class Drift:
    """Sums the products of residual and encoded action over an episode, in units of the root of their squares' sum.

    The limit follows from a Gumbel distribution with the mean and the spread of the largest drift of each calibration
    episode.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "limit": Expected(low=0, with_inf=True), "usual": Expected(low=0, with_inf=True), "squares": Expected(low=0),
        "largest": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, dim: int, action_size: int, config: ResidualConfig) -> None:
        self.config = config
        self.limit, self.usual = np.full((2, n), np.inf)
        self.sums, self.squares = np.zeros((2, n, dim, action_size))
        self.largest = np.zeros(n)
        """The largest drift of this episode."""

    def start(self, rows: Rows) -> None:
        """There is no limit yet."""
        self.limit[rows] = np.inf
        self.forget_episode(rows)

    def forget_episode(self, rows: Rows) -> None:
        """A new episode begins."""
        self.sums[rows], self.squares[rows], self.largest[rows] = 0.0, 0.0, 0.0

    def calibrate(self, row: int, held_out: HeldOut) -> None:
        """Set the limit."""
        drifts = np.array([self._largest_of(episode) for episode in held_out.by_episode()])
        if len(drifts) > 1:
            least = self.config.min_drift_limit
            self.limit[row] = max(float(gumbel_limit(drifts, self.config.false_alarms)), least)
            self.usual[row] = max(float(drifts.mean() + drifts.std()), least / 2)

    def _largest_of(self, episode: HeldOut) -> float:
        products = episode.residuals[:, :, None] * episode.actions[:, None, :]
        return float(self._drift(np.cumsum(products, axis=0), np.cumsum(products**2, axis=0)).max())

    def _drift(self, sums: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.abs(sums) / np.sqrt(squares + self.config.drift_evidence))

    def update(
        self, rows: Rows, residuals: NDArray[np.float64], actions: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Add a step; returns the drift (m, d) of each observation, and where it is a new maximum beyond the limit."""
        products = residuals[:, :, None] * actions[:, None, :]
        self.sums[rows] += products
        self.squares[rows] += products**2
        drifts = self._drift(self.sums[rows], self.squares[rows]).max(axis=2)
        is_new = drifts > np.maximum(self.limit[rows], self.largest[rows])[:, None]
        self.largest[rows] = np.maximum(self.largest[rows], drifts.max(axis=1))
        return drifts, is_new

    def is_alarm(self, rows: Rows) -> Flags:
        """Whether this episode drifts beyond the limit."""
        return np.asarray(self.largest[rows] > self.limit[rows])

    def is_usual(self, rows: Rows) -> Flags:
        """Whether this episode drifts no more than those of the calibration."""
        return np.asarray(self.largest[rows] < self.usual[rows])
