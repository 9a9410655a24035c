"""Angry Birds as a gymnasium environment."""

import gymnasium
import numpy as np

import nappingrl  # noqa: F401  registers the environments


def winning_shot() -> tuple[int, np.int64]:
    """The seed of a level, and an action that passes it at once and sets blocks in motion."""
    env = gymnasium.make("nappingrl/AngryBirds-v0", reward="win")
    for seed in range(20):
        _, info = env.reset(seed=seed)
        for action in np.flatnonzero(info["action_mask"]):
            env.reset(seed=seed)
            _, reward, _, _, _ = env.step(action)
            if reward:
                return seed, action
    raise AssertionError("no level is passed by one shot")


def test_the_points_are_those_of_the_end_of_the_shot_where_they_are_the_reward():
    """Who asks only for the win need not wait until the blocks lie still; the points need it."""
    seed, action = winning_shot()
    rewards, points = {}, {}
    for reward in ("win", "score"):
        env = gymnasium.make("nappingrl/AngryBirds-v0", reward=reward)
        env.reset(seed=seed)
        _, rewards[reward], _, _, info = env.step(action)
        assert info["status"] == "won"
        points[reward] = info["score"]
    assert rewards == {"win": 1.0, "score": points["score"] / 1000}
    assert points["score"] > points["win"]
