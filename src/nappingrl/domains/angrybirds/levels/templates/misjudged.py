"""Taller Slingshot and Circumcircle: afterwards shots at an object fall short, and another object is the right aim.

Where the planner misjudges distances, each level has a block that a shot must aim at to hit the pig.
"""

from nappingrl.domains.angrybirds.levels.templates.flights import ROUND, TALLER, Way, low
from nappingrl.domains.angrybirds.levels.templates.pieces import (
    THICK,
    Draft,
    Items,
    Rng,
    add_helper,
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
from nappingrl.domains.angrybirds.trajectory import HIGH, LOW

_LOW: tuple[Way, ...] = ((LOW, 0), (LOW, 15), (LOW, 25), (LOW, 35), (LOW, -15))
_HIGH: tuple[Way, ...] = ((HIGH, 0), (HIGH, -35), (HIGH, 35))
_PIG, _TNT = height_of("BasicMedium") / 2, height_of("TNT") / 2


class Misjudged:
    """The variants for one look of the slingshot after the novelty."""

    def __init__(self, look: str) -> None:
        self._look = look
        self.variants = (
            self.under_a_roof, self.behind_ice, self.in_a_shaft, self.behind_a_screen, self.in_a_cellar, self.two_pigs,
        )  # fmt: skip

    def under_a_roof(self, rng: Rng) -> Draft:
        """Low."""
        x, top = _place(rng)
        return self._finish(rng, roofed(x, top), (x, top + _PIG), _LOW)

    def behind_ice(self, rng: Rng) -> Draft:
        """Low, through ice."""
        x, top = _place(rng)
        return self._finish(rng, [*roofed(x, top), *ice_pile(x - 1.0, top)], (x, top + _PIG), _LOW)

    def in_a_shaft(self, rng: Rng) -> Draft:
        """High."""
        x, top = _place(rng)
        return self._finish(rng, shaft(x, top), (x, top + _PIG), _HIGH)

    def behind_a_screen(self, rng: Rng) -> Draft:
        """High: a platform near the slingshot shuts low flights."""
        x, top = _place(rng)
        shut = screen(rng, low(x, top + _PIG), 1.2, 2.8)
        return self._finish(rng, [pig(x, top), ledge(x - 0.5, x + 2.4, top), shut], (x, top + _PIG), _HIGH)

    def in_a_cellar(self, rng: Rng) -> Draft:
        """High at TNT on the roof."""
        x, _ = _place(rng)
        roof = GROUND + draw(rng, 1.15, 1.35)
        at, floor = x + draw(rng, 0.9, 1.1), roof + THICK
        items = [*cellar(x, roof, 2.0, 2.8, "BasicMedium", 1.5), tnt(at, floor), wall(at - 1.6, floor, floor + 1.9)]
        return self._finish(rng, items, (at, floor + _TNT), _HIGH, tnts=1)

    def two_pigs(self, rng: Rng) -> Draft:
        """One behind a wall (high), one under a roof behind ice (low)."""
        x, top = draw(rng, -0.5, 3.0), draw(rng, -2.6, -1.4)
        left, floor = x - draw(rng, 3.6, 4.4), draw(rng, -3.0, -2.6)
        items = [*roofed(x, top), *ice_pile(x - 1.0, top), *walled(left, floor)]
        add_helper(rng, items, left, floor + _PIG, _HIGH, self._look)
        draft = self._finish(rng, items, (x, top + _PIG), _LOW, near=0, tnts=0)
        draft.birds = 2
        return draft

    def _finish(
        self, rng: Rng, items: Items, aim_at: tuple[float, float], ways: tuple[Way, ...], near: int | None = None,
        tnts: int | None = None,
    ) -> Draft:  # fmt: skip
        """Add the block to aim at after the novelty, and decoys."""
        items = list(items)
        add_helper(rng, items, *aim_at, ways, self._look)
        items += scattered(rng, items, int(rng.integers(2, 4)))
        drawn = int(rng.integers(2)), int(rng.integers(2))
        items += decoys(rng, 0, drawn[0] if near is None else near, drawn[1] if tnts is None else tnts)
        return Draft(items)


def _place(rng: Rng) -> tuple[float, float]:
    return draw(rng, -4.0, 3.0), draw(rng, -2.6, -1.4)


TALLER_SLINGSHOT = Misjudged(TALLER).variants
CIRCUMCIRCLE = Misjudged(ROUND).variants
