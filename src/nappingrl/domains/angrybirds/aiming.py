"""Actions: aim at one of the objects, on a low or a high trajectory, at its centre or beside it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.free_shots import shot_of
from nappingrl.domains.angrybirds.ground_truth.state import GroundTruth, SeenObject, boxes, sling_box
from nappingrl.domains.angrybirds.layout import BIRD_COLOURS, CLASSES, N_SLOTS, ObservedLevel, Target, encode
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box, Camera, View
from nappingrl.domains.angrybirds.trajectory import TAP_PERCENT, make_planner
from nappingrl.types import Point

TRAJECTORIES = ("low", "high")
OFFSETS = (0, 15, -15, 25, -25, 35, -35)
"""Pixels to the right of the target's centre."""
PER_OBJECT = len(TRAJECTORIES) * len(OFFSETS)
"""Actions per object."""
N_ACTIONS = N_SLOTS * PER_OBJECT
ACTION_NAMES = tuple(
    f"object {slot + 1} {trajectory} {offset:+d}" for slot in range(N_SLOTS) for trajectory in TRAJECTORIES
    for offset in OFFSETS
)  # fmt: skip
_FAR_RELEASE = (-600, 560)
"""Release point of the published naive agent when its planner finds no solution."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A shot as sent to the game: the release point on the screen, and when to tap."""

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
    """For each action, all actions in the order in which the paper tries them instead, (n_actions, n_actions).

    Other objects come first, then the other trajectory with each object, then other offsets.
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
    """The objects of one level; each keeps its slot until the level ends.

    The order at the level's start: by class as in `CLASSES`, then from left to right, then from top to bottom. Objects
    beyond the last slot cannot be aimed at.

    Attributes:
        seen: The object in each slot; None where it is gone.
        sling: Box of the slingshot.
        birds: All birds, waiting and flying.
    """

    def __init__(self) -> None:
        self._ids: list[int] = []
        self.seen: list[SeenObject | None] = []
        self.sling = Box(0, 0, 0, 0)
        self.birds: list[SeenObject] = []

    def update(self, truth: GroundTruth) -> None:
        """Read a new ground truth."""
        everything = boxes(truth)
        self.sling = sling_box(truth)
        self.birds = [seen for seen in everything if seen.colour in BIRD_COLOURS]
        objects = [seen for seen in everything if seen.colour not in BIRD_COLOURS]
        new = sorted((seen for seen in objects if seen.id not in self._ids), key=_slot_order)
        self._ids = (self._ids + [seen.id for seen in new])[:N_SLOTS]
        by_id = {seen.id: seen for seen in objects}
        self.seen = [by_id.get(id_) for id_ in self._ids] + [None] * (N_SLOTS - len(self._ids))

    def mask(self) -> NDArray[np.bool_]:
        """Which actions aim at an object that still exists, (n_actions,)."""
        return np.repeat([seen is not None for seen in self.seen], PER_OBJECT)

    def observe(self, pigs: int, goals: int) -> NDArray[np.float32]:
        """The observation; see `layout`."""
        targets = tuple(
            Target(slot, _class_of(seen), seen.box) for slot, seen in enumerate(self.seen) if seen is not None
        )
        bird = self.bird.colour if self.bird is not None else ""
        return encode(ObservedLevel(targets, self.sling, len(self.birds), bird, pigs, goals))

    @property
    def bird(self) -> SeenObject | None:
        """The bird on the sling: the one whose top is nearest to the sling's."""
        return min(self.birds, key=lambda bird: abs(bird.box.top - self.sling.top), default=None)

    def aim(self, action: int, planner: str, scale: float) -> Shot:
        """The shot of an action; a far release, like the naive agent's, if its object is gone or out of reach."""
        free = shot_of(action)
        if free is not None:
            return Shot(*free)
        slot, trajectory, offset = split(action)
        seen = self.seen[slot]
        if seen is None:
            return Shot(_FAR_RELEASE, 0)
        x, y = seen.box.centre
        return aim_at((x + offset, y), trajectory, self.bird, planner, self.sling, scale)


def aim_at(target: Point, trajectory: int, bird: SeenObject | None, planner: str, sling: Box, scale: float) -> Shot:
    """A shot at a point of the screen; the bird is tapped in the middle of the published interval."""
    plan = make_planner(planner, sling, scale)
    angle = plan.angle(target, trajectory)
    if angle is None:
        return Shot(_FAR_RELEASE, 0)
    low, high = TAP_PERCENT[bird.colour] if bird is not None else (0, 0)
    percent = (low + high) / 2
    return Shot(plan.release(angle), plan.tap_ms(target, angle, percent) if percent else 0)


def to_world(release: Point, camera: Camera, view: View) -> Point:
    """A release point on the (possibly rotated) screen, in world units."""
    x, y = release
    if view.rotation:
        x, y = PIXELS[0] - x, PIXELS[1] - y
    return camera.to_world(x, y)


def _class_of(seen: SeenObject) -> str:
    return seen.colour if seen.colour in CLASSES else "other"


def _slot_order(seen: SeenObject) -> tuple[int, float, float, int]:
    return CLASSES.index(_class_of(seen)), seen.box.left, seen.box.top, -seen.id
