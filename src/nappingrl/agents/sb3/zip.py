"""Zips saved by Stable-Baselines3 and sb3-contrib, read without executing pickles.

A zip holds `data` (JSON with readable fields, and base64 pickles that are never loaded), `policy.pth` and
`policy.optimizer.pth` (tensors). Shapes come from the tensors, the rest from the readable fields. Reading needs neither
torch nor SB3.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import AdamState
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.sb3 import hyperparameters, spaces, vecnormalize
from nappingrl.agents.sb3.tensors import read_tensors
from nappingrl.agents.state_dict import policy_layers
from nappingrl.errors import BadAgentError
from nappingrl.files import UnusableFileError, read_file
from nappingrl.files import read_zip as unpack

MAX_BYTES = 1 << 28
"""Of the file, of its members together, and of the tensors in each; a larger model can be given live."""
MAX_STEPS = 10**12
"""Of an optimiser."""
ALLOWED = "allowed: a .zip written by model.save() of SB3's PPO, A2C, DQN, SAC, TD3, DDPG or sb3-contrib's QRDQN, TRPO"
DEFAULT_ACTIVATION = {"actor-critic": "tanh", "gaussian": "tanh"}
"""SB3's default by the kind of policy; relu for all others."""
_ADAM = ("exp_avg", "exp_avg_sq", "step")


def read_zip(path: Path, normaliser: str | Path | None = "auto") -> MlpAgent:
    """The agent of a saved SB3 zip, with the VecNormalize statistics beside it."""
    try:
        data, weights, adam = _read_members(path)
        n_actions = spaces.n_actions(data)
        spaces.check_plain(data)
        kind, layers = policy_layers(weights, n_actions)
        activation = spaces.activation(data) or DEFAULT_ACTIVATION.get(kind, "relu")
        normaliser_file = _find_normaliser(path, normaliser)
        vec = None if normaliser_file is None else vecnormalize.read_statistics(normaliser_file)
        statistics, reward_scale = (None, 1.0) if vec is None else (vec.normaliser, vec.reward_scale)
        known = hyperparameters.of_zip(data, None if vec is None else vec.scales_rewards)
        source = str(path)
        shape = spaces.observation_shape(data)
        options = (statistics, weights, known, source, shape)
        if n_actions and layers[-1][0].shape[1] != n_actions:
            raise BadAgentError(f"its network has {layers[-1][0].shape[1]} outputs for {n_actions} actions")
        if n_actions:
            agent = MlpAgent(path.stem, layers, activation, *options, adam, reward_scale)
        else:
            box = ActionBox.make(kind, *spaces.action_limits(data), spaces.policy_options(data))
            agent = BoxMlpAgent(path.stem, layers, activation, box, *options, reward_scale)
        agent.n_states = spaces.n_states(data)
        return agent
    except BadAgentError as error:
        raise BadAgentError(f"agent file '{path}': {error}") from None


def _find_normaliser(path: Path, normaliser: str | Path | None) -> Path | None:
    """The file that `normaliser` names; for "auto", the one in the folders where the RL Zoo keeps it, if any."""
    if normaliser != "auto":
        return None if normaliser is None else Path(normaliser)
    candidates = (path.parent / path.stem / "vecnormalize.pkl", path.parent / "vecnormalize.pkl")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def _read_members(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[np.float32]], AdamState | None]:
    """The JSON data, the weights and the optimiser's state in a zip."""
    try:
        content = read_file(path, MAX_BYTES)
    except UnusableFileError as error:
        raise BadAgentError(f"{error}; {ALLOWED}") from None
    if content[:2] != b"PK":
        raise BadAgentError(f"it is no zip file; {ALLOWED}")
    try:
        members = unpack(content, MAX_BYTES)
        missing = {"data", "policy.pth"} - members.keys()
        if missing:
            raise BadAgentError(f"it is a zip without '{min(missing)}' (truncated, or not SB3's); {ALLOWED}")
        data = json.loads(members["data"])
    except UnusableFileError as error:
        raise BadAgentError(f"{error} (truncated, or not SB3's); {ALLOWED}") from None
    except (ValueError, RecursionError):
        raise BadAgentError(f"its 'data' is no JSON, or damaged; {ALLOWED}") from None
    if not isinstance(data, dict):
        raise BadAgentError(f"its 'data' is no JSON object; {ALLOWED}")
    weights = _weights(_load(members["policy.pth"], "policy.pth"))
    optimiser = members.get("policy.optimizer.pth")
    adam = None if optimiser is None else adam_state(_load(optimiser, "policy.optimizer.pth"), weights)
    return data, weights, adam


def _load(content: bytes, member: str) -> dict[str, Any]:
    """The dictionary in a .pth, with arrays."""
    try:
        state = read_tensors(content, MAX_BYTES)
    except (BadAgentError, UnusableFileError) as error:
        raise BadAgentError(f"its '{member}': {error}; {ALLOWED}") from None
    if not all(isinstance(key, str) for key in state):
        raise BadAgentError(f"its '{member}' is no dictionary of tensors; {ALLOWED}")
    return state


def _weights(state: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """The arrays of a state dict; integers are refused: a network of them needs scales that the file does not have."""
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise BadAgentError(f"its tensor '{name[:60]}' holds integers; only float weights are supported")
    return arrays


def adam_state(state: Mapping[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> AdamState | None:
    """Adam's moments in an optimiser's state; None for another optimiser, or if some weights were not trained.

    The state dict has arrays for tensors, and numbers parameters in the order of the policy's state dict; it has
    entries for the trained ones.
    """
    entries = state.get("state")
    names = list(weights)
    first: dict[str, NDArray[np.float32]] = {}
    second: dict[str, NDArray[np.float32]] = {}
    steps = np.zeros(1, np.float32)
    for i, entry in entries.items() if isinstance(entries, dict) else ():
        arrays = _adam_entry(entry)
        if len(arrays) == len(_ADAM) and isinstance(i, int) and 0 <= i < len(names):
            first[names[i]] = arrays["exp_avg"]
            second[names[i]] = arrays["exp_avg_sq"]
            steps = arrays["step"]
    if not all(name in first or "_target." in name for name in names):
        return None
    if not (_has_shapes_of(first, weights) and _has_shapes_of(second, weights) and _are_moments(first, second, steps)):
        raise BadAgentError("its 'policy.optimizer.pth' does not fit its network, or is damaged")
    return AdamState(first, second, int(steps.item()))


def _adam_entry(entry: Any) -> dict[str, NDArray[np.float32]]:
    """The arrays exp_avg, exp_avg_sq and step of one parameter, as far as the entry has them."""
    parts = {key: entry.get(key) for key in _ADAM} if isinstance(entry, dict) else {}
    if isinstance(step := parts.get("step"), int):  # torch before 1.12
        parts["step"] = np.array(min(abs(step), MAX_STEPS + 1))
    return {key: part.astype(np.float32) for key, part in parts.items() if isinstance(part, np.ndarray)}


def _has_shapes_of(moments: Mapping[str, NDArray[np.float32]], weights: Mapping[str, NDArray[np.float32]]) -> bool:
    return all(moment.shape == weights[name].shape for name, moment in moments.items())


def _are_moments(
    first: Mapping[str, NDArray[np.float32]], second: Mapping[str, NDArray[np.float32]], steps: NDArray[np.float32]
) -> bool:
    """Whether all values are finite, second moments are not negative, and the steps are a possible number."""
    not_negative = [*second.values(), steps]
    is_finite = all(np.isfinite(array).all() for array in [*first.values(), *not_negative])
    is_step = steps.size == 1 and bool((steps <= MAX_STEPS).all())
    return is_finite and is_step and all((array >= 0).all() for array in not_negative)
