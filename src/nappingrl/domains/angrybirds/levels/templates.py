"""Seven level templates of our own, one for each of the paper's novelties.

The paper's 2450 levels are not public. In ours, a medium pig stands on a ledge within reach of a red bird; the objects
around it differ, so that after the novelty another object, trajectory or offset is the right choice. A level is
determined by its template and its number.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from nappingrl.domains.angrybirds.physics.scene import GROUND, Item, Level, make_sling
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.domains.angrybirds.trajectory import exact_angles, flight_height
from nappingrl.errors import BadSpecError

LEVELS = 350
"""Number of levels per template."""
PIG = "BasicMedium"
_LEDGE = 0.32
"""Thickness of a ledge."""
_SMALL = ("RectFat", "SquareSmall", "SquareHole", "RectSmall")

Rng = np.random.Generator
Items = list[Item]


def _ledge(left: float, right: float, top: float) -> Item:
    """A platform from `left` to `right` with its surface at `top`."""
    size, _ = SPRITE_SIZES["Platform"]
    return Item(
        "platform", "Platform", (left + right) / 2, top - _LEDGE / 2,
        scale_x=(right - left) / size, scale_y=_LEDGE / size,
    )  # fmt: skip


def _on(top: float, kind: str, type_: str, x: float, material: str = "", is_upright: bool = False) -> Item:
    """An object that stands on a surface at height `top`."""
    width, height = SPRITE_SIZES[type_]
    if is_upright:
        return Item(kind, type_, x, top + width / 2, 90.0, material)
    return Item(kind, type_, x, top + height / 2, 0.0, material)


def _pig_on_ledge(rng: Rng, low: tuple[float, float], high: tuple[float, float]) -> tuple[float, float, Items]:
    """A pig on a short ledge in a box given by two corners: its x, the height of the ledge, and both objects."""
    x, top = rng.uniform(low[0], high[0]), rng.uniform(low[1], high[1])
    return x, top, [_on(top, "pig", PIG, x), _ledge(x - 0.7, x + 0.7, top)]


def _roof(x: float, top: float) -> Item:
    """A ledge above the pig that blocks high trajectories but not the low one."""
    return _ledge(x - 1.5, x + 0.5, top + 2.0)


def _litter(rng: Rng, left: float, right: float, n: int) -> Items:
    """Blocks on the ground, one in each of n equal intervals."""
    edges = np.linspace(left, right, n + 1)
    items = []
    for start, end in pairwise(edges):
        type_, material = rng.choice(_SMALL), rng.choice(("wood", "ice", "stone"))
        half = SPRITE_SIZES[type_][0] / 2 + 0.1
        items.append(_on(GROUND, "block", str(type_), rng.uniform(start + half, end - half), str(material)))
    return items


def green_egg(rng: Rng) -> Items:
    """A pig on a ledge with blocks behind it. The egg left of it looks like a pig: aim at the second "pig"."""
    x, top, items = _pig_on_ledge(rng, (-1.0, -2.0), (4.0, 0.0))
    return [*items, _roof(x, top), *_litter(rng, x + 1.5, x + 5.5, 2)]


def bone(rng: Rng) -> Items:
    """A pig on a ledge and two birds. The second bird is for the bone on the ground in front of it."""
    x, top, items = _pig_on_ledge(rng, (-2.0, -2.4), (3.0, -1.4))
    return [*items, _roof(x, top), *_litter(rng, x + 4.5, x + 6.5, 1)]


def taller_slingshot(rng: Rng) -> Items:
    """A pig on a ledge, and a farther ledge to aim at when shots fall short by two fifths."""
    x, top, items = _pig_on_ledge(rng, (0.0, -1.8), (2.5, -1.0))
    far = 6.0 + (x + 0.1) / 0.6
    return [*items, _ledge(far - 0.4, far + 0.4, top + 0.5), *_litter(rng, x + 1.5, x + 4.0, 1)]


def pig_color(rng: Rng) -> Items:
    """A pig on a ledge, one block in front and two behind: it is the fourth target, after block, roof and ledge."""
    x, top, items = _pig_on_ledge(rng, (-1.0, -2.0), (4.0, 0.0))
    around = _litter(rng, x - 3.5, x - 2.0, 1) + _litter(rng, x + 1.5, x + 5.0, 2)
    return [*items, _roof(x, top), *around]


def circumcircle(rng: Rng) -> Items:
    """As for the taller slingshot; aim at the ledge when the slingshot looks as wide as high."""
    x, top, items = _pig_on_ledge(rng, (0.0, -1.8), (2.5, -1.0))
    far = 2.0 + (x + 1.8) / 0.635
    return [*items, _ledge(far - 0.4, far + 0.4, top + 0.5), *_litter(rng, x + 1.5, x + 3.5, 1)]


def floating_wood(rng: Rng) -> Items:
    """The low trajectory passes just above wood on ice; floating wood blocks it, the high one stays free."""
    x, top, items = _pig_on_ledge(rng, (1.0, -2.8), (4.0, -1.6))
    wall, block = x - 5.2, SPRITE_SIZES["SquareHole"][1]
    base = _low_shot_height(x, top, wall) - 0.3 - 2 * block
    ice, wood = (_on(base + i * block, "block", "SquareHole", wall, ("ice", "wood")[i]) for i in (0, 1))
    return [*items, _ledge(wall - 0.6, wall + 0.6, base), ice, wood, *_litter(rng, x + 1.5, x + 4.0, 1)]


def _low_shot_height(x: float, top: float, at: float) -> float:
    """Height at x = `at` of the low trajectory to a pig on a ledge."""
    origin_x, origin_y = make_sling(Level("", (), ()).sling).origin
    angle = exact_angles(x - origin_x, top + SPRITE_SIZES[PIG][1] / 2 - origin_y)[0]
    return origin_y + flight_height(angle, at - origin_x)


def bird_likes_pig(rng: Rng) -> Items:
    """A pig on a ledge leans on a wall, so that nothing throws it off; TNT stands on top of the wall."""
    x, top, items = _pig_on_ledge(rng, (-1.0, -2.0), (3.0, -0.8))
    size, _ = SPRITE_SIZES["Platform"]
    wall = Item("platform", "Platform", x + 0.36 + _LEDGE / 2, top + 0.6, scale_x=_LEDGE / size, scale_y=1.2 / size)
    ledge = _ledge(x + 0.36, x + 1.1, top + 1.2 + _LEDGE)
    return [*items, wall, ledge, _on(top + 1.2 + _LEDGE, "tnt", "TNT", x + 0.73), *_litter(rng, x + 3.5, x + 6.0, 1)]


TEMPLATES: dict[str, tuple[Callable[[Rng], Items], int]] = {
    "green-egg": (green_egg, 1),
    "bone": (bone, 2),
    "taller-slingshot": (taller_slingshot, 1),
    "pig-color": (pig_color, 1),
    "circumcircle": (circumcircle, 1),
    "floating-wood": (floating_wood, 1),
    "bird-likes-pig": (bird_likes_pig, 1),
}
"""By novelty: the function that makes a level, and its number of birds."""


def make_level(template: str, number: int, seed: int = 0) -> Level:
    """Level `number` of a template."""
    if number < 0:
        raise BadSpecError(f"level number {number} is negative; allowed: 0, 1, 2, ...")
    make, n_birds = TEMPLATES[template]
    rng = np.random.default_rng([seed, list(TEMPLATES).index(template), number])
    return Level(f"{template}-{number:05d}", ("BirdRed",) * n_birds, tuple(make(rng)))
