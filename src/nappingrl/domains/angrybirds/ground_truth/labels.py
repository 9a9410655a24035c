"""Labels of objects in the ground truth."""

import re
from functools import cache

from nappingrl.domains.angrybirds.physics.scene import BIRDS, BLOCKS, MATERIALS, NOVEL, PIGS, Thing

GROUND, SLINGSHOT, TRAJECTORY = "Ground", "Slingshot", "Trajectory"
OBJECT = "Object"
"""Label of all other objects, outside developer mode."""
NOVEL_OBJECT = "novel_object"


def _stem(type_: str) -> str:
    """RectFat -> rect_fat; the game shortens triangle to triang, and prefixes pigs."""
    words = "_".join(re.findall("[A-Z][a-z]+", type_)).lower().replace("triangle", "triang")
    return f"pig_{words}" if type_ in PIGS else words


_STEMS = {type_: _stem(type_) for type_ in BIRDS + PIGS + BLOCKS}


_WORDS = (
    {_STEMS[type_]: "pig" for type_ in PIGS}
    | {_STEMS[type_]: type_.removeprefix("Bird").lower() for type_ in BIRDS}
    | {f"{material}_{_STEMS[type_]}": material for material in MATERIALS for type_ in BLOCKS}
    | {"TNT": "tnt", "Platform": "platform", "Egg": "white"}
)


def damage_stage(thing: Thing) -> int:
    """Stage of damage, 1 (intact) to 4; the next stage begins at 3/5, 2/5 and 1/5 of the full life."""
    life, full = thing.life, thing.full_life
    if life >= full or life > 0.6 * full:
        return 1
    return 2 if life > 0.4 * full else 3 if life > 0.2 * full else 4


def label(thing: Thing) -> str:
    """The label in developer mode: the name of the current sprite; "Egg" is our choice for the egg."""
    if thing.type in NOVEL:
        return NOVEL_OBJECT
    stem = _STEMS.get(thing.type)
    if stem is None:
        return thing.type
    prefix = f"{thing.material}_" if thing.kind == "block" else ""
    return f"{prefix}{stem}_{damage_stage(thing)}"


@cache
def word_of(label: str) -> str:
    """What a label in developer mode says of an object, in the words of `Thing.colour`; "unknown" for other labels.

    Examples:
        >>> [word_of(label) for label in ("pig_basic_small_1", "wood_rect_fat_2", "TNT", "bird_red_1", "novel_object")]
        ['pig', 'wood', 'tnt', 'red', 'unknown']
    """
    return _WORDS.get(label.rpartition("_")[0], _WORDS.get(label, "unknown"))
