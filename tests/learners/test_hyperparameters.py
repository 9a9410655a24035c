"""Hyperparameters: SB3's defaults, schedules and refusals."""

import inspect
from typing import Any

import numpy as np
import pytest
from stable_baselines3 import DQN, PPO

from nappingrl.errors import BadAgentError
from nappingrl.learners import DqnHyperparameters, PpoHyperparameters, read_hyperparameters


@pytest.mark.parametrize(("record_class", "algorithm"), [(DqnHyperparameters, DQN), (PpoHyperparameters, PPO)])
def test_defaults_are_those_of_sb3(record_class: Any, algorithm: Any) -> None:
    signature = inspect.signature(algorithm.__init__).parameters
    values, schedules = read_hyperparameters(record_class, {})
    for name, value in values._asdict().items():
        theirs = signature[name].default
        assert value == (np.inf if theirs is None else theirs), name
    assert schedules == []


def test_a_schedule_counts_as_its_first_value() -> None:
    known = {"learning_rate": {"from": 0.5, "to": 0.0}, "clip_range": {"from": 0.25, "to": 0.0}, "n_steps": 8}
    values, schedules = read_hyperparameters(PpoHyperparameters, known)
    assert (values.learning_rate, values.clip_range, values.n_steps) == (0.5, 0.25, 8)
    assert schedules == ["learning_rate", "clip_range"]


@pytest.mark.parametrize(
    "known",
    [{"batch_size": 0}, {"gamma": "x"}, {"gradient_steps": -2}, {"n_envs": 1, "train_freq": 2.5}, {"tau": -1},
     {"batch_size": 10**9}, {"buffer_size": 10**400}, {"buffer_size": 1e300}, {"gamma": 1.5}, {"gamma": float("nan")},
     {"learning_rate": float("inf")}, {"max_grad_norm": 10**400}, {"max_grad_norm": 10**5000}, {"tau": "x" * 5000}],
    ids=range(14),
)  # fmt: skip
def test_invalid_values_are_refused(known: dict[str, Any]) -> None:
    with pytest.raises(BadAgentError, match=f"the agent's {list(known)[-1]} is") as caught:
        read_hyperparameters(DqnHyperparameters, known)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250
