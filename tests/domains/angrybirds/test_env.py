"""Angry Birds as a gymnasium environment."""

from collections.abc import Iterator

import gymnasium
import numpy as np

import nappingrl  # noqa: F401  registers the environments


def winning_shots() -> Iterator[tuple[int, np.int64, int]]:
    """Seeds of levels, with actions that pass them at once and the points by then."""
    env = gymnasium.make("nappingrl/AngryBirds-v0", reward="win")
    for seed in range(10):
        _, info = env.reset(seed=seed)
        for action in np.flatnonzero(info["action_mask"]):
            env.reset(seed=seed)
            _, reward, _, _, info = env.step(action)
            if reward:
                assert (reward, info["status"]) == (1.0, "won")
                yield seed, action, info["score"]


def test_the_points_are_those_of_the_end_of_the_shot_where_they_are_the_reward():
    """Who asks only for the win need not wait until the blocks lie still; the points need it."""
    env = gymnasium.make("nappingrl/AngryBirds-v0", reward="score")
    more = 0
    for seed, action, points in winning_shots():
        env.reset(seed=seed)
        _, reward, _, _, info = env.step(action)
        assert reward == info["score"] / 1000
        more = info["score"] - points
        if more > 0:
            break
    assert more > 0
