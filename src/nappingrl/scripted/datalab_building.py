"""DataLab's way with buildings: shoot at a block that holds others, so that they fall on the pigs.

Public are the kinds of buildings, which blocks come into question, where they are aimed at, and the range and parts of
the utility. The tables themselves are not: the weights by height and the value of a block are ours.
"""

from dataclasses import dataclass

import numpy as np

from nappingrl.domains.angrybirds.layout import Target
from nappingrl.domains.angrybirds.physics.scene import Box, Point
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.scripted.datalab_flight import COSTS, Path, Scene, paths

PIG = 5000.0
FEWEST_BLOCKS = 3
_GROWN = 2.0
_NEARBY = 50.0
"""How far right of a building, or from a block, a pig still counts; ours."""
_BEST_BLOCK = 1500.0
_WORST_COST = max(max(costs.values()) for costs in COSTS.values())
_INSETS = (1, 2, 4, 6)


@dataclass(frozen=True, slots=True)
class Building:
    """Blocks that touch."""

    blocks: tuple[Target, ...]

    @property
    def box(self) -> Box:
        """Around all of them."""
        boxes = [block.box for block in self.blocks]
        return Box(
            min(box.left for box in boxes), min(box.top for box in boxes),
            max(box.right for box in boxes), max(box.bottom for box in boxes),
        )  # fmt: skip

    @property
    def shape(self) -> str:
        """Tall, pyramid (its upper half at most half as wide as the whole) or rectangle."""
        box = self.box
        if box.height - 9 > box.width:
            return "tall"
        upper = [block.box for block in self.blocks if block.box.centre[1] < box.centre[1]]
        width = max((one.right for one in upper), default=0.0) - min((one.left for one in upper), default=0.0)
        return "pyramid" if width <= box.width / 2 else "rectangle"

    def supporters(self, block: Target) -> int:
        """How many blocks it stands on."""
        box = block.box
        return sum(
            abs(other.box.top - box.bottom) <= _GROWN and other.box.left < box.right and other.box.right > box.left
            for other in self.blocks if other is not block
        )  # fmt: skip


def buildings(blocks: tuple[Target, ...]) -> list[Building]:
    """Groups of blocks whose boxes, grown by two pixels, touch."""
    groups: list[list[Target]] = []
    for block in blocks:
        joined = [group for group in groups if any(_are_touching(block.box, one.box) for one in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([block, *(one for group in joined for one in group)])
    return [Building(tuple(group)) for group in groups]


def building_shot(scene: Scene, rng: np.random.Generator) -> tuple[float, Path] | None:
    """The best block of all buildings with a pig in or right of them, and one of the clear ways to it, at random."""
    if scene.bird == "white":
        return None
    found: list[tuple[float, list[Path]]] = []
    for building in buildings(scene.blocks):
        if len(building.blocks) >= FEWEST_BLOCKS and any(_is_in_or_right(pig.box, building.box) for pig in scene.pigs):
            for block in building.blocks:
                ways = _ways(scene, block) if _is_suitable(building, block) else []
                if ways:
                    found.append((_utility(scene, building, block), ways))
    if not found:
        return None
    utility, ways = max(found, key=lambda one: one[0])
    return utility, ways[int(rng.integers(len(ways)))]


def _is_suitable(building: Building, block: Target) -> bool:
    """Neither tiny nor slender, and on two others."""
    width, height = block.box.width, block.box.height
    return width + height >= 25 and height <= 3.8 * width and building.supporters(block) >= 2


def _ways(scene: Scene, block: Target) -> list[Path]:
    """Clear shots at its left edge near the top or the bottom; low ones if there are any."""
    box = block.box
    edge: list[Point] = [(box.left, y) for inset in _INSETS for y in (box.top + inset, box.bottom - inset)]
    clear = [path for point in edge for path in paths(scene, point) if path.utility == 0]
    return [path for path in clear if path.trajectory == LOW] or clear


def _utility(scene: Scene, building: Building, block: Target) -> float:
    """What breaking or toppling a block is worth: by material and height, and by the pigs around it."""
    box, whole = block.box, building.box
    height = (whole.bottom - box.centre[1]) / whole.height
    weight = {"tall": 0.5 + 0.5 * height, "pyramid": 1.0 - 0.5 * height, "rectangle": 1.0 - abs(height - 0.5)}
    worth = _BEST_BLOCK * (1 - COSTS[scene.bird][block.kind] / _WORST_COST) * weight[building.shape]
    return worth + sum(_share(pig.box, box) for pig in scene.pigs) * PIG


def _share(pig: Box, block: Box) -> float:
    """How much of a pig counts: above the block, not far below, or beside it."""
    (x, y), half = pig.centre, _NEARBY
    if block.left - pig.width <= x <= block.right + pig.width:
        if y < block.top:
            return 0.7
        below = y - block.bottom
        if 0 <= below <= half:
            return 0.6 - 0.2 * below / half
    is_beside = block.top <= y <= block.bottom and min(abs(x - block.left), abs(x - block.right)) <= half
    return 0.15 if is_beside else 0.0


def _is_in_or_right(pig: Box, building: Box) -> bool:
    x, y = pig.centre
    return building.left <= x <= building.right + _NEARBY and building.top - pig.height <= y <= building.bottom


def _are_touching(one: Box, other: Box) -> bool:
    return (
        one.left - _GROWN <= other.right + _GROWN and other.left - _GROWN <= one.right + _GROWN
        and one.top - _GROWN <= other.bottom + _GROWN and other.top - _GROWN <= one.bottom + _GROWN
    )  # fmt: skip
