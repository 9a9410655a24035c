"""Bone: one bird more than pigs, and a bone under a roof, behind a wall, or on a ledge."""

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
    roofed,
    screen,
    shaft,
    tnt,
    wall,
    walled,
)
from nappingrl.domains.angrybirds.physics.scene import GROUND

_PIG, _TNT = height_of("BasicMedium") / 2, height_of("TNT") / 2


def bone_behind_a_wall(rng: Rng) -> Draft:
    """The pig under a roof, low; the bone behind a wall, high."""
    x, top = draw(rng, 0.0, 3.0), draw(rng, -2.2, -1.2)
    left = x - draw(rng, 4.2, 5.0)
    items = [*roofed(x, top), *ice_pile(x - 1.0, top), wall(left - 1.0, GROUND, GROUND + draw(rng, 1.3, 1.6))]
    return Draft([*items, *drawn_decoys(rng, 4, 0, 1)], birds=2, spots=[(left, GROUND)])


def bone_in_a_tunnel(rng: Rng) -> Draft:
    """The pig behind a wall, high; the bone on the ground under a long roof, low."""
    x, top = draw(rng, 0.5, 3.5), draw(rng, -2.2, -1.4)
    left = x - draw(rng, 4.6, 5.4)
    items = [*shaft(x, top), ledge(left - 1.2, left + 2.4, GROUND + 1.4)]
    return Draft([*items, *drawn_decoys(rng, 5, 0, 2)], birds=2, spots=[(left, GROUND)])


def bone_on_the_ledge(rng: Rng) -> Draft:
    """Pig and bone on one ledge under a roof, low at each; the pig is behind ice."""
    x, top = draw(rng, -2.5, 2.5), draw(rng, -2.6, -1.4)
    items = [pig(x, top), ledge(x - 2.4, x + 3.4, top), ledge(x - 1.7, x + 3.4, top + 2.0), *ice_pile(x - 1.0, top)]
    return Draft([*items, *drawn_decoys(rng, 4, 1, 1)], birds=2, spots=[(x - draw(rng, 1.85, 1.95), top)])


def bone_on_the_roof(rng: Rng) -> Draft:
    """A pig in a cellar, TNT behind a wall on its roof, high; one behind a low wall, high; the bone behind the TNT."""
    x, roof = draw(rng, 0.5, 2.0), GROUND + draw(rng, 1.15, 1.35)
    at, floor = x + draw(rng, 0.9, 1.1), roof + THICK
    left, ground = x - draw(rng, 5.2, 5.8), draw(rng, -2.9, -2.5)
    items = [*cellar(x, roof, 2.0, 3.8, "BasicMedium", 1.5), tnt(at, floor), wall(at - 1.6, floor, floor + 1.9)]
    return Draft([*items, *walled(left, ground), *drawn_decoys(rng, 3, 0, 0)], birds=3, spots=[(x + 3.3, floor)])


def two_pigs(rng: Rng) -> Draft:
    """Two pigs, three birds: one pig under a roof (low), one behind a wall (high), the bone between them."""
    x, top = draw(rng, 0.5, 3.5), draw(rng, -2.4, -1.4)
    left, floor = x - draw(rng, 5.2, 5.8), draw(rng, -2.9, -2.5)
    items = [*roofed(x, top), *ice_pile(x - 1.0, top), *walled(left, floor)]
    return Draft([*items, *drawn_decoys(rng, far=3, near=0)], birds=3, spots=[(x - draw(rng, 2.6, 3.0), GROUND)])


def behind_a_screen(rng: Rng) -> Draft:
    """A platform shuts low flights: high at the pig, and at the bone under it."""
    x, top = draw(rng, -1.0, 3.0), draw(rng, -2.0, -1.2)
    items = [pig(x, top), ledge(x - 0.5, x + 3.0, top), screen(rng, low(x, top + _PIG), 1.2, 2.8)]
    return Draft([*items, *drawn_decoys(rng, 5, 1, 2)], birds=2, spots=[(x - draw(rng, 1.6, 2.4), GROUND)])


VARIANTS = (
    bone_behind_a_wall, bone_in_a_tunnel, bone_on_the_ledge, bone_on_the_roof, two_pigs, behind_a_screen,
)  # fmt: skip
