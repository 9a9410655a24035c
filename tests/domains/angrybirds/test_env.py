"""Angry Birds as a gymnasium environment."""

import gymnasium
import numpy as np

import nappingrl  # noqa: F401  registers the environments


def test_the_points_are_those_of_the_end_of_the_shot_where_they_are_the_reward():
    """Who asks only for the win need not wait until the blocks lie still; the points need it."""
    rewards, points = {}, {}
    for reward in ("win", "score"):
        env = gymnasium.make("nappingrl/AngryBirds-v0", reward=reward)
        _, info = env.reset(seed=0)
        _, rewards[reward], _, _, info = env.step(np.int64(np.flatnonzero(info["action_mask"])[0]))
        assert info["status"] == "won"
        points[reward] = info["score"]
    assert rewards == {"win": 1.0, "score": points["score"] / 1000}
    assert points["score"] > points["win"]
