"""Green Egg: an unbreakable egg beside the pig or the TNT, which shuts the way that was right before."""

from nappingrl.domains.angrybirds.levels.templates.flights import low
from nappingrl.domains.angrybirds.levels.templates.pieces import (
    THICK,
    Draft,
    Rng,
    cellar,
    draw,
    drawn_decoys,
    height_of,
    ice_pile,
    ledge,
    pig,
    pocket,
    roofed,
    screen,
    shaft,
    tnt,
    wall,
    walled,
)
from nappingrl.domains.angrybirds.physics.scene import GROUND

_PIG, _TNT = height_of("BasicMedium") / 2, height_of("TNT") / 2


def egg_before(rng: Rng) -> Draft:
    """Low or high; with the egg, high."""
    x, top = draw(rng, -1.0, 3.5), draw(rng, -2.6, -1.2)
    return Draft(
        [pig(x, top), ledge(x - 1.1, x + 3.6, top), *drawn_decoys(rng, far=4, near=1, tnts=1)], spots=[(x - 0.68, top)]
    )


def tnt_on_the_roof(rng: Rng) -> Draft:
    """Low at the pig under the roof, or high at the TNT on it, behind a wall; with the egg, the TNT."""
    x, top = draw(rng, -3.0, 1.5), draw(rng, -2.0, -1.0)
    roof, at = top + 1.6, x + draw(rng, 0.6, 1.1)
    items = [pig(x, top), ledge(x - 1.6, x + 3.0, top), ledge(x - 1.4, x + 3.6, roof), tnt(at, roof)]
    items += [wall(at - 1.6, roof, roof + 1.9), *drawn_decoys(rng, far=4, near=1, tnts=1)]
    return Draft(items, spots=[(x - draw(rng, 0.95, 1.15), top)])


def egg_in_a_pocket(rng: Rng) -> Draft:
    """Low, through ice; with the egg, low with an offset upwards."""
    x, top = draw(rng, 0.0, 3.0), draw(rng, -2.4, -1.4)
    items = [pig(x, top, "BasicSmall"), ledge(x - 2.0, x + 4.0, top), *pocket(x, top, roof=1.9, lip=1.3)]
    items += [*ice_pile(x - 0.75, top), *drawn_decoys(rng, far=3)]
    return Draft(items, spots=[(x - draw(rng, 1.5, 1.7), top)])


def egg_behind(rng: Rng) -> Draft:
    """High over a wall; with the egg right of the pig, high with an offset downwards."""
    x, top = draw(rng, -3.0, 3.0), draw(rng, -2.6, -1.4)
    return Draft([*shaft(x, top), *drawn_decoys(rng, far=3)], spots=[(x + 0.65, top)])


def two_pigs(rng: Rng) -> Draft:
    """One under a roof (low), one on a ledge (low or high; with the egg, high)."""
    x, top = draw(rng, 0.5, 3.5), draw(rng, -2.4, -1.4)
    left, floor = x - draw(rng, 4.6, 5.4), draw(rng, -2.9, -2.5)
    items = [*roofed(x, top), *ice_pile(x - 1.0, top), pig(left, floor), ledge(left - 1.1, left + 1.2, floor)]
    return Draft([*items, *drawn_decoys(rng, far=3, near=0)], birds=2, spots=[(left - 0.68, floor)])


def egg_before_the_tnt(rng: Rng) -> Draft:
    """A cellar with TNT on its roof, low or high; with the egg, high."""
    x, roof = draw(rng, -1.0, 3.5), GROUND + draw(rng, 1.15, 1.3)
    at, floor = x - draw(rng, 1.5, 1.65), roof + THICK
    return Draft(
        [*cellar(x, roof, 2.7, 3.0), tnt(at, floor), *drawn_decoys(rng, far=4, near=2, tnts=1)],
        spots=[(at - 0.7, floor)],
    )


def behind_a_screen(rng: Rng) -> Draft:
    """High, because a platform shuts low flights; two eggs on both sides of the pig."""
    x, top = draw(rng, -2.0, 3.0), draw(rng, -2.6, -1.4)
    items = [pig(x, top), ledge(x - 1.1, x + 3.0, top), screen(rng, low(x, top + _PIG), 1.2, 2.8)]
    return Draft([*items, *drawn_decoys(rng, far=3)], spots=[(x - 0.68, top), (x + 0.68, top)])


def two_ways(rng: Rng) -> Draft:
    """One pig behind a wall (high), one in a cellar (TNT, low or high; with the egg, high)."""
    x, roof = draw(rng, 0.5, 3.5), GROUND + draw(rng, 1.15, 1.3)
    at, floor = x + draw(rng, 1.2, 1.4), roof + THICK
    left, ground = x - draw(rng, 4.6, 5.4), draw(rng, -2.9, -2.5)
    items = [*walled(left, ground), *cellar(x, roof, 1.9, 2.8, "BasicMedium", 1.5), tnt(at, floor)]
    return Draft([*items, *drawn_decoys(rng, far=3, near=0)], birds=2, spots=[(at - 0.7, floor)])


VARIANTS = (
    egg_before, tnt_on_the_roof, egg_in_a_pocket, egg_behind, two_pigs, egg_before_the_tnt, behind_a_screen, two_ways,
)  # fmt: skip
