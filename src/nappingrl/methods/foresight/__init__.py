"""Foresight: fit the changed world, roll policies out in it, and follow one that is expected to earn more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.methods.base import Forecast, MethodInfo
from nappingrl.methods.foresight.config import ForesightConfig, read_config
from nappingrl.methods.foresight.describe import describe, to_principles
from nappingrl.methods.foresight.policies import FROZEN
from nappingrl.methods.foresight.table import RunningEpisodes, TrialTable
from nappingrl.methods.foresight.trial import ForesightTrial, TrialState
from nappingrl.methods.per_trial import PerTrialMethod
from nappingrl.methods.settings import settings_as_options
from nappingrl.options import Option
from nappingrl.snapshot import Expected, Sizes, flatten, unflatten
from nappingrl.types import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.transitions import TransitionBuffer, Transitions, encode


@dataclass(slots=True)
class _State:
    """Everything that was learned, for saving."""

    trials: Annotated[list[TrialState], Expected(("n",))]
    transitions: Annotated[list[Transitions], Expected(("n",))]
    episodes: RunningEpisodes

    def check(self, sizes: Sizes) -> None:
        """Raise if an episode has begun whose initial state is missing."""
        has_start = np.array([bool(trial.starts) for trial in self.trials])
        if not (self.episodes.is_first_step | has_start).all():
            raise ValueError("an episode has begun, and its initial state is missing")


class Foresight(PerTrialMethod[ForesightTrial]):
    """Adaptation by rollouts in a fitted world; needs neither a score nor a threshold.

    Each trial is a `ForesightTrial`; the arrays over trials here only make the single step fast.
    """

    detector = "residual"
    learns_from_others = True
    needs_domain = True
    can_be_saved = True
    options: ClassVar[Mapping[str, Option]] = settings_as_options(ForesightConfig)

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        self.domain, self.config = info.domain, read_config(info.options)
        dim = self.config.check_size("method 'foresight'", self.domain, "use method 'napping'")
        self._encoding = ActionEncoding(self.domain)
        self._buffer = TransitionBuffer(n, dim, self._encoding.size)
        self._episodes = RunningEpisodes.of(n, max(1, len(self._encoding.low)))
        self._table = TrialTable(n, dim, self._encoding)
        self.trials = self.make_trials()

    @override
    def make_trial(self, key: int) -> ForesightTrial:
        return ForesightTrial(self.agent, self.domain, self.config, key)

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        self._buffer.clear(rows)
        self._episodes.start(rows)
        for row in rows.tolist():
            self._table.update(row, self.trials[row])

    @override
    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        is_first = self._episodes.is_first_step[rows]
        if is_first.any():
            for row, observation in zip(rows[is_first], observations[is_first], strict=True):
                self.trials[row].begin_episode(observation.astype(np.float64))
            self._episodes.is_first_step[rows] = False
        actions = self._follow_policies(rows, observations, decision.actions)
        if self._table.has_probes[rows].any():
            actions = self._probe(rows, actions)
        self._episodes.chosen[rows] = actions.reshape(len(rows), -1)
        return actions

    def _probe(self, rows: Rows, actions: Actions) -> Actions:
        """Replace actions by those that a trial must try first."""
        probed: Actions = actions.copy()
        for m in np.flatnonzero(self._table.has_probes[rows]):
            trial = self.trials[rows[m]]
            probed[m] = trial.probes.pop()
            self._table.has_probes[rows[m]] = bool(trial.probes)
        return probed

    def _follow_policies(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        kinds = self._table.kinds[rows]
        if not kinds.any():
            return wanted
        if not self._encoding.is_continuous:
            return self._table.act(rows, observations, wanted)
        actions: Actions = wanted.copy()
        for m in np.flatnonzero(kinds):
            actions[m] = self.trials[rows[m]].act(observations[m], wanted[m])
        return actions

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        for row, context in zip(rows.tolist(), contexts.tolist(), strict=True):
            episode, is_between = int(self._episodes.number[row]), bool(self._episodes.is_first_step[row])
            transitions = self.trials[row].enter(context, self._buffer.read(row), episode, is_between)
            if transitions is not None:
                self._buffer.write(row, transitions)
            self._table.update(row, self.trials[row])
        self._episodes.is_mixed[rows] = True

    @override
    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        super().learn(rows, transition, detected)
        self._episodes.step(rows, transition.actions, transition.rewards)
        step = encode(transition, self._encoding, self._episodes.number[rows])
        self._buffer.add(rows, step, detected | ~self._table.has_left[rows])
        is_running = ~(transition.terminated | transition.truncated)
        is_due = detected & is_running & (self._buffer.count[rows] >= self._table.next_plan[rows])
        for m in np.flatnonzero(is_due):
            self._episodes.is_mixed[rows[m]] = True
            self._plan(int(rows[m]), step.next_states[m].astype(np.float64))

    def _plan(self, row: int, now: NDArray[np.float64] | None = None) -> None:
        self.trials[row].plan(self._buffer.read(row), now)
        self._table.update(row, self.trials[row])

    @override
    def end_episode(self, rows: Rows) -> None:
        episodes = self._episodes
        for row in rows.tolist():
            is_mixed = bool(episodes.is_mixed[row])
            if self.trials[row].end_episode(int(episodes.number[row]), float(episodes.total[row]), is_mixed):
                self._plan(row)
        self._table.has_probes[rows] = False
        episodes.begin_next(rows)

    @override
    def discard_episode(self, rows: Rows) -> None:
        for row in rows[~self._episodes.is_first_step[rows]].tolist():
            self.trials[row].probes = []
            self._table.has_probes[row] = False
            self._episodes.begin_next(np.array([row]))

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        transitions = [self._buffer.read(row) for row in range(self.n)]
        return flatten(_State([trial.state() for trial in self.trials], transitions, self._episodes), "foresight")

    def _sizes(self) -> dict[str, int]:
        config, encoding = self.config, self._encoding
        return {
            **self._buffer.sizes, "n": self.n, "k": max(1, len(encoding.low)), "n_actions": encoding.n_actions,
            "n_outputs": encoding.n_outputs, "max_starts": config.max_starts, "max_policies": config.max_policies,
            "min_baseline_transitions": config.min_baseline_transitions,
        }  # fmt: skip

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        restored: _State = unflatten(_State, state, "foresight", self._sizes())
        self._episodes = restored.episodes
        for row in range(self.n):
            self.trials[row].restore(restored.trials[row])
            self._buffer.write(row, restored.transitions[row])
            self._table.update(row, self.trials[row])

    @override
    def table(self, row: int) -> dict[str, NDArray[Any]]:
        trial = self.trials[row]
        if trial.planner is None or trial.policy is None or self._encoding.is_continuous:
            return {}
        frame = trial.planner.baseline.centre, trial.planner.scale
        return to_principles(trial.policy, *frame, self._buffer.read(row), self.agent, self.domain)

    @override
    def describe(self, row: int) -> str:
        trial = self.trials[row]
        if trial.planner is None or trial.policy is None:
            return ""
        return describe(trial.policy, trial.planner.baseline.centre, trial.planner.scale, self.domain)

    @override
    def status(self, row: int) -> str:
        trial = self.trials[row]
        if trial.policy is not None or not trial.has_planned_enough:
            return ""
        return "it knows no policy that is expected to earn more than the agent's own"

    @override
    def forecast(self, row: int) -> Forecast | None:
        planner = self.trials[row].planner
        if planner is None or planner.exploring is not None or self.trials[row].policy is None:
            return None
        return Forecast(planner.frozen.expected, planner.current.estimate)

    @override
    def imagine(self, row: int, observation: Floats, n_steps: int) -> Floats | None:
        return self.trials[row].imagine(observation, n_steps)

    @override
    def has_policy(self, row: int) -> bool:
        return bool(self._table.kinds[row] != FROZEN)
