"""Detectors that look at the returns of whole episodes."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.arrays import Floats, Rows
from nappingrl.detect.base import Detector
from nappingrl.facts import Facts


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
    def for_world(cls, n: int, facts: Facts) -> "RollingMean":
        """With the limits that are known for the world."""
        low, high = facts.return_limits
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
        self.world[rows[outside & (self._seen[rows] >= self.window) & (next_episodes >= self.first)]] = 1

    def state(self) -> dict[str, NDArray[Any]]:
        """The returns in the window."""
        return super().state() | {"returns": self._returns, "seen": self._seen}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on with these returns."""
        super().restore(state)
        self._returns[:], self._seen[:] = state["returns"], state["seen"]
