"""Saved agents of Stable-Baselines3 and sb3-contrib: zips, read without executing pickles.

A zip holds `data` (JSON, with base64 pickles beside readable fields; those pickles are never loaded), `policy.pth` and
`policy.optimizer.pth` (tensors, read by torch in its weights-only mode). Shapes come from the tensors, the rest from
the readable fields. SB3 itself is never imported: zips need torch alone.
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
from nappingrl.agents.mlp import MlpAgent, Normaliser, policy_layers
from nappingrl.agents.sb3 import hyperparameters, vecnormalize
from nappingrl.agents.sb3 import spaces as sb3_data
from nappingrl.agents.torch_agent import to_numpy
from nappingrl.errors import BadAgentError

MAX_BYTES = 1 << 30
"""Declared size above which a file is refused unread."""
ALLOWED = "allowed: a .zip written by model.save() of SB3's PPO, A2C, DQN, SAC, TD3, DDPG or sb3-contrib's QRDQN, TRPO"
DEFAULT_ACTIVATION = {"actor-critic": "tanh", "gaussian": "tanh"}
"""By the kind of policy; relu for all others."""


def read_zip(path: Path, normaliser: str | Path | None = "auto") -> MlpAgent:
    """The agent of a saved SB3 zip, with the VecNormalize statistics beside it."""
    try:
        data, weights, adam = _members(path)
        n_actions = sb3_data.n_actions(data)
        sb3_data.check_plain(data)
        kind, layers = policy_layers(weights, n_actions)
        activation = sb3_data.activation(data) or DEFAULT_ACTIVATION.get(kind, "relu")
        statistics = find_normaliser(path, normaliser)
        known = hyperparameters.of_zip(data, _normaliser_file(path, normaliser))
        source, shape = str(path), sb3_data.observation_shape(data)
        if not n_actions:
            box = ActionBox.make(kind, *sb3_data.action_limits(data), sb3_data.policy_options(data))
            return BoxMlpAgent(path.stem, layers, activation, box, statistics, weights, known, source, shape)
        if layers[-1][0].shape[1] != n_actions:
            raise BadAgentError(f"its network has {layers[-1][0].shape[1]} outputs for {n_actions} actions")
        return MlpAgent(path.stem, layers, activation, statistics, weights, known, source, shape, adam)
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
