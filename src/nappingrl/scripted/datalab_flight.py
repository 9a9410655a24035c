"""DataLab's model of a shot: a parabola over the screen, and the objects in its path.

Its planner derives the scale of the world from the slingshot. The tables that correct its release angle are left out,
because the domain's actions do the aiming here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import atan, degrees, hypot, radians, sqrt, tan

from nappingrl.domains.angrybirds.layout import ObservedLevel, Target
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.types import Point

SPEED = 2.74815
"""In slingshot units, where gravity is 1."""
STEEPEST = 81.0
RADII = {"red": 6, "yellow": 7, "white": 13, "black": 8, "blue": 4}
COSTS = {
    "red": {"ice": 1200, "wood": 500, "stone": 1400},
    "yellow": {"ice": 1400, "wood": 600, "stone": 4200},
    "blue": {"ice": 100, "wood": 300, "stone": 3300},
    "black": {"ice": 2000, "wood": 3600, "stone": 1450},
    "white": {"ice": 1500, "wood": 2600, "stone": 4000},
}
"""Cost of a block in the path, by bird and material."""
BLOCKED = -65536.0
"""Utility of a path that is blocked by a platform."""
_SEEN_X, _SEEN_Y = 200, (100, 480)
"""Points of a path count only right of this x and between these y."""
_STEEP, _STEEP_FACTOR = 50.0, 1.2


@dataclass(frozen=True, slots=True)
class Scene:
    """A level as DataLab sees it: boxes only, and platforms extend to the bottom of the screen."""

    level: ObservedLevel
    bird: str
    blocks: tuple[Target, ...]
    platforms: tuple[Box, ...]

    @property
    def radius(self) -> int:
        """Radius of the bird on the slingshot, in pixels."""
        return RADII[self.bird]

    @property
    def pigs(self) -> list[Target]:
        """All objects that have the colours of a pig."""
        return self.level.of_kind("pig")


def make_scene(level: ObservedLevel) -> Scene:
    """Convert a level; DataLab ignores objects of unknown colours."""
    blocks = tuple(target for target in level.targets if target.kind in COSTS["red"])
    stretched = (Box(p.box.left, p.box.top, p.box.right, PIXELS[1]) for p in level.of_kind("platform"))
    return Scene(level, level.bird or "red", blocks, tuple(stretched))


@dataclass(frozen=True)
class Path:
    """A shot at a point of the screen."""

    scene: Scene
    target: Point
    trajectory: int
    origin: Point
    scale: float
    slope: float
    """Tangent of the launch angle."""

    @property
    def degrees(self) -> float:
        """Launch angle."""
        return degrees(atan(self.slope))

    @cached_property
    def points(self) -> list[Point]:
        """The path before the target, one point for each pixel in x."""
        left, top = self.origin
        points = []
        for x in range(max(int(left), _SEEN_X) + 1, min(int(self.target[0]), PIXELS[0] - 1) + 1):
            way = (x - left) / self.scale
            height = way * self.slope - way * way * (1 + self.slope**2) / (2 * SPEED**2)
            points.append((float(x), top - height * self.scale))
        return [(x, y) for x, y in points if _SEEN_Y[0] < y < _SEEN_Y[1]]

    def hit(self, box: Box) -> Point | None:
        """The point at which the bird first touches a box."""
        radius = self.scene.radius
        return next((point for point in self.points if _touches(point, radius, box)), None)

    def n_hit(self, targets: Iterable[Target]) -> int:
        """Number of targets in the path, not counting the one aimed at."""
        return sum(not contains(seen.box, self.target) and self.hit(seen.box) is not None for seen in targets)

    @cached_property
    def utility(self) -> float:
        """0 for a free path, minus the cost of the blocks in it, or `BLOCKED` behind a platform."""
        if any(self.hit(box) is not None for box in self.scene.platforms if not contains(box, self.target)):
            return BLOCKED
        cost = sum(self._cost(block) for block in self.scene.blocks if not contains(block.box, self.target))
        return -cost * (_STEEP_FACTOR if self.degrees > _STEEP else 1.0)

    def _cost(self, block: Target) -> float:
        point = self.hit(block.box)
        if point is None:
            return 0.0
        distance = max(0.0, hypot(point[0] - self.target[0], point[1] - self.target[1]) - self.scene.radius)
        return float((distance**1.4 / 400 + 1) * COSTS[self.scene.bird][block.kind])


def paths(scene: Scene, target: Point) -> list[Path]:
    """The low and, if different and not too steep, the high path to a point; empty if it is out of reach."""
    sling = scene.level.sling
    origin = float(int(sling.left + 0.188 * sling.height)), float(int(sling.top + 0.156 * sling.height))
    scale = sling.height + sling.width
    x, y = (target[0] - origin[0]) / scale, (origin[1] - target[1]) / scale
    root = SPEED**4 - x * x - 2 * y * SPEED**2
    if x <= 0 or root < 0:
        return []
    low, high = ((SPEED**2 - sqrt(root)) / x, (SPEED**2 + sqrt(root)) / x)
    slopes = [low] if high == low or high > tan(radians(STEEPEST)) else [low, high]
    return [Path(scene, target, LOW + i, origin, scale, slope) for i, slope in enumerate(slopes)]


def contains(box: Box, point: Point) -> bool:
    """Whether a point lies in a box or on its edge."""
    return box.left <= point[0] <= box.right and box.top <= point[1] <= box.bottom


def _touches(point: Point, radius: float, box: Box) -> bool:
    """Whether the centre of a bird or one of its four outermost points lies in a box."""
    x, y = point
    around = ((x, y), (x - radius, y), (x + radius, y), (x, y - radius), (x, y + radius))
    return any(contains(box, one) for one in around)
