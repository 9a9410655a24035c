"""Sizes of objects in world units."""

from collections.abc import Mapping
from math import cos, radians, sin
from types import MappingProxyType

from nappingrl.domains.angrybirds.physics.scene import Item

SPRITE_SIZES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "RectBig": (2.06, 0.22),
        "RectMedium": (1.68, 0.22),
        "RectFat": (0.85, 0.43),
        "RectSmall": (0.85, 0.22),
        "RectTiny": (0.43, 0.22),
        "SquareSmall": (0.43, 0.43),
        "SquareTiny": (0.22, 0.21),
        "SquareHole": (0.84, 0.84),
        "Triangle": (0.82, 0.82),
        "TriangleHole": (0.84, 0.84),
        "Circle": (0.76, 0.75),
        "CircleSmall": (0.42, 0.42),
        "Platform": (0.64, 0.64),
        "TNT": (0.66, 0.66),
        "BasicSmall": (0.47, 0.45),
        "BasicMedium": (0.78, 0.76),
        "BasicBig": (0.99, 0.97),
        "BirdRed": (0.45, 0.44),
        "BirdBlue": (0.45, 0.435),  # drawn at 1.5 times its picture of 0.30 x 0.29
        "BirdYellow": (0.56, 0.53),
        "BirdWhite": (0.80, 0.94),
        "BirdBlack": (0.64, 0.86),
        "Egg": (0.45, 0.58),
        "GreenEgg": (0.43, 0.85),
        "Bone": (0.85, 0.30),
    }
)
"""Width and height by type, unrotated; a platform's are multiplied by its scale.

GreenEgg and Bone are our choice; the others are those of the game.
"""
UNKNOWN_SIZE = (0.84, 0.84)
"""Size of a type that only an asset bundle defines (novel_object_3): that of the largest square block."""


def extent(item: Item) -> tuple[float, float]:
    """Width and height of the upright box around an object.

    Examples:
        >>> extent(Item("block", "RectBig", 0, 0, rotation=0, material="ice"))
        (2.06, 0.22)
        >>> width, height = extent(Item("platform", "Platform", 0, 0, rotation=90, scale_x=2))
        >>> round(width, 3), round(height, 3)
        (0.64, 1.28)
    """
    width, height = SPRITE_SIZES.get(item.type, UNKNOWN_SIZE)
    width, height = width * item.scale_x, height * item.scale_y
    across, along = abs(cos(radians(item.rotation))), abs(sin(radians(item.rotation)))
    return width * across + height * along, width * along + height * across
