"""One trial of re-grounding: the evidence since the alarm, the grounding in force, and when it is searched for."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from nappingrl.methods.contexts import MAX_CONTEXTS
from nappingrl.methods.reground.experiments import (
    FIRST_CHECK,
    MARGIN,
    MAX_EXPERIMENTS,
    checksum,
    next_experiment,
    strangeness_of_start,
)
from nappingrl.methods.reground.judge import Evidence, Judge, Matrix
from nappingrl.methods.reground.maps import MAX_DELAY, ContinuousMap, DiscreteMap, Grounding, SensorMap
from nappingrl.methods.reground.search import MIN_GAIN, Search
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import DomainSpec, Floats, Rows
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.reference import N_START, Reference
from nappingrl.world_model.transitions import MAX_VALUE, Transitions

FIRST_SEARCHES = (8, 12, 16, 24, 32, 48, 64, 100, 150, 200, 300, 400)
"""Steps since the alarm after which it searches."""
SEARCH_INTERVAL = 400
"""The least number of steps between two searches after those."""
FRUITLESS_SHARE = 0.5
"""After a later search that found nothing, the next waits for this share of the steps so far, if that is longer."""
N_SEARCHED_ENDS = 10
"""First episodes after each of which it searches, too: initial observations are evidence."""
MAX_STEPS = 300
"""Steps that are judged."""
MIN_NEAR = 60
NEAR_REACH = 1.5
"""Steps from states that the reference knows well are preferred, if there are a few of them."""
MIN_STUCK = 20
"""Steps with the same number after which a sensor is stuck."""
MAX_STARTS = 20
N_PER_PROBE = 3
"""Steps for which an action is probed."""
N_PER_TRY = 6
"""Steps for which a grounding is tried that is not established."""
MAX_PROBES = 36
"""Probed and tried steps in the first episode; later a few more per episode, up to three times as many."""
N_CONFIRMING = 60
"""Latest steps that must fit before a grounding is left alone."""
CONFIRMED_SHARE = 0.25
"""The most of what is unusual without the grounding that may be left with it."""


@dataclass(slots=True)
class GroundingState:
    """A grounding, for saving: either kind of action map."""

    sensors: SensorMap
    discrete: DiscreteMap | None
    continuous: ContinuousMap | None
    delay: Annotated[int, Expected(low=0, high=MAX_DELAY)]

    def check(self, sizes: Sizes) -> None:
        """Raise if its actions are not the domain's."""
        if (self.discrete is None) == (sizes["n_actions"] > 0) or (self.continuous is None) == (sizes["k"] > 0):
            raise ValueError("a map of the wrong kind of actions")

    @classmethod
    def of(cls, grounding: Grounding) -> "GroundingState":
        """As it is saved."""
        actions = grounding.actions
        discrete, continuous = (actions, None) if isinstance(actions, DiscreteMap) else (None, actions)
        return cls(grounding.sensors, discrete, continuous, grounding.delay)

    def grounding(self) -> Grounding:
        """As it was."""
        actions = self.discrete if self.discrete is not None else self.continuous
        if actions is None:
            raise ValueError("a grounding without a map of actions")
        return Grounding(self.sensors, actions, self.delay)


@dataclass(slots=True)
class TrialState:
    """Everything that a trial has learned, for saving."""

    context: Annotated[int, Expected(low=0)]
    grounding: GroundingState | None
    others: dict[int, GroundingState]
    is_confirmed: bool
    n_steps: Annotated[int, Expected(low=0)]
    n_episodes: Annotated[int, Expected(low=0)]
    next_search: Annotated[int, Expected(low=1)]
    since: Annotated[int, Expected(low=0)]
    starts: list[Annotated[Floats, Expected(("d",), -MAX_VALUE, MAX_VALUE)]]
    probes: Annotated[list[int], Expected(low=0, below="n_actions")]
    n_probed: Annotated[int, Expected(low=0)]
    tentative: GroundingState | None
    n_tentative: Annotated[int, Expected(low=0, high=N_PER_TRY)]
    experiment: GroundingState | None
    n_in_episode: Annotated[int, Expected(low=0)]
    strange_starts: Annotated[list[float], Expected(low=0)]
    refuted: Annotated[list[int], Expected(low=0, high=2**32 - 1)]
    passed: Annotated[list[int], Expected(low=0, high=2**32 - 1)]

    def check(self, sizes: Sizes) -> None:
        """Raise if what was saved is no trial's."""
        if (self.grounding is None) != (self.context == 0):
            raise ValueError("a grounding in the original context, or none in another")
        if max(len(self.refuted), len(self.passed)) > MAX_EXPERIMENTS or len(self.strange_starts) > MAX_STARTS:
            raise ValueError("more experiments than are made")
        if len(self.starts) > MAX_STARTS or len(self.probes) > N_PER_PROBE or len(self.others) > MAX_CONTEXTS:
            raise ValueError("more than is kept")
        if self.n_tentative and self.tentative is None:
            raise ValueError("nothing to try")
        if min(self.others, default=1) < 1:
            raise ValueError(f"a context {min(self.others)}")


@dataclass(slots=True)
class RegroundTrial:
    """Re-grounds one trial."""

    domain: DomainSpec
    encoding: ActionEncoding
    context: int = 0
    grounding: Grounding | None = None
    """None: in the original world."""
    is_confirmed: bool = False
    why_not: str = ""
    n_steps: int = 0
    """Since the alarm."""
    n_episodes: int = 0
    next_search: int = FIRST_SEARCHES[0]
    since: int = 0
    """`n_steps` when the grounding came into force."""
    starts: list[Floats] = field(default_factory=list)
    probes: list[int] = field(default_factory=list)
    """Actions to execute next, whatever the agent wants."""
    n_probed: int = 0
    tentative: Grounding | None = None
    """Tried for the next `n_tentative` steps: it is not established."""
    n_tentative: int = 0
    experiment: Grounding | None = None
    """Tried since the beginning of this episode."""
    n_in_episode: int = 0
    """Steps of this episode."""
    strange_starts: list[float] = field(default_factory=list)
    """How strange the first steps of untranslated episodes were, as multiples of the strangest reference."""
    refuted: list[int] = field(default_factory=list)
    """Checksums of the groundings that have failed an experiment in this context."""
    passed: list[int] = field(default_factory=list)
    """Checksums of the groundings that have passed one, in any context."""
    others: dict[int, Grounding] = field(default_factory=dict)
    """What held in contexts that were left, in the order in which they were left."""

    @property
    def identity(self) -> Grounding:
        """Nothing is translated."""
        d, k = len(self.domain.observation_low), len(self.encoding.low)
        n = self.encoding.n_actions
        return Grounding(SensorMap.identity(d), DiscreteMap.identity(n) if n else ContinuousMap.identity(k))

    @property
    def is_translated(self) -> bool:
        """Whether a grounding is in force, or a probe is due."""
        return bool(self.probes) or self.in_force is not None

    @property
    def in_force(self) -> Grounding | None:
        """What is translated by now; None: nothing is."""
        if self.n_tentative:
            return self.tentative
        if self.experiment is not None:
            return self.experiment
        return self.grounding if self.has_grounding else None

    @property
    def has_grounding(self) -> bool:
        """Whether a grounding other than the identity is in force."""
        return self.grounding is not None and not self.grounding.is_identity

    def context_sizes(self) -> dict[int, int]:
        """Whether something is translated in each known context, as 0 or 1."""
        known = dict(self.others)
        if self.grounding is not None:
            known[self.context] = self.grounding
        return {0: 0} | {context: int(not known[context].is_identity) for context in sorted(known)}

    def enter(self, context: int) -> None:
        """The detector believes in another context."""
        if self.context and self.grounding is not None:
            self.others.pop(self.context, None)
            self.others[self.context] = self.grounding
            for old in [old for old in self.others if old != context][:-MAX_CONTEXTS]:
                del self.others[old]
        self.context = context
        self.grounding = self.others.pop(context, self.identity) if context else None
        self.is_confirmed, self.why_not, self.starts, self.probes = False, "", [], []
        self.n_steps = self.n_episodes = self.since = self.n_probed = self.n_tentative = 0
        self.tentative = self.experiment = None
        self.n_in_episode, self.strange_starts, self.refuted = 0, [], []
        self.next_search = FIRST_SEARCHES[0]

    def begin_episode(self, observation: Floats) -> None:
        """Remember where an episode of the changed world starts."""
        self.n_in_episode = 0
        self.starts.append(observation)
        del self.starts[:-MAX_STARTS]

    def step_is_due(self, is_end: bool) -> bool:
        """Count a step since the alarm; returns whether to search."""
        del self.probes[-1:]
        self.n_tentative -= self.n_tentative > 0
        self.n_steps += 1
        self.n_in_episode += 1
        self.n_episodes += is_end
        is_due = self.n_steps >= self.next_search or (is_end and self.n_episodes <= N_SEARCHED_ENDS)
        while self.next_search <= self.n_steps:
            later = [n for n in FIRST_SEARCHES if n > self.n_steps]
            self.next_search = later[0] if later else self.next_search + SEARCH_INTERVAL
        return is_due

    # ------------------------------------------------------------------------------------------------- experiments

    @property
    def is_tested(self) -> bool:
        """Whether the grounding in force has passed an experiment."""
        return self.grounding is not None and self.has_grounding and checksum(self.grounding) in self.passed

    def begin_experiment(self, reference: Reference, current: Transitions) -> bool:
        """Try an exchange of actions in the episode that begins; returns whether there is one worth a try."""
        if self.grounding is None or (self.has_grounding and not self.is_tested):
            return False
        if self.is_tested:  # it earns less than the frozen agent all the same
            self._refute(self.grounding)
            self.grounding = self.identity
        usable = np.flatnonzero(reference.home.keeps(current))[-MAX_STEPS:]
        is_strange = bool(self.strange_starts) and float(np.median(self.strange_starts)) > MARGIN
        if len(usable) < FIRST_SEARCHES[0] or not is_strange:
            return False
        judge = Judge(reference, Evidence.of(current, usable, self._all_starts(current)), self.identity)
        self.experiment = next_experiment(judge, self.refuted, self.passed)
        if self.experiment is not None:
            self.probes, self.tentative, self.n_tentative = [], None, 0
        return self.experiment is not None

    def start_is_due(self, is_end: bool) -> bool:
        """Whether to judge the first steps of the episode."""
        is_early = self.n_in_episode < N_START
        return self.n_in_episode in (FIRST_CHECK, N_START) or (is_end and is_early)

    def judge_start(self, reference: Reference, current: Transitions, is_end: bool) -> None:
        """Judge the first steps of the episode, and what is tried in it."""
        first, is_last = current.at(slice(-self.n_in_episode, None)), is_end or self.n_in_episode >= N_START
        if self.experiment is None:
            if is_last and self.in_force is None:
                strangeness = strangeness_of_start(reference, first, self.identity)
                self.strange_starts += [] if np.isnan(strangeness) else [strangeness]
                del self.strange_starts[:-MAX_STARTS]
            return
        strangeness = strangeness_of_start(reference, first, self.experiment)
        is_wrong = strangeness > MARGIN or (is_last and np.isnan(strangeness))
        if is_wrong:
            self._refute(self.experiment)
            self.why_not = "no exchange of actions that was tried makes the world as it was"
        elif is_last:
            self.grounding, self.since, self.why_not = self.experiment, self.n_steps, ""
            self.passed = [*self.passed, checksum(self.experiment)][-MAX_EXPERIMENTS:]
        if is_wrong or is_last:
            self.experiment = None

    def _refute(self, grounding: Grounding) -> None:
        self.refuted = [*self.refuted, checksum(grounding)][-MAX_EXPERIMENTS:]

    # ------------------------------------------------------------------------------------------------- search

    def search(self, reference: Reference, current: Transitions) -> None:
        """Improve the grounding by the transitions since the alarm."""
        if self.grounding is None:
            return
        if self.is_tested or self.experiment is not None:  # judged by the first steps of episodes, and by returns
            return
        usable = np.flatnonzero(reference.home.keeps(current))
        if len(usable) < FIRST_SEARCHES[0] // 2:
            self.why_not = "too few steps so far in the situation in which episodes begin"
            return
        stuck = self._stuck(reference, current.states[usable])
        if stuck:
            self.why_not = f"{stuck} no longer changes, and a lost sensor cannot be translated"
            return
        starts = self._all_starts(current)
        if not self.grounding.is_identity and self._is_fine(reference, current, usable, starts):
            self.is_confirmed = True
            return
        evidence = Evidence.of(current, self._chosen(reference, current, usable), starts)
        finding = Search(Judge(reference, evidence, self.identity)).run(self.grounding)
        if not finding.grounding.is_same(self.grounding):
            self.since, self.is_confirmed = self.n_steps, False
        self.grounding, self.why_not = finding.grounding, finding.why_not
        self.probes, self.tentative, self.n_tentative = [], None, 0
        is_fruitless = finding.grounding.is_identity and finding.tentative is None and finding.probe is None
        if is_fruitless and self.n_steps >= SEARCH_INTERVAL:
            self.next_search = max(self.next_search, self.n_steps + int(FRUITLESS_SHARE * self.n_steps))
        if self.n_probed >= min(MAX_PROBES + N_PER_TRY * self.n_episodes, 3 * MAX_PROBES):
            return
        if finding.tentative is not None:
            self.tentative, self.n_tentative = finding.tentative, N_PER_TRY
            self.n_probed += N_PER_TRY
        elif finding.probe is not None:
            self.probes = [finding.probe] * N_PER_PROBE
            self.n_probed += N_PER_PROBE

    def _all_starts(self, current: Transitions) -> Matrix:
        return np.array(self.starts) if self.starts else np.zeros((0, current.states.shape[1]))

    def _stuck(self, reference: Reference, states: Matrix) -> str:
        """The sensors that show the same number all the time, and did not before."""
        if len(states) < MIN_STUCK:
            return ""
        is_stuck = reference.is_modelled & (np.ptp(states, axis=0) == 0)
        return ", ".join(self.domain.observation_labels[i] for i in np.flatnonzero(is_stuck))

    def _is_fine(self, reference: Reference, current: Transitions, usable: Rows, starts: Matrix) -> bool:
        """Whether the latest steps under the grounding fit the reference as steps usually do."""
        n_since = self.n_steps - self.since
        latest = usable[usable >= current.n - min(n_since, current.n)][-N_CONFIRMING:]
        if len(latest) < N_CONFIRMING or self.grounding is None:
            return False
        judge = Judge(reference, Evidence.of(current, latest, starts), self.identity)
        costs, start_costs = judge.steps([self.identity, self.grounding]), judge.starts([self.identity, self.grounding])
        unusual = (costs - reference.levels.usual).sum(axis=1) + (start_costs - judge.usual_start).sum(axis=1)
        return bool(unusual[1] < max(CONFIRMED_SHARE * unusual[0], MIN_GAIN))

    def _chosen(self, reference: Reference, current: Transitions, usable: Rows) -> Rows:
        """The steps to judge: where the reference knows its way, half of them the latest."""
        if self.grounding is None or len(usable) <= MIN_NEAR:
            return usable
        reach = reference.reach(self.grounding.sensors.original(current.states[usable]))
        near = usable[reach <= max(NEAR_REACH, float(np.partition(reach, MIN_NEAR - 1)[MIN_NEAR - 1]))]
        if len(near) <= MAX_STEPS:
            return near
        half = MAX_STEPS // 2
        earlier = near[:-half]
        spread = np.linspace(0, len(earlier) - 1, half).astype(np.int64)
        return np.concatenate([earlier[np.unique(spread)], near[-half:]])

    # ------------------------------------------------------------------------------------------------- saving

    def state(self) -> TrialState:
        """Everything learned; what it says about itself follows from the next search."""
        return TrialState(
            self.context, None if self.grounding is None else GroundingState.of(self.grounding),
            {context: GroundingState.of(grounding) for context, grounding in self.others.items()},
            self.is_confirmed, self.n_steps, self.n_episodes, self.next_search, self.since, self.starts, self.probes,
            self.n_probed, None if self.tentative is None else GroundingState.of(self.tentative), self.n_tentative,
            None if self.experiment is None else GroundingState.of(self.experiment), self.n_in_episode,
            self.strange_starts, self.refuted, self.passed,
        )  # fmt: skip

    def restore(self, state: TrialState) -> None:
        """Continue from a saved state."""
        self.context, self.why_not = state.context, ""
        self.grounding = None if state.grounding is None else state.grounding.grounding()
        self.others = {context: saved.grounding() for context, saved in state.others.items()}
        self.is_confirmed, self.n_steps, self.n_episodes = state.is_confirmed, state.n_steps, state.n_episodes
        self.next_search, self.since, self.n_probed = state.next_search, state.since, state.n_probed
        self.tentative = None if state.tentative is None else state.tentative.grounding()
        self.n_tentative, self.n_in_episode = state.n_tentative, state.n_in_episode
        self.experiment = None if state.experiment is None else state.experiment.grounding()
        self.strange_starts = list(state.strange_starts)
        self.refuted, self.passed = list(state.refuted), list(state.passed)
        self.starts, self.probes = list(state.starts), list(state.probes)
