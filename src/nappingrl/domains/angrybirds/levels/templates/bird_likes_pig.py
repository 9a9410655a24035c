"""Bird Likes Pig: a hit no longer hurts; TNT, a stone that falls, or a block that shoves the pig does."""

from nappingrl.domains.angrybirds.levels.templates.flights import low
from nappingrl.domains.angrybirds.levels.templates.pieces import (
    THICK,
    Draft,
    Items,
    Rng,
    block,
    draw,
    drawn_decoys,
    height_of,
    ice_pile,
    ledge,
    pig,
    screen,
    tnt,
    wall,
)
from nappingrl.domains.angrybirds.physics.scene import GROUND

_PIG = height_of("BasicMedium") / 2


def tnt_below(rng: Rng) -> Draft:
    """Low at a pig under a roof, through ice; then low at the TNT under its ledge."""
    return Draft([*_over_tnt(rng, draw(rng, -2.0, 3.0)), *drawn_decoys(rng, far=3, near=0)])


def two_pigs(rng: Rng) -> Draft:
    """A pig beside a block of wood (high, then low at the block), and one under TNT (low, then the TNT)."""
    x, top = draw(rng, 0.5, 2.0), draw(rng, -2.0, -1.2)
    left, floor = x - draw(rng, 5.0, 5.6), draw(rng, -2.9, -2.5)
    return Draft([*_beside_wood(rng, left, floor), *_under_tnt(x, top), *drawn_decoys(rng, near=0, tnts=0)], birds=2)


def block_beside(rng: Rng) -> Draft:
    """High at a pig between a wall and a block of wood; then low at the block, which shoves it."""
    return Draft([*_beside_wood(rng, draw(rng, -2.0, 3.0), draw(rng, -2.6, -1.2)), *drawn_decoys(rng, 3, 2, 1)])


def behind_a_screen(rng: Rng) -> Draft:
    """A platform shuts low flights: high at the pig, then high at the TNT on a ledge behind it."""
    x, top = draw(rng, -1.0, 3.0), draw(rng, -2.4, -1.4)
    items = [*_leaning(x, top), ledge(x + 1.0, x + 2.4, top + 0.3), tnt(x + 1.6, top + 0.3)]
    return Draft([*items, screen(rng, low(x, top + _PIG), 1.2, 2.8), *drawn_decoys(rng, 3, 2, 1)])


def wood_and_tnt(rng: Rng) -> Draft:
    """A pig beside a block of wood, and one over TNT."""
    x = draw(rng, 1.0, 3.5)
    left, floor = x - draw(rng, 5.0, 5.6), draw(rng, -2.9, -2.5)
    return Draft(
        [*_beside_wood(rng, left, floor), *_over_tnt(rng, x, 2.1), *drawn_decoys(rng, near=0, tnts=0)], birds=2
    )


def wood_and_stone(rng: Rng) -> Draft:
    """A pig beside a block of wood, and one under a stone."""
    x, top = draw(rng, 1.0, 3.0), draw(rng, -2.6, -2.0)
    left, floor = x - draw(rng, 5.6, 6.0), draw(rng, -2.9, -2.5)
    items = [*_beside_wood(rng, left, floor), *_under_stone(rng, x, top)]
    return Draft([*items, *drawn_decoys(rng, near=0, tnts=0)], birds=2)


VARIANTS = (tnt_below, two_pigs, block_beside, behind_a_screen, wood_and_tnt, wood_and_stone)


def _leaning(x: float, top: float) -> Items:
    """A pig on a ledge that leans on a low wall, so that a bird cannot throw it off."""
    return [pig(x, top), ledge(x - 1.6, x + 0.9, top), wall(x + 0.37, top, top + 0.7)]


def _beside_wood(rng: Rng, x: float, top: float) -> Items:
    return [*_leaning(x, top), block(x - draw(rng, 0.95, 1.1), top, "SquareHole", "wood")]


def _under_tnt(x: float, top: float) -> Items:
    """A pig under a roof, TNT on the roof, left of the pig: a bird that bounces off the roof flies away from it."""
    roof = top + 1.4 + THICK
    return [*_leaning(x, top), ledge(x - 1.6, x + 2.6, roof), tnt(x - 1.15, roof)]


def _under_stone(rng: Rng, x: float, top: float) -> Items:
    """A pig right of a higher ledge with a stone at its edge."""
    edge, shelf = x - draw(rng, 1.3, 1.6), top + draw(rng, 1.5, 1.8)
    return [*_leaning(x, top), ledge(edge - 2.6, edge, shelf), block(edge - 0.35, shelf, "RectFat", "stone")]


def _over_tnt(rng: Rng, x: float, lip: float = 1.7) -> Items:
    """A pig under a roof behind ice, TNT on a plinth under its ledge, so that no rolling bird touches it."""
    plinth = GROUND + 0.5
    top = plinth + draw(rng, 1.4, 1.7)
    items = [pig(x, top), ledge(x - 1.4, x + 3.0, top), ledge(x - lip, x + 3.0, top + 2.0), *ice_pile(x - 1.0, top)]
    return [
        *items,
        wall(x + 0.37, top, top + 0.7),
        ledge(x - 0.7, x + 2.0, plinth),
        tnt(x - draw(rng, 0.1, 0.4), plinth),
    ]
