"""Floating Wood: wood on ice under a flight, across it, or beside it; afloat it opens or shuts the way."""

from nappingrl.domains.angrybirds.levels.templates.flights import low
from nappingrl.domains.angrybirds.levels.templates.pieces import (
    THICK,
    Draft,
    Items,
    Rng,
    cellar,
    draw,
    drawn_decoys,
    height_of,
    ledge,
    pig,
    pocket,
    screen,
    stack_across,
    stack_below,
    tnt,
    wall,
    walled,
)
from nappingrl.domains.angrybirds.physics.scene import GROUND

_SMALL_PIG, _MEDIUM_PIG, _TNT = (height_of(type_) / 2 for type_ in ("BasicSmall", "BasicMedium", "TNT"))


def over_the_stack(rng: Rng) -> Draft:
    """Low over the stack; afloat, high."""
    x, top = draw(rng, 0.0, 3.5), draw(rng, -2.6, -1.4)
    way = low(x, top + _MEDIUM_PIG)
    items = [pig(x, top), ledge(x - 0.5, x + 4.0, top), *stack_below(way, x - draw(rng, 5.8, 7.0), 0.3)]
    return Draft([*items, *drawn_decoys(rng)])


def in_a_pocket(rng: Rng) -> Draft:
    """Low under a roof; afloat, low with an offset upwards."""
    x, top = draw(rng, 1.0, 3.5), draw(rng, -2.6, -1.6)
    return Draft([*_pocketed(x, top, x - draw(rng, 4.0, 4.8)), *drawn_decoys(rng)])


def tnt_behind(rng: Rng) -> Draft:
    """TNT on the roof of a cellar, low or high; afloat, high."""
    x, roof = draw(rng, 0.0, 3.5), GROUND + draw(rng, 1.15, 1.5)
    at = x + draw(rng, 0.9, 1.3)
    way = low(at, roof + THICK + _TNT)
    items = [*cellar(x, roof, 1.5, 4.0), tnt(at, roof + THICK), *stack_below(way, at - draw(rng, 5.8, 7.0), 0.3)]
    return Draft([*items, *drawn_decoys(rng)])


def through_the_gap(rng: Rng) -> Draft:
    """Wood near the slingshot shuts low flights: high; afloat, low passes under it, too."""
    x, top = draw(rng, -1.0, 4.0), draw(rng, -2.6, -1.0)
    way = low(x, top + _MEDIUM_PIG)
    items = [pig(x, top), ledge(x - 0.5, x + 4.0, top), *stack_across(way, draw(rng, -8.6, -7.6))]
    return Draft([*items, *drawn_decoys(rng, near=0)])


def two_pigs(rng: Rng) -> Draft:
    """One pig behind a wall (high), one in a pocket (low; afloat, low with an offset)."""
    x, top = draw(rng, 1.5, 3.5), draw(rng, -2.6, -1.6)
    at = x - draw(rng, 4.0, 4.8)
    left, floor = at - draw(rng, 2.2, 3.0), GROUND + 0.3
    first = [pig(left, floor), ledge(left - 1.3, left + 0.9, floor), wall(left - 1.3, floor, floor + 0.9)]
    return Draft([*first, *_pocketed(x, top, at), *drawn_decoys(rng, near=0)], birds=2)


def two_ledges(rng: Rng) -> Draft:
    """One pig behind a wall (high), one on a ledge (low over the stack or high; afloat, high)."""
    x, top = draw(rng, 2.8, 3.8), draw(rng, -2.6, -1.6)
    at = x - draw(rng, 5.8, 6.2)
    first = walled(at - draw(rng, 2.3, 2.7), GROUND + 0.4)
    second = [pig(x, top), ledge(x - 0.5, x + 4.0, top), *stack_below(low(x, top + _MEDIUM_PIG), at, 0.3)]
    return Draft([*first, *second, *drawn_decoys(rng, near=0)], birds=2)


def behind_a_screen(rng: Rng) -> Draft:
    """A cellar again; a platform shuts low flights, and there is a useless TNT: the second TNT, high."""
    x, roof = draw(rng, 0.0, 3.5), GROUND + draw(rng, 1.15, 1.5)
    at = x + draw(rng, 0.9, 1.3)
    way = low(at, roof + THICK + _TNT)
    items = [*cellar(x, roof, 1.5, 4.0), tnt(at, roof + THICK), screen(rng, way, 1.6, 1.3)]
    return Draft([*items, *drawn_decoys(rng, tnts=1)])


VARIANTS = (
    over_the_stack, in_a_pocket, tnt_behind, through_the_gap, two_pigs, behind_a_screen, two_ledges,
)  # fmt: skip


def _pocketed(x: float, top: float, at: float) -> Items:
    """A small pig in a pocket, a stack at `at` under its low flight."""
    way = low(x, top + _SMALL_PIG)
    return [pig(x, top, "BasicSmall"), ledge(x - 0.4, x + 4.0, top), *pocket(x, top), *stack_below(way, at, 0.5)]
