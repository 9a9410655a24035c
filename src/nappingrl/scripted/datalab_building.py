"""DataLab's building strategy: shoot at a block that supports others, so that they fall on pigs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nappingrl.domains.angrybirds.layout import Target
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.scripted.datalab_flight import PIG, Path, Scene, paths, select

FEWEST_BLOCKS = 3
_GROWN = 2
"""Pixels by which boxes are grown to see whether they touch."""
_INSETS = (1, 2, 4, 6)
_HEIGHTS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_WEIGHTS = {
    "pyramid": (0.5, 0.6, 0.6, 0.6, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 0.95, 0.5),
    "tall": (0.6, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.75, 0.8, 0.85, 0.5),
    "rectangle": (0.8, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.6, 0.7, 0.9, 0.9, 0.5),
}
"""Weight of a block by its distance from the top of the building, as a share of the building's height."""
_DESTROY = {
    "red": {"ice": 1000, "wood": 1400, "stone": 500},
    "yellow": {"ice": 700, "wood": 1000, "stone": 300},
    "blue": {"ice": 550, "wood": 200, "stone": 100},
    "black": {"ice": 1100, "wood": 1000, "stone": 700},
}
_TOPPLE = {
    "red": {"ice": 900, "wood": 1500, "stone": 850},
    "yellow": {"ice": 300, "wood": 750, "stone": 1050},
    "blue": {"ice": 100, "wood": 500, "stone": 300},
    "black": {"ice": 500, "wood": 700, "stone": 900},
}
"""Worth of a block that is destroyed or toppled, by bird and material."""
_ABOVE = 0.7
_BELOW = {"pyramid": (0.6, 50), "tall": (0.5, 50), "rectangle": (0.4, 60)}
_BESIDE = 0.15
"""How much a pig counts above a block, up to some pixels below its top (with their number), and beside the building."""


@dataclass(frozen=True)
class Building:
    """A group of blocks that touch each other."""

    blocks: tuple[Target, ...]

    @cached_property
    def box(self) -> Box:
        """The box around all blocks."""
        boxes = [block.box for block in self.blocks]
        return Box(
            min(box.left for box in boxes), min(box.top for box in boxes),
            max(box.right for box in boxes), max(box.bottom for box in boxes),
        )  # fmt: skip

    def is_inside(self, pig: Target) -> bool:
        """Whether a pig touches the box around the building."""
        return _are_touching(pig.box, self.box)

    def is_right(self, pig: Target) -> bool:
        """Whether a pig stands low at the right of the building."""
        box = self.box
        return box.left < pig.box.left < box.centre[0] + 0.65 * box.height and box.centre[1] < pig.box.top

    def supporters(self, block: Target) -> int:
        """Number of blocks that a block stands on."""
        return sum(_supports(other.box, block.box) for other in self.blocks if other is not block)


def buildings(blocks: Sequence[Target]) -> list[Building]:
    """Group the blocks whose boxes, grown by two pixels, touch."""
    groups: list[list[Target]] = []
    for block in blocks:
        joined = [group for group in groups if any(_are_touching(block.box, member.box) for member in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([block, *(member for group in joined for member in group)])
    return [Building(tuple(group)) for group in groups]


def building_shot(scene: Scene, rng: np.random.Generator) -> tuple[int, Path] | None:
    """The best block of each building with a pig in or right of it, and a random clear path to it."""
    if scene.bird == "white":
        return None
    shots = []
    for building in buildings(scene.blocks):
        pigs = [pig for pig in scene.pigs if building.is_inside(pig) or building.is_right(pig)]
        if len(building.blocks) >= FEWEST_BLOCKS and pigs:
            found = [_clear_path(scene, building, block, rng) for block in building.blocks]
            clear = [path for path in found if path is not None]
            if clear:
                shape = _shape(building, clear, pigs)
                worth = [_worth(scene, building, path.goal, shape) for path in clear]
                best = int(np.argmax(worth))
                shots.append((worth[best] + _pigs(building, clear[best].goal, pigs, shape), clear[best]))
    shots.sort(key=lambda shot: shot[1].target[0])
    chosen = select([path for _, path in shots])
    return next((shot for shot in shots if shot[1] is chosen), None)


def _clear_path(scene: Scene, building: Building, block: Target, rng: np.random.Generator) -> Path | None:
    """A random clear low path to the left edge of a suitable block, near its top or its bottom."""
    if not _is_suitable(building, block):
        return None
    box = block.box
    edge = [(int(box.left), int(y)) for inset in _INSETS for y in (box.top + inset, box.bottom - inset)]
    found = [path for point in edge for path in paths(scene, block, point) if path.trajectory == LOW]
    clear = sorted((path for path in found if not path.utility), key=lambda path: path.target[1])
    inner = [path for path in clear[1:] if building.box.top + 7 <= path.target[1] < building.box.bottom - 6]
    clear = clear[:1] + inner
    return clear[int(rng.integers(len(clear)))] if clear else None


def _is_suitable(building: Building, block: Target) -> bool:
    """Whether a block is neither tiny nor slender, bears a big one unless it is wide, and stands on two others."""
    width, height = block.box.width, block.box.height
    if width + height < 25 or height > 3.8 * width or (width <= 13 and height <= 23):
        return False
    if width <= 23 and not any(_is_big(one) and _is_above(one.box, block.box) for one in building.blocks):
        return False
    return building.supporters(block) >= 2


def _is_big(block: Target) -> bool:
    return max(block.box.width, block.box.height) > 13


def _shape(building: Building, clear: Sequence[Path], pigs: Sequence[Target]) -> str:
    """A pyramid (flat blocks at different places, with a pig above one of them), tall or rectangle."""
    flat = [path.goal.box for path in clear if 4 * path.goal.box.height < path.goal.box.width]
    has_pig = any(abs(pig.box.left - box.left) < 60 and pig.box.top < box.top + 5 for box in flat for pig in pigs)
    if has_pig and max(box.left for box in flat) - min(box.left for box in flat) >= 15:
        return "pyramid"
    return "tall" if building.box.height - 9 > building.box.width else "rectangle"


def _worth(scene: Scene, building: Building, block: Target, shape: str) -> int:
    """Worth of breaking or toppling a block, by its material and height."""
    height = (block.box.top - building.box.top) / building.box.height
    weight = float(np.interp(height, _HEIGHTS, _WEIGHTS[shape]))
    if shape == "pyramid" and any(_are_touching(block.box, pig.box) for pig in scene.pigs):
        weight += 0.055
    if 10 < block.box.height < 15 and (
        scene.bird in ("red", "black")
        or (scene.bird == "yellow" and block.kind == "stone") or (scene.bird == "blue" and block.kind != "ice")
    ):  # fmt: skip
        weight -= 0.4 if shape == "pyramid" else 0.2
    is_destroyed = {"pyramid": True, "tall": height > 0.7, "rectangle": height >= 0.5}[shape]
    return int(weight * (_DESTROY if is_destroyed else _TOPPLE)[scene.bird][block.kind])


def _pigs(building: Building, block: Target, pigs: Sequence[Target], shape: str) -> int:
    """What the pigs in and beside a building add to the worth of a block."""
    share, reach = _BELOW[shape]
    wide = Box(block.box.left - 15, block.box.top, block.box.right + 15, block.box.bottom)
    total = 0.0
    for pig in pigs:
        if not building.is_inside(pig):
            total += 0.0 if shape == "pyramid" else _BESIDE
        elif pig.box.top < wide.top if shape == "pyramid" else _is_above(pig.box, wide):
            total += _ABOVE
        elif pig.box.top - reach < wide.top:
            total += share
    return int(total * PIG)


def _is_above(upper: Box, lower: Box) -> bool:
    """Whether a box lies above another one and overlaps it sideways."""
    return upper.centre[1] - 2 <= lower.top and lower.left - 2 <= upper.right and upper.left <= lower.right - 2


def _supports(lower: Box, upper: Box) -> bool:
    """Whether a box stands on another one."""
    is_below = upper.bottom - 2 <= lower.top
    return is_below and _are_touching(lower, upper) and lower.right - 2 >= upper.left and lower.left + 2 <= upper.right


def _are_touching(one: Box, other: Box) -> bool:
    grown = 2 * _GROWN
    return (
        one.left - grown < other.right and other.left - grown < one.right
        and one.top - grown < other.bottom and other.top - grown < one.bottom
    )  # fmt: skip
