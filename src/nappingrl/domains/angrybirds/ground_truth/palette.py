"""Colours: the shades of pictures, the colour maps of the ground truth, and their classifier.

A colour map is a list of (colour, share); a colour has 8 bits, RRRGGGBB. Each map contains only colours that the
published classifier assigns to that class on their own. Its scores are linear in the shares, so it classifies every
mixture of them correctly, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from nappingrl.errors import check_name

Rgb = tuple[int, int, int]
ColourMap = tuple[tuple[int, float], ...]

FARTHEST = 0.9
"""A map farther than this from all known ones is unknown; if half of the shares agree, the distance is 1."""


@dataclass(frozen=True, slots=True)
class Shades:
    """The shades of a colour in a picture."""

    base: Rgb
    light: Rgb
    dark: Rgb
    line: Rgb
    accent: Rgb
    """Larger parts: belly, snout, band."""
    mark: Rgb
    """Smallest parts: beak, nostril, knot, letter."""


@dataclass(frozen=True, slots=True)
class Paint:
    """Colour map and shades of one colour."""

    colour_map: ColourMap
    shades: Shades


PAINTS: Mapping[str, Paint] = MappingProxyType(
    {
        "red": Paint(
            ((250, 0.4), (0, 0.2), (244, 0.4)),
            Shades((214, 48, 49), (238, 96, 85), (164, 28, 40), (92, 16, 28), (250, 218, 178), (246, 178, 56)),
        ),
        "blue": Paint(
            ((119, 1.0),),
            Shades((84, 160, 226), (142, 200, 246), (48, 112, 180), (24, 58, 104), (226, 240, 252), (248, 184, 62)),
        ),
        "yellow": Paint(
            ((248, 1.0),),
            Shades((250, 206, 40), (255, 230, 120), (220, 160, 16), (124, 84, 8), (255, 246, 206), (236, 116, 36)),
        ),
        "black": Paint(
            ((73, 1.0),),
            Shades((62, 64, 74), (104, 108, 122), (38, 40, 48), (16, 16, 22), (176, 178, 190), (246, 178, 56)),
        ),
        "white": Paint(
            ((255, 0.7), (254, 0.3)),
            Shades((244, 242, 236), (255, 255, 255), (212, 208, 198), (112, 108, 102), (232, 224, 206), (246, 178, 56)),
        ),
        "pig": Paint(
            ((125, 0.8), (84, 0.2)),
            Shades((124, 204, 78), (170, 232, 118), (82, 158, 50), (36, 86, 24), (196, 240, 142), (48, 108, 32)),
        ),
        "wood": Paint(
            ((136, 0.35), (240, 0.4), (245, 0.15), (204, 0.1)),
            Shades((212, 146, 76), (234, 182, 114), (172, 106, 48), (96, 54, 22), (138, 80, 34), (138, 80, 34)),
        ),
        "stone": Paint(
            ((182, 0.5), (146, 0.4), (219, 0.1)),
            Shades((158, 162, 170), (192, 196, 204), (120, 124, 134), (62, 66, 76), (138, 142, 152), (96, 100, 110)),
        ),
        "ice": Paint(
            ((87, 0.4), (123, 0.4), (19, 0.2)),
            Shades((158, 218, 248), (214, 242, 255), (102, 178, 226), (46, 112, 168), (240, 252, 255), (255, 255, 255)),
        ),
        "tnt": Paint(
            ((205, 0.7), (209, 0.3)),
            Shades((226, 108, 52), (246, 152, 88), (180, 72, 30), (92, 30, 14), (255, 236, 196), (120, 32, 20)),
        ),
        "platform": Paint(
            ((36, 0.6), (68, 0.4)),
            Shades((72, 58, 50), (104, 86, 74), (50, 40, 36), (26, 20, 18), (128, 108, 92), (160, 140, 120)),
        ),
        "bone": Paint(
            ((218, 0.6), (214, 0.3), (178, 0.1)),
            Shades((240, 230, 208), (254, 248, 234), (208, 192, 160), (110, 94, 70), (222, 208, 180), (150, 132, 100)),
        ),
    }
)
"""By `Thing.colour`. No map is published for "bone"; its colours are neutral and unique."""


def paint(colour: str) -> Paint:
    """The paint of a colour."""
    if colour not in PAINTS:
        check_name("colour", colour, PAINTS)
    return PAINTS[colour]


def gray(code: int) -> int:
    """The 8-bit gray of the same brightness as an 8-bit colour.

    Examples:
        >>> [gray(code) for code in (0, 255, 125, 136)]
        [0, 255, 182, 73]
    """
    red, green, blue = code >> 5, code >> 2 & 7, code & 3
    brightness = 0.299 * red / 7 + 0.587 * green / 7 + 0.114 * blue / 3
    level = round(7 * brightness)
    return level << 5 | level << 2 | round(3 * level / 7)


@lru_cache(maxsize=1024)
def grayed(colour_map: ColourMap) -> ColourMap:
    """A colour map in gray; shares of equal grays are added."""
    shares: dict[int, float] = {}
    for code, share in colour_map:
        shares[gray(code)] = shares.get(gray(code), 0.0) + share
    return tuple(shares.items())


def distance(one: ColourMap, other: ColourMap) -> float:
    """Sum of absolute differences of the shares: 0 for equal maps, 2 for maps without a common colour."""
    first, second = dict(one), dict(other)
    return sum(abs(first.get(code, 0.0) - second.get(code, 0.0)) for code in first | second)


@lru_cache(maxsize=1024)
def classify(colour_map: ColourMap) -> str:
    """The colour with the nearest map; "unknown" if all are far.

    Examples:
        >>> classify(((125, 0.79), (84, 0.21)))
        'pig'
        >>> classify(((7, 1.0),))
        'unknown'
    """
    gaps = {name: distance(colour_map, known.colour_map) for name, known in PAINTS.items()}
    nearest = min(gaps, key=gaps.__getitem__)
    return nearest if gaps[nearest] <= FARTHEST else "unknown"
