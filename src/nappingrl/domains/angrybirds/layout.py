"""The observation of the agent: which of its 322 numbers stands where, how it is encoded and decoded.

One block of numbers per object that can be aimed at, then the slingshot, the birds, and which actions are possible.
With the option `observation=raster` a picture follows, which nothing here reads.
Everything follows from the ground truth: what an object is, not whether it must be destroyed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.actions import ACTION_NAMES, N_ACTIONS, N_SLOTS, OFFSETS, PER_OBJECT
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box
from nappingrl.types import Floats, Observations

BIRD_COLOURS = ("red", "blue", "yellow", "black", "white")
CLASSES = ("pig", "tnt", "wood", "ice", "stone", "platform", "other")
"""Class of an object; "other" if its label, or its colours, are unknown."""
OBJECT_FEATURES = ("is there", *CLASSES, "x", "y", "width", "height")
SHARED_FEATURES = (
    "sling x", "sling y", "sling width", "sling height", "birds", *(f"{c} bird" for c in BIRD_COLOURS),
)  # fmt: skip
OBSERVATION_NAMES = (
    *(f"object {slot + 1} {name}" for slot in range(N_SLOTS) for name in OBJECT_FEATURES),
    *SHARED_FEATURES,
    *(f"{action} is possible" for action in ACTION_NAMES),
)
N_OBSERVATIONS = len(OBSERVATION_NAMES)
MAX_BIRDS = 5
"""The number of birds is encoded as a share of this."""

_PER_SLOT = len(OBJECT_FEATURES)
_N_SLOT_NUMBERS = N_SLOTS * _PER_SLOT
_CLASS_COLUMNS = slice(1, 1 + len(CLASSES))
_BOX_COLUMNS = slice(1 + len(CLASSES), _PER_SLOT)
_SLING = slice(_N_SLOT_NUMBERS, _N_SLOT_NUMBERS + 4)
_BIRDS = OBSERVATION_NAMES.index("birds")
_BIRD_ON_SLING = slice(_BIRDS + 1, _BIRDS + 1 + len(BIRD_COLOURS))
_MASK = slice(N_OBSERVATIONS - N_ACTIONS, N_OBSERVATIONS)
_BOX_SCALE = 100
"""Pixels of width or height that are encoded as 1."""
_ALL_SHOTS = (True,) * PER_OBJECT


@dataclass(frozen=True, slots=True)
class Target:
    """An object that can be aimed at."""

    slot: int
    kind: str
    """One of `CLASSES`."""
    box: Box
    shots: tuple[bool, ...] = _ALL_SHOTS
    """Which of the actions on it have a launch angle, in the order of the actions."""

    def is_possible(self, trajectory: int, offset: int) -> bool:
        """Whether the planner finds a launch angle."""
        return self.shots[trajectory * len(OFFSETS) + OFFSETS.index(offset)]


@dataclass(frozen=True, slots=True)
class ObservedLevel:
    """A decoded observation."""

    targets: tuple[Target, ...]
    sling: Box
    birds: int
    bird: str
    """Colour of the bird on the sling; empty if there is none."""

    def of_kind(self, kind: str) -> list[Target]:
        """The targets of one class, in slot order."""
        return [target for target in self.targets if target.kind == kind]


def encode(level: ObservedLevel) -> NDArray[np.float32]:
    """An observation, (322,) float32; most numbers lie between 0 and 1."""
    out = np.zeros(N_OBSERVATIONS, np.float32)
    slots = out[:_N_SLOT_NUMBERS].reshape(N_SLOTS, _PER_SLOT)
    mask = out[_MASK].reshape(N_SLOTS, PER_OBJECT)
    for target in level.targets:
        slots[target.slot, 0] = 1.0
        slots[target.slot, 1 + CLASSES.index(target.kind)] = 1.0
        slots[target.slot, _BOX_COLUMNS] = _encode_box(target.box)
        mask[target.slot] = target.shots
    out[_SLING] = _encode_box(level.sling)
    out[_BIRDS] = min(level.birds, MAX_BIRDS) / MAX_BIRDS
    if level.bird:
        out[_BIRDS + 1 + BIRD_COLOURS.index(level.bird)] = 1.0
    return out


def decode(observation: NDArray[np.floating]) -> ObservedLevel:
    """The level that an observation shows; boxes are exact up to single precision."""
    numbers = observation.astype(np.float64)
    slots = numbers[:_N_SLOT_NUMBERS].reshape(N_SLOTS, _PER_SLOT)
    shots = (numbers[_MASK].reshape(N_SLOTS, PER_OBJECT) > 0).tolist()
    targets = tuple(
        Target(i, CLASSES[int(slot[_CLASS_COLUMNS].argmax())], _decode_box(*slot[_BOX_COLUMNS].tolist()), (*shots[i],))
        for i, slot in enumerate(slots)
        if slot[0] > 0
    )
    colours = numbers[_BIRD_ON_SLING]
    bird = BIRD_COLOURS[int(colours.argmax())] if colours.any() else ""
    birds = round(float(numbers[_BIRDS]) * MAX_BIRDS)
    return ObservedLevel(targets, _decode_box(*numbers[_SLING].tolist()), birds, bird)


def possible_actions(observations: Observations) -> NDArray[np.bool_]:
    """Which actions aim at an object on the screen and have a launch angle, (n, 168)."""
    flags: NDArray[np.bool_] = observations[:, _MASK] > 0
    return flags


def count_pigs(observations: Observations) -> Floats:
    """How many objects look like pigs, (n,)."""
    is_pig = observations[:, 1 + CLASSES.index("pig") : _N_SLOT_NUMBERS : _PER_SLOT] > 0
    pigs: Floats = is_pig.sum(axis=1, dtype=np.float64)
    return pigs


def _encode_box(box: Box) -> tuple[float, float, float, float]:
    x, y = box.centre
    return x / PIXELS[0], y / PIXELS[1], box.width / _BOX_SCALE, box.height / _BOX_SCALE


def _decode_box(x: float, y: float, width: float, height: float) -> Box:
    x, y, width, height = x * PIXELS[0], y * PIXELS[1], width * _BOX_SCALE, height * _BOX_SCALE
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
