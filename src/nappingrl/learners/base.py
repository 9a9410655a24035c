"""What DQN and PPO have in common when they train the agents of many trials in lock step."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from nappingrl.agents.base import Trainable
from nappingrl.agents.observations import take_transition
from nappingrl.learners.network import flatten, forward_each, learning_spans, sizes_of
from nappingrl.learners.replay import Memory, RewardScale
from nappingrl.rng import Streams
from nappingrl.types import Actions, Decision, Keys, Observations, Rows, Transition


class Learner(ABC):
    """n trials that each train a copy of one agent. What a trial learns does not depend on the trials beside it.

    Attributes:
        parameters: (n, p) weights of the networks that learn, flat; the one that acts comes first.
        first, second: (n, p) Adam's moments.
        adam_steps: (n,) how many updates they have seen.
        memory: the steps to learn from.
        rewards: how rewards are scaled.
        is_diverged: (n,) where a gradient was not finite; these trials have stopped learning.
        notes: what differs from the training that made the agent.
    """

    def __init__(
        self, agent: Trainable, names: list[str], n: int, remembered: int, gamma: float, is_last_only: bool
    ) -> None:
        networks = [agent.networks[name] for name in names]
        self.sizes = [sizes_of(layers) for layers in networks]
        self.is_tanh = agent.activation == "tanh"
        self._normalise = agent.normalise
        self._initial = np.concatenate([flatten(layers) for layers in networks])
        shape = (n, len(self._initial))
        self.parameters, self.first, self.second = (np.zeros(shape, np.float32) for _ in range(3))
        self._initial_moments = [np.zeros_like(self._initial) for _ in range(2)]
        self._initial_adam_steps = 0
        if agent.moments is not None:
            pairs = [pair for name in names for pair in agent.moments[name]]
            self._initial_moments = [flatten([pair[i] for pair in pairs]) for i in range(2)]
            self._initial_adam_steps = agent.adam_steps
        self.adam_steps = np.zeros(n, np.int64)
        self.spans = learning_spans(self.sizes, is_last_only)
        self.is_last_only = is_last_only
        self.streams = Streams(n)
        self.memory = Memory(n, remembered, int(self.sizes[0][0]))
        self.rewards = RewardScale(n, gamma, bool(agent.hyperparameters.get("normalise", False)))
        self.is_diverged = np.zeros(n, np.bool_)
        self.notes: list[str] = []
        self._blas = ThreadpoolController()

    def start(self, rows: Rows, keys: Keys) -> None:
        """A new trial begins in `rows`: back to the agent as it was shipped."""
        self.parameters[rows] = self._initial
        self.first[rows], self.second[rows] = self._initial_moments
        self.adam_steps[rows] = self._initial_adam_steps
        self.streams.start(rows, keys)
        self.memory.forget(rows)
        self.rewards.start(rows)
        self.is_diverged[rows] = False

    def forward(self, rows: Rows, observations: Observations) -> Decision:
        """What the trials' own networks want."""
        x = self.standardised(observations)
        sizes = self.sizes[0]
        states = np.empty((len(rows), sizes[-2]), np.float32)
        preferences = np.empty((len(rows), sizes[-1]), np.float32)
        forward_each(self.parameters, sizes, self.is_tanh, rows, x, states, preferences)
        return Decision(preferences.argmax(axis=1), states, preferences)

    @abstractmethod
    def explore(self, rows: Rows, wanted: Actions, preferences: NDArray[np.float32]) -> Actions:
        """The actions to execute while learning."""

    def remember(self, rows: Rows, transition: Transition) -> None:
        """Put a step into memory; the rewards' statistics have seen it already."""
        t = transition
        self.memory.add(
            rows, self.standardised(t.observations), t.actions, self._rewards_to_keep(rows, t.rewards),
            self.standardised(t.next_observations), t.terminated, t.truncated,
        )  # fmt: skip

    def learn(self, rows: Rows, transition: Transition) -> None:
        """Put a step into memory and update the networks that are due."""
        alive = ~self.is_diverged[rows]
        if not alive.all():
            rows, transition = rows[alive], take_transition(transition, alive)
        if not len(rows):
            return
        self.rewards.update(rows, transition.rewards, transition.terminated | transition.truncated)
        self.remember(rows, transition)
        due = self._step(rows)
        if len(due):
            self.train(due)

    def train(self, rows: Rows) -> None:
        """What SB3 calls train, for some rows, from what is in their memory."""
        # Where several threads share a product, its bits depend on how many they are.
        with self._blas.limit(limits=1, user_api="blas"):
            self._update(rows)

    @abstractmethod
    def _rewards_to_keep(self, rows: Rows, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rewards as they go into memory."""

    @abstractmethod
    def _step(self, rows: Rows) -> Rows:
        """Count a step; returns the rows that are to be trained now."""

    @abstractmethod
    def _update(self, rows: Rows) -> None:
        """Train some rows."""

    def standardised(self, observations: Observations) -> NDArray[np.float32]:
        """Observations (m, *shape) as the networks see them, (m, inputs)."""
        if self._normalise is not None:
            observations = self._normalise(observations)
        return np.ascontiguousarray(observations, np.float32).reshape(len(observations), -1)
