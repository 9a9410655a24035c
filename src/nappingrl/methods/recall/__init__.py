"""Recall: remember how tried actions ended, and choose by the outcomes of like actions in like states."""

from collections.abc import Mapping
from typing import Annotated, Any

from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Forecast, MethodInfo
from nappingrl.methods.per_trial import PerTrialMethod
from nappingrl.methods.recall.outcomes import CONFIG
from nappingrl.methods.recall.trial import RecallTrial, TrialState
from nappingrl.snapshot import Expected, flatten, unflatten
from nappingrl.types import Actions, Decision, Flags, Observations, Rows, Transition

_STATES = Annotated[list[TrialState], Expected(("n",))]


class Recall(PerTrialMethod[RecallTrial]):
    """Adaptation by remembered outcomes, for episodes of a few steps, such as shots; needs no score."""

    detector = "auto"
    learns_from_others = True
    needs_discrete = True
    acts_on_demand = True
    can_be_saved = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        domain = self.domain = info.domain
        if domain.observation_low.ndim != 1:
            raise BadSpecError("method 'recall' needs observations that are one row of numbers; use method 'napping'")
        self.trials = self.make_trials()
        self._is_possible = 0 < domain.horizon <= CONFIG.max_steps

    @override
    def make_trial(self, key: int) -> RecallTrial:
        return RecallTrial(self.agent, self.domain)

    @override
    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        if not self._is_possible:
            return decision.actions
        active = [m for m in range(len(rows)) if self.trials[rows[m]].is_active]
        if not active:
            return decision.actions
        actions: Actions = decision.actions.copy()
        for m in active:
            actions[m] = self.trials[rows[m]].act(
                observations[m], decision.model_states[m], decision.preferences[m], int(decision.actions[m])
            )
        return actions

    @override
    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        super().learn(rows, transition, detected)
        t = transition
        for m, row in enumerate(rows.tolist()) if self._is_possible else ():
            is_agents = t.actions[m] == t.decision.actions[m]
            self.trials[row].learn(t.observations[m], int(t.actions[m]), float(t.rewards[m]), bool(is_agents))

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            self.trials[row].enter(context)

    @override
    def end_episode(self, rows: Rows) -> None:
        for row in rows.tolist():
            self.trials[row].end_episode()

    @override
    def discard_episode(self, rows: Rows) -> None:
        for row in rows.tolist():
            self.trials[row].discard_episode()

    # ------------------------------------------------------------------------------------------------- telling

    @override
    def has_policy(self, row: int) -> bool:
        return self.trials[row].is_active

    @override
    def is_certain(self, rows: Rows) -> Flags:
        """It leaves the agent's action only where that has failed in like states."""
        return self.with_policy(rows)

    @override
    def forecast(self, row: int) -> Forecast | None:
        return self.trials[row].forecast()

    @override
    def describe(self, row: int) -> str:
        return self.trials[row].describe()

    @override
    def signature(self, row: int) -> str:
        return "recall"

    @override
    def status(self, row: int) -> str:
        if not self.trials[row].context or self.trials[row].is_active:
            return ""
        return "no episode has ended since the change" if self._is_possible else self._too_long()

    def _too_long(self) -> str:
        length = f"may have {self.domain.horizon} steps" if self.domain.horizon else "have no known time limit"
        return f"episodes {length}; at most {CONFIG.max_steps} are remembered"

    # ------------------------------------------------------------------------------------------------- saving

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        return flatten([trial.state() for trial in self.trials], "recall")

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        sizes = {"n": self.n, "n_actions": self.domain.n_actions, "d": len(self.domain.observation_low)}
        for trial, restored in zip(self.trials, unflatten(_STATES, state, "recall", sizes), strict=True):
            trial.restore(restored)
