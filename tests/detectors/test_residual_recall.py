"""Worlds met before, where the change or the way back comes in the middle of an episode."""

from dataclasses import replace

import pytest

from detectors.linear_worlds import BEFORE, CALM, SHIFTED, Trials, World

LONG = 60
SWAPPED = replace(CALM, gains=(-0.1, -0.2, -0.0))
"""Each action acts as the other one did."""


@pytest.mark.parametrize("changed", [SHIFTED, SWAPPED], ids=["shifted", "swapped"])
def test_a_world_met_before_is_known_again_and_the_way_back_is_no_new_one(changed: World) -> None:
    trials = Trials(3)
    trials.play(CALM, BEFORE, steps=LONG)
    for _ in range(3):
        met = trials.play(CALM, steps=LONG, then=changed)
        assert not met[:, : LONG // 2].any()
        assert (met[:, -1] == 1).all()
        assert (trials.play(changed, 4, steps=LONG) == 1).all()
        left = trials.play(changed, steps=LONG, then=CALM)
        assert set(left.ravel().tolist()) == {0, 1}
        assert (trials.play(CALM, 3, steps=LONG) == 0).all()
