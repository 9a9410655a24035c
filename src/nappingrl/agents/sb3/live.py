"""Live models of Stable-Baselines3 and sb3-contrib; this module does not import SB3 itself."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent, check_observations
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.agents.mlp import REWARDS_UNKNOWN, MlpAgent, Normaliser
from nappingrl.agents.observations import length_of
from nappingrl.agents.sb3 import hyperparameters, vecnormalize
from nappingrl.agents.sb3.spaces import OWN_PACKAGES
from nappingrl.agents.sb3.zip import adam_state
from nappingrl.agents.state_dict import policy_layers
from nappingrl.agents.torch_agent import Batch, TorchBackedAgent, captured, hash_tensors, to_numpy
from nappingrl.errors import BadAgentError, BadObservationError
from nappingrl.types import Floats


def from_model(model: Any, normaliser: str | Path | Normaliser | None = "auto", name: str | None = None) -> Agent:
    """A live SB3 model (or its policy) as an agent: in numpy for a plain perceptron, otherwise in torch.

    "auto" means no normaliser: the agent expects the observations that the model's predict() expects.
    """
    policy = getattr(model, "policy", model)
    if not callable(getattr(policy, "obs_to_tensor", None)):
        raise BadAgentError(
            f"an object of type {type(model).__name__} cannot serve as an agent; "
            "allowed: an SB3 model, TorchAgent(module, embedding=...), a shipped agent's name, the path of an SB3 zip"
        )
    name = name or type(model).__name__.lower()
    space = policy.action_space
    if not isinstance(space, spaces.Discrete | spaces.Box):
        raise BadAgentError(
            f"agent {name}: its action space is {type(space).__name__}; only Discrete and Box are supported"
        )
    if hasattr(policy, "lstm_actor"):
        raise BadAgentError(f"agent {name}: it is recurrent; only agents without memory are supported")
    statistics, reward_scale = _statistics(model, normaliser)
    known = hyperparameters.of_model(model)
    if not _is_plain(policy):
        return LiveSB3Agent(policy, name, statistics, known, reward_scale)
    weights = to_numpy(policy.state_dict())
    kind, layers = policy_layers(weights, int(getattr(space, "n", 0)))
    activation = policy.activation_fn.__name__.lower()
    n_states = int(getattr(policy.observation_space, "n", 0))
    shape = (n_states,) if n_states else policy.observation_space.shape
    if isinstance(space, spaces.Box):
        box = _box(policy, kind)
        agent: MlpAgent = BoxMlpAgent(
            name, layers, activation, box, statistics, weights, known, None, shape, reward_scale
        )
    else:
        optimiser = getattr(policy, "optimizer", None)
        entries = {} if optimiser is None else optimiser.state_dict()["state"]
        adam = adam_state({"state": {i: to_numpy(entry) for i, entry in entries.items()}}, weights)
        agent = MlpAgent(name, layers, activation, statistics, weights, known, None, shape, adam, reward_scale)
    agent.n_states = n_states
    return agent


def _statistics(model: Any, normaliser: str | Path | Normaliser | None) -> tuple[Normaliser | None, float | None]:
    """The observation normaliser, and by what rewards were divided in training (None: unknown)."""
    if isinstance(normaliser, str | Path) and normaliser != "auto":
        read = vecnormalize.read_statistics(Path(normaliser))
        return read.normaliser, read.reward_scale
    envs = model.get_vec_normalize_env() if hasattr(model, "get_vec_normalize_env") else None
    scale = 1.0 if envs is None or not envs.norm_reward else math.sqrt(float(envs.ret_rms.var) + envs.epsilon)
    return (normaliser if isinstance(normaliser, Normaliser) else None), scale


def _box(policy: Any, kind: str) -> ActionBox:
    options = {"squash_output": policy.squash_output}
    if hasattr(policy, "actor"):
        options["clip_mean"] = getattr(policy.actor, "clip_mean", np.inf)
    return ActionBox.make(kind, policy.action_space.low, policy.action_space.high, options)


class LiveSB3Agent(TorchBackedAgent):
    """Runs the torch policy of a live SB3 model: dictionary and image observations, custom networks."""

    def __init__(
        self,
        policy: Any,
        name: str,
        normaliser: Normaliser | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        reward_scale: float | None = 1.0,
    ) -> None:
        self.policy = policy
        self.name = name
        self.normaliser = normaliser
        self._hyperparameters = dict(hyperparameters or {})
        self._reward_scale = reward_scale
        self._output_layer = [layer for layer in _network(policy).modules() if isinstance(layer, torch.nn.Linear)][-1]
        self.n_actions = int(getattr(policy.action_space, "n", 0))
        self.embedding_dim = self._output_layer.in_features
        self._box = None if self.n_actions else _box(policy, "gaussian")
        if self._box is not None:
            self.action_low = self._box.low
            self.action_high = self._box.high
        space = policy.observation_space
        self.observation_shape = None if isinstance(space, spaces.Dict) else tuple(space.shape)
        if isinstance(space, spaces.Dict):
            self.key_shapes = {key: tuple(part.shape or ()) for key, part in space.spaces.items()}
        self.sha256 = hash_tensors(policy.state_dict())

    @override
    def weights(self) -> dict[str, NDArray[np.float32]]:
        return to_numpy(self.policy.state_dict())

    @override
    def hyperparameters(self) -> dict[str, Any]:
        return dict(self._hyperparameters)

    @override
    def values(self, observations: Batch) -> Floats | None:
        if self.no_critic:
            return None
        assert self._reward_scale is not None
        self._check(observations)
        if length_of(observations) == 0:
            return np.zeros(0)
        (values,) = self._in_blocks(self._value_pass, observations)
        return self._reward_scale * values.astype(np.float64)

    @property
    @override
    def no_critic(self) -> str:
        known = ("predict_values", "critic", "q_net", "quantile_net")
        if not any(hasattr(self.policy, name) for name in known):
            return f"no critic is known in {type(self.policy).__name__}"
        return REWARDS_UNKNOWN if self._reward_scale is None else ""

    def _value_pass(self, block: Batch) -> tuple[torch.Tensor, ...]:
        """The values of one block."""
        if hasattr(self.policy, "q_net") or hasattr(self.policy, "quantile_net"):
            return (self._pass(block)[2].max(dim=1).values,)
        tensors = self._tensors(block)
        if hasattr(self.policy, "predict_values"):
            return (self.policy.predict_values(tensors)[:, 0],)
        actions = self.policy._predict(tensors, deterministic=True)  # in -1..1, as critics take them
        return (torch.cat(self.policy.critic(tensors, actions), dim=1).min(dim=1).values,)

    def _tensors(self, block: Batch) -> Any:
        """The block as the policy takes it."""
        if self.normaliser is not None and not isinstance(block, dict):
            block = self.normaliser(block)
        self.policy.set_training_mode(False)
        tensors, _ = self.policy.obs_to_tensor(block)
        # An image with its channels last gives the same bits.
        return tensors.contiguous() if isinstance(tensors, torch.Tensor) else tensors

    @override
    def _pass(self, block: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        tensors = self._tensors(block)
        with captured(self._output_layer) as layer:
            actions = self.policy._predict(tensors, deterministic=True)
        if self._box is not None:
            wanted = torch.from_numpy(self._box.rescale(actions.cpu().numpy()))
            return wanted, layer["input"], torch.zeros((len(wanted), 0))
        preferences = layer["output"]
        if preferences.shape[1] != self.n_actions:  # QR-DQN: the mean over quantiles
            preferences = preferences.view(len(preferences), -1, self.n_actions).mean(dim=1)
        return actions.reshape(-1), layer["input"], preferences

    @override
    def _check(self, observations: Batch) -> None:
        # Unlike the base class: images may have their channels last, and dictionaries must have all keys.
        space = self.policy.observation_space
        if isinstance(space, spaces.Dict):
            if not isinstance(observations, dict) or set(observations) != set(space.spaces):
                given = sorted(observations) if isinstance(observations, dict) else type(observations).__name__
                raise BadObservationError(f"observation {given} given, the agent was trained on {sorted(space.spaces)}")
            for key, part in space.spaces.items():
                _check_array(observations[key], part)
        elif isinstance(observations, dict):
            raise BadObservationError(f"a dictionary observation given, the agent was trained on {space.shape}")
        else:
            _check_array(observations, space)


def _check_array(values: NDArray[Any], space: Any) -> None:
    shape = tuple(space.shape)
    if len(shape) == 3 and values.shape[1:] == (*shape[1:], shape[0]):
        shape = values.shape[1:]  # SB3 itself moves the channels of an image to the front
    check_observations(values, shape)


def _network(policy: Any) -> torch.nn.Module:
    """The module whose last layer gives the preferences, or the continuous action."""
    if isinstance(getattr(policy, "action_net", None), torch.nn.Linear):
        return policy.action_net  # type: ignore[no-any-return]
    mean = getattr(getattr(policy, "actor", None), "mu", None)
    if isinstance(mean, torch.nn.Module):
        return mean
    for name in ("q_net", "quantile_net"):
        if isinstance(getattr(policy, name, None), torch.nn.Module):
            return getattr(policy, name)  # type: ignore[no-any-return]
    raise BadAgentError(f"no policy network known in {type(policy).__name__}; use TorchAgent(module, embedding=...)")


def _is_plain(policy: Any) -> bool:
    """Whether the policy is SB3's own code: flat observations, then linear layers with tanh or ReLU between them."""
    space = policy.observation_space
    if not isinstance(space, spaces.Box | spaces.Discrete) or _is_image(space):
        return False
    extractor, network, body, extra_layers = _parts(policy)
    is_own_code = all(type(part).__module__.startswith(OWN_PACKAGES) for part in (policy, extractor, network))
    activation = getattr(policy, "activation_fn", None)
    leaves = {type(layer) for layer in body.modules() if not list(layer.children())}
    return (
        is_own_code
        and type(extractor).__name__ == "FlattenExtractor"
        and activation in (torch.nn.Tanh, torch.nn.ReLU)
        and leaves <= {torch.nn.Linear, torch.nn.Sequential, activation, *extra_layers}
    )


def _is_image(space: spaces.Box | spaces.Discrete) -> bool:
    return space.dtype == np.uint8 and len(space.shape or ()) == 3


def _parts(policy: Any) -> tuple[Any, Any, torch.nn.Module, set[type[torch.nn.Module]]]:
    """Of the acting network: feature extractor, SB3's module, its layers, and the extra layer types it may have."""
    network: Any = _network(policy)
    if network is getattr(policy, "action_net", None):
        return policy.pi_features_extractor, policy.mlp_extractor, policy.mlp_extractor.policy_net, set()
    if hasattr(policy, "actor"):
        actor = policy.actor
        if hasattr(actor, "latent_pi"):  # SAC; with state-dependent noise it clips the mean
            return actor.features_extractor, actor, torch.nn.Sequential(actor.latent_pi, network), {torch.nn.Hardtanh}
        return actor.features_extractor, actor, torch.nn.Sequential(network), {torch.nn.Tanh}  # TD3 ends in a tanh
    return network.features_extractor, network, getattr(network, "q_net", None) or network.quantile_net, set()
