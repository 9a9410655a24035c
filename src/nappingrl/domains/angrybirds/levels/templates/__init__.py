"""Seven level templates of our own, one for each of the paper's novelties.

The paper's 2450 levels are not public. A template has several variants, which take turns: level `number` is of variant
`number % n`. Each needs another object, trajectory or offset, and another one again after the novelty. A level is
determined by its template and its number.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from nappingrl.domains.angrybirds.actions import N_SLOTS
from nappingrl.domains.angrybirds.levels.templates import (
    bird_likes_pig,
    bone,
    floating_wood,
    green_egg,
    misjudged,
    pig_color,
)
from nappingrl.domains.angrybirds.levels.templates.pieces import Draft, Rng, without_overlaps
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.errors import BadSpecError

LEVELS = 350
"""Number of levels per template."""

Variant = Callable[[Rng], Draft]

TEMPLATES: dict[str, tuple[Variant, ...]] = {
    "green-egg": green_egg.VARIANTS,
    "bone": bone.VARIANTS,
    "taller-slingshot": misjudged.TALLER_SLINGSHOT,
    "pig-color": pig_color.VARIANTS,
    "circumcircle": misjudged.CIRCUMCIRCLE,
    "floating-wood": floating_wood.VARIANTS,
    "bird-likes-pig": bird_likes_pig.VARIANTS,
}
"""By novelty: the functions that draw a level, in turn."""


@lru_cache(maxsize=4096)
def make_level(template: str, number: int, seed: int = 0) -> Level:
    """Level `number` of a template."""
    if number < 0:
        raise BadSpecError(f"level number {number} is negative; allowed: 0, 1, 2, ...")
    variants = TEMPLATES[template]
    rng = np.random.default_rng([seed, list(TEMPLATES).index(template), number])
    draft = variants[number % len(variants)](rng)
    items = without_overlaps(draft.items)[: N_SLOTS - len(draft.spots)]
    return Level(f"{template}-{number:05d}", ("BirdRed",) * draft.birds, tuple(items), spots=tuple(draft.spots))
