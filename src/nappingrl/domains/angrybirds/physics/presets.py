"""The published sets of physical constants: "phyq" (the Phy-Q benchmark) and "sailon" (the novelty branch).

"phyq-game" is phyq with what the logs of the released game show, where they differ from the published source. Flight is
the same in all. Unpublished constants (of blocks that novelties add) are our choice and marked as such.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import cos, pi, sin, sqrt, tau

from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.errors import BadSpecError, check_name

Polygon = tuple[tuple[float, float], ...]

MOST_CORNERS = 16
"""Box2D's limit for a polygon."""


@dataclass(frozen=True, slots=True)
class Collider:
    """The shape for collisions: convex polygons, a circle with an offset, or both."""

    polygons: tuple[Polygon, ...] = ()
    radius: float = 0.0
    centre: tuple[float, float] = (0.0, 0.0)

    @property
    def area(self) -> float:
        """Area of all parts."""
        return pi * self.radius**2 + sum(_area(polygon) for polygon in self.polygons)


@dataclass(frozen=True, slots=True)
class Nature:
    """The physical properties of a type of object."""

    collider: Collider
    mass: float
    life: float
    friction: float
    bounce: float
    gravity: float
    """Share of the world's gravity that applies."""
    defence: float = 0.0
    drag: float = 0.0
    spin_drag: float = 0.0
    harm: Mapping[str, float] | None = None
    """Damage factor of a bird, by material."""
    pig_harm: float = 1.0
    """Damage factor of a bird against pigs."""


@dataclass(frozen=True, slots=True)
class Blast:
    """An explosion; impulse and damage fall linearly to 0 at the radius if `is_linear`, else as 1 / distance."""

    radius: float
    impulse: float
    damage: float
    is_linear: bool


@dataclass(frozen=True, slots=True)
class Preset:
    """All physical constants of a world."""

    name: str
    natures: Mapping[tuple[str, str], Nature]
    """By type and material (empty if it has none)."""
    blasts: Mapping[str, Blast]
    """By type: TNT, BirdBlack, Egg."""
    fuse: float
    """Seconds between the black bird's first collision and its explosion."""
    immortal: float
    """Seconds after loading without damage."""
    by_mass: bool
    """Whether damage is momentum minus the object's defence, or just the relative speed."""
    is_game: bool = False
    """Whether points and the choice of the attacker follow the released game instead of the published source."""
    bird_contacts: int = 1
    """How often the hit of a bird is dealt: once for each of its colliders."""
    wind: tuple[float, float] = (0.0, 0.0)
    """Acceleration of flying birds, units/s^2."""

    def nature(self, type_: str, material: str = "") -> Nature:
        """The properties of a type and material."""
        if (type_, material) not in self.natures:
            known = ", ".join(sorted({name for name, _ in self.natures}))
            raise BadSpecError(
                f"this world has no {material or ''} '{type_}'; allowed types: {known}".replace("  ", " ")
            )
        return self.natures[type_, material]

    def changed(self, types: tuple[str, ...], materials: tuple[str, ...] = ("",), **factors: float) -> "Preset":
        """A copy with some properties of some objects multiplied."""
        natures = dict(self.natures)
        for key, nature in self.natures.items():
            if key[0] in types and key[1] in materials:
                scaled = {name: getattr(nature, name) * factor for name, factor in factors.items()}
                natures[key] = replace(nature, **scaled)
        return replace(self, natures=natures)


def _area(polygon: Polygon) -> float:
    pairs = zip(polygon, polygon[1:] + polygon[:1], strict=True)
    return abs(sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairs)) / 2


def _box(width: float, height: float, x: float = 0.0, y: float = 0.0) -> Polygon:
    w, h = width / 2, height / 2
    return ((x - w, y - h), (x + w, y - h), (x + w, y + h), (x - w, y + h))


def _round(area: float, corners: int, stretch: float = 1.0) -> Polygon:
    """A regular polygon that stands on an edge."""
    corners = min(corners, MOST_CORNERS)
    radius = sqrt(2 * area / (corners * sin(tau / corners)))
    angles = [-pi / 2 + tau * (i + 0.5) / corners for i in range(corners)]
    return tuple((radius * cos(a) / sqrt(stretch), radius * sin(a) * sqrt(stretch)) for a in angles)


def _frame(size: float, hole: float) -> tuple[Polygon, ...]:
    side, middle = (size - hole) / 2, (size + hole) / 4
    return (
        _box(size, side, 0, -middle),
        _box(size, side, 0, middle),
        _box(side, hole, -middle, 0),
        _box(side, hole, middle, 0),
    )


# One row per block: collider of phyq, collider of sailon (None: the sprite's box), life in phyq for wood, stone and
# ice, mass in phyq for wood, stone and ice, base mass and life in sailon.
_TRIANGLE = ((-0.375, -0.375), (0.375, -0.375), (-0.375, 0.375))
_ROOF = ((-0.386, -0.38), (0.40, -0.38), (0.0, 0.39))
_BLOCKS: dict[str, tuple[tuple[Polygon, ...], tuple[Polygon, ...] | None, str, str, tuple[float, float]]] = {
    "RectBig": ((_box(1.886, 0.184),), None, "100 140 65", ".521 1.388 .260", (2.5, 12)),
    "RectFat": ((_box(0.7636, 0.3772),), None, "80 140 53", ".432 1.152 .216", (2, 10)),
    "RectMedium": ((_box(1.5456, 0.184),), None, "70 120 47", ".427 1.138 .213", (2, 10)),
    "RectSmall": ((_box(0.7636, 0.184),), None, "50 80 33", ".211 .562 .105", (1, 5)),
    "RectTiny": ((_box(0.3772, 0.184),), None, "40 60 26", ".104 .278 .052", (0.75, 2.5)),
    "SquareSmall": ((_box(0.3772, 0.3772),), (_box(0.329, 0.384),), "60 100 40", ".213 .569 .107", (1, 5)),
    "SquareTiny": ((_box(0.184, 0.184),), None, "20 30 13", ".051 .135 .025", (0.75, 2.5)),
    "SquareHole": ((_box(0.7636, 0.7636),), _frame(0.84, 0.46), "120 160 70", "1.279 2.737 .842", (3, 15)),
    "Triangle": ((_TRIANGLE,), (((-0.41, -0.41), (0.41, -0.41), (-0.41, 0.41)),), "80 140 53", ".422 1.125 .211",
                 (2, 10)),
    "TriangleHole": ((_ROOF,), (((-0.42, -0.42), (0.42, -0.42), (0.0, 0.42)),), "70 140 48", ".404 1.078 .202",
                     (1.5, 7.5)),
    "Circle": ((_round(0.4277, 24),), (_round(0.479, 13),), "200 600 125", ".428 .428 .428", (3, 25)),
    "CircleSmall": ((_round(0.1296, 15),), (_round(0.137, 8),), "150 300 100", ".130 .130 .130", (2.25, 11)),
}  # fmt: skip
_MATERIALS = ("wood", "stone", "ice")


def _sprite(type_: str) -> Collider:
    return Collider((_box(*SPRITE_SIZES[type_]),))


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


def _phyq() -> Preset:
    natures: dict[tuple[str, str], Nature] = {}
    surface = {"wood": (4.0, 0.0), "stone": (4.0, 0.1), "ice": (0.7, 0.2)}
    defence = {"wood": 2.5, "stone": 15.0, "ice": 2.0}
    for type_, (polygons, _, lives, masses, _) in _BLOCKS.items():
        for material, life, mass in zip(_MATERIALS, _numbers(lives), _numbers(masses), strict=True):
            natures[type_, material] = Nature(
                Collider(polygons), mass, life, *surface[material], 0.48, defence[material], spin_drag=2.0
            )
    for type_, area, corners, life, mass in (
        ("BasicSmall", 0.1508, 31, 1, 0.302), ("BasicMedium", 0.4307, 35, 15, 0.431),
        ("BasicBig", 0.7019, 42, 80, 0.702),
    ):  # fmt: skip
        natures[type_, ""] = Nature(Collider((_round(area, corners),)), mass, life, 0.7, 0.05, 0.48, 1.0, spin_drag=2.0)
    for type_, radius, centre, mass, friction, bounce, harm in (
        ("BirdRed", 0.17, (0.05, -0.03), 0.545, 0.3, 0.43, "1 1 1"),
        ("BirdBlue", 0.18, (0.0, 0.0), 0.458, 0.3, 0.25, "1 1 4"),
        ("BirdYellow", 0.16, (0.03, -0.06), 0.483, 0.4, 0.16, "2.4 1 1.2"),
        ("BirdWhite", 0.26, (0.09, -0.16), 0.849, 0.3, 0.23, ".8 1 .8"),
        ("BirdBlack", 0.20, (0.03, -0.15), 0.754, 0.3, 0.03, "1 2.5 1"),
    ):
        by_material = dict(zip(_MATERIALS, _numbers(harm), strict=True))
        natures[type_, ""] = Nature(
            Collider(radius=radius, centre=centre), mass, 1.0, friction, bounce, 0.48, spin_drag=2.0, harm=by_material
        )
    natures["TNT", ""] = Nature(Collider((_box(0.64, 0.64),)), 1.0, 3.0, 0.4, 0.0, 1.0, spin_drag=0.05)
    natures |= _ours(0.48, 2.0, 25.0)
    blasts = {
        "TNT": Blast(2.5, 4.0, 100.0, True),
        "BirdBlack": Blast(3.0, 4.0, 20.0, True),
        "Egg": Blast(2.0, 2.0, 200.0, True),
    }
    return Preset("phyq", natures, blasts, fuse=0.6, immortal=2.0, by_mass=True)


def _phyq_game() -> Preset:
    """The released game: its birds have a circle and a polygon as colliders, so that each hit makes two contacts.

    Only the red bird's hits were logged; the other birds keep the size of the published source.
    """
    source = _phyq()
    red = replace(source.nature("BirdRed"), collider=Collider(radius=0.225))
    natures = {**source.natures, ("BirdRed", ""): red}
    return replace(source, name="phyq-game", natures=natures, is_game=True, bird_contacts=2)


def _sailon() -> Preset:
    natures: dict[tuple[str, str], Nature] = {}
    surface = {"wood": (5.333, 0.0), "stone": (5.333, 0.1), "ice": (0.933, 0.2)}
    weight = {"wood": 0.05, "stone": 1.0, "ice": 0.188}
    toughness = {"wood": 0.75, "stone": 1.25, "ice": 0.4}
    for type_, (_, polygons, _, _, (mass, life)) in _BLOCKS.items():
        collider = Collider(polygons) if polygons else _sprite(type_)
        for material in _MATERIALS:
            natures[type_, material] = Nature(
                collider, mass * weight[material], life * toughness[material], *surface[material], 0.5,
                drag=1.0, spin_drag=0.05,
            )  # fmt: skip
    for type_, area, corners, life, mass, gravity in (
        ("BasicSmall", 0.1276, 8, 1, 1.0, 0.5), ("BasicMedium", 0.4986, 15, 2.5, 0.296, 1.0),
        ("BasicBig", 0.7952, 15, 5, 0.468, 1.0),
    ):  # fmt: skip
        natures[type_, ""] = Nature(Collider((_round(area, corners),)), mass, life, 0.4, 0.034, gravity, spin_drag=0.05)
    for type_, radius, mass, bounce, harm in (
        ("BirdRed", 0.225, 1.0, 0.3, ".5 .3 1.5"), ("BirdBlue", 0.225, 0.3737, 0.174, ".5 .1 2"),
        ("BirdYellow", 0.30, 0.886, 0.16, "2 .5 .4"), ("BirdWhite", 0.47, 1.1, 0.16, ".5 .5 .5"),
        ("BirdBlack", 0.43, 1.384, 0.021, "1 .2 1"),
    ):  # fmt: skip
        by_material = dict(zip(_MATERIALS, _numbers(harm), strict=True))
        natures[type_, ""] = Nature(
            Collider(radius=radius), mass, 1.0, 0.4, bounce, 0.48, spin_drag=1.0, harm=by_material
        )
    natures["TNT", ""] = Nature(_sprite("TNT"), 1.0, 3.0, 0.4, 0.0, 1.0, spin_drag=0.05)
    natures |= _ours(0.5, 0.05, 4.0)
    blasts = {
        "TNT": Blast(3.0, 2.0, 6.0, False),
        "BirdBlack": Blast(3.0, 2.0, 6.0, False),
        "Egg": Blast(2.0, 1.5, 6.0, False),
    }
    return Preset("sailon", natures, blasts, fuse=1.0, immortal=0.0, by_mass=False)


def _ours(gravity: float, spin_drag: float, bone_life: float) -> dict[tuple[str, str], Nature]:
    """Objects with constants of our choice: an unbreakable egg and a breakable bone, added by novelties.

    Also the white bird's egg, whose shape is only roughly published.
    """
    egg, bone = _sprite("GreenEgg"), _sprite("Bone")
    width, height = SPRITE_SIZES["Egg"]
    return {
        ("GreenEgg", "novel"): Nature(egg, 50.0 * egg.area, 1e6, 4.0, 0.0, gravity, spin_drag=spin_drag),
        ("Bone", "novel"): Nature(bone, 1.5 * bone.area, bone_life, 4.0, 0.0, gravity, spin_drag=spin_drag),
        ("Egg", ""): Nature(
            Collider((_round(pi * width * height / 4, 8, height / width),)), 1.0, 1.0, 0.4, 0.0, 1.0, spin_drag=0.05
        ),
    }


PRESETS = {"phyq": _phyq(), "phyq-game": _phyq_game(), "sailon": _sailon()}


def preset_by_name(name: str) -> Preset:
    """Find a preset."""
    return PRESETS[check_name("preset", name, PRESETS)]
