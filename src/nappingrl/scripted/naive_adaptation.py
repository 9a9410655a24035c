"""Naive Adaptation: the naive agent until the novelty is known of, then a search for one triplet that works.

A triplet is an object, a trajectory and a delay before the shot. Nothing moves by itself in this world, so a delay
changes nothing here: the rounds of the search with later delays repeat those before.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from nappingrl.domains.angrybirds.aiming import TRAJECTORIES, join, split
from nappingrl.domains.angrybirds.layout import ObservedLevel, decode
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation
from nappingrl.scripted.naive import NaivePolicy

DELAYS = (0, 2, 4)
"""Seconds; ours, the paper gives none."""

BLIND = 0
"""The action of one who can choose nothing: the first object, low, whatever is there."""


class Triplet(NamedTuple):
    """What is searched for; the object is known by its slot."""

    slot: int
    trajectory: int
    delay: int


def is_round(box: Box) -> bool:
    """Whether a box is as wide as high, as those of circles are."""
    return abs(box.width - box.height) < 0.5


class NaiveAdaptationPolicy(NaivePolicy):
    """Keeps one triplet as long as each of its shots destroys something that must be destroyed."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self._is_searching = False
        self._shot: Triplet | None = None
        self._kept: Triplet | None = None
        self._failed: set[Triplet] = set()

    def act(self, observation: Observation) -> int:
        """Naive; after the novelty the kept triplet, else the next of the search.

        It is written for outlines with corners: a slingshot that is given as a circle breaks its reading of the scene,
        and its bird is wasted.
        """
        view = decode(observation)
        self._shot = None
        if is_round(view.sling):
            return BLIND
        if not self._is_searching:
            return super().act(observation)
        self._shot = self._choose(view)
        return BLIND if self._shot is None else join(self._shot.slot, self._shot.trajectory, 0)

    def learn(
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """A triplet that destroyed nothing is given up, one that did is kept."""
        self._is_searching = detected
        before = decode(observation)
        if not detected or is_round(before.sling):
            return
        shot = self._shot or Triplet(*split(action)[:2], DELAYS[0])
        if reward > 0 or decode(following).goals < before.goals:
            self._kept = shot
            self._failed.discard(shot)
        else:
            self._kept = None if shot == self._kept else self._kept
            self._failed.add(shot)

    def _choose(self, view: ObservedLevel) -> Triplet | None:
        """The kept triplet where its object is there, else the first that has not failed; all failed: all over."""
        possible = list(_triplets(view))
        if self._kept in possible:
            return self._kept
        if self._failed.issuperset(possible):
            self._failed.difference_update(possible)
        return next((triplet for triplet in possible if triplet not in self._failed), None)


def _triplets(view: ObservedLevel) -> Iterator[Triplet]:
    """All triplets of a scene: the object changes first, then the trajectory, then the delay."""
    for delay, trajectory, target in product(DELAYS, range(len(TRAJECTORIES)), view.targets):
        yield Triplet(target.slot, trajectory, delay)


class NaiveAdaptation(ScriptedBirdsAgent):
    """Naive, and one remembered triplet."""

    name = "naive-adaptation"
    policy = NaiveAdaptationPolicy
