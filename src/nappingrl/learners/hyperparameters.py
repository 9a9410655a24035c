"""Hyperparameters of the learners: the agent's own, or SB3's defaults for unknown ones."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from nappingrl.errors import BadAgentError, shown


class DqnHyperparameters(NamedTuple):
    """Hyperparameters of DQN, with SB3's names and defaults."""

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


class PpoHyperparameters(NamedTuple):
    """Hyperparameters of PPO, with SB3's names and defaults; infinity stands for None."""

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


MAXIMA = {
    "buffer_size": 10**7, "batch_size": 10**5, "n_steps": 10**6, "n_epochs": 1000, "train_freq": 10**7,
    "gradient_steps": 10**4, "target_update_interval": 10**9, "tau": 1.0, "gamma": 1.0, "gae_lambda": 1.0,
    "exploration_final_eps": 1.0, "learning_rate": 1e3, "ent_coef": 1e3, "vf_coef": 1e3,
}  # fmt: skip
"""Larger values in an agent's file are refused: they take all memory or time, or train to nothing."""

Hyperparameters = TypeVar("Hyperparameters", DqnHyperparameters, PpoHyperparameters)


def read_hyperparameters(
    record_class: type[Hyperparameters], known: Mapping[str, Any]
) -> tuple[Hyperparameters, list[str]]:
    """The hyperparameters, and the names of schedules, which are replaced by their first value."""
    values: dict[str, Any] = {}
    schedules = [name for name in record_class._fields if isinstance(known.get(name), Mapping)]
    for name, default in record_class._field_defaults.items():
        value = known.get(name)
        value = value.get("from") if isinstance(value, Mapping) else value
        value = default if value is None else value
        is_whole = type(default) is int
        minimum = -1 if name == "gradient_steps" else int(is_whole)
        maximum = MAXIMA.get(name, math.inf)
        is_huge = isinstance(value, int) and abs(value) > 10**15  # Python prints no more than 4,300 digits
        if is_huge or not isinstance(value, int | float) or not minimum <= value <= maximum or (is_whole and value % 1):
            what = "a huge number" if is_huge else shown(str(value))
            raise BadAgentError(f"the agent's {name} is {what}; further training needs {minimum} to {maximum:g}")
        values[name] = type(default)(value)
    return record_class(**values), schedules
