"""The observation of the agent: which of its 156 numbers stands where, how it is encoded and decoded.

One block of numbers per object that can be aimed at, then the slingshot, the birds, and what is left to destroy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box
from nappingrl.types import Flags, Floats, Observations

N_SLOTS = 12
BIRD_COLOURS = ("red", "blue", "yellow", "black", "white")
CLASSES = ("pig", "tnt", "wood", "ice", "stone", "platform", "other")
"""Class of an object, by its colours; "other" if they are unknown."""
OBJECT_FEATURES = ("is there", *CLASSES, "x", "y", "width", "height")
SHARED_FEATURES = (
    "sling x", "sling y", "sling width", "sling height", "birds", *(f"{c} bird" for c in BIRD_COLOURS), "pigs", "goals",
)  # fmt: skip
OBSERVATION_NAMES = (
    *(f"object {slot + 1} {name}" for slot in range(N_SLOTS) for name in OBJECT_FEATURES),
    *SHARED_FEATURES,
)
N_OBSERVATIONS = len(OBSERVATION_NAMES)
PIGS = OBSERVATION_NAMES.index("pigs")
GOALS = OBSERVATION_NAMES.index("goals")
"""Index of the number of pigs, and of all objects that must be destroyed."""
MAX_COUNT = 5
"""Counts are encoded as shares of this."""

_PER_SLOT = len(OBJECT_FEATURES)
_N_SLOT_NUMBERS = N_SLOTS * _PER_SLOT
_CLASS_COLUMNS = slice(1, 1 + len(CLASSES))
_BOX_COLUMNS = slice(1 + len(CLASSES), _PER_SLOT)
_SLING = slice(_N_SLOT_NUMBERS, _N_SLOT_NUMBERS + 4)
_BIRDS = OBSERVATION_NAMES.index("birds")
_BIRD_ON_SLING = slice(_BIRDS + 1, _BIRDS + 1 + len(BIRD_COLOURS))
_BOX_SCALE = 100
"""Pixels of width or height that are encoded as 1."""


@dataclass(frozen=True, slots=True)
class Target:
    """An object that can be aimed at."""

    slot: int
    kind: str
    """One of `CLASSES`."""
    box: Box


@dataclass(frozen=True, slots=True)
class ObservedLevel:
    """A decoded observation."""

    targets: tuple[Target, ...]
    sling: Box
    birds: int
    bird: str
    """Colour of the bird on the sling; empty if there is none."""
    pigs: int
    goals: int

    def of_kind(self, kind: str) -> list[Target]:
        """The targets of one class, in slot order."""
        return [target for target in self.targets if target.kind == kind]


def encode(level: ObservedLevel) -> NDArray[np.float32]:
    """An observation, (156,) float32; most numbers lie between 0 and 1."""
    out = np.zeros(N_OBSERVATIONS, np.float32)
    slots = out[:_N_SLOT_NUMBERS].reshape(N_SLOTS, _PER_SLOT)
    for target in level.targets:
        slots[target.slot, 0] = 1.0
        slots[target.slot, 1 + CLASSES.index(target.kind)] = 1.0
        slots[target.slot, _BOX_COLUMNS] = _encode_box(target.box)
    out[_SLING] = _encode_box(level.sling)
    out[_BIRDS] = min(level.birds, MAX_COUNT) / MAX_COUNT
    if level.bird:
        out[_BIRDS + 1 + BIRD_COLOURS.index(level.bird)] = 1.0
    out[PIGS] = level.pigs / MAX_COUNT
    out[GOALS] = level.goals / MAX_COUNT
    return out


def decode(observation: NDArray[np.floating]) -> ObservedLevel:
    """The level that an observation shows; boxes are exact up to single precision."""
    numbers = observation.astype(np.float64)
    slots = numbers[:_N_SLOT_NUMBERS].reshape(N_SLOTS, _PER_SLOT)
    targets = tuple(
        Target(i, CLASSES[int(slot[_CLASS_COLUMNS].argmax())], _decode_box(*slot[_BOX_COLUMNS].tolist()))
        for i, slot in enumerate(slots)
        if slot[0] > 0
    )
    colours = numbers[_BIRD_ON_SLING]
    bird = BIRD_COLOURS[int(colours.argmax())] if colours.any() else ""
    birds, pigs, goals = (round(float(numbers[i]) * MAX_COUNT) for i in (_BIRDS, PIGS, GOALS))
    return ObservedLevel(targets, _decode_box(*numbers[_SLING].tolist()), birds, bird, pigs, goals)


def occupied(observations: Observations) -> Flags:
    """Which slots hold an object, (n, 12)."""
    flags: Flags = observations[:, :_N_SLOT_NUMBERS:_PER_SLOT] > 0
    return flags


def decode_counts(observations: Observations, column: int) -> Floats:
    """One column of counts (`PIGS` or `GOALS`) as whole numbers, (n,)."""
    return np.rint(observations[:, column].astype(np.float64) * MAX_COUNT)


def _encode_box(box: Box) -> tuple[float, float, float, float]:
    x, y = box.centre
    return x / PIXELS[0], y / PIXELS[1], box.width / _BOX_SCALE, box.height / _BOX_SCALE


def _decode_box(x: float, y: float, width: float, height: float) -> Box:
    x, y, width, height = x * PIXELS[0], y * PIXELS[1], width * _BOX_SCALE, height * _BOX_SCALE
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)
