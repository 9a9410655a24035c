"""Shots in words: "the stone ledge left of the pig, high, 15 pixels right of its centre"."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.aiming import TRAJECTORIES, split
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, decode

FLAT = 2.0
"""From this ratio of its sides on, an object is a ledge or a post."""
KINDS = {"pig": "the pig", "tnt": "the TNT", "other": "the unknown object"}


def name_shot(observation: NDArray[np.floating[Any]], action: int) -> str:
    """What an action aims at in an observed level, on which trajectory, and how far beside the centre."""
    slot, trajectory, offset = split(action)
    level = decode(observation)
    target = next((target for target in level.targets if target.slot == slot), None)
    if target is None:
        return f"nothing (place {slot + 1} is empty), {TRAJECTORIES[trajectory]}"
    side = f", {abs(offset)} pixels {'right' if offset > 0 else 'left'} of its centre" if offset else ""
    return f"{_name_target(target, level)}, {TRAJECTORIES[trajectory]}{side}"


def _name_target(target: Target, level: ObservedLevel) -> str:
    pigs = sorted(level.of_kind("pig"), key=lambda pig: pig.box.centre[0])
    if target.kind == "pig" and len(pigs) > 1:
        return f"pig {pigs.index(target) + 1} from the left"
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
