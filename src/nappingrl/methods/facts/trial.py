"""One trial: the facts of each context, and the plan that follows from them."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.agent_returns import AgentReturns
from nappingrl.methods.base import Forecast
from nappingrl.methods.contexts import MAX_CONTEXTS
from nappingrl.methods.facts.ends import stakes
from nappingrl.methods.facts.entries import Entries, judge_entries
from nappingrl.methods.facts.records import MAX_FACTS, Facts, Places, Recorder
from nappingrl.methods.facts.stationary import StationaryWorld
from nappingrl.methods.facts.timed import TimedWorld
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import DomainSpec
from nappingrl.world_model.transitions import Transitions

MIN_MET_SHARE = 0.1
"""Where a smaller share of the observations to act in was met before, outcomes do not repeat."""
MIN_STEPS = 200
"""Observations by which that is judged, unless there are fewer."""
TOLERANCE = 1e-9
MAX_CONTRADICTED = 0.4
"""Share of actions whose outcome may differ in a stationary world: some places look alike, as in a maze."""


@dataclass(slots=True)
class TrialState:
    """Everything that a trial has learned, for saving."""

    observations: Annotated[NDArray[np.float32], Expected(("n_places", "d"))]
    original: Facts
    contexts: dict[int, Facts]
    context: Annotated[int, Expected(low=0)]
    returns: AgentReturns
    n_steps: Annotated[int, Expected(low=0)]
    n_met: Annotated[int, Expected(low=0)]
    n_earlier: Annotated[int, Expected(low=0)]
    """Places that were known when the running episode began."""
    visited: Annotated[NDArray[np.int64], Expected(("v",), low=0, below="n_places")]
    """Places of the running episode."""

    def check(self, sizes: Sizes) -> None:
        """Raise if what was saved is no trial's."""
        if max(world.n for world in (self.original, *self.contexts.values())) > MAX_FACTS:
            raise ValueError(f"more than {MAX_FACTS} facts about a world")
        if len(self.contexts) > MAX_CONTEXTS + 1 or min(self.contexts, default=1) < 1:
            raise ValueError(f"facts about the contexts {sorted(self.contexts)[:5]}")


class FactsTrial:
    """Remembers what happened, and plans over it."""

    def __init__(self, domain: DomainSpec) -> None:
        self.domain = domain
        self._places = Places(len(domain.observation_low))
        self.original = Recorder(self._places)
        self._entries: Entries | None = None
        """What the original world says about entries; None: it was not asked."""
        self._contexts: dict[int, Recorder] = {}
        self.context = 0
        self.world: StationaryWorld | TimedWorld | None = None
        """The plan; None: there is none."""
        self.why_not = ""
        self.returns = AgentReturns()
        self._n_steps = self._n_met = 0
        """Observations to act in so far, and those of them that an earlier episode had met."""
        self._n_earlier = 0
        """Places that were known when the running episode began."""
        self._visited: set[int] = set()
        """Places of the running episode."""

    @property
    def now(self) -> Recorder:
        """The facts of the changed world that the trial is in."""
        return self._contexts[self.context]

    @property
    def is_active(self) -> bool:
        """Whether the world has changed, and its outcomes may repeat."""
        return self.context in self._contexts

    @property
    def horizon(self) -> int:
        """Steps of an episode; where the domain does not say, twice as many as the longest original one had.

        Not as many as episodes have now: who waits for something better must not plan to wait ever longer.
        """
        return self.domain.horizon or 2 * (max(self.original.last_time, 0) + 1)

    def enter(self, context: int, before: Transitions) -> None:
        """The detector believes in another context."""
        self.context, self.world = context, None
        self.returns.enter(context)
        if not context:
            return
        if not self._contexts:
            self._read_original(before)
        if not self.why_not and context not in self._contexts:
            self._contexts[context] = Recorder(self._places)
            for old in list(self._contexts)[: -MAX_CONTEXTS - 1]:
                del self._contexts[old]
        if not self.why_not:
            self.plan()

    def _read_original(self, before: Transitions) -> None:
        """Take the steps before the change as facts."""
        time, self._entries = 0, None
        for m in range(before.n):
            time = 0 if not m or before.episodes[m] != before.episodes[m - 1] else time + 1
            state, next_state = before.states[m].astype(np.float32), before.next_states[m].astype(np.float32)
            if not self._repeats(time, state, next_state, bool(before.terminated[m]), is_last=m == before.n - 1):
                return
            action = int(before.actions[m].argmax())
            self.original.add(time, state, action, next_state, float(before.rewards[m]), bool(before.terminated[m]))

    def _repeats(
        self, time: int, observation: NDArray[np.float32], next_observation: NDArray[np.float32], is_terminated: bool,
        is_last: bool = False,
    ) -> bool:  # fmt: skip
        """Count the observations of a step; where they hardly ever repeat, forget everything, and say so.

        Only those to act in count, as all terminal ones may look alike, and none that only the running episode has met:
        an action without effect leaves its observation as it is, which says nothing of other episodes. The very first
        episode has none before it.
        """
        if not time:
            self._n_earlier = len(self._places)
        if not self._n_earlier:
            return True
        for one in [observation] * (not time) + [next_observation] * (not is_terminated):
            place = self._places.find(one)
            is_earlier = 0 <= place < self._n_earlier
            self._n_steps += place < 0 or is_earlier
            self._n_met += is_earlier
        if self._n_met >= MIN_MET_SHARE * self._n_steps or not (is_last or self._n_steps >= MIN_STEPS):
            return True
        self.why_not = f"observations hardly ever repeat: {self._n_met} of {self._n_steps} were met before"
        self._places, self._contexts, self.world = Places(len(self.domain.observation_low)), {}, None
        self.original, self._entries, self._visited = Recorder(self._places), None, set()
        return False

    def learn(
        self, time: int, observation: NDArray[np.float32], action: int, next_observation: NDArray[np.float32],
        reward: float, is_terminated: bool,
    ) -> None:  # fmt: skip
        """Add a step; plan anew at once where a surprise may have another way round it."""
        if not self._repeats(time, observation, next_observation, is_terminated):
            return
        is_new = self.now.add(time, observation, action, next_observation, reward, is_terminated)
        self._visited.add(self._places.find(observation))
        if is_new and isinstance(self.world, StationaryWorld) and not is_terminated:
            place = self._places.find(observation)
            if place >= len(self.world.values) or not self.world.is_known[place, action]:
                self.plan()

    def plan(self) -> None:
        """Plan over what is known."""
        original, now, spec = self.original.facts(), self.now.facts(), self.domain
        self.why_not, self.world = "", None
        if not original.n and not now.n:
            return
        what = stakes(original, now, self.horizon)
        contradicted = max(self.original.contradicted_share, self.now.contradicted_share)
        observations = self._places.observations
        entries = self._controlled_entries(original, now) if contradicted else np.zeros(0, np.int64)
        if not len(entries) and contradicted <= MAX_CONTRADICTED:
            self.world = StationaryWorld(self.original, self.now, what, spec.n_actions)
            return
        if not len(entries):
            self.why_not = "outcomes do not repeat, and no observation follows from itself and the action"
        if self.why_not or not now.n:
            return
        bounds = np.asarray(spec.observation_low, np.float64), np.asarray(spec.observation_high, np.float64)
        self.world = TimedWorld(observations, entries, original, now, what, spec.n_actions, self.horizon, bounds)

    def _controlled_entries(self, original: Facts, now: Facts) -> NDArray[np.int64]:
        """The entries that the actions control in both worlds."""
        observations = self._places.observations
        if self._entries is None:
            self._entries = judge_entries(observations, original)
        return judge_entries(observations, now, self._entries).controlled

    def act(self, time: int, observation: NDArray[np.float32], wanted: int) -> int:
        """The action that is worth most; of equals the one that acts as the agent wants.

        In a stationary world that only has other numbers of actions, what the agent wants is best: it was trained
        there. But once it comes back to a place, it goes round in circles for ever.
        """
        if self.world is None:
            return wanted
        translated = self.world.meanings.executes(wanted)
        place = self._places.find(observation)
        is_back = place in self._visited
        if isinstance(self.world, StationaryWorld) and not is_back and self.world.may_follow(place, translated):
            return translated
        values = self.world.scores(time, observation)
        if values is None:
            return translated
        best = np.flatnonzero(values >= values.max() - TOLERANCE)
        return translated if translated in best else int(best[0])

    def begin_episode(self) -> None:
        """The environment was reset."""
        self._visited = set()

    def end_episode(self, total: float, is_agents: bool) -> None:
        """An episode ended; `is_agents`: only the frozen agent's actions were executed."""
        if is_agents:
            self.returns.add(total)
        self.plan()

    def forecast(self) -> Forecast | None:
        """What the frozen agent and the plan will earn."""
        earned = self.returns.mean
        if self.world is None or earned is None:
            return None
        facts, observations = self.now.facts(), self._places.observations
        starts = np.unique(facts.places[facts.times == 0])
        values = [self.world.scores(0, observations[place]) for place in starts]
        known = [float(value.max()) for value in values if value is not None]
        return Forecast(earned, float(np.mean(known))) if known else None

    def context_sizes(self) -> dict[int, int]:
        """One plan for each context."""
        return dict.fromkeys(sorted(self._contexts), 1)

    def state(self) -> TrialState:
        """Everything that was learned."""
        contexts = {context: recorder.facts() for context, recorder in self._contexts.items()}
        visited = np.array(sorted(self._visited - {-1}), np.int64)
        return TrialState(
            self._places.observations, self.original.facts(), contexts, self.context, self.returns, self._n_steps,
            self._n_met, self._n_earlier, visited,
        )  # fmt: skip

    def restore(self, state: TrialState) -> None:
        """Continue from this state."""
        self._places = Places(len(self.domain.observation_low), state.observations)
        self.original, self._entries = Recorder(self._places), None
        self.original.restore(state.original)
        self._contexts = {context: Recorder(self._places) for context in state.contexts}
        for context, facts in state.contexts.items():
            self._contexts[context].restore(facts)
        self.context, self.returns, self.world = state.context, state.returns, None
        self._n_steps, self._n_met, self._visited = state.n_steps, state.n_met, set(state.visited.tolist())
        self._n_earlier = state.n_earlier
        if self.is_active:
            self.plan()
