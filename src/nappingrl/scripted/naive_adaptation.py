"""Naive Adaptation: the naive agent until the novelty is detected, then a search for one triplet that works.

A triplet is an object, a trajectory and a delay before the shot. Nothing moves by itself in this domain, so the delay
has no effect here: rounds of the search with longer delays repeat the earlier ones.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from nappingrl.domains.angrybirds.actions import TRAJECTORIES, join, split
from nappingrl.domains.angrybirds.layout import ObservedLevel, decode, possible_actions
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation
from nappingrl.scripted.naive import NaivePolicy

DELAYS = (0, 2, 4)
"""Seconds; our choice, the paper gives none."""


class Triplet(NamedTuple):
    """A candidate of the search; objects are identified by their slots."""

    slot: int
    trajectory: int
    delay: int


def is_round(box: Box) -> bool:
    """Whether a box is as wide as high, like the boxes of circles."""
    return abs(box.width - box.height) < 0.5


class NaiveAdaptationPolicy(NaivePolicy):
    """Keeps one triplet as long as each of its shots destroys a pig or passes the level."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self._is_searching = False
        self._shot: Triplet | None = None
        self._kept: Triplet | None = None
        self._failed: set[Triplet] = set()

    @override
    def act(self, observation: Observation) -> int:
        """Act like the naive agent; after the novelty use the kept triplet, or else the next of the search.

        The published agent expects outlines with corners: a slingshot given as a circle makes it crash. Here its bird
        is wasted.
        """
        level = decode(observation)
        self._shot = None
        if is_round(level.sling):
            return _wasted(observation)
        if not self._is_searching:
            return super().act(observation)
        self._shot = self._choose(level)
        return _wasted(observation) if self._shot is None else join(self._shot.slot, self._shot.trajectory, 0)

    @override
    def learn(
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """Keep a triplet that destroyed a pig or passed the level, discard one that did not."""
        self._is_searching = detected
        before = decode(observation)
        if not detected or is_round(before.sling):
            return
        shot = self._shot or Triplet(*split(action)[:2], DELAYS[0])
        if reward > 0 or _n_pigs(decode(following)) < _n_pigs(before):
            self._kept = shot
            self._failed.discard(shot)
        else:
            self._kept = None if shot == self._kept else self._kept
            self._failed.add(shot)

    def _choose(self, level: ObservedLevel) -> Triplet | None:
        """The kept triplet if its object exists, else the first that has not failed; if all have, start over."""
        possible = list(_triplets(level))
        if self._kept in possible:
            return self._kept
        if self._failed.issuperset(possible):
            self._failed.difference_update(possible)
        return next((triplet for triplet in possible if triplet not in self._failed), None)


def _triplets(level: ObservedLevel) -> Iterator[Triplet]:
    """All possible triplets of a level: the object changes first, then the trajectory, then the delay."""
    for delay, trajectory, target in product(DELAYS, range(len(TRAJECTORIES)), level.targets):
        if target.is_possible(trajectory, 0):
            yield Triplet(target.slot, trajectory, delay)


def _wasted(observation: Observation) -> int:
    """An action that is not possible, so that the bird flies away from the level; the first if all are possible."""
    return int(possible_actions(observation[None])[0].argmin())


def _n_pigs(level: ObservedLevel) -> int:
    return len(level.of_kind("pig"))


class NaiveAdaptation(ScriptedBirdsAgent):
    """The naive agent with one remembered triplet."""

    name = "naive-adaptation"
    policy = NaiveAdaptationPolicy
