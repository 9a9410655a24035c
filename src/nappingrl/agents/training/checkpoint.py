"""The state of a training: what the next segment needs, and the file that holds it.

A training consists of segments. Each begins with new environments and a new seed, and takes all else from the state of
the segment before: so a resumed training gives the same bits as one that was never interrupted. The file holds tensors,
numbers and text only, and torch reads it in its weights-only mode: no code in it can run.
"""

import copy
import json
import math
import shutil
from pathlib import Path
from typing import Any

import torch
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecNormalize

from nappingrl.errors import BadSpecError
from nappingrl.files import UnusableFileError, check_stored

State = dict[str, Any]
FILE = "checkpoint.pt"
MAX_BYTES = 16 << 30
"""Of a checkpoint; most of it is the replay buffer."""
_COUNTERS = ("num_timesteps", "_n_updates", "_n_calls", "_episode_num", "exploration_rate")
_STATISTICS = ("obs_rms", "ret_rms")
_TRANSITIONS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def parameters(model: BaseAlgorithm) -> State:
    """A copy of all weights and optimisers of a model, and the observation statistics that belong to them."""
    _, variables = model._get_torch_save_params()
    return {
        "parameters": copy.deepcopy(model.get_parameters()),
        "variables": {name: getattr(model, name).detach().clone() for name in variables or ()},
        "statistics": _statistics(model.get_vec_normalize_env()),
    }


def set_parameters(model: BaseAlgorithm, state: State) -> None:
    """Put back what `parameters` returned."""
    model.set_parameters(copy.deepcopy(state["parameters"]), device="cpu")
    for name, value in state["variables"].items():
        getattr(model, name).data = value.clone()
    envs = model.get_vec_normalize_env()
    for name, values in state["statistics"].items():
        target = getattr(envs, name)
        target.mean, target.var, target.count = values["mean"].numpy(), values["var"].numpy(), values["count"]


def training_state(model: BaseAlgorithm) -> State:
    """All that the next segment of a training needs of a model."""
    counters = {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)}
    return parameters(model) | {"counters": counters, "replay": _replay(getattr(model, "replay_buffer", None))}


def restore(model: BaseAlgorithm, state: State) -> None:
    """Put back what `training_state` returned."""
    set_parameters(model, state)
    for name in _COUNTERS:
        if hasattr(model, name):
            setattr(model, name, state["counters"][name])
    if state["replay"]:
        _fill(getattr(model, "replay_buffer"), state["replay"])  # noqa: B009 - on-policy models have none


def write(folder: Path, recipe: State, state: State) -> None:
    """Write a state to its file, whole or not at all."""
    unfinished = folder / f"{FILE}.new"
    torch.save({"recipe": _text(recipe), "state": state}, unfinished)
    unfinished.replace(folder / FILE)


def read(folder: Path, recipe: State) -> State | None:
    """The state that an interrupted training of this recipe left in a folder; None if there is none."""
    file = folder / FILE
    if not file.is_file():
        return None
    anew = f"delete '{folder}' to start anew"
    try:
        content = load_tensors(file)
        of_recipe, state = content["recipe"], content["state"]
        theirs, ours = json.loads(of_recipe), json.loads(_text(recipe))
        differs = [key for key in sorted({*theirs, *ours}) if theirs.get(key) != ours.get(key)]
        _check_state(state)
    except Exception as error:  # of content that has another form
        reason = str(error) if isinstance(error, UnusableFileError) else "it is damaged or not from this version"
        raise BadSpecError(f"the checkpoint '{file}' cannot be resumed: {reason}; {anew}") from None
    if differs:
        raise BadSpecError(
            f"the checkpoint '{file}' belongs to a training with other values of {', '.join(differs)}; "
            f"use the same options, another --out, or {anew}"
        )
    assert isinstance(state, dict)
    return state


def load_tensors(file: Path) -> State:
    """The tensors, numbers and text of a file of torch, which may be hostile."""
    check_stored(file, MAX_BYTES)
    try:
        content: State = torch.load(file, weights_only=True)
    except Exception:  # torch raises many types, with messages of many lines
        raise UnusableFileError("it is damaged or not from this version") from None
    return content


def _check_state(state: State) -> None:
    """Raise if a state is not one of `training_state`; whether its tensors fit a model is seen by `restore`."""
    best, counters = state["best"], state["counters"]
    numbers = [best["mean"], best["step"], state["next_evaluation"], *counters.values()]
    if not all(type(number) in (int, float) for number in numbers) or counters["num_timesteps"] < 0:
        raise ValueError("a number is missing")
    for part in (state,) if best["mean"] == -math.inf else (state, best):  # -inf: before the first evaluation
        for name in ("parameters", "variables", "statistics"):
            part[name].items()
    state["replay"].items()


def remove(folder: Path) -> None:
    """Remove the folder of a finished training."""
    shutil.rmtree(folder)


def _text(recipe: State) -> str:
    return json.dumps(recipe, sort_keys=True)


def _statistics(envs: VecNormalize | None) -> State:
    """The running means and variances of observations and returns."""
    if envs is None:
        return {}
    found = {name: getattr(envs, name) for name in _STATISTICS}
    return {
        name: {"mean": torch.tensor(rms.mean), "var": torch.tensor(rms.var), "count": float(rms.count)}
        for name, rms in found.items()
    }


def _replay(buffer: Any) -> State:
    """The transitions in a replay buffer."""
    if buffer is None:
        return {}
    n = buffer.size()
    arrays = {
        name: {key: torch.from_numpy(array[:n].copy()) for key, array in _by_key(getattr(buffer, name)).items()}
        for name in _TRANSITIONS
    }
    return {"arrays": arrays, "pos": buffer.pos, "full": buffer.full}


def _fill(buffer: Any, replay: State) -> None:
    for name, by_key in replay["arrays"].items():
        for key, tensor in by_key.items():
            _by_key(getattr(buffer, name))[key][: len(tensor)] = tensor.numpy()
    buffer.pos, buffer.full = replay["pos"], replay["full"]


def _by_key(arrays: Any) -> dict[str, Any]:
    """Dictionary observations by their keys; any other array under an empty key."""
    return arrays if isinstance(arrays, dict) else {"": arrays}
