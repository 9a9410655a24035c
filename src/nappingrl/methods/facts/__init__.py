"""Facts: where outcomes repeat, remember them, and plan over what is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Forecast, MethodInfo
from nappingrl.methods.facts.describe import describe
from nappingrl.methods.facts.records import MAX_STEP
from nappingrl.methods.facts.trial import FactsTrial, TrialState
from nappingrl.methods.per_trial import PerTrialMethod
from nappingrl.snapshot import Expected, flatten, unflatten
from nappingrl.types import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition


@dataclass(slots=True)
class _Episodes:
    """The running episodes of n trials."""

    time: Annotated[NDArray[np.int64], Expected(("n",), 0, MAX_STEP)]
    wanted: Annotated[NDArray[np.int64], Expected(("n",), low=0, below="n_actions")]
    """The frozen agent's latest actions."""
    is_agents: Annotated[Flags, Expected(("n",))]
    """Whether only they were executed."""
    total: Annotated[Floats, Expected(("n",))]


@dataclass(slots=True)
class _State:
    """Everything that was learned, for saving."""

    trials: Annotated[list[TrialState], Expected(("n",))]
    episodes: _Episodes


class FactsMethod(PerTrialMethod[FactsTrial]):
    """Adaptation by facts: plans over remembered outcomes, for worlds in which they repeat; needs no score."""

    detector = "residual"
    learns_from_others = True
    uses_memory = True
    can_be_saved = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        if info.memory is None or not info.domain.n_actions:
            raise BadSpecError("method 'facts' needs discrete actions and observations that are one row of numbers")
        self.domain, self._memory = info.domain, info.memory
        zeros = np.zeros((2, n), np.int64)
        self._episodes = _Episodes(zeros[0], zeros[1], np.ones(n, np.bool_), np.zeros(n))
        self._is_active = np.zeros(n, np.bool_)
        """In a changed world whose outcomes may repeat."""
        self.trials = self.make_trials()

    @override
    def make_trial(self, key: int) -> FactsTrial:
        return FactsTrial(self.domain)

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        self._is_active[rows] = False
        self._begin_episode(rows)

    def _begin_episode(self, rows: Rows) -> None:
        e = self._episodes
        e.time[rows], e.is_agents[rows], e.total[rows] = 0, True, 0.0
        for row in rows[self._is_active[rows]].tolist():
            self.trials[row].begin_episode()

    @override
    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        self._episodes.wanted[rows] = decision.actions
        is_active = self._is_active[rows]
        if not is_active.any():
            return decision.actions
        actions: Actions = decision.actions.copy()
        for m in np.flatnonzero(is_active):
            row = int(rows[m])
            time = int(self._episodes.time[row])
            actions[m] = self.trials[row].act(time, observations[m], int(decision.actions[m]))
        return actions

    @override
    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        super().learn(rows, transition, detected)
        t, e = transition, self._episodes
        e.is_agents[rows] &= t.actions == e.wanted[rows]
        e.total[rows] += t.rewards
        for m in np.flatnonzero(detected & self._is_active[rows]):
            row = int(rows[m])
            self.trials[row].learn(
                int(e.time[row]), t.observations[m], int(t.actions[m]), t.next_observations[m], float(t.rewards[m]),
                bool(t.terminated[m]),
            )  # fmt: skip
            self._is_active[row] = self.trials[row].is_active
        e.time[rows] += 1

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            trial = self.trials[row]
            trial.enter(context, self._memory.before(row))
            self._is_active[row] = trial.is_active
        self._episodes.is_agents[rows] = False

    @override
    def end_episode(self, rows: Rows) -> None:
        e = self._episodes
        for row in rows[self._is_active[rows]].tolist():
            self.trials[row].end_episode(float(e.total[row]), bool(e.is_agents[row]))
        self._begin_episode(rows)

    @override
    def discard_episode(self, rows: Rows) -> None:
        self._begin_episode(rows)

    @override
    def has_policy(self, row: int) -> bool:
        return self.trials[row].world is not None

    @override
    def forecast(self, row: int) -> Forecast | None:
        return self.trials[row].forecast() if self._is_active[row] else None

    @override
    def describe(self, row: int) -> str:
        return describe(self.trials[row]) if self.trials[row].world is not None else ""

    @override
    def signature(self, row: int) -> str:
        return type(self.trials[row].world).__name__

    @override
    def status(self, row: int) -> str:
        return self.trials[row].why_not

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        return flatten(_State([trial.state() for trial in self.trials], self._episodes), "facts")

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        sizes = {"n": self.n, "n_actions": self.domain.n_actions, "d": len(self.domain.observation_low)}
        restored: _State = unflatten(_State, state, "facts", sizes)
        self._episodes = restored.episodes
        for row, trial in enumerate(self.trials):
            trial.restore(restored.trials[row])
            self._is_active[row] = trial.is_active
