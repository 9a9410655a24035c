"""A multi-layer perceptron in numpy, rebuilt from the weights that SB3 names in a state dict."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nappingrl.agents.base import Agent, check_observations
from nappingrl.arrays import Decision, Observations
from nappingrl.errors import BadAgentError

GROUP = 16
"""Observations of one matrix product, as its columns.

BLAS gives other bits for the same observation at another batch size, and even at another place of one batch: its
kernels sum in another order near an edge. Sixteen columns are one tile of its kernels, so all are summed alike.
"""
BLOCK = 4 * GROUP
"""Observations that pass through all layers together, so that their activations stay in the cache."""
_ONE_THREAD = 1 << 18
"""Multiplications up to which OpenBLAS uses one thread: larger ones would have other bits with other thread counts."""

Weights = Mapping[str, NDArray[np.float32]]
Layer = tuple[NDArray[np.float32], NDArray[np.float32]]  # (inputs, outputs), (outputs,)


@dataclass(frozen=True, slots=True)
class Normaliser:
    """VecNormalize's statistics: how observations are standardised before the network sees them."""

    mean: NDArray[np.float64]
    var: NDArray[np.float64]
    epsilon: float = 1e-8
    clip: float = 10.0

    def __call__(self, observations: Observations) -> Observations:
        """Standardised and clipped, as VecNormalize does it, in float32."""
        scaled = (observations - self.mean) / np.sqrt(self.var + self.epsilon)
        return np.clip(scaled, -self.clip, self.clip).astype(np.float32)


class MlpAgent(Agent):
    """Linear layers with one activation between them; the input of the last layer is the model state."""

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
    ) -> None:
        if activation not in _ACTIVATIONS:
            raise BadAgentError(
                f"agent {name}: activation '{activation}' is not one of {', '.join(_ACTIVATIONS)}; "
                "wrap the live model instead"
            )
        self.name, self.source, self.normaliser, self.activation = name, source, normaliser, activation
        self._layers = [(np.ascontiguousarray(w, np.float32), np.asarray(b, np.float32)) for w, b in layers]
        self._activate = _ACTIVATIONS[activation]
        self._weights = dict(weights or {})
        self._hyperparameters = dict(hyperparameters or {})
        n_inputs = self._layers[0][0].shape[0]
        self.observation_shape = (n_inputs,) if observation_shape is None else observation_shape
        if int(np.prod(self.observation_shape)) != n_inputs:
            raise BadAgentError(f"observations of shape {observation_shape} do not fit a network of {n_inputs} inputs")
        if normaliser is not None and normaliser.mean.shape != self.observation_shape:
            raise BadAgentError(
                f"the normaliser is for observations of shape {normaliser.mean.shape}, "
                f"the network for {self.observation_shape}; give normaliser=None to leave it out"
            )
        self.embedding_dim, self.n_actions = self._layers[-1][0].shape
        self._panels = [_panels(weight) for weight, _ in self._layers]
        self._biases = [np.zeros(panels.shape[1] * panels.shape[2], np.float32) for panels in self._panels]
        for padded, (_, bias) in zip(self._biases, self._layers, strict=True):
            padded[: len(bias)] = bias
        self._buffers = [np.zeros((BLOCK // GROUP, *p.shape[1:3], GROUP), np.float32) for p in self._panels]
        self._input = np.zeros((BLOCK // GROUP, n_inputs, GROUP), np.float32)
        self._no_bias = np.zeros(self.embedding_dim, np.float32)
        self.sha256 = _hash(self._layers, normaliser)

    def forward(self, observations: Observations) -> Decision:
        """Wanted actions, model states and preferences of (m, *observation_shape) observations."""
        assert self.observation_shape is not None
        check_observations(observations, self.observation_shape)
        if self.normaliser is not None:
            observations = self.normaliser(observations)
        m = len(observations)
        flat = np.ascontiguousarray(observations, np.float32).reshape(m, self._input.shape[1])
        model_states = np.empty((m, self.embedding_dim), np.float32)
        preferences = np.empty((m, self.n_actions), np.float32)
        for first in range(0, m, BLOCK):
            rows = slice(first, min(first + BLOCK, m))
            self._forward_block(flat[rows], model_states[rows], preferences[rows])
        return Decision(preferences.argmax(axis=1), model_states, preferences)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The state dict this agent was built from."""
        return dict(self._weights)

    def hyperparameters(self) -> dict[str, Any]:
        """Training hyper-parameters as far as the source tells them."""
        return dict(self._hyperparameters)

    def _forward_block(
        self, observations: Observations, model_states: NDArray[np.float32], preferences: NDArray[np.float32]
    ) -> None:
        """Fill the model states and preferences of at most BLOCK observations."""
        groups = -(-len(observations) // GROUP)
        flow = self._input[:groups]
        _to_columns(observations, flow)
        last = len(self._layers) - 1
        for i, (panels, bias, buffer) in enumerate(zip(self._panels, self._biases, self._buffers, strict=True)):
            if i == last:
                _to_rows(flow, self._no_bias, model_states)
            np.matmul(panels, flow[:, None], out=buffer[:groups])
            out = buffer[:groups].reshape(groups, len(bias), GROUP)
            if i < last:
                self._activate(out, bias)
            flow = out[:, : self._layers[i][0].shape[1]]
        _to_rows(flow, self._biases[last], preferences)


def _panels(weight: NDArray[np.float32]) -> NDArray[np.float32]:
    """(inputs, outputs) as (1, panels, outputs of a panel, inputs), filled up with zeros."""
    inputs, outputs = weight.shape
    height = min(outputs, max(_ONE_THREAD // (GROUP * inputs), GROUP))
    panels = np.zeros((1, -(-outputs // height), height, inputs), np.float32)
    panels.reshape(-1, inputs)[:outputs] = weight.T
    return panels


@njit(cache=True)
def _to_columns(rows: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """(m, n) into (groups, n, GROUP)."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[i // GROUP, j, i % GROUP] = rows[i, j]


@njit(cache=True)
def _to_rows(columns: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """(groups, n, GROUP) plus bias into (m, n)."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = columns[i // GROUP, j, i % GROUP] + bias[j]


@njit(cache=True, error_model="numpy")  # a check for division by zero would keep the loop from using SIMD
def _tanh(values: NDArray[np.float32], bias: NDArray[np.float32]) -> None:
    """Values <- tanh(values + bias), in place, (groups, outputs, GROUP).

    numpy's float32 tanh takes 19 ns an element without AVX-512, as long as all else in a tick. This is the [7/6]
    continued fraction of tanh(x/4), exact to float32 for |x| <= 9, and the doubling formula applied twice.
    """
    one, two, quarter, limit = np.float32(1), np.float32(2), np.float32(0.25), np.float32(2.25)
    a0, a1, a2 = np.float32(135135), np.float32(17325), np.float32(378)
    b1, b2, b3 = np.float32(62370), np.float32(3150), np.float32(28)
    for group in range(values.shape[0]):
        for j in range(values.shape[1]):
            for i in range(GROUP):
                x = max(-limit, min(limit, (values[group, j, i] + bias[j]) * quarter))
                s = x * x
                t = x * (a0 + s * (a1 + s * (a2 + s))) / (a0 + s * (b1 + s * (b2 + s * b3)))
                t = two * t / (one + t * t)
                values[group, j, i] = two * t / (one + t * t)


@njit(cache=True)
def _relu(values: NDArray[np.float32], bias: NDArray[np.float32]) -> None:
    """Values <- max(values + bias, 0), in place, (groups, outputs, GROUP)."""
    for group in range(values.shape[0]):
        for j in range(values.shape[1]):
            for i in range(GROUP):
                values[group, j, i] = max(values[group, j, i] + bias[j], np.float32(0))


_ACTIVATIONS = {"tanh": _tanh, "relu": _relu}


def _hash(layers: list[Layer], normaliser: Normaliser | None) -> str:
    digest = hashlib.sha256()
    for weight, bias in layers:
        digest.update(weight.tobytes())
        digest.update(bias.tobytes())
    if normaliser is not None:
        digest.update(normaliser.mean.tobytes() + normaliser.var.tobytes())
        digest.update(np.array([normaliser.epsilon, normaliser.clip]).tobytes())
    return digest.hexdigest()


def policy_layers(weights: Weights, n_actions: int | None = None) -> tuple[str, list[Layer]]:
    """The network that chooses actions, as ("actor-critic" | "q" | "quantile", layers), from an SB3 state dict.

    `n_actions` is only needed for quantile networks, whose last layer has n_quantiles * n_actions outputs.
    """
    if "log_std" in weights or any(name.startswith("actor.") for name in weights):
        raise BadAgentError("the agent has continuous actions; only discrete actions are supported")
    if any(name.startswith("lstm_") for name in weights):
        raise BadAgentError("the agent is recurrent; only agents without memory are supported")
    if any("features_extractor." in name for name in weights):
        raise BadAgentError(
            "the agent has a convolutional or combined feature extractor; load it with SB3 and give the live model"
        )
    if "action_net.weight" in weights:
        # SB3 before 2.0 could put layers shared with the critic in front.
        prefixes = ("mlp_extractor.shared_net.", "mlp_extractor.policy_net.", "action_net.")
        return "actor-critic", _chain([layer for prefix in prefixes for layer in _linears(weights, prefix)])
    if any(name.startswith("q_net.q_net.") for name in weights):
        return "q", _chain(_linears(weights, "q_net.q_net."))
    if any(name.startswith("quantile_net.quantile_net.") for name in weights):
        layers = _chain(_linears(weights, "quantile_net.quantile_net."))
        weight, bias = layers[-1]
        if n_actions is None or len(bias) % n_actions:
            raise BadAgentError(f"a quantile network with {len(bias)} outputs does not fit {n_actions} actions")
        # The Q value is the mean over quantiles, and the last layer is linear: average its weights.
        mean_weight = weight.reshape(len(weight), -1, n_actions).mean(axis=1)
        return "quantile", [*layers[:-1], (mean_weight, bias.reshape(-1, n_actions).mean(axis=0))]
    raise BadAgentError(f"no policy network known among the weights {', '.join(list(weights)[:4])} ...")


def _linears(weights: Weights, prefix: str) -> list[Layer]:
    names = [name for name in weights if name.startswith(prefix) and name.endswith(".weight")]
    names.sort(key=lambda name: [int(part) for part in name.split(".") if part.isdigit()])
    missing = [name for name in names if name.removesuffix("weight") + "bias" not in weights]
    if missing:
        raise BadAgentError(f"the layer '{missing[0]}' has no bias; only plain linear layers are supported")
    return [(weights[name].T, weights[name.removesuffix("weight") + "bias"]) for name in names]


def _chain(layers: list[Layer]) -> list[Layer]:
    """The layers, if each is a finite linear layer whose inputs are the outputs of the one before."""
    for i, (weight, bias) in enumerate(layers):
        if weight.ndim != 2 or bias.shape != weight.shape[1:] or 0 in weight.shape:
            raise BadAgentError(f"layer {i} has shapes {weight.shape}, {bias.shape}; only linear layers are supported")
        if i and weight.shape[0] != layers[i - 1][0].shape[1]:
            raise BadAgentError(f"layer {i} takes {weight.shape[0]} inputs, the one before has {len(layers[i - 1][1])}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise BadAgentError(f"the weights of layer {i} hold NaN or infinity")
    return layers
