"""Where novelties put the objects that they add."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import hypot

from nappingrl.domains.angrybirds.physics.scene import GROUND, Item, Level
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES

_GAP = 0.15
_STEP = 0.1
_FARTHEST = 16.0


def _reach(item: Item) -> float:
    """Radius of the circle around an object."""
    width, height = SPRITE_SIZES[item.type]
    return hypot(width * item.scale_x, height * item.scale_y) / 2


def on_ground(
    level: Level, type_: str, beside: Callable[[Iterable[float]], float], distance: float, is_goal: bool
) -> Level:
    """Add a novel block on the ground, `distance` from the leftmost (min) or rightmost (max) pig.

    If another object is there, the block moves on in the same direction.
    """
    width, height = SPRITE_SIZES[type_]
    pigs = [item.x for item in level.items if item.kind == "pig"]
    x = (beside(pigs) if pigs else 0.0) + distance
    low = [item for item in level.items if item.y - _reach(item) < GROUND + height]
    while any(abs(item.x - x) < _reach(item) + width / 2 + _GAP for item in low) and abs(x) < _FARTHEST:
        x += _STEP if distance > 0 else -_STEP
    item = Item("block", type_, x, GROUND + height / 2, material="novel", is_goal=is_goal)
    return replace(level, items=(*level.items, item))
