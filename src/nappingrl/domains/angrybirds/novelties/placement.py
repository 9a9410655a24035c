"""Where novelties put the objects that they add."""

from dataclasses import replace
from math import hypot

from nappingrl.domains.angrybirds.physics.scene import GROUND, Item, Level
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES

_GAP = 0.15
_STEP = 0.1
_FARTHEST = 16.0


def add_blocks(level: Level, type_: str, strength: float, distance: float, is_goal: bool) -> Level:
    """Add novel blocks: on the level's spots, a share `strength` of them, or else `strength` blocks on the ground.

    On the ground they stand `distance` from the leftmost pig; if another object is there, they move on to the left.
    """
    if level.spots:
        places = level.spots[: round(strength * len(level.spots))]
        return replace(level, items=(*level.items, *(_block(type_, x, y, is_goal) for x, y in places)))
    for _ in range(round(strength)):
        x = _free_ground(level, type_, distance)
        level = replace(level, items=(*level.items, _block(type_, x, GROUND, is_goal)))
    return level


def _block(type_: str, x: float, top: float, is_goal: bool) -> Item:
    """A block on a surface at height `top`."""
    return Item("block", type_, x, top + SPRITE_SIZES[type_][1] / 2, material="novel", is_goal=is_goal)


def _free_ground(level: Level, type_: str, distance: float) -> float:
    width, height = SPRITE_SIZES[type_]
    x = min((item.x for item in level.items if item.kind == "pig"), default=0.0) - distance
    low = [item for item in level.items if item.y - _reach(item) < GROUND + height]
    while any(abs(item.x - x) < _reach(item) + width / 2 + _GAP for item in low) and abs(x) < _FARTHEST:
        x -= _STEP
    return x


def _reach(item: Item) -> float:
    """Radius of the circle around an object."""
    width, height = SPRITE_SIZES[item.type]
    return hypot(width * item.scale_x, height * item.scale_y) / 2
