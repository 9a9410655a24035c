"""The paper's actions: aim at one of the objects, on a low or a high trajectory, at or beside its middle.

And the compact observation that goes with them: one block of numbers per object, in the same order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.ground_truth.state import GroundTruth, SeenObject, boxes, sling_box
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Camera, View
from nappingrl.domains.angrybirds.trajectory import TAP_PERCENT, Box, make_planner

N_SLOTS = 12
TRAJECTORIES = ("low", "high")
OFFSETS = (0, 15, -15, 25, -25, 35, -35)
"""Pixels to the right of the target's middle."""
PER_OBJECT = len(TRAJECTORIES) * len(OFFSETS)
N_ACTIONS = N_SLOTS * PER_OBJECT
ACTION_NAMES = tuple(
    f"object {slot + 1} {trajectory} {offset:+d}" for slot in range(N_SLOTS) for trajectory in TRAJECTORIES
    for offset in OFFSETS
)  # fmt: skip

BIRD_COLOURS = ("red", "blue", "yellow", "black", "white")
CLASSES = ("pig", "tnt", "wood", "ice", "stone", "platform")
"""What an object is by its colours; anything else is "other"."""
PER_SLOT = 1 + len(CLASSES) + 1 + 4
OBJECT_FEATURES = ("is there", *CLASSES, "other", "x", "y", "width", "height")
SHARED_FEATURES = (
    "sling x", "sling y", "sling width", "sling height", "birds", *(f"{c} bird" for c in BIRD_COLOURS), "pigs", "goals",
)  # fmt: skip
OBSERVATION_NAMES = (
    *(f"object {slot + 1} {name}" for slot in range(N_SLOTS) for name in OBJECT_FEATURES),
    *SHARED_FEATURES,
)
N_OBSERVATIONS = len(OBSERVATION_NAMES)
PIGS, GOALS = N_OBSERVATIONS - 2, N_OBSERVATIONS - 1
"""Where an observation tells how many pigs, and how many things that must be destroyed, are left."""
MOST_COUNTED = 5
"""Counts are given as shares of this."""
_FAR_RELEASE = (-600, 560)
"""Where the published naive agent lets go when its planner knows no way."""

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Shot:
    """What is sent to the game: where on the screen to let go, and when to tap."""

    release: Point
    tap_ms: int


def split(action: int) -> tuple[int, int, int]:
    """Slot, trajectory and offset in pixels of an action."""
    slot, rest = divmod(action, PER_OBJECT)
    trajectory, offset = divmod(rest, len(OFFSETS))
    return slot, trajectory, OFFSETS[offset]


def join(slot: int, trajectory: int, offset: int) -> int:
    """The action of a slot, a trajectory and an offset in pixels."""
    return slot * PER_OBJECT + trajectory * len(OFFSETS) + OFFSETS.index(offset)


def candidate_order() -> NDArray[np.int64]:
    """For each action all actions as the paper tries them instead.

    Other objects first, then the other trajectory with each object, then other offsets.
    """
    order = np.empty((N_ACTIONS, N_ACTIONS), np.int64)
    for action in range(N_ACTIONS):
        slot, trajectory, offset = split(action)
        slots = [(slot + i) % N_SLOTS for i in range(N_SLOTS)]
        ways = [trajectory, 1 - trajectory]
        offsets = [offset, *(other for other in OFFSETS if other != offset)]
        order[action] = [join(s, t, o) for o in offsets for t in ways for s in slots]
    return order


class Targets:
    """The objects of one level, each in a slot that it keeps until the level ends.

    The order at the level's start: by class as in `CLASSES`, then from left to right, then from top to bottom. Objects
    beyond the last slot cannot be aimed at.
    """

    def __init__(self) -> None:
        self._ids: list[int] = []
        self.seen: list[SeenObject | None] = []
        """Per slot, None where the object is gone."""
        self.sling = Box(0, 0, 0, 0)
        self.birds: list[SeenObject] = []

    def update(self, truth: GroundTruth) -> None:
        """Take in what is there now."""
        everything = boxes(truth)
        self.sling = Box(*sling_box(truth))
        self.birds = [one for one in everything if one.colour in BIRD_COLOURS]
        objects = [one for one in everything if one.colour not in BIRD_COLOURS]
        new = sorted((one for one in objects if one.id not in self._ids), key=_order)
        self._ids = (self._ids + [one.id for one in new])[:N_SLOTS]
        by_id = {one.id: one for one in objects}
        self.seen = [by_id.get(id_) for id_ in self._ids] + [None] * (N_SLOTS - len(self._ids))

    def mask(self) -> NDArray[np.bool_]:
        """Which actions aim at something that is there."""
        return np.repeat([one is not None for one in self.seen], PER_OBJECT)

    def observe(self, pigs: int, goals: int) -> NDArray[np.float32]:
        """All objects, the slingshot, the birds, and how much is left to destroy, as numbers of about 0 to 1."""
        out = np.zeros(N_OBSERVATIONS, np.float32)
        width, height = PIXELS
        for slot, one in enumerate(self.seen):
            if one is not None:
                at = slot * PER_SLOT
                out[at] = 1.0
                kind = CLASSES.index(one.colour) if one.colour in CLASSES else len(CLASSES)
                out[at + 1 + kind] = 1.0
                out[at + 2 + len(CLASSES) : at + PER_SLOT] = (
                    (one.x0 + one.x1) / 2 / width, (one.y0 + one.y1) / 2 / height,
                    (one.x1 - one.x0) / 100, (one.y1 - one.y0) / 100,
                )  # fmt: skip
        at = N_SLOTS * PER_SLOT
        x, y = self.sling.centre
        birds = min(len(self.birds), MOST_COUNTED) / MOST_COUNTED
        out[at : at + 5] = (x / width, y / height, self.sling.width / 100, self.sling.height / 100, birds)
        bird = self.bird
        if bird is not None:
            out[at + 5 + BIRD_COLOURS.index(bird.colour)] = 1.0
        out[PIGS], out[GOALS] = pigs / MOST_COUNTED, goals / MOST_COUNTED
        return out

    @property
    def bird(self) -> SeenObject | None:
        """The bird on the sling: the one whose top is nearest to the sling's."""
        return min(self.birds, key=lambda one: abs(one.y0 - self.sling.top), default=None)

    def aim(self, action: int, planner: str, scale: float) -> Shot:
        """The shot of an action; a far release, as the naive agent's, where its object is gone or no way is known."""
        slot, trajectory, offset = split(action)
        one = self.seen[slot]
        if one is None:
            return Shot(_FAR_RELEASE, 0)
        target = (one.x0 + one.x1) / 2 + offset, (one.y0 + one.y1) / 2
        return aim_at(target, trajectory, self.bird, planner, self.sling, scale)


def aim_at(target: Point, trajectory: int, bird: SeenObject | None, planner: str, sling: Box, scale: float) -> Shot:
    """A shot at a point of the screen, with the bird's tap in the middle of the published interval."""
    plan = make_planner(planner, sling, scale)
    angle = plan.angle(target, trajectory)
    if angle is None:
        return Shot(_FAR_RELEASE, 0)
    low, high = TAP_PERCENT[bird.colour] if bird is not None else (0, 0)
    percent = (low + high) / 2
    return Shot(plan.release(angle), plan.tap_ms(target, angle, percent) if percent else 0)


def to_world(release: Point, camera: Camera, view: View) -> Point:
    """A release point of the screen in the world, the screen turned back if it is turned."""
    x, y = release
    if view.rotation:
        x, y = PIXELS[0] - x, PIXELS[1] - y
    return camera.to_world(x, y)


def _order(one: SeenObject) -> tuple[int, int, int, int]:
    kind = CLASSES.index(one.colour) if one.colour in CLASSES else len(CLASSES)
    return kind, one.x0, one.y0, -one.id
