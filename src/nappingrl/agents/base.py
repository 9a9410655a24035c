"""The contract of a frozen agent."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError, BadObservationError
from nappingrl.types import Decision, DomainSpec, Flags, Floats, Keys, Observations, Rows, Transition

Layer = tuple[NDArray[np.float32], NDArray[np.float32]]  # (inputs, outputs), (outputs,)


class Network(NamedTuple):
    """A perceptron with at least one hidden layer, as kernels see it."""

    weights: tuple[NDArray[np.float32], ...]
    """Of the hidden layers, (inputs, outputs) each."""
    biases: tuple[NDArray[np.float32], ...]
    output_weight: NDArray[np.float32]
    """(outputs, inputs)."""
    output_bias: NDArray[np.float32]
    is_tanh: bool
    """Whether the activation function is tanh; otherwise it is ReLU."""
    embedding_layer: int
    """The hidden layer whose activations are the model states, 0 = the first."""
    mean: NDArray[np.float64]
    """Subtracted from observations before they are divided by `scale` and clipped to +-`clip`."""
    scale: NDArray[np.float64]
    clip: float
    live: NDArray[np.int64]
    """Space for the indices of the inputs of any layer."""


@dataclass(frozen=True, slots=True)
class AdamState:
    """Adam's moments, by the names of the weights in SB3's state dict."""

    first_moments: Mapping[str, NDArray[np.float32]]
    second_moments: Mapping[str, NDArray[np.float32]]
    steps: int


@dataclass(frozen=True, slots=True)
class Trainable:
    """What a learner needs to train an agent further: plain perceptrons with one activation function."""

    kind: str
    """"q" (networks "q" and "target") or "actor-critic" (networks "policy" and "value")."""
    networks: Mapping[str, list[Layer]]
    activation: str
    """tanh or relu, after every layer but the last."""
    normalise: Callable[[Observations], Observations] | None
    """How observations are standardised before the networks see them."""
    hyperparameters: Mapping[str, Any]
    """The known ones, by SB3's names; a schedule is {"from": a, "to": b}."""
    moments: Mapping[str, list[tuple[Layer, Layer]]] | None = None
    """Adam's first and second moments of each layer, by network; None if the file has none."""
    adam_steps: int = 0


class Agent(ABC):
    """A trained policy that is never changed.

    Attributes:
        name: name in specs and rows.
        n_actions: number of discrete actions; 0 for continuous actions.
        action_low, action_high: bounds of continuous actions, (k,); None for discrete ones.
        embedding_dim: length of a model state, the input of the output layer.
        observation_shape: shape of one observation; None for dictionary observations.
        key_shapes: shape of each entry of a dictionary observation; empty for arrays.
        sha256: hash of the weights, written to manifests.
        source: path of the agent's file; None for a live model.
    """

    name: str
    n_actions: int
    action_low: NDArray[np.float32] | None = None
    action_high: NDArray[np.float32] | None = None
    embedding_dim: int
    observation_shape: tuple[int, ...] | None
    key_shapes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    n_states: int = 0
    """Observations are whole numbers below this (Discrete), encoded one-hot as SB3 does; 0: they are not."""
    sha256: str = ""
    source: str | None = None
    is_stateful: bool = False
    """Whether the agent itself adapts during a trial (scripted agents); only the method `frozen` accepts it then."""
    extends_actions: bool = False
    """Whether its actions may be numbers from `n_actions` on that the domain understands, such as free shots."""
    domain_options: Mapping[str, Any] = MappingProxyType({})
    """Options of the domain that the agent plays with, such as what it observes; a run may give others."""

    @abstractmethod
    def forward(self, observations: Observations) -> Decision:
        """Wanted actions, model states and preferences of m observations, in one pass."""

    def for_trials(self, n: int) -> "Agent":
        """The agent for n trials in parallel; a stateful agent returns a copy with n states."""
        return self

    def start(self, rows: Rows, keys: Keys) -> None:  # noqa: B027
        """Start new trials in `rows`; `keys` seed the agent's random draws."""

    def decide(self, rows: Rows, observations: Observations) -> Decision:
        """The decision of `forward`, for these trials."""
        return self.forward(observations)

    def watch(self, rows: Rows, transition: Transition, detected: Flags) -> None:  # noqa: B027
        """Observe an executed step."""

    def network(self) -> "Network | None":
        """The arrays behind `forward`, for kernels; None: it only runs in Python."""
        return None

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """Weights by name; empty if the agent cannot export them."""
        return {}

    def at_layer(self, layer: int) -> "Agent":
        """The same agent with the activations of another hidden layer as model states; 1 is the first."""
        raise BadAgentError(f"agent {self.name} has only one embedding; option layer={layer} needs a plain perceptron")

    def trainable(self) -> Trainable:
        """The networks, for methods that train the agent further."""
        raise BadAgentError(
            f"agent {self.name} cannot be trained further: its network is not a plain perceptron of SB3's DQN or PPO; "
            "use a method that does not train it, such as frozen, napping or foresight"
        )

    def hyperparameters(self) -> dict[str, Any]:
        """The known hyperparameters of the agent's training."""
        return {}

    def values(self, observations: Observations) -> Floats | None:
        """The discounted return that the agent's critic expects from m observations; None: see `no_critic`.

        In the environment's rewards: a normalisation of rewards in training is undone.
        """
        return None

    @property
    def no_critic(self) -> str:
        """Why `values` returns None, in words; empty: it does not."""
        return "it has no critic that can be read"

    @property
    def gamma(self) -> float | None:
        """The discount factor of the agent's training; None: unknown."""
        gamma = self.hyperparameters().get("gamma")
        return float(gamma) if isinstance(gamma, int | float) and 0 < gamma <= 1 else None


ActionBound = NDArray[np.floating[Any]] | None  # (k,) for continuous actions; None or empty: unknown


def check_fit(agent: Agent, domain: DomainSpec) -> None:
    """Raise if the agent's observations or actions are not those of the domain."""
    shape, n_actions = domain.observation_low.shape, domain.n_actions
    fits = agent.observation_shape == shape and agent.n_actions == n_actions
    if fits and not n_actions:
        fits = _same_bound(agent.action_low, domain.action_low) and _same_bound(agent.action_high, domain.action_high)
    if not fits:
        raise BadAgentError(
            f"agent {agent.name} takes observations of shape {agent.observation_shape} and has "
            f"{_describe_actions(agent.n_actions, agent.action_low, agent.action_high)}; "
            f"{domain.name} gives {shape} and has "
            f"{_describe_actions(n_actions, domain.action_low, domain.action_high)}: "
            "use an agent that was trained on it"
        )


def _same_bound(a: ActionBound, b: ActionBound) -> bool:
    """Whether two bounds agree; an unknown bound agrees with every other."""
    if a is None or b is None or not a.size or not b.size:
        return True
    return a.shape == b.shape and np.allclose(a, b)


def _describe_actions(n_actions: int, low: ActionBound, high: ActionBound) -> str:
    if n_actions:
        return f"{n_actions} actions"
    if low is None or high is None or not low.size:
        return "continuous actions"
    return f"continuous actions between {low.tolist()} and {high.tolist()}"


def check_observations(observations: Observations, shape: tuple[int, ...]) -> None:
    """Raise if a batch of observations has another shape, or is not finite."""
    if observations.shape[1:] != shape:
        raise BadObservationError(
            f"observation of shape {observations.shape[1:]} given, the agent was trained on {shape}"
        )
    if not isfinite(np.vdot(observations, observations)) and not np.isfinite(observations).all():
        bad = np.argwhere(~np.isfinite(observations))[0]
        raise BadObservationError(
            f"observation holds {observations[tuple(bad)]} at index {tuple(int(i) for i in bad[1:])}; "
            "only finite numbers are allowed: check the environment or its wrappers"
        )
