"""The base of DQN and PPO: many trials train in lock step."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from nappingrl.agents.base import Trainable
from nappingrl.agents.observations import take_transition
from nappingrl.learners.network import Optimiser, TrainState, flatten, forward_each, make_network, trained_spans
from nappingrl.learners.replay import ReplayBuffer, RewardScale
from nappingrl.rng import Streams
from nappingrl.types import Actions, Decision, Keys, Observations, Rows, Transition


class Learner(ABC):
    """n trials that each train a copy of one agent; no trial depends on the others.

    Attributes:
        networks: the trained networks; the first one acts.
        state: parameters, Adam's moments and random streams of all trials.
        replay: the steps to learn from.
        reward_scale: the scaling of rewards.
        notes: differences from the agent's original training.
    """

    adam_epsilon: ClassVar[float]

    def __init__(
        self, agent: Trainable, names: list[str], n: int, buffer_size: int, gamma: float, is_last_only: bool
    ) -> None:
        layers = [agent.networks[name] for name in names]
        self.networks = [make_network(network, agent.activation == "tanh", is_last_only) for network in layers]
        self.is_last_only = is_last_only
        self._normalise = agent.normalise
        self._initial_parameters = np.concatenate([flatten(network) for network in layers])
        self._initial_moments = [np.zeros_like(self._initial_parameters) for _ in range(2)]
        self._initial_adam_steps = 0
        if agent.moments is not None:
            pairs = [pair for name in names for pair in agent.moments[name]]
            self._initial_moments = [flatten([pair[i] for pair in pairs]) for i in range(2)]
            self._initial_adam_steps = agent.adam_steps
        self.streams = Streams(n)
        shape = (n, len(self._initial_parameters))
        self.state = TrainState(
            parameters=np.zeros(shape, np.float32),
            first_moments=np.zeros(shape, np.float32),
            second_moments=np.zeros(shape, np.float32),
            adam_steps=np.zeros(n, np.int64),
            is_diverged=np.zeros(n, np.bool_),
            keys=self.streams.keys,
            draws=self.streams.draws,
        )
        self._spans = trained_spans(self.networks, is_last_only)
        self.replay = ReplayBuffer(n, buffer_size, int(self.networks[0].sizes[0]))
        self.reward_scale = RewardScale(n, gamma, bool(agent.hyperparameters.get("normalise", False)))
        self.notes: list[str] = []
        self._blas = ThreadpoolController()

    def start(self, rows: Rows, keys: Keys) -> None:
        """Start new trials in `rows`, with the original agent."""
        self.state.parameters[rows] = self._initial_parameters
        self.state.first_moments[rows] = self._initial_moments[0]
        self.state.second_moments[rows] = self._initial_moments[1]
        self.state.adam_steps[rows] = self._initial_adam_steps
        self.state.is_diverged[rows] = False
        self.streams.start(rows, keys)
        self.replay.clear(rows)
        self.reward_scale.start(rows)

    def forward(self, rows: Rows, observations: Observations) -> Decision:
        """The decisions of the trials' own networks."""
        network = self.networks[0]
        states = np.empty((len(rows), network.sizes[-2]), np.float32)
        preferences = np.empty((len(rows), network.sizes[-1]), np.float32)
        forward_each(self.state.parameters, network, rows, self.normalised(observations), states, preferences)
        return Decision(preferences.argmax(axis=1), states, preferences)

    @abstractmethod
    def explore(self, rows: Rows, wanted: Actions, preferences: NDArray[np.float32]) -> Actions:
        """The actions to execute while learning."""

    def remember(self, rows: Rows, transition: Transition) -> None:
        """Store a step, without updating the reward statistics."""
        self.replay.add(
            rows=rows,
            observations=self.normalised(transition.observations),
            actions=transition.actions,
            rewards=self._stored_rewards(rows, transition.rewards),
            next_observations=self.normalised(transition.next_observations),
            terminated=transition.terminated,
            truncated=transition.truncated,
        )

    def learn(self, rows: Rows, transition: Transition) -> None:
        """Store a step and train the trials that are due."""
        is_learning = ~self.state.is_diverged[rows]
        if not is_learning.all():
            rows = rows[is_learning]
            transition = take_transition(transition, is_learning)
        if not len(rows):
            return
        self.reward_scale.update(rows, transition.rewards, transition.terminated | transition.truncated)
        self.remember(rows, transition)
        due = self._count_step(rows)
        if len(due):
            self.train(due)

    def train(self, rows: Rows) -> None:
        """Train some trials from their replay buffers, as SB3's `train` does."""
        # The bits of a matrix product depend on its number of threads.
        with self._blas.limit(limits=1, user_api="blas"):
            self._train(rows)

    def _optimiser(self, learning_rate: float, max_grad_norm: float) -> Optimiser:
        return Optimiser(learning_rate, self.adam_epsilon, max_grad_norm, self._spans)

    @abstractmethod
    def _stored_rewards(self, rows: Rows, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rewards to store in the replay buffer."""

    @abstractmethod
    def _count_step(self, rows: Rows) -> Rows:
        """Count a step; returns the trials to train now."""

    @abstractmethod
    def _train(self, rows: Rows) -> None:
        """Train some trials from their replay buffers."""

    def normalised(self, observations: Observations) -> NDArray[np.float32]:
        """The networks' inputs (m, inputs) for observations (m, *shape)."""
        if self._normalise is not None:
            observations = self._normalise(observations)
        return np.ascontiguousarray(observations, np.float32).reshape(len(observations), -1)
