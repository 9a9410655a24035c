"""A multi-layer perceptron in numpy, rebuilt from the weights that SB3 names in a state dict."""

import hashlib
import math
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.activations import relu, tanh
from nappingrl.agents.base import AdamState, Agent, Layer, Trainable, check_observations
from nappingrl.errors import BadAgentError
from nappingrl.types import Decision, Observations

ACTIVATIONS = ("tanh", "relu")
TILE = 4
"""Observations that the matrix product takes at a time; batches are filled up to a multiple of it."""

Weights = Mapping[str, NDArray[np.float32]]

_NETWORKS: dict[str, dict[str, tuple[str, ...]]] = {
    "q": {"q": ("q_net.q_net.",), "target": ("q_net_target.q_net.",)},
    "actor-critic": {
        "policy": ("mlp_extractor.policy_net.", "action_net."),
        "value": ("mlp_extractor.value_net.", "value_net."),
    },
}
"""The networks of each kind of agent that can be trained further, and where SB3's names of their layers begin."""


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
        adam: AdamState | None = None,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise BadAgentError(
                f"agent {name}: activation '{activation}' is not one of {', '.join(ACTIVATIONS)}; "
                "wrap the live model instead"
            )
        self.name, self.source, self.normaliser, self.activation = name, source, normaliser, activation
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
        self._last = np.ascontiguousarray(self._layers[-1][0].T), self._layers[-1][1]
        self.sha256 = _hash(activation, self._layers, normaliser)

    def forward(self, observations: Observations) -> Decision:
        """Wanted actions, model states and preferences of (m, *observation_shape) observations."""
        model_states, preferences = self.run(observations)
        return Decision(preferences.argmax(axis=1), model_states, preferences)

    def run(self, observations: Observations) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Model states and outputs of the network."""
        assert self.observation_shape is not None
        check_observations(observations, self.observation_shape)
        if self.normaliser is not None:
            observations = self.normaliser(observations)
        m = len(observations)
        rows, n_inputs = -(-m // TILE) * TILE, math.prod(self.observation_shape)
        flow = np.zeros((rows, n_inputs), np.float32)
        flow[:m] = observations.reshape(m, n_inputs)
        model_states = flow
        for number, (weight, bias) in enumerate(self._layers[:-1], 1):
            out = np.empty((rows, len(bias)), np.float32)
            _layer(flow, weight, bias, self._is_tanh, out)
            flow = out
            if number == self._embedding_layer:
                model_states = flow
        outputs = np.empty((m, len(self._last[1])), np.float32)
        _outputs(flow, *self._last, outputs)
        return model_states[:m], outputs

    def at_layer(self, layer: int) -> "MlpAgent":
        """The same agent with another hidden layer as its embedding."""
        hidden = len(self._layers) - 1
        if not 1 <= layer <= hidden:
            raise BadAgentError(f"agent {self.name} has hidden layers 1 to {hidden}; layer {layer} was asked for")
        other = copy(self)
        other._embedding_layer, other.embedding_dim = layer, len(self._layers[layer - 1][1])
        return other

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The state dict this agent was built from."""
        return dict(self._weights)

    def hyperparameters(self) -> dict[str, Any]:
        """Training hyper-parameters as far as the source tells them."""
        return dict(self._hyperparameters)

    def trainable(self) -> Trainable:
        """Both networks of a DQN or of an actor-critic, and Adam's moments if the source has them."""
        kind = policy_layers(self._weights, self.n_actions)[0] if self._weights else ""
        if kind not in _NETWORKS:
            return super().trainable()
        refusal = f"agent {self.name} cannot be trained further"
        if any(name.startswith("mlp_extractor.shared_net.") for name in self._weights):
            raise BadAgentError(f"{refusal}: its actor and critic share layers (SB3 before 2.0)")
        parts = _NETWORKS[kind]
        networks = {name: _chain(_layers(self._weights, prefixes)) for name, prefixes in parts.items()}
        missing = [name for name, layers in networks.items() if not layers]
        if missing:
            raise BadAgentError(f"{refusal}: its file has no {missing[0]} network")
        acting, other = ([weight.shape for weight, _ in layers] for layers in networks.values())
        if acting != other if kind == "q" else (acting[0][0], 1) != (other[0][0], other[-1][1]):
            raise BadAgentError(f"{refusal}: its networks of shapes {acting} and {other} do not fit each other")
        moments, adam = None, self._adam
        if adam is not None:
            moments = {
                name: list(zip(_layers(adam.first, prefixes), _layers(adam.second, prefixes), strict=True))
                for name, prefixes in parts.items()
                if name != "target"
            }
        steps = 0 if adam is None else adam.steps
        return Trainable(kind, networks, self.activation, self.normaliser, self.hyperparameters(), moments, steps)


@kernel(fastmath={"contract"})
def _layer(
    x: NDArray[np.float32],
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    is_tanh: bool,
    out: NDArray[np.float32],
) -> None:
    """Out <- activation(x @ weight + bias), each number summed in one fixed order.

    BLAS gives other bits for the same row at another batch size, and even at another place of one batch: its kernels
    sum in another order near an edge. Here every number is a chain of multiply-adds over its own inputs in their
    order, so no row knows where it is. Four rows share each load of four weights; inputs that are zero in all four
    (most of a ReLU layer) are left out, which changes no bit.
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
    """Out <- x @ weight.T + bias for few outputs: one dot product each, by the same instructions for every row."""
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


def policy_layers(weights: Weights, n_actions: int | None = None) -> tuple[str, list[Layer]]:
    """The kind of the network that chooses actions, and its layers, from an SB3 state dict.

    Kinds: actor-critic, q, quantile; with continuous actions gaussian (PPO, A2C), sac, sac-sde (SAC with
    state-dependent noise), td3 (and DDPG). `n_actions` is only needed for quantile networks, whose last layer has
    n_quantiles * n_actions outputs.
    """
    if any(name.startswith("lstm_") for name in weights):
        raise BadAgentError("the agent is recurrent; only agents without memory are supported")
    if any("features_extractor." in name for name in weights):
        raise BadAgentError(
            "the agent has a convolutional or combined feature extractor; load it with SB3 and give the live model"
        )
    if "action_net.weight" in weights:
        # SB3 before 2.0 could put layers shared with the critic in front.
        prefixes = ("mlp_extractor.shared_net.", "mlp_extractor.policy_net.", "action_net.")
        return "gaussian" if "log_std" in weights else "actor-critic", _chain(_layers(weights, prefixes))
    if any(name.startswith("actor.mu.") for name in weights):
        if not any(name.startswith("actor.log_std") for name in weights):
            return "td3", _chain(_linears(weights, "actor.mu."))
        kind = "sac-sde" if "actor.mu.0.weight" in weights else "sac"
        return kind, _chain(_layers(weights, ("actor.latent_pi.", "actor.mu.")))
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


def _layers(weights: Weights, prefixes: tuple[str, ...]) -> list[Layer]:
    return [layer for prefix in prefixes for layer in _linears(weights, prefix)]


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
