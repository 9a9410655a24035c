"""Zips saved by Stable-Baselines3 and sb3-contrib, read without executing pickles.

A zip holds `data` (JSON with readable fields, and base64 pickles that are never loaded), `policy.pth` and
`policy.optimizer.pth` (tensors, read by torch in its weights-only mode). Shapes come from the tensors, the rest from
the readable fields. Reading needs torch, but not SB3.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from nappingrl.agents.base import AdamState
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.sb3 import hyperparameters, spaces, vecnormalize
from nappingrl.agents.state_dict import policy_layers
from nappingrl.agents.torch_agent import to_numpy
from nappingrl.errors import BadAgentError

MAX_BYTES = 1 << 30
"""Files that declare a larger unpacked size are refused."""
ALLOWED = "allowed: a .zip written by model.save() of SB3's PPO, A2C, DQN, SAC, TD3, DDPG or sb3-contrib's QRDQN, TRPO"
DEFAULT_ACTIVATION = {"actor-critic": "tanh", "gaussian": "tanh"}
"""SB3's default by the kind of policy; relu for all others."""


def read_zip(path: Path, normaliser: str | Path | None = "auto") -> MlpAgent:
    """The agent of a saved SB3 zip, with the VecNormalize statistics beside it."""
    try:
        data, weights, adam = _read_members(path)
        n_actions = spaces.n_actions(data)
        spaces.check_plain(data)
        kind, layers = policy_layers(weights, n_actions)
        activation = spaces.activation(data) or DEFAULT_ACTIVATION.get(kind, "relu")
        normaliser_file = _find_normaliser(path, normaliser)
        statistics = None if normaliser_file is None else vecnormalize.read(normaliser_file)
        known = hyperparameters.of_zip(data, normaliser_file)
        source = str(path)
        shape = spaces.observation_shape(data)
        if not n_actions:
            box = ActionBox.make(kind, *spaces.action_limits(data), spaces.policy_options(data))
            return BoxMlpAgent(path.stem, layers, activation, box, statistics, weights, known, source, shape)
        if layers[-1][0].shape[1] != n_actions:
            raise BadAgentError(f"its network has {layers[-1][0].shape[1]} outputs for {n_actions} actions")
        return MlpAgent(path.stem, layers, activation, statistics, weights, known, source, shape, adam)
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
    adam = None if optimiser is None else adam_state(_load(optimiser, "policy.optimizer.pth"), weights)
    return data, weights, adam


def _check_sizes(archive: zipfile.ZipFile) -> None:
    total = sum(member.file_size for member in archive.infolist())
    if total > MAX_BYTES:
        raise BadAgentError(f"it declares {total / MAX_BYTES:.1f} GiB unpacked; at most 1 GiB is read")


def _load(content: bytes, member: str) -> dict[str, Any]:
    """The dictionary in a .pth, read by torch's weights-only unpickler."""
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
    except Exception:  # torch raises many types, with messages of many lines
        raise BadAgentError(f"its '{member}' is damaged or holds more than tensors; {ALLOWED}") from None


def _all_tensors(state: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested dictionaries."""
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict):
        for part in state.values():
            yield from _all_tensors(part)


def adam_state(state: Mapping[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> AdamState | None:
    """Adam's moments in an optimiser's state dict; None for another optimiser, or if some weights were not trained.

    The state dict numbers parameters in the order of the policy's state dict, and has entries for the trained ones.
    """
    entries = state.get("state")
    names = list(weights)
    first: dict[str, NDArray[np.float32]] = {}
    second: dict[str, NDArray[np.float32]] = {}
    steps = np.zeros(1, np.float32)
    for i, entry in entries.items() if isinstance(entries, dict) else ():
        arrays = _adam_entry(entry)
        if len(arrays) == 3 and isinstance(i, int) and 0 <= i < len(names):
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
    if not isinstance(entry, dict):
        return {}
    parts = {key: entry.get(key) for key in ("exp_avg", "exp_avg_sq", "step")}
    if isinstance(parts["step"], int):  # torch before 1.12
        parts["step"] = torch.tensor([parts["step"]])
    return to_numpy(parts)


def _has_shapes_of(moments: Mapping[str, NDArray[np.float32]], weights: Mapping[str, NDArray[np.float32]]) -> bool:
    return all(moment.shape == weights[name].shape for name, moment in moments.items())


def _are_moments(
    first: Mapping[str, NDArray[np.float32]], second: Mapping[str, NDArray[np.float32]], steps: NDArray[np.float32]
) -> bool:
    """Whether all values are finite, and second moments and steps are not negative."""
    not_negative = [*second.values(), steps]
    is_finite = all(np.isfinite(array).all() for array in [*first.values(), *not_negative])
    return is_finite and steps.size == 1 and all((array >= 0).all() for array in not_negative)
