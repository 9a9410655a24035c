"""ADWIN over the returns of episodes; the test itself is river's."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.detectors.returns import Standardised
from nappingrl.errors import BadAgentError, MissingExtraError
from nappingrl.snapshot import Expected, restore_arrays
from nappingrl.types import Flags, Floats, Rows

MAX_HISTORY = 5120
"""Returns that are kept of a trial; a full history drops its older half."""


class Adwin(Standardised):
    """Adaptive windowing: alarms when the returns can be cut into two parts with different means.

    Tests after every episode. `delta` is ADWIN's probability of a false alarm, `least` the least number of episodes in
    a part. Returns are standardised, since ADWIN's bound is meant for values of about 1.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        **Standardised.saved, "_history": Expected(("n", "episodes")), "_n_kept": Expected(low=0, high=MAX_HISTORY),
    }  # fmt: skip

    def __init__(self, n: int, delta: float = 0.002, least: int = 2, calibration: int = 40) -> None:
        super().__init__(n, calibration)
        try:
            adwin_class = import_module("river.drift").ADWIN
        except ImportError as error:
            raise MissingExtraError('detector adwin needs river: pip install "nappingrl[detect]"') from error
        self._make_window: Callable[[], Any] = partial(
            adwin_class, delta=delta, clock=1, min_window_length=least, grace_period=1
        )
        self._windows: dict[int, Any] = {}
        self._history = np.zeros((n, 2 * calibration))
        """The latest returns of each trial; river's windows are rebuilt from them after loading."""
        self._n_kept = np.zeros(n, np.int64)
        """Returns in the history."""

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._n_kept[rows] = 0
        for row in rows.tolist():
            self._windows.pop(row, None)

    @override
    def _learn(self, rows: Rows, returns: Floats) -> None:
        super()._learn(rows, returns)
        self._record(rows, returns)

    @override
    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        alarms = np.zeros(len(rows), np.bool_)
        standard = self._standardise(rows, returns)
        for i, row in enumerate(rows.tolist()):
            if row not in self._windows:
                self._windows[row] = self._rebuild_window(row)
            window = self._windows[row]
            window.update(float(standard[i]))
            if window.drift_detected:  # from now on the window holds the part after the cut
                alarms[i], self._side[row] = True, 1 if window.estimation > 0 else -1
        self._record(rows, returns)
        return alarms

    def _record(self, rows: Rows, returns: Floats) -> None:
        for row in rows[self._n_kept[rows] == MAX_HISTORY].tolist():
            half = MAX_HISTORY // 2
            self._history[row, :half] = self._history[row, half:MAX_HISTORY]
            self._n_kept[row] = half
            self._windows.pop(row, None)
        if len(rows) and self._n_kept[rows].max() == self._history.shape[1]:
            self._history = np.concatenate([self._history, np.zeros_like(self._history)], axis=1)
        self._history[rows, self._n_kept[rows]] = returns
        self._n_kept[rows] += 1

    def _rebuild_window(self, row: int) -> Any:
        """A window with the returns in the history; its earlier alarms were raised before."""
        window, returns = self._make_window(), self._history[row, : self._n_kept[row]]
        for value in self._standardise(np.full(len(returns), row), returns):
            window.update(float(value))
        return window

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        restore_arrays(self, state, sizes={"n": self.n})
        length = self._history.shape[1]
        if not 0 < length <= 2 * max(MAX_HISTORY, self.calibration) or (self._n_kept > length).any():
            raise BadAgentError(f"array '_history' has {length} episodes; '_n_kept' counts others")
        self._windows.clear()
