"""Angry Birds as a gymnasium environment."""

import gymnasium
import numpy as np
import pytest

import nappingrl  # noqa: F401  registers the environments


@pytest.mark.parametrize(("reward", "is_final"), [("score", True), ("win", False)])
def test_the_points_are_those_of_the_end_of_the_shot_only_where_they_are_the_reward(reward, is_final):
    """Who asks only for the win need not wait until the blocks lie still; the points need it."""
    env = gymnasium.make("nappingrl/AngryBirds-v0", reward=reward)
    _, info = env.reset(seed=0)
    _, got, terminated, _, info = env.step(np.int64(np.flatnonzero(info["action_mask"])[0]))
    assert terminated
    assert info["status"] == "won"
    assert got == (info["score"] / 1000 if is_final else 1.0)
    world = env.unwrapped.domain.world(0)
    world.settle()
    assert (world.score == info["score"]) == is_final
