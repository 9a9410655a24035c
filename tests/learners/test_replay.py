"""Rewards are scaled as VecNormalize does it, and hyper-parameters are read as SB3 means them."""

from typing import Any

import numpy as np
import pytest
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from learners.support import Scripted, make_steps
from nappingrl.errors import BadAgentError
from nappingrl.learners import DqnSettings, PpoSettings, read_settings
from nappingrl.learners.replay import RewardScale


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_reward_scale_is_that_of_vecnormalize(scale: float) -> None:
    steps = make_steps(300, reward_scale=scale)
    envs = VecNormalize(DummyVecEnv([lambda: Scripted(steps)]), gamma=0.97, norm_obs=False)
    envs.reset()
    scaler, row = RewardScale(3, 0.97, True), np.array([1])
    scaler.start(np.arange(3))
    for t in range(300):
        _, wanted, _, _ = envs.step(np.array([0]))
        rewards = steps["rewards"][t : t + 1].astype(np.float64)
        scaler.update(row, rewards, steps["terminated"][t : t + 1] | steps["truncated"][t : t + 1])
        np.testing.assert_allclose(scaler.scaled(row, rewards).astype(np.float32), wanted, rtol=1e-6)
    assert scaler.deviation[0] == 1.0
    scaler.start(row)
    assert scaler.deviation[1] == 1.0


def test_rewards_are_left_alone_without_statistics() -> None:
    scaler, row = RewardScale(1, 0.9, False), np.array([0])
    scaler.start(row)
    scaler.update(row, np.array([500.0]), np.array([False]))
    assert scaler.scaled(row, np.array([500.0]))[0] == 500.0


@pytest.mark.parametrize(("kind", "algorithm"), [(DqnSettings, DQN), (PpoSettings, PPO)])
def test_defaults_are_those_of_sb3(kind: Any, algorithm: Any) -> None:
    import inspect

    signature = inspect.signature(algorithm.__init__).parameters
    settings, schedules = read_settings(kind, {})
    for name, value in settings._asdict().items():
        theirs = signature[name].default
        assert value == (np.inf if theirs is None else theirs), name
    assert schedules == []


def test_a_schedule_counts_as_its_first_value() -> None:
    known = {"learning_rate": {"from": 0.5, "to": 0.0}, "clip_range": {"from": 0.25, "to": 0.0}, "n_steps": 8}
    settings, schedules = read_settings(PpoSettings, known)
    assert (settings.learning_rate, settings.clip_range, settings.n_steps) == (0.5, 0.25, 8)
    assert schedules == ["learning_rate", "clip_range"]


@pytest.mark.parametrize(
    "known", [{"batch_size": 0}, {"gamma": "x"}, {"gradient_steps": -2}, {"n_envs": 1, "train_freq": 2.5}, {"tau": -1}]
)
def test_settings_that_make_no_sense(known: dict[str, Any]) -> None:
    with pytest.raises(BadAgentError, match=f"the agent's {list(known)[-1]} is") as caught:
        read_settings(DqnSettings, known)
    assert "\n" not in str(caught.value)
