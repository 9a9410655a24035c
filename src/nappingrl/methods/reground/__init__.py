"""Re-grounding: explain the changed world by the original one under other actions or sensors, and translate."""

import numpy as np
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.methods.reground.maps import PROBE, ContinuousMap
from nappingrl.methods.reground.trial import RegroundTrial, describe
from nappingrl.types import Actions, Decision, Flags, Keys, Observations, Rows, Transition
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.config import ModelConfig
from nappingrl.world_model.transitions import TransitionBuffer, encode


class Reground(Method):
    """Adaptation by translation: finds swapped or reversed actions and sensors; needs neither reward nor endings."""

    detector = "residual"
    learns_from_others = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        dim = ModelConfig().check_size("method 'reground'", info.domain, "use method 'napping'")
        self.domain = info.domain
        self._encoding = ActionEncoding(self.domain)
        self._reference = TransitionBuffer(n, dim, self._encoding.size, 8192)
        self._current = TransitionBuffer(n, dim, self._encoding.size)
        self._episode = np.zeros(n, np.int64)
        self.trials = [RegroundTrial(self.domain, self._encoding) for _ in range(n)]
        self._is_translated = np.zeros(n, np.bool_)

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        self._reference.clear(rows)
        self._current.clear(rows)
        self._episode[rows] = 0
        self._is_translated[rows] = False
        for row in rows.tolist():
            self.trials[row] = RegroundTrial(self.domain, self._encoding)

    @override
    def forward(self, rows: Rows, observations: Observations) -> Decision:
        is_translated = self._is_translated[rows]
        if not is_translated.any():
            return super().forward(rows, observations)
        seen = observations.copy()
        for m in np.flatnonzero(is_translated):
            grounding = self.trials[rows[m]].grounding
            if grounding is not None and not grounding.sensors.is_identity:
                seen[m] = grounding.sensors.original(observations[m : m + 1])[0]
        return super().forward(rows, seen)

    @override
    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        is_translated = self._is_translated[rows]
        if not is_translated.any():
            return decision.actions
        actions: Actions = decision.actions.copy()
        for m in np.flatnonzero(is_translated):
            actions[m] = self._executed(int(rows[m]), decision.actions[m])
        return actions

    def _executed(self, row: int, wanted: Actions) -> Actions:
        grounding = self.trials[row].grounding
        if grounding is None:
            return wanted
        if isinstance(grounding.actions, ContinuousMap):
            scaled = grounding.actions.executed(self._encoding.scale(wanted[None]))
            return self._encoding.unscale(scaled)[0]
        action = grounding.actions.instead[wanted]
        if action == PROBE:
            action = self._current.read(row).actions.sum(axis=0).argmin()
        return np.asarray(action)

    @override
    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        super().learn(rows, transition, detected)
        step = encode(transition, self._encoding, self._episode[rows])
        self._reference.add(rows, step, ~detected)
        self._current.add(rows, step, detected)
        is_end = transition.terminated | transition.truncated
        for m in np.flatnonzero(detected):
            row = int(rows[m])
            if self.trials[row].step_is_due(bool(is_end[m])):
                self.trials[row].search(self._current.read(row))
                self._update(row)

    def _update(self, row: int) -> None:
        grounding = self.trials[row].grounding
        self._is_translated[row] = grounding is not None and not grounding.is_identity

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            self._current.clear(np.array([row]))
            if context:
                self.trials[row].meet(self._reference.read(row))
            else:
                self.trials[row].leave()
            self._update(row)

    @override
    def end_episode(self, rows: Rows) -> None:
        self._episode[rows] += 1

    @override
    def discard_episode(self, rows: Rows) -> None:
        self._episode[rows] += 1

    @override
    def describe(self, row: int) -> str:
        grounding = self.trials[row].grounding
        return "" if grounding is None else describe(grounding, self.domain)

    @override
    def regions(self, rows: Rows) -> tuple[Rows, Rows]:
        """One grounding where one is in force; none is open."""
        return self._is_translated[rows].astype(np.int64), np.zeros(len(rows), np.int64)
