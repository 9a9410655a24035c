"""The outlines in the ground truth.

Sizes and numbers of corners are those of the game's sprites; the shapes are our own.
"""

from functools import cache
from math import cos, pi, sin, tau

from nappingrl.domains.angrybirds.physics.scene import Thing
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.errors import check_name
from nappingrl.types import Point

Contour = tuple[Point, ...]

HOLE = 0.46
"""Side of the hole of a SquareHole, in world units."""


def _arc(n: int, x: float, y: float, radius: float, start: float, end: float) -> list[Point]:
    """Points on an arc around (x, y), with both ends; angles in radians, counterclockwise."""
    angles = [start + (end - start) * i / (n - 1) for i in range(n)]
    return [(x + radius * cos(angle), y + radius * sin(angle)) for angle in angles]


def _disc(n: int) -> list[Point]:
    """A regular polygon with a corner at the top."""
    return [(cos(pi / 2 + tau * i / n), sin(pi / 2 + tau * i / n)) for i in range(n)]


def _fitted(points: list[Point], width: float, height: float) -> Contour:
    """Scale and move points so that they fill a box around (0, 0)."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, bottom, wide, high = min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)
    return tuple(((x - left) / wide * width - width / 2, (y - bottom) / high * height - height / 2) for x, y in points)


_BOX = [(-1.0, -1.0), (-1.0, 1.0), (1.0, 1.0), (1.0, -1.0)]
"""Bottom left, top left, top right, bottom right."""
_EGG = [(x * (1 - 0.14 * y), y) for x, y in _disc(12)]
_CREST = [(0.2, 1.0), (0.05, 1.22), (-0.1, 1.0)]

_SHAPES: dict[str, list[Point]] = {
    "BasicSmall": _disc(8),
    "BasicMedium": _disc(15),
    "BasicBig": _disc(15),
    "Circle": _disc(13),
    "CircleSmall": _disc(8),
    "Egg": _EGG,
    # Round, with a crest; the red one with a tail on the left.
    "BirdRed": [(-1.15, -0.1), *_arc(6, 0, 0, 1, -2.7, 0.6), *_CREST, (-0.75, 0.7)],
    "BirdBlue": [*_arc(7, 0, 0, 1, -2.7, 0.6), *_CREST, (-0.8, 0.6)],
    # A triangle with round corners and a tuft.
    "BirdYellow": [
        *_arc(5, -0.6, -0.6, 0.4, 0.8 * pi, 1.5 * pi),
        *_arc(5, 0.6, -0.6, 0.4, 1.5 * pi, 2.2 * pi),
        *_arc(5, 0.05, 0.6, 0.35, 0.2 * pi, 0.7 * pi),
        (-0.4, 1.05),
        (-0.35, 0.65),
        (-0.65, 0.6),
        (-0.5, 0.25),
    ],
    # Pear-shaped, with a tuft.
    "BirdWhite": [*[(x * (1 - 0.3 * y), y) for x, y in _arc(14, 0, 0, 1, 0.6 * pi, 2.4 * pi)], *_CREST],
    # A bomb with a fuse.
    "BirdBlack": [*_arc(15, 0, 0, 1, 0.6 * pi, 2.4 * pi), (0.2, 1.25), (0.35, 1.5), (0.1, 1.55), (-0.1, 1.2)],
    # A right angle at the bottom left; the tips are cut.
    "Triangle": [(-1, -1), (-1, 0.97), (-0.97, 1), (-0.93, 0.99), (0.99, -0.93), (1, -0.97), (0.97, -1)],
    "TriangleHole": [(-1, -1), (-1, -0.8), (-0.1, 1), (0.1, 1), (1, -0.8), (1, -1)],
    "SquareHole": [(-0.94, -1), (-1, -0.94), (-1, 1), (1, 1), (1, -0.94), (0.94, -1)],
    "Bone": [
        *_arc(3, -0.8, 0.15, 0.2, -0.1 * pi, pi),
        *_arc(3, -0.8, -0.15, 0.2, pi, 2.1 * pi),
        *_arc(3, 0.8, -0.15, 0.2, 0.9 * pi, 2 * pi),
        *_arc(3, 0.8, 0.15, 0.2, 0, 1.1 * pi),
    ],
}
"""Outlines in arbitrary units; all other types are boxes."""

_HOLES: dict[str, Contour] = {
    "SquareHole": tuple((x * HOLE / 2, y * HOLE / 2) for x, y in _BOX),
    "TriangleHole": ((-0.13, -0.19), (0.0, 0.12), (0.13, -0.19)),
}


@cache
def rings(type_: str) -> tuple[Contour, ...]:
    """The upright outline of a type around (0, 0) in world units: the outer ring, then holes."""
    check_name("type of object", type_, SPRITE_SIZES)
    outer = _fitted(_SHAPES.get(type_, _BOX), *SPRITE_SIZES[type_])
    return (outer, _HOLES[type_]) if type_ in _HOLES else (outer,)


def contours(thing: Thing) -> tuple[Contour, ...]:
    """The outline of an object in world units: the outer ring, then holes; not closed."""
    x, y, c, s = thing.x, thing.y, cos(thing.angle), sin(thing.angle)
    a, b = c * thing.scale_x, -s * thing.scale_y
    d, e = s * thing.scale_x, c * thing.scale_y
    return tuple([tuple([(x + a * u + b * v, y + d * u + e * v) for u, v in ring]) for ring in rings(thing.type)])
