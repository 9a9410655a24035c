"""Blocks, TNT, platforms and objects of novelties: a rim, a body, the texture of the material, cracks."""

from itertools import pairwise
from math import cos, hypot, pi, sin
from random import Random

from nappingrl.domains.angrybirds.ground_truth.outlines import Contour, rings
from nappingrl.domains.angrybirds.pictures.pen import Sprite, Stroke, disc, oval
from nappingrl.types import Point

RIM = 0.03
SHADE = 0.035
"""Share of the lower side that is shaded."""


# Shapes --------------------------------------------------------------------------------------------------------------


def inset(ring: Contour, depth: float) -> Contour:
    """A convex ring with every side moved inwards; outwards if the depth is negative."""
    n = len(ring)
    area = sum(ring[i - 1][0] * ring[i][1] - ring[i][0] * ring[i - 1][1] for i in range(n))
    turn = depth if area > 0 else -depth
    points = []
    for i in range(n):
        (ax, ay), (bx, by), (cx, cy) = ring[i - 1], ring[i], ring[(i + 1) % n]
        first, second = hypot(bx - ax, by - ay), hypot(cx - bx, cy - by)
        u, v = -(by - ay) / first, (bx - ax) / first
        p, q = -(cy - by) / second, (cx - bx) / second
        share = turn / max(1 + u * p + v * q, 0.3)
        points.append((bx + (u + p) * share, by + (v + q) * share))
    return tuple(points)


def _framed(outer: Contour, hole: Contour | None) -> Contour:
    """One ring for a shape with a hole: from the outer ring to the hole and back along the same line."""
    return (*outer, outer[0], hole[0], *hole[1:], hole[0], outer[0]) if hole else outer


def _part_above(ring: Contour, height: float) -> Contour:
    """The part of a convex ring above a height."""
    points: list[Point] = []
    for (ax, ay), (bx, by) in zip((ring[-1], *ring), ring, strict=False):
        if (ay > height) != (by > height):
            points.append((ax + (bx - ax) * (height - ay) / (by - ay), height))
        if by > height:
            points.append((bx, by))
    return tuple(points)


def _lit(ring: Contour) -> Contour:
    """The part of a body that is not shaded."""
    return _part_above(ring, min(y for _, y in ring) + SHADE)


def _chord(ring: Contour, y: float) -> tuple[float, float]:
    """The extent in x of a convex ring at a height."""
    crossings = []
    for (ax, ay), (bx, by) in zip(ring, (*ring[1:], ring[0]), strict=True):
        if (ay > y) != (by > y):
            crossings.append(ax + (bx - ax) * (y - ay) / (by - ay))
    return (min(crossings), max(crossings)) if crossings else (0.0, 0.0)


def _heights(ring: Contour, n: int) -> list[float]:
    """Evenly spaced heights."""
    low, high = min(y for _, y in ring), max(y for _, y in ring)
    return [low + (high - low) * (i + 0.5) / n for i in range(n)]


# Materials -----------------------------------------------------------------------------------------------------------


def _wood(ring: Contour, random: Random) -> list[Stroke]:
    """Grain along the block, with gaps, and a knot if there is room."""
    inner = inset(ring, RIM * 1.8)
    high = max(y for _, y in inner) - min(y for _, y in inner)
    strokes = []
    for y in _heights(inner, max(2, round(high / 0.11))):
        left, right = _chord(inner, y)
        gap = left + (right - left) * random.uniform(0.3, 0.7)
        for start, end in ((left, gap - 0.04), (gap + 0.04, right)):
            if end - start > 0.08:
                strokes.append(Stroke(((start, y), (end, y + random.uniform(-0.01, 0.01))), "dark", 0.02))
    if high > 0.3:
        left, right = _chord(inner, -0.1)
        x = left + (right - left) * 0.3
        strokes += [oval(x, -0.06, 0.075, 0.05, "mark"), oval(x, -0.06, 0.045, 0.026, "dark")]
    return strokes


def _log(radius: float) -> list[Stroke]:
    """A sawn end with its rings."""
    rounds = [(0.78, "dark"), (0.7, "base"), (0.52, "dark"), (0.44, "light"), (0.26, "dark"), (0.17, "base")]
    return [disc(0.01, 0.01, radius * share, shade) for share, shade in rounds]


def _stone(ring: Contour, random: Random) -> list[Stroke]:
    """Lighter and darker speckles."""
    inner = inset(ring, RIM * 2)
    low, high = min(y for _, y in inner), max(y for _, y in inner)
    strokes = []
    wide = max(x for x, _ in inner) - min(x for x, _ in inner)
    for i in range(max(4, round(wide * (high - low) * 40))):
        y = random.uniform(low + 0.02, high - 0.02)
        left, right = _chord(inner, y)
        x = random.uniform(left, right)
        strokes.append(disc(x, y, random.uniform(0.012, 0.03), ("dark", "light", "accent")[i % 3]))
    return strokes


def _ice(ring: Contour, random: Random) -> list[Stroke]:
    """A light upper half and slanted glints."""
    inner = inset(ring, RIM * 1.8)
    low, high = min(y for _, y in inner), max(y for _, y in inner)
    middle, reach = (low + high) / 2, (high - low) * 0.28
    left, right = _chord(inner, middle)
    strokes = [Stroke(_part_above(inner, middle), "light")]
    start, end = left + reach + 0.02, right - reach - 0.02
    n = max(1, round((end - start) / 0.5))
    for i in range(n):
        x = start + (end - start) * (i + random.uniform(0.3, 0.6)) / n
        for aside, width in ((0.0, 0.035), (0.08, 0.016)):
            if x + aside + reach < right:
                strokes.append(
                    Stroke(
                        ((x + aside - reach / 2, middle - reach), (x + aside + reach / 2, middle + reach)),
                        "mark",
                        width,
                    )
                )
    return strokes


_TEXTURES = {"wood": _wood, "stone": _stone, "ice": _ice}


def _cracks(ring: Contour, stage: int, reach: float) -> list[Stroke]:
    """Jagged lines from the rim inwards, more and longer with every stage."""
    random = Random(stage)
    across, up = max(x for x, _ in ring), max(y for _, y in ring)
    short = min(across, up)
    corners = (*ring, ring[0])
    sides = list(pairwise(corners))
    lengths = [hypot(bx - ax, by - ay) for (ax, ay), (bx, by) in sides]
    strokes = []
    for _ in range((stage - 1) * max(1, round(sum(lengths) / 1.4))):
        (ax, ay), (bx, by) = random.choices(sides, lengths)[0]
        share, far = random.uniform(0.1, 0.9), reach * random.uniform(0.7, 0.8 + 0.15 * stage)
        x, y = ax + (bx - ax) * share, ay + (by - ay) * share
        dx, dy = -x / across * short * far, -y / up * short * far
        bends = [(step, random.uniform(-0.2, 0.2)) for step in (0.35, 0.7)]
        path = [(x + dx * step - dy * bend, y + dy * step + dx * bend) for step, bend in bends]
        strokes.append(Stroke(((x, y), *path, (x + dx, y + dy)), "line", 0.02))
    return strokes


# Things --------------------------------------------------------------------------------------------------------------


def block(type_: str, material: str, stage: int) -> Sprite:
    """A block; its shape has more detail than in the ground truth."""
    outer, *holes = rings(type_)
    hole = holes[0] if holes else None
    is_round = type_ in ("Circle", "CircleSmall")
    across, up = max(x for x, _ in outer), max(y for _, y in outer)
    if is_round:
        outer = oval(0.0, 0.0, across, up, "line").points
    elif type_ == "Triangle":
        outer = ((-across, -up), (-across, up), (across, -up))
    elif type_ == "SquareHole":
        outer = ((-across, -up), (-across, up), (across, up), (across, -up))
    body, deep_hole = inset(outer, RIM), inset(hole, -RIM) if hole else None
    strokes = [
        Stroke(_framed(outer, hole), "line"),
        Stroke(_framed(body, deep_hole), "dark"),
        Stroke(_framed(_lit(body), deep_hole), "base"),
    ]
    if is_round and material == "wood":
        strokes += _log(across - RIM)
    elif hole:
        strokes += _frame_texture(inset(outer, RIM * 2.2), inset(hole, -RIM * 1.8))
    elif material in _TEXTURES:
        strokes += _TEXTURES[material](outer, Random(type_))
    return (*strokes, *_cracks(body, stage, 0.3 if hole else 0.9))


def _frame_texture(outer: Contour, hole: Contour) -> list[Stroke]:
    """A joint at every corner of a frame, and a light line along its bars."""
    joints = [(min(outer, key=lambda corner: hypot(corner[0] - 2 * x, corner[1] - 2 * y)), (x, y)) for x, y in hole]
    middle = [((a + x) / 2, (b + y) / 2) for (a, b), (x, y) in joints]
    return [Stroke((*middle, middle[0]), "light", 0.03), *[Stroke(joint, "dark", 0.022) for joint in joints]]


def tnt(width: float, height: float) -> Sprite:
    """A crate with a labelled band."""
    outer = rings("TNT")[0]
    body = inset(outer, RIM)
    across, up = width / 2 - RIM, height / 2 - RIM
    planks = [Stroke(((-across, y * up), (across, y * up)), "dark", 0.02) for y in (-0.66, 0.66)]
    band = ((-across, -0.4 * up), (-across, 0.4 * up), (across, 0.4 * up), (across, -0.4 * up))
    strokes = [Stroke(outer, "line"), Stroke(body, "dark"), Stroke(_lit(body), "base"), *planks]
    strokes.append(Stroke(band, "accent"))
    for x, letter in ((-0.58, "T"), (0.0, "N"), (0.58, "T")):
        wide, high = 0.2 * across, 0.26 * up
        lines = [tuple((x * across + u * wide, v * high) for u, v in line) for line in _LETTERS[letter]]
        strokes += [Stroke(line, "mark", 0.045) for line in lines]
    return tuple(strokes)


_LETTERS: dict[str, tuple[Contour, ...]] = {
    "T": (((-1.0, 1.0), (1.0, 1.0)), ((0.0, 1.0), (0.0, -1.0))),
    "N": (((-1.0, -1.0), (-1.0, 1.0)), ((-1.0, 1.0), (1.0, -1.0)), ((1.0, -1.0), (1.0, 1.0))),
}


def platform(width: float, height: float) -> Sprite:
    """A slab with a lit upper edge, hatching and bolts."""
    x, y = width / 2, height / 2
    outer: Contour = ((-x, -y), (-x, y), (x, y), (x, -y))
    body = inset(outer, RIM)
    lit = min(0.08, 0.3 * height)
    strokes = [Stroke(outer, "line"), Stroke(body, "base")]
    n = max(1, round(width / 0.32))
    lean = min(0.16, height / 2)
    for i in range(n):
        u = -x + width * (i + 0.5) / n
        low, high = (u - lean / 2, -y + RIM * 1.5), (u + lean / 2, y - RIM - lit)
        strokes.append(Stroke((low, high), "dark", 0.045))
    strokes.append(
        Stroke(((-x + RIM, y - RIM - lit), (-x + RIM, y - RIM), (x - RIM, y - RIM), (x - RIM, y - RIM - lit)), "light")
    )
    bolt = min(0.045, height / 5)
    strokes += [disc(side * (x - RIM - 2 * bolt), -lit / 2, bolt, "mark") for side in (-1, 1)]
    return tuple(strokes)


def green_egg(width: float, height: float) -> Sprite:
    """A box with round corners and an egg on it."""
    x, y, r = width / 2, height / 2, 0.3 * width
    corners = ((x - r, y - r, 0.0), (-x + r, y - r, 0.5), (-x + r, -y + r, 1.0), (x - r, -y + r, 1.5))
    outer = tuple(
        (cx + r * cos(pi * (start + i / 8)), cy + r * sin(pi * (start + i / 8)))
        for cx, cy, start in corners
        for i in range(5)
    )
    body = inset(outer, RIM)
    egg = tuple((0.3 * width * u * (1 - 0.16 * v), 0.32 * height * v) for u, v in oval(0, 0, 1, 1, "light").points)
    spots = [disc(0.06, 0.06, 0.05, "mark"), disc(-0.05, -0.1, 0.04, "mark"), disc(0.05, -0.17, 0.025, "mark")]
    return (
        Stroke(outer, "line"), Stroke(body, "dark"), Stroke(_lit(body), "base"), Stroke(inset(egg, -0.025), "line"),
        Stroke(egg, "accent"), *spots,
    )  # fmt: skip


def bone(width: float, height: float) -> Sprite:
    """A shaft between two pairs of knobs."""
    radius = height * 0.29
    x, y = width / 2 - radius, height / 2 - radius
    strokes = []
    for shrink, shade in ((0.0, "line"), (RIM, "dark"), (RIM * 1.6, "base")):
        strokes.append(Stroke(((-x, 0.0), (x, 0.0)), shade, height * 0.46 - 2 * shrink))
        strokes += [disc(u, v, radius - shrink, shade) for u in (-x, x) for v in (-y, y)]
    return (*strokes, Stroke(((-0.6 * x, 0.03), (0.5 * x, 0.03)), "light", 0.03))
