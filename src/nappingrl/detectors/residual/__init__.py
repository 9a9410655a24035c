"""Novelty by one-step prediction: steps no longer lead where a model of the original world predicts.

The model is calibrated on the episodes before the novelty. Two tests raise an alarm, each with a limit that an episode
of the unchanged world exceeds with probability `false_alarms`: `Surprise` judges single steps, `Drift` sums up small
residuals over an episode. `Recognition` tells which context the trial is in after an alarm, and when the original one
is back (after an alarm by drift: once a whole episode drifts no more than usual).
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.detectors.base import Detector
from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.residual.drift import Drift
from nappingrl.detectors.residual.model import ORIGINAL, ResidualModels
from nappingrl.detectors.residual.recognition import Recognition
from nappingrl.detectors.residual.surprise import Surprise
from nappingrl.errors import BadSpecError
from nappingrl.snapshot import MAX_EPISODE, Expected, flatten, restore_arrays, unflatten
from nappingrl.types import DomainSpec, Flags, Floats, Rows, Transition, arrays_of
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.transitions import TransitionBuffer, Transitions, encode

__all__ = ["Residual", "ResidualConfig"]


class Residual(Detector):
    """Alarms when steps of an episode are more surprising, or drift more, than in the unchanged world."""

    needs_domain = True
    saved: ClassVar[Mapping[str, Expected]] = {
        **Detector.saved, "_first_episode": Expected(low=-MAX_EPISODE, high=MAX_EPISODE),
        "_episode": Expected(low=-MAX_EPISODE, high=MAX_EPISODE), "_changed": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, domain: DomainSpec, config: ResidualConfig | None = None) -> None:
        super().__init__(n)
        self.domain, self.config = domain, config or ResidualConfig()
        d = self.config.check_size("detector 'residual'", domain, "use detector 'ks' or 'cusum'")
        if not 0 < self.config.false_alarms < 0.1:
            raise BadSpecError(
                f"false_alarms={self.config.false_alarms} given; allowed: a probability per episode in (0, 0.1)"
            )
        self._encoding = ActionEncoding(domain)
        size = self._encoding.size
        self._buffer = TransitionBuffer(n, d, size, self.config.max_transitions)
        """The calibration's transitions, later those of the changed world."""
        self.models = ResidualModels(n, domain, size, self.config)
        self.surprise = Surprise(n, self.config)
        self.drift = Drift(n, d, size, self.config)
        self.recognition = Recognition(n, self.models, size)
        self._is_calibrated, self._is_drift = np.zeros((2, n), np.bool_)
        """_is_drift: whether the last alarm was by drift."""
        self._first_episode, self._episode = np.zeros((2, n), np.int64)
        self._changed = np.zeros((n, d))
        """How much each observation has contributed to alarms."""

    @override
    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "Residual":
        return cls(n, domain)

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._buffer.clear(rows)
        for part in (self.surprise, self.drift, self.recognition):
            part.start(rows)
        self._is_calibrated[rows] = False
        self._first_episode[rows] = self._episode[rows] = episode
        self._changed[rows] = 0.0

    def is_calibrated(self, rows: Rows) -> Flags:
        """Where it watches."""
        flags: Flags = self._is_calibrated[rows]
        return flags

    @override
    def step(self, rows: Rows, transition: Transition) -> None:
        steps = encode(transition, self._encoding, self._episode[rows])
        is_calibrated = self._is_calibrated[rows]
        self._buffer.add(rows, steps, ~is_calibrated | (self.context[rows] > 0))
        if is_calibrated.all():
            self._judge(rows, steps)
        elif is_calibrated.any():
            self._judge(rows[is_calibrated], steps.at(is_calibrated))

    def _judge(self, rows: Rows, steps: Transitions) -> None:
        """Raise alarms, and notice when the original world is back."""
        self.recognition.recent.add(rows, steps)
        residuals = self.models.residuals(rows, ORIGINAL, steps)
        self._blame(rows, *self.drift.update(rows, residuals, steps.actions))
        sizes = np.abs(residuals)
        largest = sizes.max(axis=1)
        is_beyond = self.surprise.update(rows, largest)
        self._blame(rows, sizes, is_beyond[:, None] & (sizes > self.surprise.limit[rows, None]))
        is_informative = is_beyond | ((largest > 0) & self.models.is_in_range(rows, steps.states))
        self.recognition.count(rows, is_beyond, is_informative)
        is_away = self.context[rows] > 0
        is_surprise, is_drift = self.surprise.is_alarm(rows), self.drift.is_alarm(rows)
        self._is_drift[rows[~is_away]] = (is_drift & ~is_surprise)[~is_away]
        for row in rows[~is_away & (is_drift | is_surprise)].tolist():
            self.context[row] = self.recognition.identify(row)
        if is_away.any():
            is_back = self.recognition.is_back(rows, is_away, is_beyond)
            for row in rows[is_back & ~self._is_drift[rows]].tolist():
                self._come_back(row, int(self.recognition.calm[row]))

    def _blame(self, rows: Rows, amounts: NDArray[np.float64], where: NDArray[np.bool_]) -> None:
        """Add to what each observation has contributed to alarms."""
        if where.any():
            self._changed[rows] += np.where(where, amounts, 0.0)

    def _come_back(self, row: int, n_calm: int) -> None:
        """The original world is back since `n_calm` steps: model the context that is left."""
        transitions = self._buffer.read(row)
        transitions = transitions.at(slice(0, max(0, transitions.n - n_calm)))
        self.recognition.learn(row, int(self.context[row]), transitions)
        self._buffer.clear(np.array([row]))
        self.surprise.forget_episode(np.array([row]))
        self.context[row] = 0

    @override
    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        is_calm = (self.surprise.n_beyond[rows] == 0) & self.drift.is_usual(rows)
        for row in rows[(self.context[rows] > 0) & self._is_drift[rows] & is_calm].tolist():
            self._come_back(row, int((self._buffer.read(row).episodes == self._episode[row]).sum()))
        self.discard_episode(rows)
        self._episode[rows] = next_episodes
        first, n_episodes = self._first_episode[rows], self.config.n_calibration_episodes
        is_due = np.where(first < 0, next_episodes >= 0, next_episodes - first >= n_episodes)
        for row in rows[is_due & ~self._is_calibrated[rows]].tolist():
            self._calibrate(row)

    def _calibrate(self, row: int) -> None:
        held_out = self.models.calibrate(row, self._buffer.read(row))
        if held_out is not None:
            self.surprise.calibrate(row, held_out)
            self.drift.calibrate(row, held_out)
        self._is_calibrated[row] = True
        self._buffer.clear(np.array([row]))

    @override
    def discard_episode(self, rows: Rows) -> None:
        self.surprise.forget_episode(rows)
        self.drift.forget_episode(rows)
        self.recognition.recent.clear(rows)

    @override
    def status(self, row: int) -> str:
        if self._is_calibrated[row]:
            return "" if np.isfinite(self.surprise.limit[row]) else "cannot alarm: it calibrated on too few steps"
        n_episodes = int(self._episode[row] - self._first_episode[row])
        n_needed = self.config.n_calibration_episodes
        return f"is calibrating: {n_episodes} of {n_needed} episodes, which it takes as unchanged"

    @override
    def explain(self, row: int) -> str:
        """Which observations changed, the most surprising first."""
        changed = self._changed[row]
        if not changed.sum():
            return ""
        order = [i for i in np.argsort(-changed) if changed[i] > 0]
        return ", ".join(f"{self.domain.names[i]} ({changed[i] / changed.sum():.0%})" for i in order)

    def _parts(self) -> dict[str, object]:
        return {
            "models": self.models, "surprise": self.surprise, "drift": self.drift, "recognition": self.recognition,
        }  # fmt: skip

    def _buffers(self) -> dict[str, TransitionBuffer]:
        return {"buffer": self._buffer, "recent": self.recognition.recent}

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        state = super().state()
        for name, part in self._parts().items():
            state |= {f"{name}.{key}": array for key, array in arrays_of(part).items()}
        for name, buffer in self._buffers().items():
            for row in range(self.n):
                state |= flatten(buffer.read(row), f"{name}.{row}")
        return state

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super().restore(state)
        for name, part in self._parts().items():
            restore_arrays(part, state, f"{name}.")
        for name, buffer in self._buffers().items():
            for row in range(self.n):
                buffer.write(row, unflatten(Transitions, state, f"{name}.{row}", buffer.sizes))
