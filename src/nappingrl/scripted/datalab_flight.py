"""DataLab's model of a shot: its planner, the path over the screen, and the objects in the path.

The planner derives the scale of the world from the slingshot and corrects the launch angle by tables that were measured
in the original Angry Birds. Everything is computed in whole pixels, as in the program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import atan, atan2, cos, degrees, hypot, radians, sin, sqrt

import numpy as np

from nappingrl.domains.angrybirds.layout import Target
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.types import Flags, Floats, Point

SPEED = 2.74815
"""In slingshot units, where gravity is 1; the first guess of the planner."""
SPEEDS = np.array(
    [
        2.78571, 2.78323, 2.7729, 2.72967, 2.74747, 2.74946, 2.74762, 2.74765, 2.75169, 2.75992, 2.77147, 2.78507,
        2.79933, 2.81297, 2.82493, 2.83443, 2.84097, 2.8343, 2.82441, 2.81147, 2.80584, 2.79793, 2.78825, 2.77734,
        2.76572, 2.78389, 2.77228, 2.76128, 2.75119, 2.74222, 2.7345, 2.72811, 2.72302, 2.71916, 2.71641, 2.71461,
        2.71357, 2.71309, 2.71298, 2.71304, 2.71312, 2.71307, 2.71278, 2.71219, 2.71125, 2.70995, 2.70834, 2.70646,
        2.70438, 2.70218, 2.69996, 2.69778, 2.69573, 2.69385, 2.69217, 2.6907, 2.68941, 2.68826, 2.68721, 2.68618,
        2.68514, 2.68404, 2.68287, 2.68163, 2.68035, 2.67901, 2.67752, 2.67554, 2.67231, 2.66625, 2.65447, 2.61058,
        2.551, 2.47435, 2.40219, 2.31633,
    ]
)  # fmt: skip
"""Speed by launch angle, from 4 to 79 degrees."""
FIRST_SPEED = 4
STEEPEST = 81.0
SEARCH = np.arange(201) * 0.001 - 0.1
"""Angles around the first guess that the planner tries, in radians."""
RADII = {"red": 6, "yellow": 7, "white": 13, "black": 8, "blue": 4}
COSTS = {
    "red": {"ice": 1200, "wood": 500, "stone": 1400},
    "yellow": {"ice": 1400, "wood": 600, "stone": 4200},
    "blue": {"ice": 100, "wood": 300, "stone": 3300},
    "black": {"ice": 2000, "wood": 3600, "stone": 1450},
    "white": {"ice": 1500, "wood": 2600, "stone": 4000},
}
"""Cost of a block in the path, by bird and material."""
RANKS = {
    "red": {"pig": 5500, "ice": 1200, "wood": 1400, "stone": 500},
    "yellow": {"pig": 5400, "ice": 1400, "wood": 4200, "stone": 600},
    "blue": {"pig": 5400, "ice": 3300, "wood": 300, "stone": 100},
    "black": {"pig": 5300, "ice": 2000, "wood": 1450, "stone": 3600},
    "white": {"pig": 5300, "ice": 4000, "wood": 2600, "stone": 1500},
}
"""Decides between objects to aim at, by what the bird touches first: the lowest number is taken."""
PIG = 5000
"""Utility of a pig."""
BLOCKED, NOWHERE = -65536, -4096
"""Utility of a path that a platform blocks, and of one that ends at the slingshot."""
_SEEN_X, _SEEN_Y = 200, (100, 480)
"""Points of a path count only right of this x and between these y."""
_STEEP, _STEEP_FACTOR = 50.0, 1.2
_TIME_UNIT_MS = 815
_STRETCH = 0.4


@dataclass(frozen=True, slots=True)
class Scene:
    """A level as DataLab sees it: boxes in whole pixels only."""

    sling: Box
    bird: str
    """Colour of the bird on the slingshot."""
    pigs: tuple[Target, ...]
    blocks: tuple[Target, ...]
    tnts: tuple[Target, ...]
    """TNT, and everything whose colours are unknown."""
    hills: tuple[Target, ...]
    """What lies below the platforms. The program takes the height of the first corner, which is the bottom left one,
    for the top of a platform, and extends it to the bottom of the screen."""

    @property
    def radius(self) -> int:
        """Radius of the bird on the slingshot, in pixels."""
        return RADII[self.bird]

    @property
    def origin(self) -> tuple[int, int]:
        """The point from which the planner measures."""
        return int(self.sling.left + 0.188 * self.sling.height), int(self.sling.top + 0.156 * self.sling.height)

    @property
    def scale(self) -> float:
        """Pixels per slingshot unit."""
        return self.sling.width + self.sling.height

    def release(self, angle: float) -> tuple[int, int]:
        """The release point of a launch angle."""
        (x, y), length = self.origin, 10 * self.sling.height
        return int(x - length * cos(angle)), int(y + length * sin(angle))


def make_scene(targets: Sequence[Target], sling: Box, bird: str) -> Scene:
    """Sort objects by their class; "other" counts as TNT."""
    seen = [Target(target.slot, target.kind, _whole(target.box)) for target in targets]
    floor = float(PIXELS[1])
    hills = [
        Target(one.slot, one.kind, Box(one.box.left, one.box.bottom, one.box.right, floor))
        for one in seen if one.kind == "platform"
    ]  # fmt: skip
    return Scene(
        _whole(sling),
        bird or "red",
        tuple(one for one in seen if one.kind == "pig"),
        tuple(one for one in seen if one.kind in COSTS["red"]),
        tuple(one for one in seen if one.kind in ("tnt", "other")),
        tuple(hills),
    )


def _whole(box: Box) -> Box:
    return Box(round(box.left), round(box.top), round(box.right), round(box.bottom))


def middle(box: Box) -> tuple[int, int]:
    """The centre in whole pixels."""
    x, y = box.centre
    return int(x), int(y)


@dataclass(frozen=True)
class Path:
    """A shot at a point of an object."""

    scene: Scene
    goal: Target
    """The object aimed at."""
    target: tuple[int, int]
    release: tuple[int, int]
    trajectory: int

    @property
    def angle(self) -> float:
        """Launch angle in radians."""
        (x, y), (release_x, release_y) = self.scene.origin, self.release
        return atan2(release_y - y, x - release_x)

    @property
    def degrees(self) -> float:
        """Launch angle."""
        return degrees(self.angle)

    @cached_property
    def points(self) -> Floats:
        """The path up to its nearest point to the middle of the object, one point for each pixel in x, (n, 2)."""
        (left, top), scale = self.scene.origin, self.scene.scale
        angle = self.angle - _correction(self.angle)
        way = np.arange(PIXELS[0]) / scale
        ys = top - np.trunc(_height(way, angle) * scale)
        points = np.stack([np.arange(PIXELS[0]) + left, ys], axis=1).astype(np.float64)
        x, y = middle(self.goal.box)
        distances = np.hypot(points[:, 0] - x, points[:, 1] - y)
        is_farther = distances[:-1] >= distances[1:]
        return points[: int(np.flatnonzero(is_farther)[-1])] if is_farther.any() else points[:0]

    def hits(self, objects: Sequence[Target]) -> list[tuple[Target, Point]]:
        """The objects that the bird touches before the one aimed at, in order, and where."""
        radius = self.scene.radius
        points = self.points
        (low, high), (xs, ys) = _SEEN_Y, (points[:, 0], points[:, 1])
        points = points[(xs > _SEEN_X) & (ys > low) & (ys < high)]
        is_goal = _touches(points, radius, self.goal.box)
        points = points[: int(is_goal.argmax())] if is_goal.any() else points
        found = []
        for place, one in enumerate(objects):
            touched = _touches(points, radius, one.box)
            if touched.any():
                first = int(touched.argmax())
                found.append((first, place, one, (float(points[first, 0]), float(points[first, 1]))))
        return [(one, point) for _, _, one, point in sorted(found, key=lambda hit: hit[:2])]

    @cached_property
    def n_pigs(self) -> int:
        """Number of pigs in the path, not counting the object aimed at."""
        return len(self.hits(self.scene.pigs))

    @cached_property
    def blocks(self) -> list[tuple[Target, Point]]:
        """The blocks in the path and where they are touched."""
        return self.hits(self.scene.blocks)

    @cached_property
    def is_blocked(self) -> bool:
        """Whether a platform is in the path."""
        return bool(self.hits(self.scene.hills))

    @cached_property
    def utility(self) -> int:
        """0 for a free path, minus the cost of the blocks in it, or `BLOCKED` behind a platform."""
        if not len(self.points):
            return NOWHERE
        if self.is_blocked:
            return BLOCKED
        cost = sum(self._cost(block, point) for block, point in self.blocks)
        return int(-cost * _STEEP_FACTOR) if self.degrees > _STEEP else -cost

    def _cost(self, block: Target, point: Point) -> int:
        """Cost of a block; one that is touched within a bird's radius of the middle of the object costs nothing."""
        x, y = middle(self.goal.box)
        distance = hypot(point[0] - x, point[1] - y) - self.scene.radius
        return int((distance**1.4 / 400 + 1) * COSTS[self.scene.bird][block.kind]) if distance >= 0 else 0

    def tap_ms(self, percent: float) -> int:
        """Time at which the bird has covered this share of the distance in x; 0 never taps."""
        if not percent:
            return 0
        left = self.scene.sling.left
        x = int((self.target[0] - left) * percent / 100 + left)
        angle = self.angle - _correction(self.angle)
        way = (x - self.scene.origin[0]) / self.scene.scale + _STRETCH * cos(angle)
        return max(0, int(way / (_speed(angle) * cos(angle)) * _TIME_UNIT_MS))

    @property
    def percent_to_first_block(self) -> int:
        """Share of the distance in x at which the first block is touched; 100 if there is none."""
        if not self.blocks:
            return 100
        left = self.scene.sling.left
        return int((self.blocks[0][1][0] - left) * 100 / (self.target[0] - left))


def paths(scene: Scene, goal: Target, target: tuple[int, int]) -> list[Path]:
    """The low and, if different and not too steep, the high path to a point; empty if it is out of reach."""
    x, y = (target[0] - scene.origin[0]) / scene.scale, (scene.origin[1] - target[1]) / scene.scale
    root = SPEED**4 - x * x - 2 * y * SPEED**2
    if x <= 0 or root < 0:
        return []
    angles = [_refined(atan((SPEED**2 + sign * sqrt(root)) / x), x, y) for sign in (-1, 1)]
    if angles[1] >= radians(STEEPEST) or angles[1] == angles[0]:
        angles = angles[:1]
    return [Path(scene, goal, target, scene.release(angle), LOW + i) for i, angle in enumerate(angles)]


def select(order: Sequence[Path]) -> Path | None:
    """The path to take of those in order of preference, of which only the first one to each object counts.

    The first path is taken unless one to another object is free of platforms and touches something of a lower rank
    first. The program also compares the ranks for the birds that wait; that is left out, since it sees only colours.
    """
    chosen, lowest = (order[0] if order else None), 65535
    tried: list[Target] = []
    for path in order:
        if any(goal is path.goal for goal in tried):
            continue
        tried.append(path.goal)
        first = path.blocks[0][0].kind if path.blocks else path.goal.kind
        rank = RANKS[path.scene.bird][first if first in COSTS["red"] else "pig"]
        if rank < lowest and not path.is_blocked:
            chosen, lowest = path, rank
    return chosen


def _refined(guess: float, x: float, y: float) -> float:
    """The launch angle near a first guess whose path, at the measured speed, comes nearest to a point."""
    tried = np.asarray(guess + _correction(guess) + SEARCH, np.float64)
    best = float(tried[int(np.abs(_height(np.full(len(tried), x), tried) - y).argmin())])
    return best + _correction(best)


def _correction(angle: float) -> float:
    """How much steeper the bird must be launched than it shall fly."""
    return 0.0386871 + 0.12898 * angle - 0.214323 * angle**2 + 0.0818703 * angle**3


def _speed(angle: Floats | float) -> Floats:
    """The measured speed at an angle."""
    row = np.trunc(np.asarray(angle) * 57.2957795).astype(np.int64) - FIRST_SPEED
    speeds: Floats = SPEEDS[np.clip(row, 0, len(SPEEDS) - 1)]
    return speeds


def _height(x: Floats, angle: Floats | float) -> Floats:
    """Height above the origin at x, in slingshot units."""
    along = _speed(angle) * np.cos(angle)
    heights: Floats = x * np.tan(angle) - x * x / (2 * along**2)
    return heights


def contains(box: Box, points: Floats) -> Flags:
    """Which points lie in a box, its left and top edge included."""
    xs, ys = points[:, 0], points[:, 1]
    flags: Flags = (box.left <= xs) & (xs < box.right) & (box.top <= ys) & (ys < box.bottom)
    return flags


def _touches(points: Floats, radius: int, box: Box) -> Flags:
    """Where the centre of a bird or one of its four outermost points lies in a box."""
    steps = ((0, 0), (-radius, 0), (radius, 0), (0, radius), (0, -radius))
    flags: Flags = np.logical_or.reduce([contains(box, points + step) for step in steps])
    return flags
