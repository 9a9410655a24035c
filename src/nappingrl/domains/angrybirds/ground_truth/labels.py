"""What the ground truth calls things."""

import re

from nappingrl.domains.angrybirds.physics.scene import BIRDS, BLOCKS, NOVEL, PIGS, Thing

GROUND, SLINGSHOT, TRAJECTORY = "Ground", "Slingshot", "Trajectory"
OBJECT = "Object"
"""Everything else, in normal mode."""
NOVEL_OBJECT = "novel_object"


def _stem(type_: str) -> str:
    """RectFat -> rect_fat; the game shortens triangle to triang, and puts the kind before the type."""
    words = "_".join(re.findall("[A-Z][a-z]+", type_)).lower().replace("triangle", "triang")
    return f"pig_{words}" if type_ in PIGS else words


_STEMS = {type_: _stem(type_) for type_ in BIRDS + PIGS + BLOCKS}


def damage_stage(thing: Thing) -> int:
    """1 (whole) to 4: the next stage begins at 3/5, 2/5 and 1/5 of the full life."""
    life, full = thing.life, thing.full_life
    if life >= full or life > 0.6 * full:
        return 1
    return 2 if life > 0.4 * full else 3 if life > 0.2 * full else 4


def label(thing: Thing) -> str:
    """The name of the picture that shows it now, as developer mode tells; the egg's is ours: "Egg"."""
    if thing.type in NOVEL:
        return NOVEL_OBJECT
    stem = _STEMS.get(thing.type)
    if stem is None:
        return thing.type
    prefix = f"{thing.material}_" if thing.kind == "block" else ""
    return f"{prefix}{stem}_{damage_stage(thing)}"
