"""The records of Angry Birds: levels, and scenes as snapshots of a world."""

from dataclasses import dataclass, field
from typing import NamedTuple

from nappingrl.types import Point

GROUND = -3.5
"""Height of the ground in world units; y points up."""
GRAVITY = 9.81
LAUNCH_SPEED = 10.0
"""Speed of a fully drawn bird, units per second."""
WORLD_WIDTH = 17.5
"""Units per `width` of a level; the world is centred at x = 0."""
PIXELS = (640, 480)
"""Width and height of the screen; y points down there."""

BIRDS = ("BirdRed", "BirdBlue", "BirdYellow", "BirdBlack", "BirdWhite")
PIGS = ("BasicSmall", "BasicMedium", "BasicBig")
BLOCKS = (
    "Circle", "CircleSmall", "RectBig", "RectFat", "RectMedium", "RectSmall", "RectTiny", "SquareHole", "SquareSmall",
    "SquareTiny", "Triangle", "TriangleHole",
)  # fmt: skip
MATERIALS = ("wood", "stone", "ice")
NOVEL = ("GreenEgg", "Bone")
"""Types of blocks that only novelties add; their material is "novel"."""


class Box(NamedTuple):
    """An upright box on the screen, in pixels; y points down."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Extent in x."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Extent in y."""
        return self.bottom - self.top

    @property
    def centre(self) -> Point:
        """Middle of the box."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2


@dataclass(frozen=True, slots=True)
class Camera:
    """The camera; only the widest view is used, which is centred at x = 0."""

    x: float = 0.0
    y: float = -1.0
    min_width: float = 25.0
    max_width: float = 35.0

    @property
    def scale(self) -> float:
        """Pixels per world unit."""
        return PIXELS[0] / self.max_width

    def to_pixels(self, x: float, y: float) -> Point:
        """World units to pixels."""
        return PIXELS[0] / 2 + x * self.scale, PIXELS[1] / 2 - (y - self.y) * self.scale

    def to_world(self, x: float, y: float) -> Point:
        """Pixels to world units."""
        return (x - PIXELS[0] / 2) / self.scale, self.y + (PIXELS[1] / 2 - y) / self.scale


@dataclass(frozen=True, slots=True)
class Item:
    """One object of a level: its centre in world units, its rotation in degrees, counterclockwise."""

    kind: str
    """One of block, pig, tnt, platform."""
    type: str
    x: float
    y: float
    rotation: float = 0.0
    material: str = ""
    """wood, stone or ice for blocks ("novel" for those of novelties), otherwise empty."""
    scale_x: float = 1.0
    scale_y: float = 1.0
    """Scale of a platform."""
    is_goal: bool = False
    """Whether it must be destroyed, in addition to the pigs."""


@dataclass(frozen=True, slots=True)
class Level:
    """A level."""

    name: str
    birds: tuple[str, ...]
    """Types of birds in shooting order."""
    items: tuple[Item, ...]
    sling: Point = (-12.0, -2.5)
    camera: Camera = field(default_factory=Camera)
    width: int = 2
    spots: tuple[Point, ...] = field(default=(), compare=False)
    """Points on surfaces where a novelty that adds objects puts them; level files have none."""


@dataclass(frozen=True, slots=True)
class Sling:
    """The slingshot: a box in world units, and the origin where the bird rests."""

    left: float
    bottom: float
    right: float
    top: float
    origin: Point


def make_sling(position: Point, height: float = 1.0) -> Sling:
    """The slingshot at a position, scaled upwards by `height`."""
    x, y = position
    bottom = y - 1.005
    top = bottom + 2.055 * height
    return Sling(x - 0.485, bottom, x + 0.20, top, (x - 0.15, top - 0.25))


@dataclass(frozen=True, slots=True)
class Thing:
    """A snapshot of one object."""

    id: int
    """Negative, and unique within a level."""
    kind: str
    """One of pig, bird, block, tnt, platform, egg (the white bird's)."""
    type: str
    material: str
    x: float
    y: float
    angle: float
    """Radians, counterclockwise."""
    scale_x: float
    scale_y: float
    life: float
    full_life: float
    colour: str
    """One of red, blue, yellow, black, white (birds), pig, wood, stone, ice, tnt, platform, bone."""
    is_goal: bool
    """Whether it must be destroyed: pigs, and some objects of novelties."""


@dataclass(frozen=True, slots=True)
class View:
    """How the screen is shown; novelties change it."""

    circumcircle: bool = False
    """The ground truth has circumscribed circles instead of shapes."""
    grayscale: bool = False
    rotation: int = 0
    """Rotation of the screen around its centre in degrees: 0 or 180."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A snapshot of everything that is visible."""

    camera: Camera
    sling: Sling
    things: tuple[Thing, ...]
    """In the order of the ground truth: pigs, birds, shapes other than boxes, boxes, TNT, platforms."""
    dots: tuple[Point, ...]
    """Path of the last flight, a point every 0.1 s."""
    view: View
    next_bird: int | None
    """Id of the bird on the sling, if any."""
