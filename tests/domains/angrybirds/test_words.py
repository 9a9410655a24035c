"""Shots are named by what they aim at."""

import numpy as np
import pytest

from nappingrl.domains.angrybirds.actions import join
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, encode
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.domains.angrybirds.words import name_shot

PIG = Target(0, "pig", Box(300, 300, 320, 320))
LEDGE = Target(3, "stone", Box(200, 305, 280, 315))
POST = Target(4, "wood", Box(305, 200, 315, 260))
SLING = Box(100, 300, 110, 330)


def level(*targets: Target) -> np.ndarray:
    return encode(ObservedLevel(targets, SLING, 1, "red"))


@pytest.mark.parametrize(
    ("slot", "trajectory", "offset", "text"),
    [
        (0, 0, 0, "the pig, low"),
        (3, 1, 15, "the stone ledge left of the pig, high, 15 pixels above its centre"),
        (4, 0, -25, "the wood post above the pig, low, 25 pixels below its centre"),
        (7, 0, 0, "nothing (place 8 is empty), low"),
    ],
)
def test_objects_trajectory_and_offset(slot: int, trajectory: int, offset: int, text: str) -> None:
    assert name_shot(level(PIG, LEDGE, POST), join(slot, trajectory, offset)) == text


def test_several_pigs_are_counted_from_the_left() -> None:
    other = Target(1, "pig", Box(200, 300, 220, 320))
    assert name_shot(level(PIG, other), join(0, 0, 0)) == "pig 2 from the left, low"


def test_objects_that_would_share_a_name_are_counted_from_the_left() -> None:
    ledges = [Target(slot, "platform", Box(x, 300, x + 80, 310)) for slot, x in ((0, 400), (1, 200))]
    names = [name_shot(level(*ledges), join(slot, 0, 0)) for slot in (0, 1)]
    assert names == ["platform ledge 2 from the left, low", "platform ledge 1 from the left, low"]
