"""What the players of Angry Birds share: an observation read back as boxes on the screen."""

from dataclasses import dataclass

import numpy as np

from nappingrl.domains.angrybirds import aiming as aim
from nappingrl.domains.angrybirds.physics.scene import PIXELS
from nappingrl.domains.angrybirds.trajectory import Box
from nappingrl.scripted.base import Observation, ScriptedAgent


@dataclass(frozen=True, slots=True)
class Target:
    """An object that can be aimed at: its slot, what it is by its colours, and its box in pixels."""

    slot: int
    kind: str
    """One of `actions.CLASSES`, or other."""
    box: Box


@dataclass(frozen=True, slots=True)
class View:
    """One observation, read."""

    targets: tuple[Target, ...]
    sling: Box
    birds: int
    bird: str
    """Colour of the bird on the sling; empty if there is none."""
    pigs: int
    goals: int

    def of_kind(self, kind: str) -> list[Target]:
        """The targets of one kind, in their order."""
        return [target for target in self.targets if target.kind == kind]


def _box(x: float, y: float, width: float, height: float) -> Box:
    x, y, width, height = x * PIXELS[0], y * PIXELS[1], width * 100, height * 100
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def read(observation: Observation) -> View:
    """Boxes and counts from the numbers of an observation."""
    kinds = (*aim.CLASSES, "other")
    slots = observation[: aim.N_SLOTS * aim.PER_SLOT].astype(np.float64).reshape(aim.N_SLOTS, aim.PER_SLOT)
    targets = tuple(
        Target(i, kinds[int(slot[1:-4].argmax())], _box(*slot[-4:].tolist()))
        for i, slot in enumerate(slots)
        if slot[0] > 0
    )
    shared = observation[aim.N_SLOTS * aim.PER_SLOT :].astype(np.float64).tolist()
    colours = shared[5 : 5 + len(aim.BIRD_COLOURS)]
    bird = aim.BIRD_COLOURS[int(np.argmax(colours))] if any(colours) else ""
    birds, pigs, goals = (round(shared[i] * aim.MOST_COUNTED) for i in (4, -2, -1))
    return View(targets, _box(*shared[:4]), birds, bird, pigs, goals)


class BirdsPlayer(ScriptedAgent):
    """A player of Angry Birds."""

    def __init__(self) -> None:
        super().__init__(aim.N_ACTIONS, (aim.N_OBSERVATIONS,))
