"""The vocabulary of levels: ledges, roofs, walls, blocks, pigs and TNT, and the arrangements made of them.

Lengths are world units. A long, one-sided ledge has its middle far from the pig, so that aiming at it wins nothing.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nappingrl.domains.angrybirds.levels.templates.flights import Flight, Way, aim, miss
from nappingrl.domains.angrybirds.physics.scene import GROUND, Item
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES, extent
from nappingrl.types import Point

Rng = np.random.Generator
Items = list[Item]

THICK = 0.32
"""Thickness of platforms."""
MATERIALS = ("wood", "ice", "stone")
SMALL_BLOCKS = ("RectFat", "SquareSmall", "SquareHole", "RectSmall")


@dataclass(slots=True)
class Draft:
    """What a variant draws: objects, the number of birds, and where a novelty puts its own objects."""

    items: Items
    """Decoys are last: they are left out where there is no room or no slot for them."""
    birds: int = 1
    spots: list[Point] = field(default_factory=list)
    """Points on surfaces, on which the objects of a novelty stand."""


def draw(rng: Rng, low: float, high: float) -> float:
    """A uniform number."""
    return float(rng.uniform(low, high))


def height_of(type_: str) -> float:
    """Height of an object that stands upright."""
    return SPRITE_SIZES[type_][1]


# Single objects ------------------------------------------------------------------------------------------------------


def platform(left: float, right: float, bottom: float, top: float) -> Item:
    """A platform between four edges."""
    size, _ = SPRITE_SIZES["Platform"]
    return Item(
        "platform", "Platform", (left + right) / 2, (bottom + top) / 2,
        scale_x=(right - left) / size, scale_y=(top - bottom) / size,
    )  # fmt: skip


def ledge(left: float, right: float, top: float) -> Item:
    """A flat platform with its surface at `top`."""
    return platform(left, right, top - THICK, top)


def wall(left: float, bottom: float, top: float) -> Item:
    """An upright platform."""
    return platform(left, left + THICK, bottom, top)


def block(x: float, top: float, type_: str, material: str) -> Item:
    """A block on a surface at height `top`."""
    return Item("block", type_, x, top + height_of(type_) / 2, 0.0, material)


def pig(x: float, top: float, type_: str = "BasicMedium") -> Item:
    """A pig on a surface."""
    return Item("pig", type_, x, top + height_of(type_) / 2)


def tnt(x: float, top: float) -> Item:
    """TNT on a surface."""
    return Item("tnt", "TNT", x, top + height_of("TNT") / 2)


# Arrangements --------------------------------------------------------------------------------------------------------


def pocket(x: float, top: float, roof: float = 1.5, deep: float = 0.75, lip: float = 1.2) -> Items:
    """A roof over a ledge and a wall behind x: high is shut, a low shot that is too high bounces down."""
    return [ledge(x - lip, x + 5.0, top + roof + THICK), wall(x + deep, top - 3.0, top + roof)]


def roofed(x: float, top: float, size: str = "BasicMedium") -> Items:
    """A pig on a ledge under a roof: low only."""
    return [pig(x, top, size), ledge(x - 1.4, x + 3.4, top), ledge(x - 1.7, x + 3.4, top + 2.0)]


def shaft(x: float, top: float, depth: float = 1.9) -> Items:
    """A pig on a ledge behind a wall: high only."""
    return [pig(x, top), ledge(x - 1.3, x + 2.0, top), wall(x - 1.62, top - THICK, top + depth)]


def walled(x: float, top: float) -> Items:
    """A pig behind a low wall on a short ledge: high only."""
    return [pig(x, top), ledge(x - 1.3, x + 1.0, top), wall(x - 1.62, top - THICK, top + 1.0)]


def cellar(x: float, roof: float, left: float, right: float, size: str = "BasicSmall", stone: float = 1.2) -> Items:
    """A pig on the ground under a long roof, stone before it; `roof` is the height of the roof's underside."""
    return [
        pig(x, GROUND, size),
        ledge(x - left, x + right, roof + THICK),
        block(x - stone, GROUND, "SquareHole", "stone"),
    ]


def screen(rng: Rng, flight: Flight, below: float, above: float) -> Item:
    """A platform near the slingshot across low flights; DataLab does not look there."""
    x = draw(rng, -8.6, -7.6)
    y = flight.height(x)
    return wall(x, y - below, y + above)


def ice_pile(x: float, top: float) -> Items:
    """Two small blocks of ice, which a bird breaks through; DataLab prefers a high shot."""
    return [block(x, top + i * height_of("SquareSmall"), "SquareSmall", "ice") for i in range(2)]


def stack(x: float, base: float, lower: str, upper: str) -> Items:
    """Wood on ice on a short ledge."""
    return [
        ledge(x - 0.6, x + 0.6, base),
        block(x, base, lower, "ice"),
        block(x, base + height_of(lower), upper, "wood"),
    ]


def stack_below(flight: Flight, x: float, clear: float) -> Items:
    """Wood on ice, `clear` below a flight; afloat the wood is in its way."""
    return stack(x, flight.height(x) - clear - 2 * height_of("SquareHole"), "SquareHole", "SquareHole")


def stack_across(flight: Flight, x: float) -> Items:
    """Wood on ice, the wood across a flight; afloat the flight passes between them."""
    return stack(x, flight.height(x) - 0.4 - height_of("RectFat"), "RectFat", "SquareHole")


# Decoys and helpers --------------------------------------------------------------------------------------------------


def litter(rng: Rng, left: float, right: float, n: int) -> Items:
    """Blocks on the ground, one in each of n equal intervals."""
    items = []
    for start, end in pairwise(np.linspace(left, right, n + 1).tolist()):
        type_, material = str(rng.choice(SMALL_BLOCKS)), str(rng.choice(MATERIALS))
        half = SPRITE_SIZES[type_][0] / 2 + 0.1
        items.append(block(draw(rng, start + half, end - half), GROUND, type_, material))
    return items


def decoys(rng: Rng, far: int, near: int, tnts: int) -> Items:
    """Objects that no shot needs: behind but within reach, and before under all flights."""
    behind = litter(rng, 5.5, 5.5 + 1.2 * max(far, 2), far) if far else []
    before = litter(rng, -6.2, -6.2 + 1.3 * near, near) if near else []
    return [*behind, *before, *(tnt(-7.1 - 0.9 * i, GROUND) for i in range(tnts))]


def drawn_decoys(rng: Rng, far: int | None = None, near: int | None = None, tnts: int | None = None) -> Items:
    """Decoys, at random unless given: one or two far ones, none or one near, none or one TNT."""
    drawn = int(rng.integers(1, 3)), int(rng.integers(2)), int(rng.integers(2))
    return decoys(rng, *(n if n is not None else other for n, other in zip((far, near, tnts), drawn, strict=True)))


def scattered(rng: Rng, items: Items, n: int, left: float = 4.5, right: float = 9.5) -> Items:
    """Up to n blocks on the ground, where nothing else is."""
    out: Items = []
    for _ in range(8 * n):
        more = litter(rng, left, right, 1)
        if len(out) < n and not clash([*items, *out], more):
            out += more
    return out


def helper(rng: Rng, x: float, y: float, way: Way, look: str) -> Items:
    """A block to aim at after the novelty: a shot at it really passes the point; empty if there is no place for it."""
    for base in [GROUND, *rng.permutation([-2.4, -1.4, -0.4, 0.6]).tolist()]:
        type_ = str(rng.choice(SMALL_BLOCKS[:3]))
        centre = base + height_of(type_) / 2
        flights = [(at, aim(at, centre, way, look)) for at in np.arange(x + 1.2, 13.0, 0.04).tolist()]
        misses = [(miss(x, y, flight, way[0]), at) for at, flight in flights if flight is not None]
        least, at = min(misses, default=(1.0, 0.0))
        if least < 0.08:
            below = [] if base == GROUND else [ledge(at - 0.5, at + 0.5, base)]
            return [block(at, base, type_, str(rng.choice(MATERIALS))), *below]
    return []


def add_helper(rng: Rng, items: Items, x: float, y: float, ways: tuple[Way, ...], look: str) -> None:
    """Add a helper for one of several ways, at a place where nothing else is."""
    for _ in range(12):
        more = helper(rng, x, y, ways[int(rng.integers(len(ways)))], look)
        if more and not clash(items, more):
            items += more
            return


def clash(items: Items, more: Items, gap: float = 0.15) -> bool:
    """Whether objects would touch or nearly touch."""
    return any(
        abs(one.x - other.x) < (extent(one)[0] + extent(other)[0]) / 2 + gap
        and abs(one.y - other.y) < (extent(one)[1] + extent(other)[1]) / 2 + gap
        for one in items
        for other in more
    )


def without_overlaps(items: Items) -> Items:
    """Leave out what would stand inside an object before it; platforms may cross each other."""
    kept: Items = []
    for item in items:
        if item.kind == "platform" or not clash(kept, [item], gap=-0.05):
            kept.append(item)
    return kept
