"""One trial of foresight: the contexts it has met, and when it plans."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.contexts import MAX_CONTEXTS
from nappingrl.methods.foresight.config import ForesightConfig
from nappingrl.methods.foresight.planner import Planner, PlannerState
from nappingrl.methods.foresight.policies import FROZEN, SimplePolicy, scaled_actions
from nappingrl.snapshot import MAX_EPISODE, Expected, Sizes
from nappingrl.types import Actions, DomainSpec, Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.fit import BaselineModel, fit
from nappingrl.world_model.model import predict
from nappingrl.world_model.transitions import MAX_VALUE, Transitions


@dataclass(slots=True)
class ContextState:
    """What is kept of a context that was left, for saving."""

    planner: PlannerState | None
    transitions: Transitions


@dataclass(slots=True)
class TrialState:
    """Everything that a trial has learned, for saving."""

    key: Annotated[int, Expected(low=0, high=2**64 - 1)]
    context: Annotated[int, Expected(low=0)]
    starts: list[Annotated[Floats, Expected(("d",), -MAX_VALUE, MAX_VALUE)]]
    original_returns: dict[int, float]
    others: dict[int, ContextState]
    planner: PlannerState | None
    probes: Annotated[list[int], Expected(low=0, below="n_actions")]
    next_plan: Annotated[int, Expected(low=1)]
    n_episodes: Annotated[int, Expected(low=0)]

    def check(self, sizes: Sizes) -> None:
        """Raise if what was saved is no trial's."""
        if len(self.starts) > sizes["max_starts"]:
            raise ValueError(f"{len(self.starts)} initial states; at most {sizes['max_starts']} are kept")
        if min(self.others, default=0) < 0:
            raise ValueError(f"a context {min(self.others)}")
        if any(not 0 <= episode <= MAX_EPISODE for episode in self.original_returns):
            raise ValueError("returns of episodes that cannot be")


class ForesightTrial:
    """Plans in the changed world of one trial, and remembers the contexts that were left."""

    def __init__(self, agent: Agent, domain: DomainSpec, config: ForesightConfig, key: int) -> None:
        self.agent, self.domain, self.config, self.key = agent, domain, config, key
        self._encoding = ActionEncoding(domain)
        self.context = 0
        self.planner: Planner | None = None
        """Of the changed world that the trial is in; None before there are enough transitions."""
        self.probes: list[int] = []
        """Actions to execute next, whatever the policy says."""
        self.next_plan = config.first_plan
        """Transitions in the changed world at which the next plan within an episode is due."""
        self._starts: list[Floats] = []
        """Initial states of the latest episodes."""
        self._original_returns: dict[int, float] = {}
        """Returns of the latest episodes before the first alarm, by episode."""
        self._others: dict[int, tuple[Planner | None, Transitions]] = {}
        """Planner and transitions of each context that was left, in the order in which they were left."""
        self._n_episodes = 0
        """Episodes that ended in the changed world since it was met."""

    @property
    def has_left(self) -> bool:
        """Whether the trial has ever been in another context than the original one."""
        return 0 in self._others

    @property
    def policy(self) -> SimplePolicy | None:
        """The policy in force; None: the agent's own."""
        return None if self.planner is None or self.planner.current.kind == FROZEN else self.planner.current

    @property
    def has_planned_enough(self) -> bool:
        """Whether it has planned after each of the first episodes in the changed world."""
        return self._n_episodes >= self.config.n_planning_episodes

    def context_sizes(self) -> dict[int, int]:
        """How many policies are remembered for each context."""
        planners = {context: planner for context, (planner, _) in self._others.items()} | {self.context: self.planner}
        sizes = {context: len(planner.policies) if planner is not None else 0 for context, planner in planners.items()}
        return dict(sorted(sizes.items()))

    def begin_episode(self, observation: Floats) -> None:
        """Remember where the episode starts."""
        self._starts.append(observation)
        del self._starts[: -self.config.max_starts]

    def act(self, observation: NDArray[np.float32], wanted: Actions) -> Actions:
        """The continuous action (k,) of the policy in force."""
        if self.planner is None or self.policy is None:
            return wanted
        z = (observation[None] - self.planner.baseline.centre) / self.planner.scale
        scaled = scaled_actions(self.policy, z, self._encoding.scale(wanted[None]))
        action: Actions = self._encoding.unscale(scaled)[0]
        return action

    def imagine(self, observation: Floats, n_steps: int) -> Floats | None:
        """The states (m, d) that are expected from here under the policy in force; None: there is none, or no model."""
        return None if self.planner is None or self.policy is None else self.planner.imagine(observation, n_steps)

    def enter(
        self, context: int, transitions: Transitions, episode: int, is_between_episodes: bool
    ) -> Transitions | None:
        """The detector believes in another context; returns the transitions to go on with (None: as they are)."""
        if self.context:
            self._others.pop(self.context, None)
            if not is_between_episodes:  # the world changed before it was noticed
                transitions = transitions.at(transitions.episodes < episode)
            self._others[self.context] = self.planner, transitions
            for old in [old for old in self._others if old not in (0, context)][:-MAX_CONTEXTS]:
                del self._others[old]
        self.context, self.planner, self.probes = context, None, []
        if context == 0:
            return None
        if not self.has_left:
            self._others[0] = None, transitions
        if context in self._others:
            self.planner, known = self._others[context]
            return known
        return self._meet(self._others[0][1], episode, is_between_episodes)

    def _meet(self, transitions: Transitions, episode: int, is_between_episodes: bool) -> Transitions:
        """A new context: separate the transitions that already belong to it from the original ones."""
        first = self._first_anomalous(transitions, episode) if is_between_episodes else episode
        before = transitions.at(transitions.episodes < first)
        self._n_episodes, self.next_plan = 0, self.config.first_plan
        if before.n >= self.config.min_baseline_transitions:
            self.planner = self._make_planner(before)
            self.planner.frozen.returns += [
                total for number, total in self._original_returns.items() if number >= first
            ]
        return transitions.at(transitions.episodes >= first)

    def _make_planner(self, baseline: Transitions) -> Planner:
        random = np.random.Generator(np.random.Philox(key=self.key ^ (self.context << 64)))
        return Planner(self.agent, self.domain, self.config, self._model(baseline), random)

    def _model(self, baseline: Transitions) -> BaselineModel:
        """The model of these transitions: that of another context, where it was fitted to the same ones."""
        planners = [planner for planner, _ in self._others.values() if planner is not None]
        for model in (planner.baseline for planner in planners):
            if all(map(np.array_equal, model.transitions, baseline)):
                return model
        return BaselineModel(baseline, self.domain, self.config)

    def _first_anomalous(self, transitions: Transitions, episode: int) -> int:
        """The first of the latest episodes that a model of the older ones does not explain; else this one.

        Only for an alarm between two episodes: a detector that alarms within an episode has judged those before it.
        """
        least = self.config.min_baseline_transitions
        is_old = transitions.episodes < episode - self.config.max_episodes_before_alarm
        if is_old.sum() < least:
            is_old = transitions.episodes < episode
        if is_old.sum() < least:
            return episode
        old = transitions.at(is_old)
        model = fit(BaselineModel(old, self.domain, self.config))
        usual = np.abs(predict(model, old) - old.next_states).max(axis=0)
        usual = usual + 1e-3 * (old.next_states - old.states).std(axis=0) + 1e-9
        first = episode
        recent = set(transitions.episodes[~is_old & (transitions.episodes < episode)].tolist())
        for number in sorted(recent, reverse=True):
            part = transitions.at(transitions.episodes == number)
            errors = np.abs(predict(model, part) - part.next_states)
            is_anomalous = (errors > self.config.anomaly_factor * usual).any(axis=1)
            if is_anomalous.sum() < min(2, len(is_anomalous)):
                break
            first = number
        return first

    def plan(self, transitions: Transitions, now: Floats | None = None) -> None:
        """Plan from all transitions in the changed world; `now`: the state within a running episode."""
        while self.next_plan <= transitions.n:
            self.next_plan *= 2
        if self.planner is None:
            if transitions.n < self.config.min_baseline_transitions:
                return
            self.planner = self._make_planner(transitions)
        self.probes = self._untried(transitions) if now is not None else []
        if transitions.n >= self.config.first_plan:
            self.planner.replan(transitions, np.array(self._starts), now)

    def _untried(self, transitions: Transitions) -> list[int]:
        """Discrete actions rarely executed since the change: the model still predicts their original effects."""
        if self._encoding.is_continuous or transitions.n > self.config.max_probe_transitions:
            return []
        least = self.config.min_action_count
        counts = enumerate(transitions.actions.sum(axis=0))
        return [action for action, count in counts for _ in range(least) if count < least]

    def end_episode(self, episode: int, total: float, is_mixed: bool) -> bool:
        """Judge the policy by the episode's return; returns whether to plan again.

        `is_mixed`: others than the policy in force have acted, too, so that the return says nothing of it.
        """
        self.probes = []
        if not self.has_left:
            self._original_returns[episode] = total
            first = episode - self.config.max_episodes_before_alarm + 1
            self._original_returns = {n: total for n, total in self._original_returns.items() if n >= first}
            return False
        if self.context == 0 or self.planner is None:
            return self.context != 0
        planner = self.planner
        expected = planner.current.expected
        if not is_mixed and planner.exploring is None:
            planner.judge(planner.current, total)
        self._n_episodes += 1
        n_later = self._n_episodes - self.config.n_planning_episodes
        if n_later <= 0 and not planner.is_content:
            return True
        if is_mixed and self.policy is None and n_later > 0 and n_later & (n_later - 1):
            return False  # others act, no policy is known: surprise counts in the 1st, 2nd, 4th, 8th, ... later episode
        scale = float(np.abs(planner.baseline.transitions.rewards).mean()) * (self.domain.horizon or 200)
        slack = self.config.surprise_slack * scale + self.config.surprise * abs(expected)
        return planner.exploring is not None or abs(total - expected) > slack

    def state(self) -> TrialState:
        """Everything that was learned."""
        others = {
            context: ContextState(None if planner is None else planner.state(), transitions)
            for context, (planner, transitions) in self._others.items()
        }
        return TrialState(
            self.key, self.context, self._starts, self._original_returns, others,
            None if self.planner is None else self.planner.state(), self.probes, self.next_plan, self._n_episodes,
        )  # fmt: skip

    def restore(self, state: TrialState) -> None:
        """Continue from this state."""
        self.key, self.context, self.probes, self.next_plan = state.key, state.context, state.probes, state.next_plan
        self._starts, self._original_returns, self._n_episodes = state.starts, state.original_returns, state.n_episodes
        self._others = {}
        for n, other in state.others.items():
            self._others[n] = self._restored(other.planner), other.transitions
        self.planner = self._restored(state.planner)

    def _restored(self, state: PlannerState | None) -> Planner | None:
        if state is None:
            return None
        return Planner.restored(self.agent, self.domain, self.config, self._model(state.baseline), state)
