"""One trial: the outcomes of each context, and the action that follows from them."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.agent_returns import AgentReturns
from nappingrl.methods.base import Forecast
from nappingrl.methods.contexts import MAX_CONTEXTS
from nappingrl.methods.recall.outcomes import CONFIG, N_PARTS, Names, Outcomes, Recollection, prior_values, split_name
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import DomainSpec, Floats

Row = NDArray[np.floating[Any]]
N_DESCRIBED = 5
"""Kinds of actions that a description names."""
MAX_NAMED = CONFIG.n_starts + CONFIG.max_steps
"""Observations whose actions are kept with their names: the starts of forecasts, and an episode."""


@dataclass(slots=True)
class TrialState:
    """Everything that a trial has learned, for saving."""

    context: Annotated[int, Expected(low=0)]
    contexts: dict[int, Outcomes]
    episode: Outcomes
    """The unfinished episode."""
    is_agents: bool
    """Whether only the frozen agent's actions were executed in it."""
    returns: AgentReturns
    n_usual: Annotated[int, Expected(low=0)]
    usual: float
    """Mean return of the episodes before the change."""
    low: float
    """The lowest return of an episode so far."""

    def check(self, sizes: Sizes) -> None:
        """Raise if what was saved is no trial's."""
        if len(self.contexts) > MAX_CONTEXTS + 1 or min(self.contexts, default=1) < 1:
            raise ValueError(f"outcomes of the contexts {sorted(self.contexts)[:5]}")
        if (
            max((o.n for o in self.contexts.values()), default=0) > CONFIG.max_outcomes
            or self.episode.n > CONFIG.max_steps
        ):
            raise ValueError(f"more than {CONFIG.max_outcomes} outcomes")


class RecallTrial:
    """Remembers outcomes by context, and estimates what each action would return."""

    def __init__(self, agent: Agent, domain: DomainSpec) -> None:
        self.agent, self.domain = agent, domain
        self.context = 0
        self._contexts: dict[int, Recollection] = {}
        self._named: dict[bytes, tuple[NDArray[np.int64], Names]] = {}
        self._returns = AgentReturns()
        self._n_usual, self._usual, self._low = 0, 0.0, 0.0
        self.discard_episode()

    def discard_episode(self) -> None:
        """Forget the unfinished episode."""
        self._steps: list[tuple[Row, int, float]] = []
        self._is_agents = True

    @property
    def is_active(self) -> bool:
        """Whether it has outcomes of the current context."""
        return self.context > 0 and self._contexts[self.context].outcomes.n > 0

    def enter(self, context: int) -> None:
        """Continue with the outcomes of a context; those of the running episode count for it."""
        self.context = context
        self._returns.enter(context)
        if context and context not in self._contexts:
            self._contexts[context] = self._recollection(Outcomes.none(len(self.domain.observation_low)))
            for old in list(self._contexts)[: -MAX_CONTEXTS - 1]:
                del self._contexts[old]

    def _recollection(self, outcomes: Outcomes) -> Recollection:
        return Recollection(outcomes, self._embed, self._name)

    def _embed(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        if not len(observations):
            return np.zeros((0, self.agent.embedding_dim), np.float32)
        return self.agent.forward(observations).model_states

    def _name(self, observation: NDArray[np.float32], action: int) -> str:
        name = self.domain.name_action
        if name is not None:
            return name(observation, action)
        return self.domain.action_names[action] if self.domain.action_names else f"action {action}"

    # ------------------------------------------------------------------------------------------------- acting

    def act(
        self, observation: Row, model_state: NDArray[np.float32], preferences: NDArray[np.float32], wanted: int
    ) -> int:
        """The action with the highest estimate; the wanted one unless another is better."""
        valid, values = self._estimate(observation.astype(np.float32), model_state, preferences, wanted)
        best = int(values.argmax())
        is_wanted = values[valid == wanted]
        return wanted if len(is_wanted) and is_wanted[0] >= values[best] else int(valid[best])

    def _estimate(
        self, observation: NDArray[np.float32], model_state: NDArray[np.float32], preferences: NDArray[np.float32],
        wanted: int,
    ) -> tuple[NDArray[np.int64], Floats]:  # fmt: skip
        """The valid actions, and what each should return."""
        valid, names = self._valid(observation)
        if not len(valid):
            valid = np.array([wanted])
            names = split_name(self._name(observation, wanted))[None]
        low = min(self._low, self._usual - abs(self._usual))  # all returns so far may have been the same
        prior = prior_values(preferences[valid], low, self._usual)
        return valid, self._contexts[self.context].values(model_state, names, prior)

    def _valid(self, observation: NDArray[np.float32]) -> tuple[NDArray[np.int64], Names]:
        """The valid actions and their names; kept for a while, because each forecast asks about the same starts."""
        key = observation.tobytes()
        if key not in self._named:
            mask = self.domain.action_mask
            valid = np.arange(self.domain.n_actions) if mask is None else np.flatnonzero(mask(observation[None])[0])
            names = [split_name(self._name(observation, action)) for action in valid.tolist()]
            self._named[key] = valid, np.array(names, np.uint32).reshape(-1, N_PARTS)
            for old in list(self._named)[:-MAX_NAMED]:
                del self._named[old]
        return self._named[key]

    # ------------------------------------------------------------------------------------------------- learning

    def learn(self, observation: Row, action: int, reward: float, is_agents: bool) -> None:
        """Take a step into the running episode; of one that exceeds its time limit the latest steps count."""
        self._steps.append((np.array(observation, np.float32), action, reward))
        del self._steps[: -CONFIG.max_steps]
        self._is_agents &= is_agents

    def end_episode(self) -> None:
        """Remember how the episode ended."""
        if not self._steps:
            return
        episode = self._episode()
        episode.returns = episode.returns[::-1].cumsum()[::-1]
        total = float(episode.returns[0])
        self._low = min(self._low, total) if self._n_usual or self.context else total
        if self.context:
            self._contexts[self.context].add(episode)
            if self._is_agents:
                self._returns.add(total)
            if not self._n_usual:  # nothing is known of the world before: hope for the best so far
                self._usual = max(self._usual, total)
        else:
            self._n_usual += 1
            self._usual += (total - self._usual) / self._n_usual
        self.discard_episode()

    def _episode(self) -> Outcomes:
        if not self._steps:
            return Outcomes.none(len(self.domain.observation_low))
        observations, actions, rewards = zip(*self._steps, strict=True)
        is_first = np.arange(len(actions)) == 0
        return Outcomes(np.array(observations), np.array(actions, np.int64), np.array(rewards, np.float64), is_first)

    # ------------------------------------------------------------------------------------------------- telling

    def forecast(self) -> Forecast | None:
        """What the agent has earned here, and what the best actions at the starts of the latest episodes promise."""
        earned = self._returns.mean
        if not self.is_active or earned is None:
            return None
        outcomes = self._contexts[self.context].outcomes
        starts = outcomes.observations[outcomes.is_first][-CONFIG.n_starts :]
        if not len(starts):
            return None
        d = self.agent.forward(starts)
        each = zip(starts, d.model_states, d.preferences, d.actions.tolist(), strict=True)
        own = [float(self._estimate(*state)[1].max()) for state in each]
        return Forecast(earned, float(np.mean(own)))

    def describe(self) -> str:
        """The actions that were tried most, and what they returned."""
        if not self.is_active:
            return ""
        o = self._contexts[self.context].outcomes
        names = [self._name(obs, action) for obs, action in zip(o.observations, o.actions.tolist(), strict=True)]
        lines = []
        for name, n in Counter(names).most_common(N_DESCRIBED):
            mean = o.returns[[other == name for other in names]].mean()
            lines.append(f"{name}: {n} times, mean return {mean:.2f}")
        return f"the best of {o.n} remembered outcomes of like actions in like states; tried most: {'; '.join(lines)}"

    def context_sizes(self) -> dict[int, int]:
        """Number of outcomes in each context."""
        return {context: known.outcomes.n for context, known in sorted(self._contexts.items())}

    # ------------------------------------------------------------------------------------------------- saving

    def state(self) -> TrialState:
        """Everything learned."""
        contexts = {context: known.outcomes for context, known in self._contexts.items()}
        return TrialState(
            self.context, contexts, self._episode(), self._is_agents, self._returns, self._n_usual, self._usual,
            self._low,
        )  # fmt: skip

    def restore(self, state: TrialState) -> None:
        """Continue from what `state` returned, which may come from a file."""
        self.context, self._is_agents, self._returns = state.context, state.is_agents, state.returns
        self._n_usual, self._usual, self._low = state.n_usual, state.usual, state.low
        self._contexts = {context: self._recollection(outcomes) for context, outcomes in state.contexts.items()}
        if self.context and self.context not in self._contexts:
            self.enter(self.context)
        e = state.episode
        self._steps = list(zip(e.observations, e.actions.tolist(), e.returns.tolist(), strict=True))
