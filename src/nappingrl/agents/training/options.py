"""Hyperparameters typed by a user: names and values are checked against the algorithm's own signature."""

import inspect
import math
import types
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, get_args, get_origin

from nappingrl.agents.training.learning import ACTIVATIONS, ALGORITHMS
from nappingrl.errors import BadSpecError, check_name

NOT_OPTIONS = {
    "policy", "env", "policy_kwargs", "seed", "device", "verbose", "tensorboard_log", "stats_window_size",
    "rollout_buffer_class", "rollout_buffer_kwargs", "replay_buffer_class", "replay_buffer_kwargs", "action_noise",
    "optimize_memory_usage", "_init_setup_model",
}  # fmt: skip
"""Arguments of SB3's algorithms that a recipe sets elsewhere, or that are no plain values."""
RECIPE = {"n_envs": int, "normalise": bool}
POLICY = {"log_std_init": float, "ortho_init": bool, "n_quantiles": int}
FRACTIONS = {"gamma", "gae_lambda", "tau", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps"}
MAY_BE_NEGATIVE = {"gradient_steps", "sde_sample_freq", "log_std_init", "target_entropy"}
MAY_BE_ZERO = {"learning_starts", "ent_coef", "vf_coef", *FRACTIONS, *MAY_BE_NEGATIVE}


def override(recipe: dict[str, Any], options: Mapping[str, str]) -> dict[str, Any]:
    """A copy of the recipe with these options in the place of its values."""
    kinds = _kinds(recipe["algorithm"])
    own = {"net_arch", "activation", *RECIPE, *_policy_options(recipe["algorithm"])}
    changed = recipe | {part: dict(recipe.get(part, {})) for part in ("hyperparameters", "policy")}
    for name, text in options.items():
        check_name(f"option of {recipe['algorithm']}", name, {*kinds, *own})
        if name == "net_arch":
            changed["net_arch"] = _sizes(text)
        elif name == "activation":
            changed["policy"]["activation_fn"] = check_name("activation", text, ACTIVATIONS)
        elif name in RECIPE:
            changed[name] = _value(name, text, {RECIPE[name]})
        elif name in own:
            changed["policy"][name] = _value(name, text, {POLICY[name]})
        else:
            changed["hyperparameters"][name] = _value(name, text, kinds[name])
    return changed


def _kinds(algorithm: str) -> dict[str, set[Any]]:
    """By the name of each option: the types that its annotation allows."""
    arguments = inspect.signature(ALGORITHMS[algorithm]).parameters.values()
    return {one.name: _members(one.annotation) for one in arguments if one.name not in NOT_OPTIONS}


def _members(annotation: Any) -> set[Any]:
    """The members of a union; a callable is a schedule."""
    members = get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return {get_origin(member) or member for member in members}


def _policy_options(algorithm: str) -> set[str]:
    kept = {"PPO": {"log_std_init", "ortho_init"}, "SAC": {"log_std_init"}, "QRDQN": {"n_quantiles"}}
    return kept.get(algorithm, set())


def _value(name: str, text: str, kinds: set[Any]) -> Any:
    """The value that the text stands for, of one of the types."""
    is_schedule = any(getattr(kind, "__name__", "") == "Callable" for kind in kinds)
    if is_schedule and text.startswith("lin_"):
        return {"from": _number(name, text.removeprefix("lin_"), {float}), "to": 0.0}
    if types.NoneType in kinds and text.lower() == "none":
        return None
    if bool in kinds and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if str in kinds and text.startswith("auto"):
        return text
    return _number(name, text, kinds)


def _number(name: str, text: str, kinds: set[Any]) -> int | float:
    number = _read_number(text, kinds)
    if number is None or not math.isfinite(number):
        raise BadSpecError(f"option {name}={text}: allowed: {_allowed(kinds)}")
    least = "" if name in MAY_BE_NEGATIVE else "not negative" if name in MAY_BE_ZERO else "greater than 0"
    if (least and number < 0) or (least == "greater than 0" and number == 0):
        raise BadSpecError(f"option {name}={text}: it must be {least}")
    if name in FRACTIONS and number > 1:
        raise BadSpecError(f"option {name}={text}: it must be between 0 and 1")
    return number


def _read_number(text: str, kinds: set[Any]) -> int | float | None:
    """The text as a whole number or else as any number, whichever the types allow; None if it is none."""
    for kind in (int, float):
        with suppress(ValueError):
            if kind in kinds:
                return kind(text)
    return None


def _allowed(kinds: set[Any]) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "auto", types.NoneType: "none"}
    found = [text for kind, text in words.items() if kind in kinds and not (kind is int and float in kinds)]
    is_schedule = any(getattr(kind, "__name__", "") == "Callable" for kind in kinds)
    return ", ".join([*found, *(["lin_NUMBER (falls linearly to 0)"] if is_schedule else [])])


def _sizes(text: str) -> list[int]:
    """The sizes of hidden layers in "64,64"."""
    words = text.split(",")
    if not all(word.strip().isdecimal() and 0 < int(word) <= 1 << 16 for word in words):
        raise BadSpecError(f"option net_arch={text}: allowed: sizes of hidden layers, such as 64,64")
    return [int(word) for word in words]
