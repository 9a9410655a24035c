"""HYDRA in Angry Birds: plans shots with a model, compares its predictions, and repairs it after a novelty."""

from math import inf

import numpy as np

from nappingrl.domains.angrybirds.actions import join, split
from nappingrl.domains.angrybirds.layout import ObservedLevel, decode
from nappingrl.domains.angrybirds.physics.scene import Box
from nappingrl.domains.angrybirds.trajectory import LOW
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy
from nappingrl.scripted.hydra import Beliefs
from nappingrl.scripted.hydra_angrybirds_model import CONSTANTS, Option, Outcome, Setting, gap, whole
from nappingrl.types import Flags, Floats

WRONG = 50.0
"""Inconsistency of one wrongly predicted pig; a shot or level with this much is novel."""
NOVEL_LEVELS = 3
"""Number of novel levels in a row that count as a novelty."""
MOST_REPAIRS, MOST_REPAIR_EXPANSIONS = 5, 30
MOVED = 3.0
"""An object counts as disturbed if its box has moved by more pixels than this."""


def inconsistency(setting: Setting, outcome: Outcome, after: ObservedLevel) -> float:
    """How badly the model predicted a shot: the largest of three terms, for the bird's path, the pigs and the blocks.

    Path: its distance in pixels from all disturbed objects. Pigs: 50 for each wrongly predicted one. Blocks: 50 times
    the share of blocks predicted to be destroyed that still stand.
    """
    left = {target.slot: whole(target.box) for target in after.targets}
    before = setting.level.targets
    kinds = np.array([target.kind for target in before])
    gone = np.array([target.slot not in left for target in before])
    disturbed = np.array([target.slot not in left or _moved(whole(target.box), left[target.slot]) for target in before])
    path = gap(outcome.path, setting.boxes[disturbed]) if disturbed.any() else 0.0
    pigs = WRONG * float((outcome.destroyed != gone)[kinds == "pig"].sum())
    return max(path, pigs, _wrong_blocks(outcome.destroyed & (kinds != "pig"), gone))


def _moved(one: Box, two: Box) -> bool:
    (x0, y0), (x1, y1) = one.centre, two.centre
    return abs(x1 - x0) + abs(y1 - y0) > MOVED


def _wrong_blocks(predicted: Flags, gone: Flags) -> float:
    return WRONG * float((predicted & ~gone).sum()) / int(predicted.sum()) if predicted.any() else 0.0


class HydraAngryBirdsPolicy(ScriptedPolicy):
    """A model of shots, its recent inconsistency, and whether a novelty is suspected."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.beliefs = Beliefs(CONSTANTS)
        self.believes_in_novelty = False
        self.n_repairs = 0
        self._n_novel_levels = 0
        self._shots: list[float] = []
        self._has_unknown = False

    def act(self, observation: Observation) -> int:
        """Take a shot that kills a pig in the model; otherwise aim low at a random pig or unknown object."""
        level = decode(observation)
        option = _plan(Setting(level), self.beliefs.values())
        if option is not None:
            return option.action
        targets = level.of_kind("pig") or level.of_kind("other") or list(level.targets)
        slot = targets[self.rng.integers(len(targets))].slot if targets else 0
        return join(slot, LOW, 0)

    def learn(
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """Compare the shot with its prediction; after a level, decide whether it was novel and repair the model."""
        level, after = decode(observation), decode(following)
        self._has_unknown |= bool(level.of_kind("other"))
        slot, trajectory, offset = split(action)
        target = next((seen for seen in level.targets if seen.slot == slot), None)
        if target is not None:
            setting = Setting(level)
            angle = setting.launch(Option(target, trajectory, offset))

            def of_shot(constants: Floats) -> float:
                return inconsistency(setting, setting.shoot(angle, constants), after)

            self._shots.append(of_shot(self.beliefs.values()))
            if ended:
                self._judge_level(detected)
                if self.believes_in_novelty and self._shots[-1] >= WRONG and self.n_repairs < MOST_REPAIRS:
                    self.n_repairs += 1
                    self.beliefs.repair(of_shot, WRONG, MOST_REPAIR_EXPANSIONS)
        if ended:
            self._shots, self._has_unknown = [], False

    def _judge_level(self, detected: bool) -> None:
        is_novel = self._has_unknown or float(np.mean(self._shots)) >= WRONG
        self._n_novel_levels = self._n_novel_levels + 1 if is_novel else 0
        self.believes_in_novelty |= detected or self._n_novel_levels >= NOVEL_LEVELS


def _plan(setting: Setting, constants: Floats) -> Option | None:
    """The shot that kills a pig in the model and passes closest to the centre of a pig, or else of TNT.

    The published planner tries the angles to pigs first; its goal, too, is to kill one pig, not all of them.
    """
    kinds = np.array([target.kind for target in setting.level.targets])
    middles = np.tile((setting.boxes[:, :2] + setting.boxes[:, 2:]) / 2, 2)
    best, least = None, (True, inf)
    for option in setting.options():
        outcome = setting.shoot(setting.launch(option), constants)
        pigs, tnt = outcome.destroyed & (kinds == "pig"), outcome.destroyed & (kinds == "tnt")
        if pigs.any():
            needs_tnt = bool(tnt.any())
            cost = needs_tnt, gap(outcome.path, middles[tnt if needs_tnt else pigs])
            if cost < least:
                best, least = option, cost
    return best


class HydraAngryBirds(ScriptedBirdsAgent):
    """HYDRA's agent for Angry Birds."""

    name = "hydra"
    policy = HydraAngryBirdsPolicy
