"""HYDRA's model of a shot in Angry Birds: flight and collisions with the observed boxes, in pixels."""

from dataclasses import dataclass
from itertools import product
from math import hypot

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.angrybirds.actions import OFFSETS, TRAJECTORIES, join
from nappingrl.domains.angrybirds.aiming import PLANNER, aim_at, aim_point
from nappingrl.domains.angrybirds.layout import CLASSES, ObservedLevel, Target
from nappingrl.domains.angrybirds.physics.scene import GROUND, LAUNCH_SPEED, PIXELS, Box, Camera
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.scripted.hydra import Constant
from nappingrl.types import Flags, Floats

_SCALE = Camera().scale
SPEED = LAUNCH_SPEED * _SCALE
"""Launch speed in pixels per second (published: 182)."""
_SLING_UNITS = 2.74
"""Width plus height of the slingshot in world units (published: 2.7); gives the scale of gravity."""
_ORIGIN = 0.489, 0.365
"""Rest position of the bird, from the top left of the slingshot's box, in widths of the box."""
CONSTANTS = (
    Constant("v_bird_change", 0.0, 1.0, above=-SPEED),
    Constant("base_life_pig_multiplier", 0.0, 50.0),
    Constant("gravity_factor", 9.81, 0.1, above=0.0),
)
"""The constants that repairs change, with the published steps."""
PIG_LIFE = 10.0
BLOCK_LIFE = 265.0
_TOUGHNESS = {"tnt": 0.001, "wood": 0.75, "ice": 0.4, "stone": 1.25, "other": 0.75}
"""Share of a block's life by class; unknown objects count as wood."""
_DAMAGE = {
    "red": {"ice": 1.5, "wood": 0.5, "stone": 0.3},
    "yellow": {"ice": 0.4, "wood": 2.0, "stone": 0.5},
    "blue": {"ice": 2.0, "wood": 0.5, "stone": 0.1},
    "black": {"ice": 1.0, "wood": 1.0, "stone": 0.2},
    "white": {"ice": 0.5, "wood": 0.5, "stone": 0.5},
}
"""Damage factor of a bird against a block, by colour and material."""

_PIG = CLASSES.index("pig")
_SOLID = CLASSES.index("platform"), CLASSES.index("tnt")
"""Classes that need special treatment: a platform stops the bird, TNT explodes."""
_GROUND_ROW = Camera().to_pixels(0.0, GROUND)[1]
_TIME_STEP = 0.025
_LONGEST = 400
"""Steps of a flight."""
_DAMPER = 0.3
"""Share of the speed that is left after a bounce."""
_GOES_ON = 0.5
"""Share of its speed that a bird keeps when it destroys an object (our choice)."""
_MOST_BOUNCES = 3
_TNT_REACH = 46.0
"""Pixels; 2.5 units of our physics (published: 100 for blocks, 50 for pigs)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The predicted outcome of a shot."""

    destroyed: Flags
    """For each target of the level."""
    path: NDArray[np.float64]
    """Positions of the bird until it stops, (n, 2)."""


@dataclass(frozen=True, slots=True)
class Option:
    """A possible shot."""

    target: Target
    trajectory: int
    offset: int

    @property
    def action(self) -> int:
        """Number of the action."""
        return join(self.target.slot, self.trajectory, self.offset)


class Setting:
    """A level prepared for the model, shared by all possible shots."""

    def __init__(self, level: ObservedLevel) -> None:
        self.level = level
        self.sling = whole(level.sling)
        boxes = [whole(target.box) for target in level.targets]
        self.boxes = np.array([(b.left, b.top, b.right, b.bottom) for b in boxes], np.float64).reshape(-1, 4)
        self.kinds = np.array([CLASSES.index(target.kind) for target in level.targets], np.int64)
        harm = _DAMAGE.get(level.bird, _DAMAGE["red"])
        self._weakness = np.array([_weakness(target, harm) for target in level.targets])
        self._radius = _radius(level.bird)

    def options(self) -> list[Option]:
        """All possible shots."""
        options = product(self.level.targets, range(len(TRAJECTORIES)), OFFSETS)
        return [Option(target, *shot) for target, *shot in options if target.is_possible(*shot)]

    def launch(self, option: Option) -> float:
        """The launch angle of an option; that of a bird thrown backwards if it is not possible."""
        point = aim_point(whole(option.target.box), option.offset)
        shot = aim_at(point, option.trajectory, "", PLANNER, self.sling, _SCALE)
        return np.pi if shot is None else self._angle(shot.release)

    def _angle(self, release: tuple[float, float]) -> float:
        x, y = self._origin
        return float(np.arctan2(release[1] - y, x - release[0]))

    @property
    def _origin(self) -> tuple[float, float]:
        width = self.sling.width
        return self.sling.left + _ORIGIN[0] * width, self.sling.top + _ORIGIN[1] * width

    def shoot(self, angle: float, constants: Floats) -> Outcome:
        """Simulate a shot with these constants."""
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
    """Round a box to whole pixels, which observations lose in single precision."""
    return Box(round(box.left), round(box.top), round(box.right), round(box.bottom))


def _weakness(target: Target, harm: dict[str, float]) -> float:
    """The speed at which a bird destroys a block; infinite for a platform."""
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
    """Fly until the bird stops: after three bounces off the ground, at a platform, or off the screen.

    An object is destroyed if the bird is at least as fast as the object's life; otherwise the bird bounces off.
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
    """The vector from the nearest point of a box to a point."""
    return x - min(max(x, box[0]), box[2]), y - min(max(y, box[1]), box[3])


@kernel()
def _hits(bird: Floats, radius: float, box: Floats) -> bool:
    """Whether the bird touches a box and moves into it."""
    dx, dy = _from_box(bird[0], bird[1], box)
    return bool(hypot(dx, dy) <= radius and dx * bird[2] + dy * bird[3] <= 0)


@kernel()
def _bounce(bird: Floats, box: Floats) -> None:
    """Reflect the bird off a box with damping; from the inside, reverse it."""
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
    """Destroy all pigs and blocks near TNT, but no other TNT."""
    x, y = (tnt[0] + tnt[2]) / 2, (tnt[1] + tnt[3]) / 2
    for i in range(len(kinds)):
        away = hypot((boxes[i, 0] + boxes[i, 2]) / 2 - x, (boxes[i, 1] + boxes[i, 3]) / 2 - y)
        if away <= _TNT_REACH and kinds[i] != solid[0] and kinds[i] != solid[1]:
            destroyed[i] = True


def gap(path: NDArray[np.float64], boxes: NDArray[np.float64]) -> float:
    """Distance of a path from the nearest of some boxes; 0 if it passes through one."""
    x, y = path[:, :1], path[:, 1:]
    dx, dy = x - np.clip(x, boxes[:, 0], boxes[:, 2]), y - np.clip(y, boxes[:, 1], boxes[:, 3])
    return float(np.hypot(dx, dy).min())
