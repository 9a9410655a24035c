"""Hyper-parameters of the learners: the agent's own, and SB3's defaults for those that are not known."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from nappingrl.errors import BadAgentError


class DqnSettings(NamedTuple):
    """Of DQN, by SB3's names and with its defaults."""

    learning_rate: float = 1e-4
    buffer_size: int = 1_000_000
    batch_size: int = 32
    tau: float = 1.0
    gamma: float = 0.99
    train_freq: int = 4
    gradient_steps: int = 1
    target_update_interval: int = 10_000
    exploration_final_eps: float = 0.05
    max_grad_norm: float = 10.0


class PpoSettings(NamedTuple):
    """Of PPO, by SB3's names and with its defaults; infinity stands for None."""

    learning_rate: float = 3e-4
    n_steps: int = 2048
    batch_size: int = 64
    n_epochs: int = 10
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    clip_range_vf: float = math.inf
    normalize_advantage: bool = True
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    target_kl: float = math.inf


Settings = TypeVar("Settings", DqnSettings, PpoSettings)


def read_settings(kind: type[Settings], known: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """The settings, and the names of those that are schedules and were read as their first value."""
    values: dict[str, Any] = {}
    schedules = [name for name in kind._fields if isinstance(known.get(name), Mapping)]
    for name, default in kind._field_defaults.items():
        value = known.get(name)
        value = value.get("from") if isinstance(value, Mapping) else value
        value = default if value is None else value
        least = -1 if name == "gradient_steps" else 1 if type(default) is int else 0
        if not isinstance(value, int | float) or not value >= least or (type(default) is int and value % 1):
            raise BadAgentError(f"the agent's {name} is {value}; at least {least} is needed to go on training")
        values[name] = type(default)(value)
    return kind(**values), schedules
