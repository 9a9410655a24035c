"""Naive, as published: any pig, on the low or the high trajectory."""

from nappingrl.domains.angrybirds.aiming import join
from nappingrl.domains.angrybirds.layout import decode
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy


class NaivePolicy(ScriptedPolicy):
    """Has no memory at all."""

    def act(self, observation: Observation) -> int:
        """A pig at random, else any object; low or high with the same probability."""
        view = decode(observation)
        targets = view.of_kind("pig") or list(view.targets)
        slot = targets[self.rng.integers(len(targets))].slot if targets else 0
        return join(slot, int(self.rng.integers(2)), 0)


class Naive(ScriptedBirdsAgent):
    """Shoots at pigs."""

    name = "naive"
    policy = NaivePolicy
