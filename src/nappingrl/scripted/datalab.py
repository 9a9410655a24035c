"""DataLab, a heuristic competition agent, reimplemented from its published program.

The agent has no memory and brings its own planner: its shots are no actions of the domain but free shots.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nappingrl.domains.angrybirds.free_shots import number_of
from nappingrl.domains.angrybirds.ground_truth.state import GroundTruth, boxes, sling_box
from nappingrl.domains.angrybirds.layout import BIRD_COLOURS, CLASSES, Target, decode
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy
from nappingrl.scripted.datalab_flight import Scene, make_scene
from nappingrl.scripted.datalab_strategies import choose


def read_scene(truth: GroundTruth) -> Scene:
    """The scene of a ground truth, as the program reads it: by colours, and the highest bird is on the slingshot."""
    seen = boxes(truth)
    birds = sorted((one for one in seen if one.colour in BIRD_COLOURS), key=lambda bird: bird.box.top)
    targets = [
        Target(i, one.colour if one.colour in CLASSES else "other", one.box)
        for i, one in enumerate(seen)
        if one.colour not in BIRD_COLOURS
    ]
    return make_scene(targets, sling_box(truth), birds[0].colour if birds else "")


class DataLabPolicy(ScriptedPolicy):
    """Takes the best shot of all strategies."""

    def act(self, observation: Observation) -> int:
        """The number of a free shot."""
        level = decode(observation)
        choice = choose(make_scene(level.targets, level.sling, level.bird), self.rng)
        return number_of(choice.release, choice.tap_ms)


class DataLab(ScriptedBirdsAgent):
    """Chooses among pigs, buildings and TNT by utility."""

    name = "datalab"
    extends_actions = True
    domain_options: Mapping[str, Any] = MappingProxyType({"observation": "colour"})
    policy = DataLabPolicy
