"""One adaptation loop: a method and a detector in lock step, for trials, `NappingAgent` and whatever comes next."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.observations import merge_decisions, take, take_transition
from nappingrl.detectors.base import Detector
from nappingrl.errors import BadSpecError, check_name
from nappingrl.methods.base import Method, MethodInfo, read_options
from nappingrl.methods.guard import GuardedMethod
from nappingrl.methods.scores import GENERAL_SCORES, LEARNED, make_score
from nappingrl.methods.value_estimate import ValueEstimate
from nappingrl.registry import detectors, methods
from nappingrl.score import Score, reward_score
from nappingrl.transition_filter import TransitionFilter
from nappingrl.types import (
    Actions,
    Decision,
    Defaults,
    DomainSpec,
    Flags,
    Keys,
    Observations,
    Rows,
    Transition,
    with_prefix,
)
from nappingrl.world_model.memory import TransitionMemory

ENDLESS_OPTIONS = {"max_regions": 20_000}
"""Defaults of method options outside of trials, where adaptation may never end."""


@dataclass(frozen=True, slots=True)
class AdaptationSpec:
    """Which method adapts, judged by which score, started by which detector; empty names mean: the default."""

    method: str = "napping"
    score: str = ""
    detector: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the method."""
    guard: bool = False
    """Whether the frozen agent takes over where adaptation does not pay."""

    def resolve(self, domain: DomainSpec, usual: Mapping[str, Any] | None = None) -> "AdaptationSpec":
        """Checked, with every default filled in; what the method does not take stays empty.

        `usual` are defaults of options that take the place of the method's own.
        """
        method_class: type[Method] = methods.get(self.method)
        detector = self.detector or method_class.detector or domain.defaults.detector
        check_name("detector", detector, detectors.names())
        usual = {**(usual or {}), **domain.defaults.options}
        usual = {name: value for name, value in usual.items() if name in method_class.options}
        return replace(
            self,
            score=self._resolve_score(method_class, domain),
            detector=detector,
            options=read_options(self.method, usual | dict(self.options), stated=usual),
        )

    def _resolve_score(self, method_class: type[Method], domain: DomainSpec) -> str:
        if method_class.takes_score:
            return check_name("score", self.score or domain.defaults.score, {**GENERAL_SCORES, **domain.scores})
        if self.score:
            self._refuse_score()
        return ""

    def _refuse_score(self) -> None:
        takers = [name for name in methods.names() if methods.get(name).takes_score]
        raise BadSpecError(f"method '{self.method}' takes no score; methods that do: {', '.join(takers)}")

    def needs_domain(self, own_detector: Detector | None = None) -> str:
        """What can only be built for a domain with a name: "method 'foresight'"; empty: nothing."""
        if methods.get(self.method).needs_domain:
            return f"method '{self.method}'"
        is_needed = own_detector is None and detectors.get(self.detector).needs_domain
        return f"detector '{self.detector}'" if is_needed else ""

    def build(
        self, agent: Agent, domain: DomainSpec, n: int, score: Score | None = None, detector: Detector | None = None
    ) -> "Adaptation":
        """The adaptation of n trials; `score` and `detector` take the place of those that the spec names."""
        method_class: type[Method] = methods.get(self.method)
        value = None
        if score is None and self.score:
            score = domain.scores[self.score] if self.score in domain.scores else make_score(self.score, agent)
            value = ValueEstimate(n, self._embedding_dim(agent)) if score.name == LEARNED else None
        elif score is not None and not method_class.takes_score:
            self._refuse_score()
        oracle = domain.make_oracle() if method_class.is_privileged else None
        if detector is None:
            detector_class: type[Detector] = detectors.get(self.detector)
            detector = detector_class.for_domain(n, domain)
        uses_memory = method_class.uses_memory or detector.uses_memory
        memory = TransitionMemory(n, domain) if uses_memory and domain.observation_low.ndim == 1 else None
        method = method_class(agent, MethodInfo(domain, score, self.options, oracle, value, memory), n)
        method.name = self.method
        if memory is not None:
            detector.connect(memory, method.agent)
        guarded = GuardedMethod(method) if self.guard else method
        return Adaptation(guarded, detector, method_class.is_privileged, memory, value)

    def _embedding_dim(self, agent: Agent) -> int:
        layer = self.options.get("layer")
        return (agent if layer is None else agent.at_layer(int(layer))).embedding_dim


class Adaptation:
    """The method and the detector of n trials. `act`, then `observe`, at every step; `end_episode` at every end."""

    def __init__(
        self,
        method: Method,
        detector: Detector,
        is_privileged: bool = False,
        memory: TransitionMemory | None = None,
        value: ValueEstimate | None = None,
    ) -> None:
        self.method, self.detector, self.memory, self.value = method, detector, memory, value
        self.is_privileged = is_privileged
        """Whether the method may be told the true parameters."""
        self.contexts = np.zeros(method.n, np.int64)
        """What the detector believes, by trial; 0: as before the novelty."""
        self.returns = np.zeros(method.n)
        """Of the episodes under way, without the rewards of dropped steps."""
        self.filter = TransitionFilter(method.n)
        self._known: Any = None  # the latest array of observations that are all usable: no need to judge it twice
        self.detects_within_episodes = type(detector).step is not Detector.step
        """Whether an alarm may come within an episode, not only at its beginning."""

    def start(self, rows: Rows, keys: Keys, first_episode: int) -> None:
        """Begin a new trial in `rows`; episodes count from `first_episode` (negative: before the novelty)."""
        self.method.start(rows, keys)
        self.filter.start(rows)
        if self.memory is not None:
            self.memory.start(rows)
        if self.value is not None:
            self.value.start(rows)
        self.contexts[rows] = 0
        self.returns[rows] = 0.0
        self.detector.start(rows, first_episode)

    def act(self, rows: Rows, observations: Observations) -> tuple[Actions, Decision]:
        """The actions to execute, and what the frozen agent wanted."""
        usable = self.are_usable(rows, observations)
        if usable is not None:
            return self._act_without(usable, rows, observations)
        decision = self.method.forward(rows, observations)
        return self.method.act(rows, observations, decision), decision

    def are_usable(self, rows: Rows, observations: Observations) -> Flags | None:
        """Which observations the method may see; None: all of them. The same good array is judged only once."""
        if observations is self._known:
            return None
        usable = self.filter.are_usable(rows, observations)
        if usable is None:
            self._known = observations
        return usable

    def _act_without(self, usable: Flags, rows: Rows, observations: Observations) -> tuple[Actions, Decision]:
        """Act where some observations hold bad numbers: there the frozen agent acts, with 0 in their place."""
        bad = rows[~usable]
        frozen = self.method.agent.decide(bad, self.filter.repair(bad, take(observations, ~usable)))
        if not usable.any():
            return frozen.actions, frozen
        actions, decision = self.act(rows[usable], take(observations, usable))
        merged = merge_decisions(usable, decision, frozen)
        executed: Actions = merged.actions.copy()
        executed[usable] = actions
        return executed, merged

    def begin_phase(self, rows: Rows, is_novel: bool) -> None:
        """The protocol's truth about the episodes that follow; only the detector `given` listens."""
        self.detector.begin_phase(rows, is_novel)

    def begin_episode(self, rows: Rows) -> Rows:
        """An episode begins in `rows`; returns the rows where the detector has just raised an alarm."""
        return self._notice(rows)

    def observe(self, rows: Rows, transition: Transition) -> Rows:
        """Learn from the steps that are fit for it; returns the rows where the detector has just raised an alarm."""
        t = transition
        observations = None if t.observations is self._known else t.observations
        accepted = self.filter.accept(rows, observations, t.actions, t.next_observations, t.rewards)
        if accepted is None:
            self._known = t.next_observations
            return self.learn(rows, t)
        return self.learn(rows[accepted], take_transition(t, accepted))

    def learn(self, rows: Rows, transition: Transition) -> Rows:
        """Learn from steps that the filter has accepted."""
        alarmed = rows[:0]
        if not len(rows):
            return alarmed
        self.returns[rows] += transition.rewards
        if self.memory is not None:
            self.memory.add(rows, transition, self.contexts[rows] > 0)
        if self.detects_within_episodes:
            self.detector.step(rows, transition)
            alarmed = self._notice(rows)
        self.method.learn(rows, transition, self.contexts[rows] > 0)
        if self.value is not None:
            self.value.record(rows, transition)
        return alarmed

    def end_episode(self, rows: Rows, next_episodes: Rows) -> None:
        """An episode ended in `rows`; the method hears of an alarm when the next one begins.

        An episode whose last step was dropped is discarded.
        """
        is_cut = self.filter.is_dropped[rows]
        if is_cut.any():
            self.discard_episode(rows[is_cut])
            rows, next_episodes = rows[~is_cut], next_episodes[~is_cut]
        if not len(rows):
            return
        self.method.end_episode(rows)
        self.detector.end_episode(rows, self.returns[rows], next_episodes)
        if self.memory is not None:
            self.memory.end_episode(rows)
        if self.value is not None:
            self.value.end_episode(rows)
        self.returns[rows] = 0.0

    def discard_episode(self, rows: Rows) -> None:
        """Forget the unfinished episode of `rows`."""
        self.returns[rows] = 0.0
        self.method.discard_episode(rows)
        self.detector.discard_episode(rows)
        if self.memory is not None:
            self.memory.discard_episode(rows)
        if self.value is not None:
            self.value.discard_episode(rows)

    def switch_context(self, row: int, context: int) -> None:
        """Make the detector believe in a context."""
        self.detector.context[row] = context
        self._notice(np.array([row]))

    def _notice(self, rows: Rows) -> Rows:
        """Tell the method where the detector changed its belief; returns the rows that left the original context."""
        changed: Rows = rows[self.detector.context[rows] != self.contexts[rows]]
        if not len(changed):
            return changed
        alarmed: Rows = changed[self.contexts[changed] == 0]
        self.contexts[changed] = self.detector.context[changed]
        if self.memory is not None:
            n_leading = list(map(self.detector.n_leading, changed.tolist()))
            self.memory.enter(changed, self.contexts[changed], n_leading)
        self.method.on_context_change(changed, self.contexts[changed])
        return alarmed

    def detected(self, rows: Rows) -> Flags:
        """Where the detector believes in a changed context."""
        flags: Flags = self.contexts[rows] > 0
        return flags

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything learned, as named arrays."""
        arrays = {f"detector/{name}": array for name, array in self.detector.state().items()}
        if self.memory is not None:
            arrays |= {f"memory/{name}": array for name, array in self.memory.state().items()}
        return arrays | {f"method/{name}": array for name, array in self.method.state().items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]], with_detector: bool = True) -> None:
        """Continue from what `state` returned, which may come from a file."""
        memory = with_prefix("memory/", arrays)
        if self.memory is not None and (memory or with_detector):  # another detector may need what was not stored
            self.memory.restore(memory)
        if with_detector:
            self.detector.restore(with_prefix("detector/", arrays))
        self.method.restore(with_prefix("method/", arrays))


def bare_domain(agent: Agent) -> DomainSpec:
    """What an agent alone tells of its domain: the shapes; its score is the reward."""
    shape = agent.observation_shape or ()
    return DomainSpec(
        np.full(shape, -np.inf),
        np.full(shape, np.inf),
        agent.n_actions,
        0,
        agent.action_low if agent.action_low is not None else np.zeros(0),
        agent.action_high if agent.action_high is not None else np.zeros(0),
        scores={"reward": reward_score()},
        defaults=Defaults(score="reward"),
    )
