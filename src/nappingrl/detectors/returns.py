"""Detectors that judge the returns of whole episodes."""

from collections.abc import Mapping
from math import inf
from typing import ClassVar

import numpy as np
from typing_extensions import override

from nappingrl.detectors.base import Detector, Gauge
from nappingrl.detectors.calibrated import Calibrated
from nappingrl.errors import BadSpecError
from nappingrl.snapshot import Expected
from nappingrl.types import DomainSpec, Flags, Floats, Rows

_SIDES = np.array([1, -1])
_MIN_RELATIVE_SPREAD, _MIN_SPREAD = 0.05, 1e-6
"""The least spread of returns: this share of their mean, and in any case this much."""


def add_to_cusum(sums: Floats, deviations: Floats | float, allowance: float) -> Floats:
    """CUSUM's sums above and below the reference, (..., 2), after one more deviation of each, (...)."""
    added: Floats = np.maximum(sums + np.multiply.outer(deviations, _SIDES) - allowance, 0.0)
    return added


class RollingMean(Detector):
    """The paper's detector: mean return of the last `window` episodes below `low` or above `high`.

    # paper: "from post-novelty episode 5 on": judged first before episode `first`, on the returns of episodes 0..4.
    With first = -inf it judges as soon as the window is full, which is what an agent outside a trial needs.
    """

    saved: ClassVar[Mapping[str, Expected]] = {**Detector.saved, "_n_episodes": Expected(low=0)}

    def __init__(self, n: int, low: float = -inf, high: float = inf, window: int = 5, first: float = 5) -> None:
        super().__init__(n)
        self.low, self.high, self.window, self.first = low, high, window, first
        self._returns = np.zeros((n, window))
        self._n_episodes = np.zeros(n, np.int64)

    @override
    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "RollingMean":
        low, high = domain.return_limits
        if low == -inf and high == inf:
            raise BadSpecError(
                "detector 'rolling-mean' cannot alarm here: the DomainSpec states no return_limits; state them, or "
                "choose another detector; in Python, RollingMean(n_envs, low=..., high=...) takes them too"
            )
        return cls(n, low, high)

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._n_episodes[rows] = 0

    @override
    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        self._returns[rows, self._n_episodes[rows] % self.window] = returns
        self._n_episodes[rows] += 1
        mean = self._returns[rows].mean(axis=1)
        is_outside = (mean < self.low) | (mean > self.high)
        is_judged = (self._n_episodes[rows] >= self.window) & (next_episodes >= self.first)
        self.context[rows[is_outside & is_judged]] = 1

    @override
    def gauge(self, row: int) -> Gauge | None:
        if self._n_episodes[row] < self.window:
            return None
        mean = float(self._returns[row].mean())
        return Gauge(f"mean return of {self.window} episodes", mean, self.low, self.high)

    @override
    def status(self, row: int) -> str:
        if self.low == -inf and self.high == inf:
            return "cannot alarm: it has no limits"
        n_needed = max(self.window, self.first)
        n_episodes = int(self._n_episodes[row])
        return f"needs {n_needed:g} episodes first: {n_episodes} so far" if n_episodes < n_needed else ""


class Standardised(Calibrated):
    """Standardises returns by their mean and spread before the novelty.

    The spread is at least a share of the mean, since all returns may have been the same.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        **Calibrated.saved, "_squares": Expected(low=0), "_side": Expected(low=-1, high=1),
    }  # fmt: skip

    def __init__(self, n: int, calibration: int = 40) -> None:
        super().__init__(n, calibration)
        self._mean, self._squares = np.zeros(n), np.zeros(n)
        self._side = np.zeros(n, np.int64)
        """Whether returns rose (1) or fell (-1) at the alarm; 0: no alarm."""

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._mean[rows], self._squares[rows], self._side[rows] = 0.0, 0.0, 0

    @override
    def _learn(self, rows: Rows, returns: Floats) -> None:
        """Welford's running mean and sum of squared differences."""
        difference = returns - self._mean[rows]
        self._mean[rows] += difference / (self._n_learned[rows] + 1)
        self._squares[rows] += difference * (returns - self._mean[rows])

    def calibrate(self, row: int, returns: Floats, episode: int) -> None:
        """Learn the returns of earlier episodes, and judge from `episode` on."""
        self._n_learned[row], self._last[row] = len(returns), episode
        self._mean[row] = returns.mean() if len(returns) else 0.0
        self._squares[row] = ((returns - self._mean[row]) ** 2).sum()

    def _standardise(self, rows: Rows, returns: Floats) -> Floats:
        """Returns in spreads from their mean."""
        spread = np.sqrt(self._squares[rows] / (self._n_learned[rows] - 1))
        min_spread = np.maximum(_MIN_RELATIVE_SPREAD * np.abs(self._mean[rows]), _MIN_SPREAD)
        standard: Floats = (returns - self._mean[rows]) / np.maximum(spread, min_spread)
        return standard

    @override
    def explain(self, row: int) -> str:
        """Whether the returns fell or rose."""
        if not self._side[row]:
            return ""
        verb = "rose above" if self._side[row] > 0 else "fell below"
        return f"returns {verb} their previous mean of {self._mean[row]:g}"


class Cusum(Standardised):
    """Sums how far returns are above (or below) their mean before the novelty, less an `allowance`, never below 0.

    Alarms where a sum exceeds `limit`. One episode counts as `clip` spreads at most: one odd episode raises no alarm,
    two in a row do. All numbers are in spreads.
    """

    def __init__(
        self, n: int, limit: float = 10.0, allowance: float = 0.5, clip: float = 6.0, calibration: int = 40
    ) -> None:
        super().__init__(n, calibration)
        self.limit, self.allowance, self.clip = limit, allowance, clip
        self._sums = np.zeros((n, 2))

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._sums[rows] = 0.0

    @override
    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        standard = np.clip(self._standardise(rows, returns), -self.clip, self.clip)
        sums = add_to_cusum(self._sums[rows], self._deviation(rows, standard), self.allowance)
        alarms: Flags = sums.max(axis=1) > self.limit
        self._sums[rows] = sums
        self._side[rows[alarms]] = _SIDES[sums[alarms].argmax(axis=1)]
        return alarms

    @override
    def gauge(self, row: int) -> Gauge | None:
        return Gauge("sum of deviations of returns", float(self._sums[row].max()), high=self.limit)

    def _deviation(self, rows: Rows, standard: Floats) -> Floats:
        """How far an episode is from the expected return: here the mean before the novelty."""
        return standard


class PageHinkley(Cusum):
    """Page and Hinkley's test: CUSUM about the mean of all returns so far instead of the mean before the novelty.

    A slow drift moves this mean along and raises no alarm; a jump does.
    """

    saved: ClassVar[Mapping[str, Expected]] = {**Cusum.saved, "_n_judged": Expected(low=0)}

    def __init__(
        self, n: int, limit: float = 10.0, allowance: float = 0.5, clip: float = 6.0, calibration: int = 40
    ) -> None:
        super().__init__(n, limit, allowance, clip, calibration)
        self._total = np.zeros(n)
        self._n_judged = np.zeros(n, np.int64)

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._total[rows], self._n_judged[rows] = 0.0, 0

    @override
    def _deviation(self, rows: Rows, standard: Floats) -> Floats:
        """From the mean so far, which includes the episode itself."""
        self._total[rows] += standard
        self._n_judged[rows] += 1
        deviation: Floats = standard - self._total[rows] / (self._n_learned[rows] + self._n_judged[rows])
        return deviation
