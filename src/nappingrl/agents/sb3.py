"""Agents of Stable-Baselines3 and sb3-contrib: saved zips, read without executing pickles, and live models.

A zip holds `data` (JSON, with base64 pickles beside readable fields; those pickles are never loaded), `policy.pth` and
`policy.optimizer.pth` (tensors, read by torch in its weights-only mode). Shapes come from the tensors, the rest from
the readable fields. SB3 itself is never imported: zips need torch alone, and who has a live model has imported SB3
already.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from nappingrl.agents import hyperparameters, vecnormalize
from nappingrl.agents.base import AdamState, Agent, check_observations
from nappingrl.agents.mlp import MlpAgent, Normaliser, policy_layers
from nappingrl.agents.torch import Batch, TorchBackedAgent, hash_tensors, to_numpy, watched
from nappingrl.errors import BadAgentError, BadObservationError

MAX_BYTES = 1 << 30
"""Declared size above which a file is refused unread."""
ALLOWED = "allowed: a .zip written by model.save() of SB3's PPO, A2C, DQN or sb3-contrib's QRDQN, TRPO"
DEFAULT_ACTIVATION = {"actor-critic": "tanh", "q": "relu", "quantile": "relu"}
_OWN_PACKAGES = ("stable_baselines3.", "sb3_contrib.")


def read_zip(path: Path, normaliser: str | Path | None = "auto") -> MlpAgent:
    """The agent of a saved SB3 zip, with the VecNormalize statistics beside it."""
    try:
        data, weights, adam = _members(path)
        n_actions = _n_actions(data)
        _check_plain(data)
        kind, layers = policy_layers(weights, n_actions)
        if layers[-1][0].shape[1] != n_actions:
            raise BadAgentError(f"its network has {layers[-1][0].shape[1]} outputs for {n_actions} actions")
        return MlpAgent(
            path.stem,
            layers,
            _activation(data) or DEFAULT_ACTIVATION[kind],
            normaliser=find_normaliser(path, normaliser),
            weights=weights,
            hyperparameters=hyperparameters.of_zip(data, _normaliser_file(path, normaliser)),
            source=str(path),
            observation_shape=_observation_shape(data),
            adam=adam,
        )
    except BadAgentError as error:
        raise BadAgentError(f"agent file '{path}': {error}") from None


def find_normaliser(path: Path, normaliser: str | Path | None) -> Normaliser | None:
    """The statistics at `normaliser`; for "auto" those in the places where the RL Zoo keeps them, if any."""
    place = _normaliser_file(path, normaliser)
    return None if place is None else vecnormalize.read(place)


def _normaliser_file(path: Path, normaliser: str | Path | None) -> Path | None:
    if normaliser != "auto":
        return None if normaliser is None else Path(normaliser)
    places = (path.parent / path.stem / "vecnormalize.pkl", path.parent / "vecnormalize.pkl")
    return next((place for place in places if place.is_file()), None)


def _members(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]], AdamState | None]:
    """The JSON, the tensors and the optimiser's state of a zip."""
    try:
        if path.is_dir() or not path.exists():
            raise BadAgentError(f"it {'is a folder' if path.is_dir() else 'does not exist'}; {ALLOWED}")
        with path.open("rb") as file:
            if not zipfile.is_zipfile(file):
                file.seek(0)
                what = "a damaged or truncated zip" if file.read(2) == b"PK" else "no zip file"
                raise BadAgentError(f"it is {what}; {ALLOWED}")
            with zipfile.ZipFile(file) as archive:
                _check_sizes(archive)
                missing = {"data", "policy.pth"} - set(archive.namelist())
                if missing:
                    raise BadAgentError(f"it is a zip without '{min(missing)}' (truncated, or not SB3's); {ALLOWED}")
                data = json.loads(archive.read("data"))
                tensors = archive.read("policy.pth")
                has_optimiser = "policy.optimizer.pth" in archive.namelist()
                optimiser = archive.read("policy.optimizer.pth") if has_optimiser else None
    except (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError):
        # RuntimeError: encrypted, or JSON nested too deeply; NotImplementedError: an unknown compression.
        raise BadAgentError(f"it is a zip that cannot be read (damaged, encrypted or no SB3 zip); {ALLOWED}") from None
    if not isinstance(data, dict):
        raise BadAgentError(f"its 'data' is no JSON object; {ALLOWED}")
    weights = to_numpy(_load(tensors, "policy.pth"))
    return data, weights, None if optimiser is None else adam_state(_load(optimiser, "policy.optimizer.pth"), weights)


def _check_sizes(archive: zipfile.ZipFile) -> None:
    total = sum(member.file_size for member in archive.infolist())
    if total > MAX_BYTES:
        raise BadAgentError(f"it declares {total / MAX_BYTES:.1f} GiB unpacked; at most 1 GiB is read")


def _load(content: bytes, member: str) -> dict[str, Any]:
    """The dictionary in a .pth, by torch's weights-only unpickler."""
    try:
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                _check_sizes(archive)
        state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        if not isinstance(state, dict) or not all(isinstance(key, str) for key in state):
            raise BadAgentError(f"its '{member}' is no dictionary of tensors; {ALLOWED}")
        if sum(tensor.numel() for tensor in _all_tensors(state)) * 4 > MAX_BYTES:
            raise BadAgentError("its tensors are larger than 1 GiB")
        return state
    except BadAgentError:
        raise
    except Exception:  # torch raises many kinds, with texts of many lines
        raise BadAgentError(f"its '{member}' is damaged or holds more than tensors; {ALLOWED}") from None


def _all_tensors(state: Any) -> Iterator[torch.Tensor]:
    """The tensors in dictionaries of dictionaries."""
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict):
        for part in state.values():
            yield from _all_tensors(part)


def adam_state(state: Mapping[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> AdamState | None:
    """Adam's moments in an optimiser's state dict; None where another optimiser made it, or not all was trained.

    Its parameters are numbered in the order of the policy's state dict; only those that were trained have an entry.
    """
    entries, names = state.get("state"), list(weights)
    first: dict[str, NDArray[np.float32]] = {}
    second: dict[str, NDArray[np.float32]] = {}
    steps = np.zeros(1, np.float32)
    for i, entry in entries.items() if isinstance(entries, dict) else ():
        parts = {key: entry.get(key) for key in ("exp_avg", "exp_avg_sq", "step")} if isinstance(entry, dict) else {}
        if isinstance(parts.get("step"), int):  # torch before 1.12
            parts["step"] = torch.tensor([parts["step"]])
        arrays = to_numpy(parts)
        if len(arrays) == 3 and isinstance(i, int) and 0 <= i < len(names):
            first[names[i]], second[names[i]], steps = arrays["exp_avg"], arrays["exp_avg_sq"], arrays["step"]
    if not all(name in first or "_target." in name for name in names):
        return None
    fits = all(first[name].shape == second[name].shape == weights[name].shape for name in first)
    finite = all(np.isfinite(array).all() for array in (*first.values(), *second.values(), steps))
    if not fits or not finite or steps.size != 1 or any((array < 0).any() for array in (*second.values(), steps)):
        raise BadAgentError("its 'policy.optimizer.pth' does not fit its network, or is damaged")
    return AdamState(first, second, int(steps.item()))


def _n_actions(data: Mapping[str, Any]) -> int:
    """The number of discrete actions, from the readable fields beside the pickled action space."""
    space = data.get("action_space")
    kind = _class_name(space.get(":type:")) if isinstance(space, dict) else ""
    if kind == "Box":
        raise BadAgentError("the agent has continuous actions; only discrete actions are supported")
    if kind != "Discrete":
        raise BadAgentError(f"its action space is {kind or 'not readable'}; only Discrete is supported")
    assert isinstance(space, dict)
    count = str(space.get("n"))  # gymnasium's is a numpy integer, which SB3 writes as text
    if not count.isdecimal() or len(count) > 6 or int(count) < 1:
        raise BadAgentError(f"its number of actions is {count[:20]}")
    return int(count)


def _observation_shape(data: Mapping[str, Any]) -> tuple[int, ...] | None:
    """The shape of a Box that the network sees unchanged but flat; None where the file does not tell."""
    space = data.get("observation_space")
    if not isinstance(space, dict):
        return None
    kind = _class_name(space.get(":type:"))
    shape = space.get("_shape", space.get("shape"))  # gymnasium's name, old gym's name
    image = isinstance(shape, list) and len(shape) == 3 and space.get("dtype") == "uint8"
    if image or kind not in ("", "Box"):
        what = "images" if image else f"of kind {kind}"
        raise BadAgentError(f"its observations are {what}; load it with SB3 and give the live model")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
        return None
    return tuple(shape)


def _check_plain(data: Mapping[str, Any]) -> None:
    """Refuse policies whose code could do more with an observation than the tensors tell."""
    policy = data.get("policy_class")
    module = policy.get("__module__") if isinstance(policy, dict) else None
    if isinstance(module, str) and not module.startswith(_OWN_PACKAGES):
        raise BadAgentError(f"its policy class is from '{module[:80]}', not SB3's own; give the live model")
    extractor = _class_name(_policy_options(data).get("features_extractor_class"))
    if extractor not in ("", "FlattenExtractor"):
        raise BadAgentError(f"it uses the feature extractor '{extractor}'; give the live model")


def _activation(data: Mapping[str, Any]) -> str | None:
    """The activation named in policy_kwargs ("<class 'torch.nn.modules.activation.ReLU'>"), in lower case."""
    return _class_name(_policy_options(data).get("activation_fn")).lower() or None


def _policy_options(data: Mapping[str, Any]) -> dict[str, Any]:
    options = data.get("policy_kwargs")
    return options if isinstance(options, dict) else {}


def _class_name(text: Any) -> str:
    """The last word of "<class 'package.module.Name'>" or "module.Name"."""
    words = re.findall(r"\w+", text) if isinstance(text, str) and len(text) < 500 else []
    return words[-1] if words else ""


def from_model(model: Any, normaliser: str | Path | None = "auto", name: str | None = None) -> Agent:
    """A live SB3 model (or its policy) as an agent: in numpy where it is a plain perceptron, else in torch.

    "auto" means no normaliser here: the agent takes what the model's predict() takes.
    """
    policy = getattr(model, "policy", model)
    if not callable(getattr(policy, "obs_to_tensor", None)):
        raise BadAgentError(
            f"an object of type {type(model).__name__} cannot serve as an agent; "
            "allowed: an SB3 model, TorchAgent(module, embedding=...), a shipped agent's name, the path of an SB3 zip"
        )
    name = name or type(model).__name__.lower()
    space = policy.action_space
    if not isinstance(space, spaces.Discrete):
        raise BadAgentError(f"agent {name}: its action space is {type(space).__name__}; only Discrete is supported")
    if hasattr(policy, "lstm_actor"):
        raise BadAgentError(f"agent {name}: it is recurrent; only agents without memory are supported")
    statistics = None if normaliser in (None, "auto") else vecnormalize.read(Path(str(normaliser)))
    known = hyperparameters.of_model(model)
    if not _is_plain(policy):
        return LiveSB3Agent(policy, name, statistics, known)
    weights = to_numpy(policy.state_dict())
    _, layers = policy_layers(weights, int(space.n))
    activation, shape = policy.activation_fn.__name__.lower(), policy.observation_space.shape
    optimiser = getattr(policy, "optimizer", None)
    adam = None if optimiser is None else adam_state(optimiser.state_dict(), weights)
    return MlpAgent(name, layers, activation, statistics, weights, known, observation_shape=shape, adam=adam)


class LiveSB3Agent(TorchBackedAgent):
    """Runs the torch policy of a live SB3 model: dictionary and image observations, custom networks."""

    def __init__(
        self,
        policy: Any,
        name: str,
        normaliser: Normaliser | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.policy, self.name, self.normaliser = policy, name, normaliser
        self._hyperparameters = dict(hyperparameters or {})
        self._last = [layer for layer in _network(policy).modules() if isinstance(layer, torch.nn.Linear)][-1]
        self.n_actions, self.embedding_dim = int(policy.action_space.n), self._last.in_features
        space = policy.observation_space
        self.observation_shape = None if isinstance(space, spaces.Dict) else tuple(space.shape)
        if isinstance(space, spaces.Dict):
            self.key_shapes = {key: tuple(part.shape or ()) for key, part in space.spaces.items()}
        self.sha256 = hash_tensors(policy.state_dict())

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The policy's state dict."""
        return to_numpy(self.policy.state_dict())

    def hyperparameters(self) -> dict[str, Any]:
        """The model's plain numbers."""
        return dict(self._hyperparameters)

    def _pass(self, block: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if self.normaliser is not None and not isinstance(block, dict):
            block = self.normaliser(block)
        self.policy.set_training_mode(False)
        tensors, _ = self.policy.obs_to_tensor(block)
        if isinstance(tensors, torch.Tensor):
            tensors = tensors.contiguous()  # an image with its channels last gives the same bits
        with watched(self._last) as seen:
            actions = self.policy._predict(tensors, deterministic=True)
        preferences = seen["output"]
        if preferences.shape[1] != self.n_actions:  # QR-DQN: the mean over quantiles
            preferences = preferences.view(len(preferences), -1, self.n_actions).mean(dim=1)
        return actions.reshape(-1), seen["input"], preferences

    def _check(self, observations: Batch) -> None:
        """As the base class, but images may have their channels last, and dictionaries must have all keys."""
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
        shape = values.shape[1:]  # SB3 moves the channels of an image to the front by itself
    check_observations(values, shape)


def _network(policy: Any) -> torch.nn.Module:
    """The part of a policy that ends in the layer whose outputs are the preferences."""
    if isinstance(getattr(policy, "action_net", None), torch.nn.Linear):
        return policy.action_net  # type: ignore[no-any-return]
    for name in ("q_net", "quantile_net"):
        if isinstance(getattr(policy, name, None), torch.nn.Module):
            return getattr(policy, name)  # type: ignore[no-any-return]
    raise BadAgentError(f"no policy network known in {type(policy).__name__}; use TorchAgent(module, embedding=...)")


def _is_plain(policy: Any) -> bool:
    """Whether the policy is SB3's own code: flat observations, then linear layers with tanh or ReLU between them."""
    space = policy.observation_space
    image = isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) == 3
    if not isinstance(space, spaces.Box) or image:
        return False
    network: Any = _network(policy)
    actor = network is getattr(policy, "action_net", None)
    extractor = policy.pi_features_extractor if actor else network.features_extractor
    hidden = policy.mlp_extractor if actor else network
    body = hidden.policy_net if actor else getattr(network, "q_net", None) or network.quantile_net
    own = all(type(part).__module__.startswith(_OWN_PACKAGES) for part in (policy, extractor, hidden))
    leaves = {type(layer) for layer in body.modules() if not list(layer.children())}
    activation = getattr(policy, "activation_fn", None)
    return (
        own
        and type(extractor).__name__ == "FlattenExtractor"
        and activation in (torch.nn.Tanh, torch.nn.ReLU)
        and leaves <= {torch.nn.Linear, activation, torch.nn.Sequential}
    )
