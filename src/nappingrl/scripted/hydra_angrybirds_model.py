"""HYDRA's model of a shot in Angry Birds: flight and collisions over the boxes that are seen, in pixels."""

from dataclasses import dataclass
from itertools import product
from math import hypot

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.angrybirds import aiming as aim
from nappingrl.domains.angrybirds.layout import CLASSES, ObservedLevel, Target
from nappingrl.domains.angrybirds.physics.scene import GROUND, LAUNCH_SPEED, PIXELS, Box, Camera
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.scripted.hydra import Constant
from nappingrl.types import Flags, Floats

_SCALE = Camera().scale
SPEED = LAUNCH_SPEED * _SCALE
"""Of a launched bird, pixels per second (published: 182)."""
_SLING_UNITS = 2.74
"""Width and height of the slingshot together (published: 2.7): the scale of gravity is read off its box."""
_ORIGIN = 0.489, 0.365
"""Where the bird rests, from the left top of the slingshot's box, both in its widths."""
CONSTANTS = (
    Constant("v_bird_change", 0.0, 1.0, above=-SPEED),
    Constant("base_life_pig_multiplier", 0.0, 50.0),
    Constant("gravity_factor", 9.81, 0.1, above=0.0),
)
"""What repairs change, with the published steps."""
PIG_LIFE = 10.0
BLOCK_LIFE = 265.0
_TOUGHNESS = {"tnt": 0.001, "wood": 0.75, "ice": 0.4, "stone": 1.25, "other": 0.75}
"""Share of a block's life by what it is made of; unknown things are taken for wood."""
_DAMAGE = {
    "red": {"ice": 1.5, "wood": 0.5, "stone": 0.3},
    "yellow": {"ice": 0.4, "wood": 2.0, "stone": 0.5},
    "blue": {"ice": 2.0, "wood": 0.5, "stone": 0.1},
    "black": {"ice": 1.0, "wood": 1.0, "stone": 0.2},
    "white": {"ice": 0.5, "wood": 0.5, "stone": 0.5},
}
"""How much of its speed a bird turns against a block, by the bird's colour."""

_PIG = CLASSES.index("pig")
_SOLID = CLASSES.index("platform"), CLASSES.index("tnt")
"""What a bird does not fly on through: a platform, and what explodes."""
_GROUND_ROW = Camera().to_pixels(0.0, GROUND)[1]
_TIME_STEP = 0.025
_LONGEST = 400
"""Steps of a flight."""
_DAMPER = 0.3
"""Share of the speed that a bounce leaves."""
_GOES_ON = 0.5
"""Share of its speed that a bird keeps when it destroys something (ours)."""
_MOST_BOUNCES = 3
_TNT_REACH = 46.0
"""Pixels; this world's 2.5 units (published: 100 for blocks, 50 for pigs)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the model says of a shot."""

    destroyed: Flags
    """For each target of the view."""
    path: NDArray[np.float64]
    """Places of the bird until it is spent, (n, 2)."""


@dataclass(frozen=True, slots=True)
class Option:
    """A way to shoot."""

    target: Target
    trajectory: int
    offset: int

    @property
    def action(self) -> int:
        """Its number."""
        return aim.join(self.target.slot, self.trajectory, self.offset)


class Setting:
    """A view, as the model needs it: the same for all shots that can be made in it."""

    def __init__(self, view: ObservedLevel) -> None:
        self.view = view
        self.sling = whole(view.sling)
        boxes = [whole(target.box) for target in view.targets]
        self.boxes = np.array([(b.left, b.top, b.right, b.bottom) for b in boxes], np.float64).reshape(-1, 4)
        self.kinds = np.array([CLASSES.index(target.kind) for target in view.targets], np.int64)
        harm = _DAMAGE.get(view.bird, _DAMAGE["red"])
        self._weakness = np.array([_weakness(target, harm) for target in view.targets])
        self._radius = _radius(view.bird)

    def options(self) -> list[Option]:
        """All ways to shoot at what is there."""
        ways = product(self.view.targets, range(len(aim.TRAJECTORIES)), aim.OFFSETS)
        return [Option(*way) for way in ways]

    def launch(self, option: Option) -> float:
        """The launch angle that an option comes to, as the game sees it."""
        x, y = whole(option.target.box).centre
        shot = aim.aim_at((x + option.offset, y), option.trajectory, None, "official", self.sling, _SCALE)
        return self._angle(shot.release)

    def _angle(self, release: tuple[float, float]) -> float:
        x, y = self._origin
        return float(np.arctan2(release[1] - y, x - release[0]))

    @property
    def _origin(self) -> tuple[float, float]:
        width = self.sling.width
        return self.sling.left + _ORIGIN[0] * width, self.sling.top + _ORIGIN[1] * width

    def shoot(self, angle: float, constants: Floats) -> Outcome:
        """The shot at a launch angle, in a model with these constants."""
        speed_change, pig_multiplier, gravity_factor = constants.tolist()
        speed = SPEED + speed_change
        gravity = 0.48 * gravity_factor * (self.sling.width + self.sling.height) / _SLING_UNITS
        lives = np.where(self.kinds == _PIG, np.ceil(PIG_LIFE + pig_multiplier), self._weakness)
        (x, y), (cos, sin) = self._origin, (np.cos(angle), np.sin(angle))
        start = np.array([x - _SCALE * cos, y + _SCALE * sin, speed * cos, -speed * sin])
        screen = float(PIXELS[0]), float(_GROUND_ROW)
        destroyed, path = _fly(start, gravity, self._radius, self.boxes, self.kinds, lives, screen, _SOLID)
        return Outcome(destroyed, path)


def whole(box: Box) -> Box:
    """A box of the screen has whole numbers; the observation's are single precision."""
    return Box(round(box.left), round(box.top), round(box.right), round(box.bottom))


def _weakness(target: Target, harm: dict[str, float]) -> float:
    """The speed at which a bird destroys a block; never for a platform."""
    if target.kind not in _TOUGHNESS:
        return np.inf
    return float(np.ceil(BLOCK_LIFE * _TOUGHNESS[target.kind])) / harm.get(target.kind, harm["wood"])


def _radius(bird: str) -> float:
    width, _ = SPRITE_SIZES[f"Bird{bird.title()}" if bird else "BirdRed"]
    return width / 2 * _SCALE


@kernel()
def _fly(
    bird: Floats, gravity: float, radius: float, boxes: NDArray[np.float64], kinds: NDArray[np.int64], lives: Floats,
    screen: tuple[float, float], solid: tuple[int, int],
) -> tuple[Flags, NDArray[np.float64]]:  # fmt: skip
    """Fly until the bird is spent: after three bounces off the ground, at a platform, or off the screen.

    What the bird hits is destroyed if its speed is at least the thing's life, else the bird bounces off it.
    """
    destroyed, path = np.zeros(len(kinds), np.bool_), np.empty((_LONGEST, 2))
    (width, ground), (platform, tnt) = screen, solid
    n_bounces = 0
    for n in range(_LONGEST):
        bird[0] += _TIME_STEP * bird[2]
        bird[1] += _TIME_STEP * (bird[3] + gravity * _TIME_STEP / 2)
        bird[3] += _TIME_STEP * gravity
        path[n] = bird[:2]
        if bird[1] + radius >= ground and bird[3] > 0:
            bird[2] *= _DAMPER
            bird[3] *= -_DAMPER
            n_bounces += 1
        for i in range(len(kinds)):
            if destroyed[i] or not _hits(bird, radius, boxes[i]):
                continue
            if kinds[i] == platform:
                return destroyed, path[: n + 1]
            if lives[i] > hypot(bird[2], bird[3]):
                _bounce(bird, boxes[i])
                continue
            destroyed[i] = True
            bird[2:] *= _GOES_ON
            if kinds[i] == tnt:
                _explode(boxes[i], boxes, kinds, destroyed, solid)
        if n_bounces >= _MOST_BOUNCES or bird[0] >= width:
            return destroyed, path[: n + 1]
    return destroyed, path


@kernel()
def _from_box(x: float, y: float, box: Floats) -> tuple[float, float]:
    """The way from the nearest point of a box to a point."""
    return x - min(max(x, box[0]), box[2]), y - min(max(y, box[1]), box[3])


@kernel()
def _hits(bird: Floats, radius: float, box: Floats) -> bool:
    """Whether the bird touches a box and moves into it."""
    dx, dy = _from_box(bird[0], bird[1], box)
    return bool(hypot(dx, dy) <= radius and dx * bird[2] + dy * bird[3] <= 0)


@kernel()
def _bounce(bird: Floats, box: Floats) -> None:
    """Turn round what moves into the box, and lose most of the speed; straight back from its inside."""
    dx, dy = _from_box(bird[0], bird[1], box)
    distance = hypot(dx, dy)
    if distance == 0.0:
        bird[2:] *= -_DAMPER
    else:
        into = 2 * (bird[2] * dx + bird[3] * dy) / (distance * distance)
        bird[2], bird[3] = _DAMPER * (bird[2] - into * dx), _DAMPER * (bird[3] - into * dy)


@kernel()
def _explode(
    tnt: Floats, boxes: NDArray[np.float64], kinds: NDArray[np.int64], destroyed: Flags, solid: tuple[int, int]
) -> None:
    """All pigs and blocks near TNT are destroyed; other TNT stays."""
    x, y = (tnt[0] + tnt[2]) / 2, (tnt[1] + tnt[3]) / 2
    for i in range(len(kinds)):
        away = hypot((boxes[i, 0] + boxes[i, 2]) / 2 - x, (boxes[i, 1] + boxes[i, 3]) / 2 - y)
        if away <= _TNT_REACH and kinds[i] != solid[0] and kinds[i] != solid[1]:
            destroyed[i] = True


def gap(path: NDArray[np.float64], boxes: NDArray[np.float64]) -> float:
    """How near a path comes to the nearest of some boxes: 0 where it goes through one."""
    x, y = path[:, :1], path[:, 1:]
    dx, dy = x - np.clip(x, boxes[:, 0], boxes[:, 2]), y - np.clip(y, boxes[:, 1], boxes[:, 3])
    return float(np.hypot(dx, dy).min())
