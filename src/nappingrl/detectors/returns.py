"""Detectors that look at the returns of whole episodes."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.base import Detector
from nappingrl.detectors.calibrated import Calibrated
from nappingrl.errors import BadSpecError
from nappingrl.types import DomainSpec, Flags, Floats, Rows

_SIDES = np.array([1, -1])
_SHARE, _TINY = 0.05, 1e-6
"""The least spread of returns: this share of their mean, and where that is 0, too, this much."""


def add_to_cusum(sums: Floats, deviations: Floats | float, allowance: float) -> Floats:
    """CUSUM's sums above and below the reference, (..., 2), after one more deviation of each, (...)."""
    added: Floats = np.maximum(sums + np.multiply.outer(deviations, _SIDES) - allowance, 0.0)
    return added


class RollingMean(Detector):
    """The paper's detector: mean return of the last `window` episodes below `low` or above `high`.

    # paper: "from post-novelty episode 5 on": judged first before episode `first`, on the returns of episodes 0..4.
    With first = -inf it judges as soon as the window is full, which is what an agent outside a trial needs.
    """

    def __init__(self, n: int, low: float = -inf, high: float = inf, window: int = 5, first: float = 5) -> None:
        super().__init__(n)
        self.low, self.high, self.window, self.first = low, high, window, first
        self._returns = np.zeros((n, window))
        self._seen = np.zeros(n, np.int64)

    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "RollingMean":
        """With the domain's limits."""
        low, high = domain.return_limits
        if low == -inf and high == inf:
            raise BadSpecError(
                "detector 'rolling-mean' cannot alarm here: the domain names no limits of the return; "
                "give RollingMean(n_envs, low=..., high=...) or another detector"
            )
        return cls(n, low, high)

    def start(self, rows: Rows, episode: int) -> None:
        """Forget the returns of these rows."""
        super().start(rows, episode)
        self._seen[rows] = 0

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        """Judge the rolling mean once the window is full."""
        self._returns[rows, self._seen[rows] % self.window] = returns
        self._seen[rows] += 1
        mean = self._returns[rows].mean(axis=1)
        outside = (mean < self.low) | (mean > self.high)
        self.context[rows[outside & (self._seen[rows] >= self.window) & (next_episodes >= self.first)]] = 1

    def state(self) -> dict[str, NDArray[Any]]:
        """The returns in the window."""
        return super().state() | {"returns": self._returns, "seen": self._seen}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on with these returns."""
        super().restore(state)
        self._returns[:], self._seen[:] = state["returns"], state["seen"]


class Standardised(Calibrated):
    """Sees returns in units of what is usual: of their mean and their spread before the novelty.

    The spread is taken to be at least a share of the mean, as returns may all have been the same.
    """

    _kept = (*Calibrated._kept, "mean", "squares", "side")

    def __init__(self, n: int, calibration: int = 40) -> None:
        super().__init__(n, calibration)
        self._mean, self._squares = np.zeros(n), np.zeros(n)
        self._side = np.zeros(n, np.int64)

    def start(self, rows: Rows, episode: int) -> None:
        """Forget the returns of these rows."""
        super().start(rows, episode)
        self._mean[rows], self._squares[rows], self._side[rows] = 0.0, 0.0, 0

    def _learn(self, rows: Rows, returns: Floats) -> None:
        """Welford's running mean and sum of squared differences."""
        off = returns - self._mean[rows]
        self._mean[rows] += off / (self._seen[rows] + 1)
        self._squares[rows] += off * (returns - self._mean[rows])

    def _standardise(self, rows: Rows, returns: Floats) -> Floats:
        """How many spreads above the mean."""
        spread = np.sqrt(self._squares[rows] / (self._seen[rows] - 1))
        standard: Floats = (returns - self._mean[rows]) / np.maximum(
            spread, np.maximum(_SHARE * np.abs(self._mean[rows]), _TINY)
        )
        return standard

    def explain(self, row: int) -> str:
        """Whether the returns fell or rose."""
        if not self._side[row]:
            return ""
        return f"returns {'rose above' if self._side[row] > 0 else 'fell below'} their {self._mean[row]:g} of before"


class Cusum(Standardised):
    """Sums up how far returns are above (or below) their mean of before, less an `allowance`, never below 0.

    Alarms where a sum exceeds `limit`. One episode counts as `clip` spreads at most: one odd episode does not alarm,
    two in a row do. All numbers are in spreads.
    """

    _kept = (*Standardised._kept, "sums")

    def __init__(
        self, n: int, limit: float = 10.0, allowance: float = 0.5, clip: float = 6.0, calibration: int = 40
    ) -> None:
        super().__init__(n, calibration)
        self.limit, self.allowance, self.clip = limit, allowance, clip
        self._sums = np.zeros((n, 2))

    def start(self, rows: Rows, episode: int) -> None:
        """Begin to sum up from 0."""
        super().start(rows, episode)
        self._sums[rows] = 0.0

    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        """Add the episode to both sums; remember which one is too great."""
        off = self._off(rows, np.clip(self._standardise(rows, returns), -self.clip, self.clip))
        sums = add_to_cusum(self._sums[rows], off, self.allowance)
        alarms: Flags = sums.max(axis=1) > self.limit
        self._sums[rows] = sums
        self._side[rows[alarms]] = _SIDES[sums[alarms].argmax(axis=1)]
        return alarms

    def _off(self, rows: Rows, standard: Floats) -> Floats:
        """How far the episode is from what is expected of it: from the mean of before."""
        return standard


class PageHinkley(Cusum):
    """Page and Hinkley's test: as CUSUM, about the mean of all returns so far instead of that of before.

    A slow drift moves this mean along and is forgiven; a jump is not.
    """

    _kept = (*Cusum._kept, "total", "judged")

    def __init__(
        self, n: int, limit: float = 10.0, allowance: float = 0.5, clip: float = 6.0, calibration: int = 40
    ) -> None:
        super().__init__(n, limit, allowance, clip, calibration)
        self._total, self._judged = np.zeros(n), np.zeros(n, np.int64)

    def start(self, rows: Rows, episode: int) -> None:
        """Nothing has been judged."""
        super().start(rows, episode)
        self._total[rows], self._judged[rows] = 0.0, 0

    def _off(self, rows: Rows, standard: Floats) -> Floats:
        """From the mean so far, which the episode is part of."""
        self._total[rows] += standard
        self._judged[rows] += 1
        off: Floats = standard - self._total[rows] / (self._seen[rows] + self._judged[rows])
        return off
