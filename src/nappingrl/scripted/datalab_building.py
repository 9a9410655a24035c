"""DataLab's building strategy: shoot at a block that supports others, so that they fall on pigs.

The shapes of buildings, which blocks are candidates, where they are aimed at, and the range and terms of the utility
are published. The tables are not: the weights by height and the value of a block are our choice.
"""

from dataclasses import dataclass

import numpy as np

from nappingrl.domains.angrybirds.layout import Target
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.scripted.datalab_flight import COSTS, Path, Scene, paths
from nappingrl.types import Point

PIG = 5000.0
FEWEST_BLOCKS = 3
_GROWN = 2.0
_NEARBY = 50.0
"""Pixels right of a building, or from a block, within which a pig counts; our choice."""
_BEST_BLOCK = 1500.0
_WORST_COST = max(max(costs.values()) for costs in COSTS.values())
_INSETS = (1, 2, 4, 6)


@dataclass(frozen=True, slots=True)
class Building:
    """A group of blocks that touch each other."""

    blocks: tuple[Target, ...]

    @property
    def box(self) -> Box:
        """The box around all blocks."""
        boxes = [block.box for block in self.blocks]
        return Box(
            min(box.left for box in boxes), min(box.top for box in boxes),
            max(box.right for box in boxes), max(box.bottom for box in boxes),
        )  # fmt: skip

    @property
    def shape(self) -> str:
        """tall, pyramid (the upper half is at most half as wide as the whole) or rectangle."""
        box = self.box
        if box.height - 9 > box.width:
            return "tall"
        upper = [block.box for block in self.blocks if block.box.centre[1] < box.centre[1]]
        width = max((block.right for block in upper), default=0.0) - min((block.left for block in upper), default=0.0)
        return "pyramid" if width <= box.width / 2 else "rectangle"

    def supporters(self, block: Target) -> int:
        """Number of blocks that a block stands on."""
        box = block.box
        return sum(
            abs(other.box.top - box.bottom) <= _GROWN and other.box.left < box.right and other.box.right > box.left
            for other in self.blocks if other is not block
        )  # fmt: skip


def buildings(blocks: tuple[Target, ...]) -> list[Building]:
    """Group the blocks whose boxes, grown by two pixels, touch."""
    groups: list[list[Target]] = []
    for block in blocks:
        joined = [group for group in groups if any(_are_touching(block.box, member.box) for member in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([block, *(member for group in joined for member in group)])
    return [Building(tuple(group)) for group in groups]


def building_shot(scene: Scene, rng: np.random.Generator) -> tuple[float, Path] | None:
    """The best block of all buildings with a pig in or right of them, and a random clear path to it."""
    if scene.bird == "white":
        return None
    candidates: list[tuple[float, list[Path]]] = []
    for building in buildings(scene.blocks):
        if len(building.blocks) >= FEWEST_BLOCKS and any(_is_in_or_right(pig.box, building.box) for pig in scene.pigs):
            for block in building.blocks:
                clear = _clear_paths(scene, block) if _is_suitable(building, block) else []
                if clear:
                    candidates.append((_utility(scene, building, block), clear))
    if not candidates:
        return None
    utility, clear = max(candidates, key=lambda candidate: candidate[0])
    return utility, clear[int(rng.integers(len(clear)))]


def _is_suitable(building: Building, block: Target) -> bool:
    """Whether a block is neither tiny nor slender and stands on two others."""
    width, height = block.box.width, block.box.height
    return width + height >= 25 and height <= 3.8 * width and building.supporters(block) >= 2


def _clear_paths(scene: Scene, block: Target) -> list[Path]:
    """Clear paths to the left edge near the top or the bottom; low ones if there are any."""
    box = block.box
    edge: list[Point] = [(box.left, y) for inset in _INSETS for y in (box.top + inset, box.bottom - inset)]
    clear = [path for point in edge for path in paths(scene, point) if path.utility == 0]
    return [path for path in clear if path.trajectory == LOW] or clear


def _utility(scene: Scene, building: Building, block: Target) -> float:
    """Utility of breaking or toppling a block: by its material, its height, and the pigs around it."""
    box, whole = block.box, building.box
    height = (whole.bottom - box.centre[1]) / whole.height
    weight = {"tall": 0.5 + 0.5 * height, "pyramid": 1.0 - 0.5 * height, "rectangle": 1.0 - abs(height - 0.5)}
    worth = _BEST_BLOCK * (1 - COSTS[scene.bird][block.kind] / _WORST_COST) * weight[building.shape]
    return worth + sum(_share(pig.box, box) for pig in scene.pigs) * PIG


def _share(pig: Box, block: Box) -> float:
    """How much a pig counts: above the block, a little below, or beside it."""
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
