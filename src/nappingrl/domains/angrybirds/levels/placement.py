"""Where the anchor of a task may lie: the reach of birds, and the placement rule of each Phy-Q template."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import atan, cos, sin, tan
from typing import Protocol

import numpy as np

from nappingrl.domains.angrybirds.physics.scene import LAUNCH_SPEED, Level, make_sling
from nappingrl.domains.angrybirds.trajectory import FALL
from nappingrl.errors import BadSpecError, check_name
from nappingrl.types import Point

LEFT, RIGHT = -9.960, 9.397
"""Range of x in which a bird can reach the ground, with the slingshot of the benchmark."""
_RANGE = LAUNCH_SPEED**2 / FALL


@dataclass(frozen=True, slots=True)
class Reach:
    """The reach of a slingshot: everything below the envelope of its flights.

    A bird launched at the angle a starts one unit behind the origin. At x to the right of the origin its height is
    x tan a - (x / cos a + 1)^2 / (2 R) with R = v^2 / g, which is highest where x tan a + sin a = R.
    """

    sling: Point

    def height(self, x: float) -> float:
        """The highest point that a bird can hit at x, which must lie right of the slingshot.

        Examples:
            >>> round(Reach((-12.0, -2.5)).height(9.445), 2)
            -3.5
        """
        x0, y0 = make_sling(self.sling).origin
        x -= x0
        if x <= 0:
            raise BadSpecError(
                f"x is {-x:g} left of where birds are launched; only what lies right of it can be reached"
            )
        angle = atan(_RANGE / x)
        for _ in range(12):  # each iteration reduces the error at least 30 times
            angle = atan((_RANGE - sin(angle)) / x)
        return y0 + x * tan(angle) - (x / cos(angle) + 1) ** 2 / (2 * _RANGE)

    def farthest(self, y: float) -> float:
        """The largest x at which a bird can hit a point of height y."""
        near, far = self.sling[0], self.sling[0] + 2 * _RANGE
        for _ in range(60):
            middle = (near + far) / 2
            near, far = (middle, far) if self.height(middle) > y else (near, middle)
        return near


class Sampling(Protocol):
    """Draws positions for the anchor."""

    def draw(self, rng: np.random.Generator, reach: Reach, anchor: Point) -> Point | None:
        """A new position of the anchor, which the template has at `anchor`; None if this draw failed."""


@dataclass(frozen=True, slots=True)
class Along:
    """Move sideways only; with a height, not beyond the reach at that height."""

    x0: float
    x1: float
    height: float | None = None

    def draw(self, rng: np.random.Generator, reach: Reach, anchor: Point) -> Point | None:
        """Draw x uniformly."""
        x1 = self.x1 if self.height is None else min(self.x1, reach.farthest(self.height))
        return (rng.uniform(self.x0, x1), anchor[1]) if self.x0 < x1 else None


@dataclass(frozen=True, slots=True)
class ReachLine:
    """The part of a box that is within reach."""

    x0: float
    x1: float
    y0: float
    y1: float

    def draw(self, rng: np.random.Generator, reach: Reach, anchor: Point) -> Point | None:
        """Draw x uniformly, then y uniformly up to the reach."""
        x = rng.uniform(self.x0, self.x1)
        y1 = min(self.y1, reach.height(x))
        return (x, rng.uniform(self.y0, y1)) if self.y0 <= y1 else None


@dataclass(frozen=True, slots=True)
class OnLine:
    """On the line of the reach."""

    x0: float = -6.51
    x1: float = 9.459

    def draw(self, rng: np.random.Generator, reach: Reach, anchor: Point) -> Point | None:
        """Draw x uniformly."""
        x = rng.uniform(self.x0, self.x1)
        return x, reach.height(x)


@dataclass(frozen=True, slots=True)
class Boxes:
    """One of several boxes (x from, x to, y from, y to) with equal probability."""

    boxes: tuple[tuple[float, float, float, float], ...]

    def draw(self, rng: np.random.Generator, reach: Reach, anchor: Point) -> Point | None:
        """Draw a box, then x and y uniformly in it."""
        x0, x1, y0, y1 = self.boxes[rng.integers(len(self.boxes))]
        return rng.uniform(x0, x1), rng.uniform(y0, y1)


def low_left(x0: float, x1: float, y0: float, y1: float) -> Boxes:
    """A box without its upper left quarter; both halves of x are equally likely."""
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return Boxes(((x0, x, y0, y), (x, x1, y0, y1)))


def low_right(x0: float, x1: float, y0: float, y1: float) -> Boxes:
    """A box without its upper right quarter; both halves of x are equally likely."""
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    return Boxes(((x0, x, y0, y1), (x, x1, y0, y)))


def out_of_reach(y0: float, y1: float, upper: tuple[float, float], lower: tuple[float, float]) -> Boxes:
    """One range of x for the upper half of y, another for the lower half."""
    y = (y0 + y1) / 2
    return Boxes(((*upper, y, y1), (*lower, y0, y)))


_ORDERS: Mapping[str, Callable[[Point], float]] = {
    "first": lambda point: 0.0,
    "highest": lambda point: point[1],
    "lowest": lambda point: -point[1],
    "rightmost": lambda point: point[0],
}


@dataclass(frozen=True, slots=True)
class Pick:
    """Selects an object of the template by kind, type and material (empty: any)."""

    kind: str
    type: str = ""
    material: str = ""
    order: str = "first"
    """Which one if several match: first, highest, lowest or rightmost."""

    def find(self, template: Level) -> Point:
        """The centre of the selected object."""
        matching = [
            (item.x, item.y)
            for item in template.items
            if item.kind == self.kind and self.type in ("", item.type) and self.material in ("", item.material)
        ]
        if not matching:
            words = " ".join(filter(None, (self.order, self.material, self.type or self.kind)))
            raise BadSpecError(
                f"template '{template.name}' has no {words} to place tasks by; pass rule= with another anchor"
            )
        return max(matching, key=_ORDERS[check_name("order", self.order, _ORDERS)])


@dataclass(frozen=True, slots=True)
class PlacementRule:
    """How the tasks of a template are placed; without `where` nothing is moved."""

    anchor: Point | Pick = Pick("pig")
    where: Sampling | None = None
    pigs_only: bool = False
    """Move only the pigs."""
    stays_inside: bool = False
    """No object may overlap the slingshot, and only platforms may leave the world."""


_PIG = Pick("pig")
_STONE_HOLE, _WOOD_HOLE = Pick("block", "SquareHole", "stone"), Pick("block", "SquareHole", "wood")
_STONE_BALL = Pick("block", "CircleSmall", "stone")

# Within reach: the anchor, then x from, x to, y from, y to.
_REACHED: dict[str, tuple[Point | Pick, tuple[float, float, float, float]]] = {
    **{f"1_1_{t}": (_PIG, (-7.0, 6.0, -2.83, 4.0)) for t in (2, 4, 5)},
    **{f"1_{s}_6": (_PIG, (-5.0, 1.0, -2.4, 0.0)) for s in (1, 2)},
    "2_2_1": ((-5.310, -0.790), (-8.747, 1.549, -0.590, 1.230)),
    "2_3_2": ((-5.598, 1.024), (-4.96, RIGHT, -2.4, 100.0)),
    "2_3_5": ((-1.515, -1.646), (-4.96, RIGHT, -1.4, 100.0)),
    **{f"2_4_{t}": (_PIG, (-4.96, 0.0, -1.4, 4.0)) for t in (1, 2)},
    "2_4_3": (_PIG, (-4.96, 0.0, -1.4, 2.0)),
    **{f"2_4_{t}": (_PIG, (-4.96, 4.397, -1.4, 1.0)) for t in (4, 5)},
    "2_4_6": (_PIG, (-4.96, 0.0, -1.4, 0.0)),
    "3_1_1": (_STONE_HOLE, (-7.5, 5.0, 2.3, 5.3)),
    "3_1_2": ((3.48, 1.410), (3.3, 3.5, 1.47, 3.3)),
    "3_1_3": (_STONE_BALL, (-7.0, 0.0, 2.3, 4.0)),
    "3_1_4": (_STONE_BALL, (-5.0, 0.0, 0.3, 4.0)),
    "3_1_6": (_WOOD_HOLE, (-5.0, 0.0, -0.5, 2.0)),
    "3_2_3": (replace(_STONE_HOLE, order="lowest"), (-6.0, RIGHT, 0.934, 4.0)),
    "3_2_4": (Pick("platform", order="rightmost"), (-2.0, 2.6, -0.978, 1.3)),
    "3_3_1": ((-4.89, 0.95), (-6.96, RIGHT, 0.95, 4.0)),
    "3_3_2": ((-6.21, 2.18), (-9.85, RIGHT, 3.32, 4.0)),
    "3_3_3": ((-0.986, 2.635), (-5.0, RIGHT, -0.97, 2.8)),
    "3_3_4": ((-0.831, 2.684), (-5.0, RIGHT, -0.363, 2.8)),
    "3_4_1": ((2.259, 1.392), (-7.94, RIGHT, 1.39, 2.8)),
    "3_4_2": ((-6.912, 1.226), (-8.73, RIGHT, 1.226, 4.0)),
    "3_4_3": ((-4.795, -1.200), (-7.485, RIGHT, -1.2, 4.0)),
    "3_4_4": ((-5.048, 1.88), (-8.0, -4.0, 1.88, 2.8)),
    "3_5_1": ((2.820, 1.026), (-0.89, RIGHT, -0.80, 2.8)),
    "3_5_2": ((-2.4, 5.8), (-6.45, RIGHT, 3.68, 4.0)),
    "3_5_3": ((-3.380, -2.420), (-6.0, 1.558, -0.939, 1.5)),
    "3_5_4": ((-6.152, -2.890), (-6.152, 4.0, -3.175, 0.3)),
    "3_5_5": ((-1.208, 2.030), (-3.915, RIGHT, 2.03, 4.0)),
    "3_6_1": ((-3.709, -2.159), (-7.66, RIGHT, -2.417, 2.0)),
    "3_6_3": ((-2.219, -0.038), (-5.379, -0.039, -0.038, 0.293)),
    "3_6_4": ((-3.399, 0.295), (-4.355, 1.564, 0.295, 1.566)),
    "3_6_5": ((-2.170, -1.351), (-4.355, -1.354, -1.351, 0.400)),
    "3_6_6": ((-2.222, -0.505), (-7.041, -0.727, -1.064, 0.554)),
    "3_6_7": ((-2.385, -0.131), (-5.756, 5.775, -0.576, 1.737)),
    "3_7_1": ((-1.115, 0.100), (-4.313, RIGHT, 0.7, 2.8)),
    "3_7_2": ((-0.150, 0.736), (-4.71, 4.69, 0.736, 2.8)),
    "3_7_3": ((-0.100, 0.334), (-4.71, 4.69, 0.334, 2.8)),
    "3_7_4": ((-3.742, 2.163), (-9.348, 7.397, 2.163, 4.0)),
    "3_7_5": ((-3.06, 4.451), (-7.829, 4.397, 3.999, 4.0)),
    "3_9_3": ((1.910, -0.059), (-2.91, RIGHT, -0.059, 2.8)),
    "3_9_4": ((0.97, 2.33), (-2.91, 4.397, 2.33, 4.0)),
    "3_9_5": ((3.35, 0.129), (-5.37, RIGHT, -1.421, 2.8)),
    "3_9_6": ((-0.820, -1.901), (-6.25, 4.397, -2.330, 4.0)),
    "3_9_7": ((-0.32, -1.43), (-8.876, 4.397, -1.43, 4.0)),
    "3_9_8": ((0.220, 0.820), (-5.219, 4.397, 0.820, 4.0)),
}

RULES: Mapping[str, PlacementRule] = {
    **{key: PlacementRule(anchor, ReachLine(*span)) for key, (anchor, span) in _REACHED.items()},
    "1_1_1": PlacementRule(_PIG, Along(LEFT, RIGHT, height=-3.26), pigs_only=True),
    "1_2_1": PlacementRule(_PIG, Along(LEFT + 1, RIGHT - 1), pigs_only=True),
    **{f"1_2_{t}": PlacementRule(_PIG, low_left(-8.0, 4.0, -1.4, 2.0)) for t in (2, 4)},
    "1_2_5": PlacementRule(_PIG, low_left(-5.0, 4.5, -2.4, 2.5)),
    **{f"2_1_{t}": PlacementRule(_PIG, out_of_reach(-2.4, 4.0, (3.4, 10.4), (10.4, 14.4))) for t in (2, 3)},
    "2_1_5": PlacementRule(_PIG, out_of_reach(-2.4, 4.0, (4.4, 11.4), (10.4, 11.4))),
    "2_1_6": PlacementRule(_PIG, out_of_reach(-2.4, -1.0, (6.4, 9.4), (9.4, 12.4))),
    "2_1_8": PlacementRule(_PIG, low_left(-4.96, 6.4, -2.4, 2.0)),
    "2_1_9": PlacementRule(_PIG, low_left(-4.96, 9.4, -2.4, -1.0)),
    **{f"2_2_{t}": PlacementRule(_PIG, low_right(-4.96, 2.397, -2.4, 1.0)) for t in (2, 3, 6, 8)},
    "2_3_1": PlacementRule((2.44, 1.712), OnLine()),
    "2_3_3": PlacementRule(_PIG, Along(10.397, 13.0)),
    "2_3_4": PlacementRule(_PIG, Along(-6.96, RIGHT)),
    "3_2_1": PlacementRule(Pick("block", "RectBig"), OnLine()),
    "3_2_2": PlacementRule(replace(_STONE_HOLE, order="highest"), Along(-8.0, RIGHT, height=4.27)),
    **{f"3_8_{t}": PlacementRule() for t in (1, 2)},
    "3_9_1": PlacementRule(_PIG, Boxes(((13.4, 17.0, -3.4, 4.0),))),
    "3_9_2": PlacementRule(_PIG, Boxes(((10.4, 17.0, -3.4, 4.0),))),
}
"""Placement rules by template id, category_scenario_template."""
