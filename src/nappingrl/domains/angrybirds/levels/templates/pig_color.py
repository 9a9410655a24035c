"""Pig Color: pigs in and behind small structures, with one to five other objects around.

Nothing changes for agents that read labels; those that read colours take every object for a pig.
"""

from nappingrl.domains.angrybirds.levels.templates.flights import low
from nappingrl.domains.angrybirds.levels.templates.pieces import (
    THICK,
    Draft,
    Items,
    Rng,
    cellar,
    decoys,
    draw,
    height_of,
    ice_pile,
    ledge,
    pig,
    roofed,
    scattered,
    screen,
    shaft,
    tnt,
    wall,
    walled,
)
from nappingrl.domains.angrybirds.physics.scene import GROUND

_PIG = height_of("BasicMedium") / 2


def under_a_roof(rng: Rng) -> Draft:
    """Low."""
    x, top = _place(rng)
    return _surround(rng, roofed(x, top))


def behind_ice(rng: Rng) -> Draft:
    """Low, through ice."""
    x, top = _place(rng)
    return _surround(rng, [*roofed(x, top), *ice_pile(x - 1.0, top)])


def in_a_shaft(rng: Rng) -> Draft:
    """High."""
    x, top = _place(rng)
    return _surround(rng, shaft(x, top))


def behind_a_screen(rng: Rng) -> Draft:
    """High: a platform near the slingshot shuts low flights."""
    x, top = _place(rng)
    shut = screen(rng, low(x, top + _PIG), 1.2, 2.8)
    return _surround(rng, [pig(x, top), ledge(x - 0.5, x + 3.0, top), shut])


def in_a_cellar(rng: Rng) -> Draft:
    """High at the TNT behind a wall on the roof."""
    x, roof = draw(rng, -2.0, 3.0), GROUND + draw(rng, 1.15, 1.35)
    at, floor = x + draw(rng, 0.9, 1.1), roof + THICK
    return _surround(rng, [*cellar(x, roof, 2.0, 2.8), tnt(at, floor), wall(at - 1.6, floor, floor + 1.9)])


def two_pigs(rng: Rng) -> Draft:
    """One behind a wall (high), one under a roof (low)."""
    x, top = draw(rng, 0.5, 3.5), draw(rng, -2.4, -1.4)
    draft = _surround(
        rng, [*roofed(x, top), *ice_pile(x - 1.0, top), *walled(x - draw(rng, 4.6, 5.4), draw(rng, -2.9, -2.5))]
    )
    draft.birds = 2
    return draft


def three_pigs(rng: Rng) -> Draft:
    """One behind a wall (high), two on a ledge under a roof (low at each), four birds."""
    x, top = draw(rng, 1.0, 3.0), draw(rng, -2.2, -1.4)
    pair = [pig(x, top), pig(x + 1.6, top), ledge(x - 1.4, x + 4.4, top), ledge(x - 1.7, x + 4.4, top + 2.0)]
    draft = _surround(rng, [*pair, *walled(x - draw(rng, 5.0, 5.6), draw(rng, -2.9, -2.5))])
    draft.birds = 4
    return draft


VARIANTS = (under_a_roof, in_a_shaft, in_a_cellar, two_pigs, behind_ice, behind_a_screen, three_pigs)


def _place(rng: Rng) -> tuple[float, float]:
    return draw(rng, -3.0, 3.0), draw(rng, -2.6, -1.4)


def _surround(rng: Rng, items: Items) -> Draft:
    """One to five objects around: blocks behind, and TNT before."""
    n = int(rng.integers(1, 6))
    tnts = int(n > 1 and rng.integers(2))
    return Draft([*items, *scattered(rng, items, min(n - tnts, 4)), *decoys(rng, 0, 0, tnts)])
