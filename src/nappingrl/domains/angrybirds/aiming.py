"""From an action to a shot: the objects in their slots, what an agent sees of them, and the release point."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.actions import N_SLOTS, OFFSETS, PER_OBJECT, TRAJECTORIES, split
from nappingrl.domains.angrybirds.free_shots import shot_of
from nappingrl.domains.angrybirds.ground_truth.labels import word_of
from nappingrl.domains.angrybirds.ground_truth.state import GroundTruth, SeenObject, boxes, sling_box
from nappingrl.domains.angrybirds.layout import BIRD_COLOURS, CLASSES, ObservedLevel, Target, encode
from nappingrl.domains.angrybirds.physics.scene import PIXELS, Box, Camera, Scene, View
from nappingrl.domains.angrybirds.trajectory import TAP_PERCENT, make_planner
from nappingrl.types import Point

PLANNER = "official"
"""The planner that turns an action into a shot: the paper's."""


@dataclass(frozen=True, slots=True)
class Shot:
    """A shot as sent to the game: the release point on the screen, and when to tap."""

    release: Point
    tap_ms: int


class Targets:
    """The objects of one level; each keeps its slot until the level ends.

    The order at the level's start: by class as in `CLASSES`, then from left to right, then from top to bottom. Objects
    beyond the last slot cannot be aimed at.

    Attributes:
        seen: The object in each slot; None where it is gone.
        sling: Box of the slingshot.
        birds: All birds, waiting and flying.
    """

    def __init__(self, by: str = "label") -> None:
        self._by = by
        self._ids: list[int] = []
        self.seen: list[SeenObject | None] = []
        self.sling = Box(0, 0, 0, 0)
        self.birds: list[SeenObject] = []

    def update(self, truth: GroundTruth) -> None:
        """Read a new ground truth."""
        everything = boxes(truth)
        self.sling = sling_box(truth)
        self.birds = [seen for seen in everything if self._word(seen) in BIRD_COLOURS]
        objects = [seen for seen in everything if self._word(seen) not in BIRD_COLOURS]
        new = sorted((seen for seen in objects if seen.id not in self._ids), key=self._slot_order)
        self._ids = (self._ids + [seen.id for seen in new])[:N_SLOTS]
        by_id = {seen.id: seen for seen in objects}
        self.seen = [by_id.get(id_) for id_ in self._ids] + [None] * (N_SLOTS - len(self._ids))

    def mask(self) -> NDArray[np.bool_]:
        """Which actions aim at an object that still exists and have a launch angle, (n_actions,)."""
        nothing = (False,) * PER_OBJECT
        return np.concatenate([nothing if seen is None else self._shots(seen) for seen in self.seen])

    def observe(self) -> NDArray[np.float32]:
        """The observation; see `layout`."""
        targets = tuple(
            Target(slot, self._class_of(seen), seen.box, self._shots(seen))
            for slot, seen in enumerate(self.seen)
            if seen is not None
        )
        return encode(ObservedLevel(targets, self.sling, len(self.birds), self.bird))

    @property
    def bird(self) -> str:
        """Colour of the bird on the sling, the one whose top is nearest to the sling's; empty if there is none."""
        bird = min(self.birds, key=lambda bird: abs(bird.box.top - self.sling.top), default=None)
        return "" if bird is None else self._word(bird)

    def aim(self, action: int, planner: str = PLANNER, scale: float = Camera().scale) -> Shot | None:
        """The shot of an action; None if its object is gone or out of reach."""
        free = shot_of(action)
        if free is not None:
            return Shot(*free)
        slot, trajectory, offset = split(action)
        seen = self.seen[slot]
        if seen is None:
            return None
        return aim_at(aim_point(seen.box, offset), trajectory, self.bird, planner, self.sling, scale)

    def _shots(self, seen: SeenObject) -> tuple[bool, ...]:
        """Which actions on an object have a launch angle."""
        plan, ways = make_planner(PLANNER, self.sling, 1.0), range(len(TRAJECTORIES))
        return tuple(plan.angle(aim_point(seen.box, offset), way) is not None for way, offset in product(ways, OFFSETS))

    def _word(self, seen: SeenObject) -> str:
        """What an object is by its label or its colours: a class, the colour of a bird, or another word."""
        return word_of(seen.label) if self._by == "label" else seen.colour

    def _class_of(self, seen: SeenObject) -> str:
        word = self._word(seen)
        return word if word in CLASSES else "other"

    def _slot_order(self, seen: SeenObject) -> tuple[int, float, float, int]:
        return CLASSES.index(self._class_of(seen)), seen.box.left, seen.box.top, -seen.id


def aim_at(target: Point, trajectory: int, bird: str, planner: str, sling: Box, scale: float) -> Shot | None:
    """A shot at a point of the screen; None if it is out of reach.

    The bird (its colour; empty: any) is tapped in the middle of the published interval.
    """
    plan = make_planner(planner, sling, scale)
    angle = plan.angle(target, trajectory)
    if angle is None:
        return None
    percent = sum(TAP_PERCENT[bird]) / 2 if bird else 0
    return Shot(plan.release(angle), plan.tap_ms(target, angle, percent) if percent else 0)


def aim_point(box: Box, offset: int) -> Point:
    """The point that an offset from the centre of a box means; y points down on the screen."""
    x, y = box.centre
    return x, y - offset


def release_point(shot: Shot | None, scene: Scene) -> Point:
    """Where the bird is let go, in world units; without a shot it is thrown backwards, away from the level."""
    if shot is None:
        x, y = scene.sling.origin
        return x + 1.0, y
    return to_world(shot.release, scene.camera, scene.view)


def to_world(release: Point, camera: Camera, view: View) -> Point:
    """A release point on the (possibly rotated) screen, in world units."""
    x, y = release
    if view.rotation:
        x, y = PIXELS[0] - x, PIXELS[1] - y
    return camera.to_world(x, y)
