"""Novelty detectors: has the world changed? State is kept per trial; the engine latches what is detected."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.arrays import Flags, Floats, Rows, Transition


class Detector:
    """Watches n trials. Any of the three calls may raise an alarm for some of the rows it is given.

    Episodes are numbered as in the paper: -40..-1 before the novelty, 0..39 after it.
    """

    def __init__(self, n: int) -> None:
        self.n = n

    def start(self, rows: Rows, episode: int) -> Flags:
        """A new trial begins in `rows` with the given episode number: forget everything."""
        return np.zeros(len(rows), np.bool_)

    def step(self, rows: Rows, transition: Transition) -> Flags:
        """One step of the world was seen."""
        return np.zeros(len(rows), np.bool_)

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> Flags:
        """An episode ended with this return; judged before the next one begins."""
        return np.zeros(len(rows), np.bool_)

    def state(self) -> dict[str, NDArray[Any]]:
        """What it has seen, as named arrays, so that it can be saved."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave."""


class Never(Detector):
    """Never alarms: the method stays as it was before the novelty."""


class Given(Detector):
    """Novelty is given: alarms exactly when post-novelty episode 0 begins."""

    def start(self, rows: Rows, episode: int) -> Flags:
        """Alarm at once where the trial begins in the changed world."""
        return np.full(len(rows), episode >= 0)

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> Flags:
        """Alarm when the next episode is a post-novelty one."""
        return next_episodes >= 0


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

    def start(self, rows: Rows, episode: int) -> Flags:
        """Forget the returns of these rows."""
        self._seen[rows] = 0
        return super().start(rows, episode)

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> Flags:
        """Judge the rolling mean once the window is full."""
        self._returns[rows, self._seen[rows] % self.window] = returns
        self._seen[rows] += 1
        mean = self._returns[rows].mean(axis=1)
        outside: Flags = (mean < self.low) | (mean > self.high)
        return outside & (self._seen[rows] >= self.window) & (next_episodes >= self.first)

    def state(self) -> dict[str, NDArray[Any]]:
        """The returns in the window."""
        return {"returns": self._returns, "seen": self._seen}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on with these returns."""
        self._returns[:], self._seen[:] = state["returns"], state["seen"]
