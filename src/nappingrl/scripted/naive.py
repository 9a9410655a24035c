"""Naive, as published: shoots at a random pig, on the low or the high trajectory."""

from typing_extensions import override

from nappingrl.domains.angrybirds.actions import join
from nappingrl.domains.angrybirds.layout import decode
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy


class NaivePolicy(ScriptedPolicy):
    """Shoots at a random pig, or at any object if there is no pig; low or high with equal probability."""

    @override
    def act(self, observation: Observation) -> int:
        level = decode(observation)
        targets = level.of_kind("pig") or list(level.targets)
        slot = targets[self.rng.integers(len(targets))].slot if targets else 0
        return join(slot, int(self.rng.integers(2)), 0)


class Naive(ScriptedBirdsAgent):
    """Shoots at random pigs."""

    name = "naive"
    policy = NaivePolicy
