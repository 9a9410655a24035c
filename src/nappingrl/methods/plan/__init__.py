"""Plan: search at every step for actions that earn more, with a model of the changed world and the agent's critic."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import MethodInfo
from nappingrl.methods.per_trial import PerTrialMethod
from nappingrl.methods.plan.config import PlanConfig
from nappingrl.methods.plan.trial import PlanTrial, TrialState
from nappingrl.methods.settings import read_settings, settings_as_options
from nappingrl.options import Option
from nappingrl.snapshot import Expected, flatten, unflatten
from nappingrl.types import Actions, Decision, Floats, Observations, Rows
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.transitions import TransitionBuffer


@dataclass(slots=True)
class _State:
    """Everything that was learned, for saving."""

    trials: Annotated[list[TrialState], Expected(("n",))]


class Plan(PerTrialMethod[PlanTrial]):
    """Adaptation by short plans in a fitted world, valued by the agent's critic; needs no endings and no score."""

    detector = "residual"
    learns_from_others = True
    uses_memory = True
    acts_on_demand = True
    can_be_saved = True
    options: ClassVar[Mapping[str, Option]] = settings_as_options(PlanConfig)

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        self.domain, self.config = info.domain, read_settings(PlanConfig, info.options)
        self.config.check_size("method 'plan'", self.domain, "use method 'napping'")
        if info.memory is None:
            raise BadSpecError("method 'plan' needs observations that are one row of numbers; use method 'napping'")
        self._memory = info.memory
        self.trials = self.make_trials()

    @override
    def make_trial(self, key: int) -> PlanTrial:
        return PlanTrial(self.agent, self.domain, self.config, key)

    @override
    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        ready = [m for m, row in enumerate(rows.tolist()) if self.trials[row].is_ready]
        if not ready:
            return decision.actions
        actions: Actions = decision.actions.copy()
        for m in ready:
            actions[m] = self.trials[rows[m]].act(observations[m], decision.actions[m])
        return actions

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            self.trials[row].enter(context)

    @override
    def end_episode(self, rows: Rows) -> None:
        for row in rows.tolist():
            if self.trials[row].context and self._memory.n_current(np.array([row]))[0]:
                self.trials[row].end_episode(self._memory.before(row), self._memory.current(row))

    @override
    def has_policy(self, row: int) -> bool:
        return self.trials[row].is_ready

    @override
    def describe(self, row: int) -> str:
        trial, config = self.trials[row], self.config
        if not trial.is_ready:
            return ""
        return (
            f"plan {config.horizon} steps ahead in a model that misses a step by {trial.error:.1%}, and execute the "
            f"first action of the best of {config.n_rounds * config.n_sequences} sequences"
        )

    @override
    def signature(self, row: int) -> str:
        return "plan"

    @override
    def status(self, row: int) -> str:
        return self.trials[row].why_not

    @override
    def imagine(self, row: int, observation: Floats, n_steps: int) -> Floats | None:
        return self.trials[row].imagine(observation, n_steps)

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        return flatten(_State([trial.state() for trial in self.trials]), "plan")

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        encoding, config = ActionEncoding(self.domain), self.config
        buffer = TransitionBuffer(1, len(self.domain.observation_low), encoding.size)
        sizes = {
            **buffer.sizes, "n": self.n, "h": config.horizon, "k": max(1, len(encoding.low)),
            "n_actions": encoding.n_actions, "n_judged": config.n_judged_episodes,
        }  # fmt: skip
        restored: _State = unflatten(_State, state, "plan", sizes)
        for row, trial in enumerate(self.trials):
            trial.restore(restored.trials[row], self._memory.before(row))
