"""Re-grounding: explain the changed world by the original one under other actions or sensors, and translate."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import MethodInfo
from nappingrl.methods.per_trial import PerTrialMethod
from nappingrl.methods.reground.describe import describe
from nappingrl.methods.reground.maps import MAX_DELAY, ContinuousMap
from nappingrl.methods.reground.trial import RegroundTrial, TrialState
from nappingrl.snapshot import Expected, flatten, unflatten
from nappingrl.types import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition
from nappingrl.world_model.action_encoding import ActionEncoding


@dataclass(slots=True)
class _State:
    """Everything that was learned, for saving."""

    trials: Annotated[list[TrialState], Expected(("n",))]
    has_begun: Annotated[NDArray[np.bool_], Expected(("n",))]
    late: Annotated[list[Annotated[list[Annotated[Floats, Expected(("b",), -1e3, 1e3)]], Expected()]], Expected(("n",))]


class Reground(PerTrialMethod[RegroundTrial]):
    """Adaptation by translation of exchanged or reversed actions and sensors; needs neither reward nor endings."""

    detector = "residual"
    learns_from_others = True
    acts_as_agent = True
    uses_memory = True
    translates = True
    can_be_saved = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        if info.memory is None:
            raise BadSpecError("method 'reground' needs observations that are one row of numbers; use method 'napping'")
        self.domain, self._memory = info.domain, info.memory
        self._encoding = ActionEncoding(self.domain)
        self._is_translated, self._is_certain, self._has_begun = np.zeros((3, n), np.bool_)
        """The first two are copies of what each trial says; _has_begun: whether the episode under way has a step."""
        self._late: list[list[Floats]] = [[] for _ in range(n)]
        """The latest executed actions of the episode under way, encoded: they may take effect late."""
        self.trials = self.make_trials()

    @override
    def make_trial(self, key: int) -> RegroundTrial:
        return RegroundTrial(self.domain, self._encoding)

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        self._is_translated[rows] = self._is_certain[rows] = self._has_begun[rows] = False
        for row in rows.tolist():
            self._late[row] = []

    def _ask(self, row: int) -> None:
        """Copy what a trial says about its grounding."""
        self._is_translated[row], self._is_certain[row] = self.trials[row].is_translated, self.trials[row].has_grounding

    # ------------------------------------------------------------------------------------------------- acting

    @override
    def forward(self, rows: Rows, observations: Observations) -> Decision:
        is_translated = self._is_translated[rows]
        if not is_translated.any():
            return super().forward(rows, observations)
        original = observations.copy()
        for m in np.flatnonzero(is_translated):
            original[m] = self._original(int(rows[m]), observations[m])
        return super().forward(rows, original)

    def _original(self, row: int, observation: Observations) -> NDArray[np.floating]:
        """The observation that the original sensors would show when the action takes effect."""
        grounding, reference = self.trials[row].in_force, self._memory.reference(row)
        if grounding is None or reference is None:
            return observation
        state = grounding.sensors.original(observation[None])
        late = self._late[row][-grounding.delay :] if grounding.delay else []
        for action in late[:1] * (grounding.delay - len(late)) + late:
            ahead = reference.predict(state, grounding.actions.original(action[None]))
            state = np.where(reference.is_modelled, ahead, state)
        return np.asarray(state[0] if grounding.delay or not grounding.sensors.is_identity else observation)

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
        """What to execute so that it acts as the wanted action; or a probe."""
        trial = self.trials[row]
        if trial.probes:
            return np.asarray(trial.probes[-1])
        if trial.in_force is None or trial.in_force.actions.is_identity:
            return wanted
        actions = trial.in_force.actions
        if isinstance(actions, ContinuousMap):
            return np.asarray(self._encoding.unscale(actions.executed(self._encoding.scale(wanted[None])))[0])
        return np.asarray(actions.instead[wanted])

    # ------------------------------------------------------------------------------------------------- learning

    @override
    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        super().learn(rows, transition, detected)
        if detected.any():
            is_end = transition.terminated | transition.truncated
            encoded = self._encoding(transition.actions)
            for m in np.flatnonzero(detected):
                row = int(rows[m])
                if not self._has_begun[row]:
                    self.trials[row].begin_episode(np.asarray(transition.observations[m], np.float64))
                self._late[row] = [*self._late[row], encoded[m]][-MAX_DELAY:]
                self._learn(row, bool(is_end[m]))
        self._has_begun[rows] = True

    def _learn(self, row: int, is_end: bool) -> None:
        trial = self.trials[row]
        is_due, is_start = trial.step_is_due(is_end), trial.start_is_due(is_end)
        if is_due or is_start:
            reference = self._memory.reference(row)
            if reference is None:
                trial.why_not = self._memory.why_not(row)
            else:
                current = self._memory.current(row)
                if is_start:
                    trial.judge_start(reference, current, is_end)
                if is_due:
                    trial.search(reference, current)
        self._ask(row)

    @override
    def try_out(self, row: int) -> bool:
        """Translate by an exchange of actions that the steps so far do not speak for, if there is one left."""
        trial, reference = self.trials[row], self._memory.reference(row)
        is_new = reference is not None and trial.begin_experiment(reference, self._memory.current(row))
        self._ask(row)
        return is_new

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            self.trials[row].enter(context)
            self._ask(row)

    @override
    def end_episode(self, rows: Rows) -> None:
        self._has_begun[rows] = False
        for row in rows.tolist():
            self._late[row] = []

    @override
    def discard_episode(self, rows: Rows) -> None:
        self.end_episode(rows)
        for row in rows.tolist():
            self.trials[row].experiment = None
            self._ask(row)

    # ------------------------------------------------------------------------------------------------- telling

    @override
    def describe(self, row: int) -> str:
        trial = self.trials[row]
        grounding = trial.grounding if trial.experiment is None else trial.experiment
        return "" if grounding is None else describe(grounding, self.domain)

    @override
    def signature(self, row: int) -> str:
        grounding = self.trials[row].grounding
        return "" if grounding is None else grounding.signature

    @override
    def status(self, row: int) -> str:
        trial = self.trials[row]
        return trial.why_not if trial.grounding is not None and trial.grounding.is_identity else ""

    @override
    def is_certain(self, rows: Rows) -> Flags:
        return self._is_certain[rows]

    @override
    def has_policy(self, row: int) -> bool:
        return self.trials[row].has_grounding

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        return flatten(_State([trial.state() for trial in self.trials], self._has_begun, self._late), "reground")

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        encoding = self._encoding
        sizes = {
            "n": self.n, "d": len(self.domain.observation_low), "k": len(encoding.low), "b": encoding.size,
            "n_actions": encoding.n_actions,
        }  # fmt: skip
        restored: _State = unflatten(_State, state, "reground", sizes)
        self._has_begun, self._late = restored.has_begun, restored.late
        for row, trial in enumerate(self.trials):
            trial.restore(restored.trials[row])
            self._ask(row)
