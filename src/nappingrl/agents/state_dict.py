"""Layers of a policy from an SB3 state dict."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import AdamState, Layer
from nappingrl.errors import BadAgentError

Weights = Mapping[str, NDArray[np.float32]]

TRAINABLE_NETWORKS: dict[str, dict[str, tuple[str, ...]]] = {
    "q": {"q": ("q_net.q_net.",), "target": ("q_net_target.q_net.",)},
    "actor-critic": {
        "policy": ("mlp_extractor.policy_net.", "action_net."),
        "value": ("mlp_extractor.value_net.", "value_net."),
    },
}
"""By the kind of policy: the networks that a learner trains, and the prefixes of their layers in the state dict."""
VALUE_KINDS = ("actor-critic", "gaussian")
"""Policies whose critic is a network of the state's value."""
ACTION_VALUE_KINDS = ("sac", "sac-sde", "td3")
"""Policies whose critics take the state and an action in -1..1."""


def policy_layers(weights: Weights, n_actions: int | None = None) -> tuple[str, list[Layer]]:
    """The kind of a policy, and the layers of the network that chooses actions.

    Discrete actions: actor-critic, q, quantile. Continuous actions: gaussian (PPO, A2C), sac, sac-sde (SAC with
    state-dependent noise), td3 (TD3, DDPG). Only quantile networks need `n_actions`: their last layer has
    n_quantiles * n_actions outputs.
    """
    _refuse_unsupported(weights)
    if "action_net.weight" in weights:
        # SB3 before 2.0 could put layers shared with the critic in front.
        prefixes = ("mlp_extractor.shared_net.", "mlp_extractor.policy_net.", "action_net.")
        return "gaussian" if "log_std" in weights else "actor-critic", _checked(_layers(weights, prefixes))
    if _has_prefix(weights, "actor.mu."):
        if not _has_prefix(weights, "actor.log_std"):
            return "td3", _checked(_layers(weights, ("actor.mu.",)))
        kind = "sac-sde" if "actor.mu.0.weight" in weights else "sac"
        return kind, _checked(_layers(weights, ("actor.latent_pi.", "actor.mu.")))
    if _has_prefix(weights, "q_net.q_net."):
        return "q", _checked(_layers(weights, ("q_net.q_net.",)))
    if _has_prefix(weights, "quantile_net.quantile_net."):
        return "quantile", _averaged_quantiles(_checked(_layers(weights, ("quantile_net.quantile_net.",))), n_actions)
    raise BadAgentError(f"no policy network known among the weights {', '.join(list(weights)[:4])} ...")


def critic_layers(weights: Weights, kind: str, n_inputs: int, n_outputs: int) -> list[list[Layer]]:
    """The layers of each critic of a policy of this kind, whose network has these sizes.

    A network of Q values or quantiles is its own critic: the list is empty.
    """
    if kind in VALUE_KINDS:
        prefixes = ("mlp_extractor.shared_net.", "mlp_extractor.value_net.", "value_net.")
        critics = [_checked(_layers(weights, prefixes))] if _has_prefix(weights, "value_net.") else []
    elif kind in ACTION_VALUE_KINDS:
        n_inputs += n_outputs
        numbers = sorted({name.split(".")[1] for name in weights if name.startswith("critic.qf")})
        critics = [_checked(_layers(weights, (f"critic.{number}.",))) for number in numbers]
    else:
        return []
    if not critics:
        raise BadAgentError("its file has no critic")
    for layers in critics:
        shape = (layers[0][0].shape[0], layers[-1][0].shape[1])
        if shape != (n_inputs, 1):
            raise BadAgentError(f"its critic takes {shape[0]} inputs and has {shape[1]} outputs, not {n_inputs} and 1")
    return critics


def trainable_networks(weights: Weights, kind: str) -> dict[str, list[Layer]]:
    """The networks that a learner trains, for a policy of a kind in `TRAINABLE_NETWORKS`."""
    if _has_prefix(weights, "mlp_extractor.shared_net."):
        raise BadAgentError("its actor and critic share layers (SB3 before 2.0)")
    networks = {name: _checked(_layers(weights, prefixes)) for name, prefixes in TRAINABLE_NETWORKS[kind].items()}
    missing = [name for name, layers in networks.items() if not layers]
    if missing:
        raise BadAgentError(f"its file has no {missing[0]} network")
    acting, other = ([weight.shape for weight, _ in layers] for layers in networks.values())
    critic_fits = acting[0][0] == other[0][0] and other[-1][1] == 1
    if not (acting == other if kind == "q" else critic_fits):
        raise BadAgentError(f"its networks of shapes {acting} and {other} do not fit each other")
    return networks


def trainable_moments(adam: AdamState, kind: str) -> dict[str, list[tuple[Layer, Layer]]]:
    """Adam's first and second moments of each layer, by network; a target network has none."""
    return {
        name: list(zip(_layers(adam.first_moments, prefixes), _layers(adam.second_moments, prefixes), strict=True))
        for name, prefixes in TRAINABLE_NETWORKS[kind].items()
        if name != "target"
    }


def _refuse_unsupported(weights: Weights) -> None:
    if _has_prefix(weights, "lstm_"):
        raise BadAgentError("the agent is recurrent; only agents without memory are supported")
    if any("features_extractor." in name for name in weights):
        raise BadAgentError(
            "the agent has a convolutional or combined feature extractor; load it with SB3 and give the live model"
        )


def _averaged_quantiles(layers: list[Layer], n_actions: int | None) -> list[Layer]:
    """The Q network of a quantile network: a Q value is the mean over quantiles, and the last layer is linear."""
    weight, bias = layers[-1]
    if n_actions is None or len(bias) % n_actions:
        raise BadAgentError(f"a quantile network with {len(bias)} outputs does not fit {n_actions} actions")
    mean_weight = weight.reshape(len(weight), -1, n_actions).mean(axis=1)
    mean_bias = bias.reshape(-1, n_actions).mean(axis=0)
    return [*layers[:-1], (mean_weight, mean_bias)]


def _has_prefix(weights: Weights, prefix: str) -> bool:
    return any(name.startswith(prefix) for name in weights)


def _layers(weights: Weights, prefixes: tuple[str, ...]) -> list[Layer]:
    """The linear layers whose names start with one of the prefixes, in the order of prefixes and numbers."""
    return [layer for prefix in prefixes for layer in _linear_layers(weights, prefix)]


def _linear_layers(weights: Weights, prefix: str) -> list[Layer]:
    names = [name for name in weights if name.startswith(prefix) and name.endswith(".weight")]
    names.sort(key=lambda name: [int(part) for part in name.split(".") if part.isdigit()])
    missing = [name for name in names if _bias_name(name) not in weights]
    if missing:
        raise BadAgentError(f"the layer '{missing[0]}' has no bias; only plain linear layers are supported")
    return [(weights[name].T, weights[_bias_name(name)]) for name in names]


def _bias_name(weight_name: str) -> str:
    return weight_name.removesuffix("weight") + "bias"


def _checked(layers: list[Layer]) -> list[Layer]:
    """The layers, after a check that they are linear, finite and fit each other."""
    for i, (weight, bias) in enumerate(layers):
        if weight.ndim != 2 or bias.shape != weight.shape[1:] or 0 in weight.shape:
            raise BadAgentError(f"layer {i} has shapes {weight.shape}, {bias.shape}; only linear layers are supported")
        if i and weight.shape[0] != layers[i - 1][0].shape[1]:
            raise BadAgentError(f"layer {i} takes {weight.shape[0]} inputs, layer {i - 1} has {len(layers[i - 1][1])}")
        if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
            raise BadAgentError(f"the weights of layer {i} hold NaN or infinity")
    return layers
