"""Reward scaling matches VecNormalize."""

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from learners.support import Scripted, make_steps
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
