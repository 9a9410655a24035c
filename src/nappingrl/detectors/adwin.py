"""ADWIN over the returns of episodes; the test itself is river's."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.returns import Standardised
from nappingrl.errors import MissingExtraError
from nappingrl.types import Flags, Floats, Rows


class Adwin(Standardised):
    """Adaptive windowing: alarms where the returns can be cut in two parts with different means.

    Looks after every episode. `delta` is the chance of a false alarm that ADWIN allows itself, `least` the number of
    episodes that a part must have. Returns are standardised, as ADWIN's bound is meant for values of about 1.
    """

    _kept = (*Standardised._kept, "judged")

    def __init__(self, n: int, delta: float = 0.002, least: int = 2, calibration: int = 40) -> None:
        super().__init__(n, calibration)
        try:
            kind = import_module("river.drift").ADWIN
        except ImportError as error:
            raise MissingExtraError('detector adwin needs river: pip install "nappingrl[detect]"') from error
        self._make: Callable[[], Any] = partial(kind, delta=delta, clock=1, min_window_length=least, grace_period=1)
        self._windows: dict[int, Any] = {}
        self._history = np.zeros((n, 2 * calibration))
        self._judged = np.zeros(n, np.int64)

    def start(self, rows: Rows, episode: int) -> None:
        """Forget the windows."""
        super().start(rows, episode)
        self._judged[rows] = 0
        for row in rows.tolist():
            self._windows.pop(row, None)

    def _learn(self, rows: Rows, returns: Floats) -> None:
        """Keep the return: the window begins with those of before the novelty."""
        super()._learn(rows, returns)
        self._remember(rows, self._seen[rows], returns)

    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        """Show each window its episode."""
        alarms = np.zeros(len(rows), np.bool_)
        standard = self._standardise(rows, returns)
        for i, row in enumerate(rows.tolist()):
            if row not in self._windows:
                self._windows[row] = self._window_of(row)
            self._windows[row].update(float(standard[i]))
            if self._windows[row].drift_detected:  # the window holds the part after the cut now
                alarms[i], self._side[row] = True, 1 if self._windows[row].estimation > 0 else -1
        self._remember(rows, self._seen[rows] + self._judged[rows], returns)
        self._judged[rows] += 1
        return alarms

    def _remember(self, rows: Rows, at: Rows, returns: Floats) -> None:
        if len(at) and at.max() >= self._history.shape[1]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
        self._history[rows, at] = returns

    def _window_of(self, row: int) -> Any:
        """A window that has seen all returns of the trial so far; what it says of them has been heard before."""
        window, returns = self._make(), self._history[row, : self._seen[row] + self._judged[row]]
        for value in self._standardise(np.full(len(returns), row), returns):
            window.update(float(value))
        return window

    def state(self) -> dict[str, NDArray[Any]]:
        """All returns: river's windows are made from them again."""
        return super().state() | {"history": self._history}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on with these returns."""
        super().restore(state)
        self._history = np.array(state["history"])
        self._windows.clear()
