"""Shots in words: "the stone ledge left of the pig, high, 15 pixels above its centre"."""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.actions import TRAJECTORIES, split
from nappingrl.domains.angrybirds.free_shots import shot_of
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, decode

FLAT = 2.0
"""From this ratio of its sides on, an object is a ledge or a post."""
KINDS = {"pig": "the pig", "tnt": "the TNT", "other": "the unknown object"}


def name_shot(observation: NDArray[np.floating[Any]], action: int) -> str:
    """What an action aims at in an observed level, on which trajectory, and how far above or below the centre."""
    if shot_of(action) is not None:
        return "a free shot"
    slot, trajectory, offset = split(action)
    level = _decode(np.asarray(observation, np.float32).tobytes())
    target = next((target for target in level.targets if target.slot == slot), None)
    if target is None:
        return f"nothing (place {slot + 1} is empty), {TRAJECTORIES[trajectory]}"
    side = f", {abs(offset)} pixels {'above' if offset > 0 else 'below'} its centre" if offset else ""
    return f"{_name_target(target, level)}, {TRAJECTORIES[trajectory]}{side}"


@lru_cache(maxsize=64)
def _decode(observation: bytes) -> ObservedLevel:
    """The level of an observation, of which many actions are named."""
    return decode(np.frombuffer(observation, np.float32))


@lru_cache(maxsize=1024)
def _name_target(target: Target, level: ObservedLevel) -> str:
    """A name that no other object of the level has."""
    name = _describe(target, level)
    alike = [other for other in level.targets if _describe(other, level) == name]
    if len(alike) == 1:
        return name
    place = sorted(alike, key=lambda other: other.box.centre[0]).index(target) + 1
    return f"{name.removeprefix('the ')} {place} from the left"


def _describe(target: Target, level: ObservedLevel) -> str:
    pigs = level.of_kind("pig")
    name = KINDS.get(target.kind) or f"the {target.kind} {_shape(target)}"
    if target.kind == "pig" or not pigs:
        return name
    x, y = target.box.centre
    pig = min(pigs, key=lambda pig: float(np.hypot(pig.box.centre[0] - x, pig.box.centre[1] - y)))
    return f"{name} {_side(x - pig.box.centre[0], y - pig.box.centre[1])} the pig"


def _shape(target: Target) -> str:
    width, height = max(target.box.width, 1e-9), max(target.box.height, 1e-9)
    if target.kind == "platform":
        return "ledge" if width >= FLAT * height else "wall"
    return "ledge" if width >= FLAT * height else "post" if height >= FLAT * width else "block"


def _side(right: float, down: float) -> str:
    """Where something lies, by its distances in pixels."""
    if abs(right) >= abs(down):
        return "right of" if right > 0 else "left of"
    return "below" if down > 0 else "above"
