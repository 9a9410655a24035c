"""Perceptrons as agents, in numpy and compiled kernels."""

import hashlib
import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl._build import kernel
from nappingrl.agents.activations import relu, tanh
from nappingrl.agents.base import AdamState, Agent, Layer, Trainable, check_observations
from nappingrl.agents.state_dict import (
    TRAINABLE_NETWORKS,
    Weights,
    policy_layers,
    trainable_moments,
    trainable_networks,
)
from nappingrl.errors import BadAgentError
from nappingrl.types import Decision, Observations

ACTIVATIONS = ("tanh", "relu")
TILE = 4
"""Rows per pass of the matrix product; batches are padded to a multiple of it."""


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
        self._layers = [(np.ascontiguousarray(w, np.float32), np.asarray(b, np.float32)) for w, b in layers]
        self._is_tanh = activation == "tanh"
        self._weights = dict(weights or {})
        self._hyperparameters = dict(hyperparameters or {})
        self._adam = adam
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
        self._output_weight = np.ascontiguousarray(self._layers[-1][0].T)
        self._output_bias = self._layers[-1][1]
        self.sha256 = _hash(activation, self._layers, normaliser)

    @override
    def forward(self, observations: Observations) -> Decision:
        model_states, preferences = self.run(observations)
        return Decision(preferences.argmax(axis=1), model_states, preferences)

    def run(self, observations: Observations) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Model states (m, embedding_dim) and outputs (m, n) of the network."""
        assert self.observation_shape is not None
        check_observations(observations, self.observation_shape)
        if self.normaliser is not None:
            observations = self.normaliser(observations)
        m = len(observations)
        n_padded = math.ceil(m / TILE) * TILE
        n_inputs = math.prod(self.observation_shape)
        values = np.zeros((n_padded, n_inputs), np.float32)
        values[:m] = observations.reshape(m, n_inputs)
        model_states = values
        for number, (weight, bias) in enumerate(self._layers[:-1], 1):
            out = np.empty((n_padded, len(bias)), np.float32)
            _layer(values, weight, bias, self._is_tanh, out)
            values = out
            if number == self._embedding_layer:
                model_states = values
        outputs = np.empty((m, len(self._output_bias)), np.float32)
        _outputs(values, self._output_weight, self._output_bias, outputs)
        return model_states[:m], outputs

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
    def weights(self) -> dict[str, NDArray[np.float32]]:
        return dict(self._weights)

    @override
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self._hyperparameters)

    @override
    def trainable(self) -> Trainable:
        kind = policy_layers(self._weights, self.n_actions)[0] if self._weights else ""
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


@kernel(fastmath={"contract"})
def _layer(
    x: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    is_tanh: bool,
    out: NDArray[np.float32],
) -> None:
    """Write activation(x @ weight + bias) to `out`; each number is summed in one fixed order.

    With BLAS the bits of a row depend on the batch size and on the row's place in the batch, because its kernels
    change the order of summation near an edge. Here each number is a chain of multiply-adds over its inputs in their
    order, so a row has the same bits in any batch. Four rows share each load of four weights. Inputs that are zero in
    all four rows (most of a ReLU layer) are skipped, which changes no bit.
    """
    live = np.empty(x.shape[1], np.int64)
    for r in range(0, x.shape[0], TILE):
        out0, out1, out2, out3 = out[r], out[r + 1], out[r + 2], out[r + 3]
        for j in range(bias.shape[0]):
            out0[j] = out1[j] = out2[j] = out3[j] = bias[j]
        n = 0
        for k in range(x.shape[1]):
            live[n] = k
            n += x[r, k] != 0 or x[r + 1, k] != 0 or x[r + 2, k] != 0 or x[r + 3, k] != 0
        for i in range(0, n - 3, 4):
            k0, k1, k2, k3 = live[i], live[i + 1], live[i + 2], live[i + 3]
            w0, w1, w2, w3 = weight[k0], weight[k1], weight[k2], weight[k3]
            a0, a1, a2, a3 = x[r, k0], x[r, k1], x[r, k2], x[r, k3]
            b0, b1, b2, b3 = x[r + 1, k0], x[r + 1, k1], x[r + 1, k2], x[r + 1, k3]
            c0, c1, c2, c3 = x[r + 2, k0], x[r + 2, k1], x[r + 2, k2], x[r + 2, k3]
            d0, d1, d2, d3 = x[r + 3, k0], x[r + 3, k1], x[r + 3, k2], x[r + 3, k3]
            for j in range(bias.shape[0]):
                u0, u1, u2, u3 = w0[j], w1[j], w2[j], w3[j]
                out0[j] = (((out0[j] + a0 * u0) + a1 * u1) + a2 * u2) + a3 * u3
                out1[j] = (((out1[j] + b0 * u0) + b1 * u1) + b2 * u2) + b3 * u3
                out2[j] = (((out2[j] + c0 * u0) + c1 * u1) + c2 * u2) + c3 * u3
                out3[j] = (((out3[j] + d0 * u0) + d1 * u1) + d2 * u2) + d3 * u3
        for i in range(n // 4 * 4, n):
            w0 = weight[live[i]]
            a0, b0, c0, d0 = x[r, live[i]], x[r + 1, live[i]], x[r + 2, live[i]], x[r + 3, live[i]]
            for j in range(bias.shape[0]):
                u0 = w0[j]
                out0[j] += a0 * u0
                out1[j] += b0 * u0
                out2[j] += c0 * u0
                out3[j] += d0 * u0
        for i in range(r, r + TILE):
            if is_tanh:
                tanh(out[i])
            else:
                relu(out[i])


@kernel(fastmath={"contract", "reassoc", "nsz"})
def _outputs(
    x: NDArray[np.float32], weight: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Write x @ weight.T + bias to `out`: one dot product per output, with the same instructions for every row."""
    for i in range(out.shape[0]):
        for a in range(out.shape[1]):
            total = np.float32(0)
            for k in range(weight.shape[1]):
                total += x[i, k] * weight[a, k]
            out[i, a] = total + bias[a]


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
