"""Detectors that learn from the episodes before the novelty what is usual."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.base import Detector
from nappingrl.types import Flags, Floats, Rows

LEAST = 5
"""With fewer episodes than these nothing is known of what is usual: such a trial is never judged."""


class Calibrated(Detector):
    """Learns from the episodes with a number below 0, judges those that follow; a judgement stands.

    A trial that begins at episode 0 or later, as an agent outside of trials does, learns from its first `calibration`
    episodes instead.
    """

    _kept: ClassVar[tuple[str, ...]] = ("until", "seen")
    """The arrays with one entry per trial that are saved, by their names without the underscore."""

    def __init__(self, n: int, calibration: int = 40) -> None:
        super().__init__(n)
        self.calibration = calibration
        self._until = np.zeros(n, np.int64)
        self._seen = np.zeros(n, np.int64)

    def start(self, rows: Rows, episode: int) -> None:
        """Nothing is usual yet."""
        super().start(rows, episode)
        self._until[rows] = 0 if episode < 0 else episode + self.calibration
        self._seen[rows] = 0

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        """Learn from the episode, or judge it."""
        is_usual = next_episodes <= self._until[rows]
        usual = rows[is_usual]
        self._learn(usual, returns[is_usual])
        self._seen[usual] += 1
        is_open = ~is_usual & (self._seen[rows] >= LEAST) & (self.context[rows] == 0)
        judged = rows[is_open]
        if len(judged):
            self.context[judged[self._judge(judged, returns[is_open])]] = 1

    def _learn(self, rows: Rows, returns: Floats) -> None:
        """An episode in the world as it was has ended; `_seen` are those before it."""
        raise NotImplementedError

    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        """Whether the world has changed, after an episode of which nobody knows."""
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """What is usual, and what has been seen since."""
        return super().state() | {name: getattr(self, f"_{name}") for name in self._kept}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from there."""
        super().restore(state)
        for name in self._kept:
            getattr(self, f"_{name}")[:] = state[name]
