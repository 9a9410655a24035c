"""Perceptrons as agents, in numpy and compiled kernels."""

import hashlib
import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import AdamState, Agent, Layer, Network, Trainable, check_observations
from nappingrl.agents.perceptron import ACTIVATIONS, Perceptron, contiguous
from nappingrl.agents.state_dict import (
    ACTION_VALUE_KINDS,
    TRAINABLE_NETWORKS,
    Weights,
    critic_layers,
    policy_layers,
    trainable_moments,
    trainable_networks,
)
from nappingrl.errors import BadAgentError
from nappingrl.types import Decision, Floats, Observations

REWARDS_UNKNOWN = "its rewards were normalised in training, by statistics that its file does not have"


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Standardises observations with VecNormalize's statistics."""

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    epsilon: float = 1e-8
    clip: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what does not standardise."""
        if self.mean.shape != self.var.shape or self.mean.ndim == 0:
            raise BadAgentError(f"it has a mean {self.mean.shape} and a variance {self.var.shape}, which do not fit")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.var).all() and (self.var >= 0).all()):
            raise BadAgentError("its mean and variance must be finite, and its variance not negative")
        if not 0 < self.epsilon < math.inf or not self.clip > 0:
            raise BadAgentError(f"it has epsilon {self.epsilon:g} and clip_obs {self.clip:g}; both must be positive")

    def __call__(self, observations: Observations) -> Observations:
        """Standardised and clipped observations, float32, with VecNormalize's formula."""
        scaled = (observations - self.mean) / np.sqrt(self.var + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


class MlpAgent(Agent):
    """A perceptron with one activation function; the input of its last layer is the model state."""

    def __init__(
        self,
        name: str,
        layers: list[Layer],
        activation: str,
        normaliser: Normaliser | None = None,
        weights: Weights | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        source: str | None = None,
        observation_shape: tuple[int, ...] | None = None,
        adam: AdamState | None = None,
        reward_scale: float | None = 1.0,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise BadAgentError(
                f"agent {name}: activation '{activation}' is not one of {', '.join(ACTIVATIONS)}; "
                "wrap the live model instead"
            )
        self.name = name
        self.source = source
        self.normaliser = normaliser
        self.activation = activation
        self._layers = contiguous(layers)
        self._network = Perceptron(self._layers, activation)
        self._weights = dict(weights or {})
        self._hyperparameters = dict(hyperparameters or {})
        self._adam = adam
        self._reward_scale = reward_scale  # by which rewards were divided in training; None: unknown
        n_inputs = self._layers[0][0].shape[0]
        self.observation_shape = (n_inputs,) if observation_shape is None else observation_shape
        if math.prod(self.observation_shape) != n_inputs:
            raise BadAgentError(f"observations of shape {observation_shape} do not fit a network of {n_inputs} inputs")
        if normaliser is not None and normaliser.mean.shape != self.observation_shape:
            raise BadAgentError(
                f"the normaliser is for observations of shape {normaliser.mean.shape}, "
                f"the network for {self.observation_shape}; give normaliser=None to leave it out"
            )
        self.embedding_dim, self.n_actions = self._layers[-1][0].shape
        self._embedding_layer = len(self._layers) - 1
        self.sha256 = _hash(activation, self._layers, normaliser)

    @override
    def forward(self, observations: Observations) -> Decision:
        model_states, preferences = self.run(observations)
        return Decision(preferences.argmax(axis=1), model_states, preferences)

    def run(self, observations: Observations) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Model states (m, embedding_dim) and outputs (m, n) of the network."""
        assert self.observation_shape is not None
        check_observations(observations, self.observation_shape)
        return self._network.run(self.standardise(observations), self._embedding_layer)

    def standardise(self, observations: Observations) -> NDArray[np.float32]:
        """The inputs of the networks, (m, n_inputs)."""
        if self.normaliser is not None:
            observations = self.normaliser(observations)
        return observations.reshape(len(observations), self._layers[0][0].shape[0])

    @override
    def at_layer(self, layer: int) -> "MlpAgent":
        n_hidden = len(self._layers) - 1
        if not 1 <= layer <= n_hidden:
            raise BadAgentError(f"agent {self.name} has hidden layers 1 to {n_hidden}, not {layer}")
        other = copy(self)
        other._embedding_layer = layer
        other.embedding_dim = len(self._layers[layer - 1][1])
        return other

    @override
    def network(self) -> Network | None:
        is_plain = type(self).forward is MlpAgent.forward and type(self).decide is Agent.decide
        assert self.observation_shape is not None
        if not is_plain or len(self.observation_shape) != 1 or not self._embedding_layer:
            return None
        if (normaliser := self.normaliser) is None:
            zeros, ones = np.zeros(self.observation_shape), np.ones(self.observation_shape)
            return self._network.arrays(self._embedding_layer, zeros, ones, np.inf)
        scale = np.sqrt(normaliser.var + normaliser.epsilon)
        return self._network.arrays(self._embedding_layer, normaliser.mean, scale, normaliser.clip)

    @override
    def weights(self) -> dict[str, NDArray[np.float32]]:
        return dict(self._weights)

    @override
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self._hyperparameters)

    @override
    def values(self, observations: Observations) -> Floats | None:
        if isinstance(self._critics, str) or self._reward_scale is None:
            return None
        _, outputs = self.run(observations)
        if not self._critics:
            return self._in_rewards(outputs.max(axis=1))
        inputs = self.standardise(observations)
        if self._kind in ACTION_VALUE_KINDS:
            inputs = np.hstack([inputs, self.squash(outputs)])
        values = [critic.run(inputs)[1][:, 0] for critic in self._critics]
        return self._in_rewards(np.min(values, axis=0))

    def _in_rewards(self, values: NDArray[np.float32]) -> Floats:
        """The critic's values in the environment's rewards."""
        assert self._reward_scale is not None
        return values.astype(np.float64) * self._reward_scale

    def squash(self, outputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The actions of these outputs in -1..1, as critics take them."""
        raise NotImplementedError

    @property
    @override
    def no_critic(self) -> str:
        if isinstance(self._critics, str):
            return self._critics
        return REWARDS_UNKNOWN if self._reward_scale is None else ""

    @cached_property
    def _kind(self) -> str:
        """The kind of the policy (`policy_layers`)."""
        return policy_layers(self._weights, self.n_actions)[0]

    @cached_property
    def _critics(self) -> list[Perceptron] | str:
        """The networks of the critic, or why there are none; empty: the acting network is the critic."""
        try:
            n_inputs, n_outputs = len(self._layers[0][0]), len(self._layers[-1][1])
            critics = critic_layers(self._weights, self._kind, n_inputs, n_outputs)
        except BadAgentError as error:
            return f"its critic cannot be read: {error}" if self._weights else "its critic is not known"
        return [Perceptron(contiguous(layers), self.activation) for layers in critics]

    @override
    def trainable(self) -> Trainable:
        kind = self._kind if self._weights else ""
        if kind not in TRAINABLE_NETWORKS:
            return super().trainable()
        try:
            networks = trainable_networks(self._weights, kind)
        except BadAgentError as error:
            raise BadAgentError(f"agent {self.name} cannot be trained further: {error}") from None
        return Trainable(
            kind=kind,
            networks=networks,
            activation=self.activation,
            normalise=self.normaliser,
            hyperparameters=self.hyperparameters(),
            moments=None if self._adam is None else trainable_moments(self._adam, kind),
            adam_steps=0 if self._adam is None else self._adam.steps,
        )


def _hash(activation: str, layers: list[Layer], normaliser: Normaliser | None) -> str:
    digest = hashlib.sha256(activation.encode())
    for weight, bias in layers:
        digest.update(str(weight.shape).encode())
        digest.update(weight.tobytes())
        digest.update(bias.tobytes())
    if normaliser is not None:
        digest.update(normaliser.mean.tobytes() + normaliser.var.tobytes())
        digest.update(np.array([normaliser.epsilon, normaliser.clip]).tobytes())
    return digest.hexdigest()
