"""The contract of a frozen agent."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError, BadObservationError
from nappingrl.types import Decision, Flags, Keys, Observations, Rows, Transition

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]  # (inputs, outputs), (outputs,)


@dataclass(frozen=True, slots=True)
class AdamState:
    """What Adam remembers, by the names of the weights in SB3's state dict."""

    first: Mapping[str, NDArray[np.float32]]
    second: Mapping[str, NDArray[np.float32]]
    steps: int


@dataclass(frozen=True, slots=True)
class Trainable:
    """What a learner needs to go on training an agent: plain perceptrons with one activation."""

    kind: str
    """"q" (networks "q" and "target") or "actor-critic" (networks "policy" and "value")."""
    networks: Mapping[str, list[Layer]]
    activation: str
    """tanh or relu, after every layer but the last."""
    normalise: Callable[[Observations], Observations] | None
    """How observations are standardised before the networks see them."""
    hyperparameters: Mapping[str, Any]
    """As SB3 names them, as far as they are known; a schedule is {"from": a, "to": b}."""
    moments: Mapping[str, list[tuple[Layer, Layer]]] | None = None
    """Adam's first and second moments of each layer, by network; None where the file has none."""
    adam_steps: int = 0


class Agent(ABC):
    """A trained network that is only ever read.

    Attributes:
        name: how the agent is called in specs and rows.
        n_actions: number of discrete actions; 0 where actions are numbers in a box.
        action_low, action_high: the corners of that box, (k,); None where actions are discrete.
        embedding_dim: length of a model state, the activations that enter the output layer.
        observation_shape: shape of one observation; None where it is not one array (dictionary observations).
        key_shapes: shape of each entry of a dictionary observation; empty where observations are arrays.
        sha256: hash of the weights, written into manifests.
        source: path of the file the agent was read from, None for a live model.
    """

    name: str
    n_actions: int
    action_low: NDArray[np.float32] | None = None
    action_high: NDArray[np.float32] | None = None
    embedding_dim: int
    observation_shape: tuple[int, ...] | None
    key_shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    sha256: str
    source: str | None = None
    is_stateful: bool = False
    """Whether it learns by itself during a trial (a player with rules of its own); then only `frozen` takes it."""

    @abstractmethod
    def forward(self, observations: Observations) -> Decision:
        """Wanted actions, model states and preferences of m observations in one pass."""

    def for_trials(self, n: int) -> "Agent":
        """The agent as n trials use it; one that remembers returns a copy with a memory for each."""
        return self

    def start(self, rows: Rows, keys: Keys) -> None:  # noqa: B027
        """A new trial begins in `rows`; `keys` seed what the agent draws."""

    def decide(self, rows: Rows, observations: Observations) -> Decision:
        """As `forward`, for these trials."""
        return self.forward(observations)

    def watch(self, rows: Rows, transition: Transition, detected: Flags) -> None:  # noqa: B027
        """One step was executed."""

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Named weights, for methods that learn (empty where the agent cannot export them)."""
        return {}

    def at_layer(self, layer: int) -> "Agent":
        """The same agent whose model states are the activations of another hidden layer, 1 being the first."""
        raise BadAgentError(f"agent {self.name} has one embedding only; option layer={layer} needs a plain perceptron")

    def trainable(self) -> Trainable:
        """The agent's networks, for methods that go on training it."""
        raise BadAgentError(
            f"agent {self.name} cannot be trained further: its network is not a plain perceptron of SB3's DQN or PPO; "
            "allowed methods for it: frozen, napping"
        )

    def hyperparameters(self) -> dict[str, Any]:
        """Training hyper-parameters as far as they are known."""
        return {}


Limits = NDArray[np.floating[Any]] | None


def check_fit(
    agent: Agent, world: str, shape: tuple[int, ...], n_actions: int, action_low: Limits = None,
    action_high: Limits = None,
) -> None:  # fmt: skip
    """Raise in one line if the agent was trained on another kind of world; limits are those of a world of numbers."""
    fits = agent.observation_shape == shape and agent.n_actions == n_actions
    for mine, limit in ((agent.action_low, action_low), (agent.action_high, action_high)):
        if fits and not n_actions and mine is not None and limit is not None:
            fits = mine.shape == limit.shape and np.allclose(mine, limit)
    if not fits:
        own = _actions(agent.n_actions, agent.action_low, agent.action_high)
        raise BadAgentError(
            f"agent {agent.name} takes observations of shape {agent.observation_shape} and has {own}; "
            f"{world} gives {shape} and has {_actions(n_actions, action_low, action_high)}: "
            "use an agent that was trained on it"
        )


def _actions(n_actions: int, low: Limits, high: Limits) -> str:
    """Actions in words."""
    if n_actions or low is None or high is None:
        return f"{n_actions} actions" if n_actions else "continuous actions"
    return f"continuous actions between {low.tolist()} and {high.tolist()}"


def check_observations(observations: Observations, shape: tuple[int, ...]) -> None:
    """Raise in one line if a batch of observations does not fit, or is not finite."""
    if observations.shape[1:] != shape:
        raise BadObservationError(
            f"observation of shape {observations.shape[1:]} given, the agent was trained on {shape}"
        )
    if not np.isfinite(observations).all():
        bad = np.argwhere(~np.isfinite(observations))[0]
        raise BadObservationError(
            f"observation holds {observations[tuple(bad)]} at index {tuple(int(i) for i in bad[1:])}; "
            "only finite numbers are allowed: check the environment or its wrappers"
        )
