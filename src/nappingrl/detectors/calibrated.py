"""Detectors that calibrate on the episodes before the novelty."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from typing_extensions import override

from nappingrl.detectors.base import Detector
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Floats, Rows

MIN_EPISODES = 5
"""Calibration episodes below which a trial is never judged."""


class Calibrated(Detector):
    """Learns from the episodes with a number below 0 and judges those that follow; alarms are latched.

    A trial that begins at episode 0 or later, as an agent outside of trials does, calibrates on its first `calibration`
    episodes instead.
    """

    saved: ClassVar[Mapping[str, Expected]] = {**Detector.saved, "_n_learned": Expected(low=0)}

    def __init__(self, n: int, calibration: int = 40) -> None:
        super().__init__(n)
        self.calibration = calibration
        self._last = np.zeros(n, np.int64)
        """The episode before which the calibration ends."""
        self._n_learned = np.zeros(n, np.int64)
        """Episodes learned from."""

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._last[rows] = 0 if episode < 0 else episode + self.calibration
        self._n_learned[rows] = 0

    @override
    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        is_calibration = next_episodes <= self._last[rows]
        learned = rows[is_calibration]
        self._learn(learned, returns[is_calibration])
        self._n_learned[learned] += 1
        is_judged = ~is_calibration & (self._n_learned[rows] >= MIN_EPISODES) & (self.context[rows] == 0)
        judged = rows[is_judged]
        if len(judged):
            self.context[judged[self._judge(judged, returns[is_judged])]] = 1

    @override
    def status(self, row: int) -> str:
        n_learned, is_outside_trials = int(self._n_learned[row]), self._last[row] > 0
        if is_outside_trials and n_learned < self.calibration:
            return f"is calibrating: {n_learned} of {self.calibration} episodes, which it takes as unchanged"
        return f"cannot alarm: it needs {MIN_EPISODES} calibration episodes" if n_learned < MIN_EPISODES else ""

    def _learn(self, rows: Rows, returns: Floats) -> None:
        """Learn from a calibration episode; `_n_learned` does not count it yet."""
        raise NotImplementedError

    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        """Whether the episode that ended shows that the world has changed."""
        raise NotImplementedError
