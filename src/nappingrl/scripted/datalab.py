"""DataLab, a heuristic competition agent, reimplemented from its published program.

Each strategy proposes its best shot with a utility, and the best proposal is taken. The agent has no memory. It aims at
points of the screen; each shot becomes the nearest action.
"""

from math import hypot

import numpy as np

from nappingrl.domains.angrybirds.aiming import OFFSETS, TRAJECTORIES, join
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, decode
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy
from nappingrl.scripted.datalab_building import PIG, building_shot
from nappingrl.scripted.datalab_flight import Path, Scene, make_scene, paths
from nappingrl.types import Point

LEAST_BUILDING = 1000.0
"""The least utility at which a building is shot at."""
_TNT_PIG, _TNT_REACH = 90.0, 110.0
_BLOCK_WORTH = {"ice": 50.0, "wood": 100.0, "stone": 400.0}
_RANDOM_DEGREES = (30.0, 58.6)

Proposal = tuple[float, Path]
"""A shot and its utility."""


def pig_shot(scene: Scene) -> Proposal | None:
    """The pig with the easiest path, aimed at its centre or a bird's radius beside it."""
    best: tuple[tuple[float, int, float], Proposal] | None = None
    for pig in scene.pigs:
        for point in _points(pig, scene):
            for path in paths(scene, point):
                n_pigs = path.n_hit(scene.pigs)
                ease = path.utility + (point == pig.box.centre)
                order = ease, n_pigs, -point[0]
                if best is None or order > best[0]:
                    best = order, (PIG * (n_pigs + 1) + path.utility, path)
    return best[1] if best is not None else None


def _points(pig: Target, scene: Scene) -> list[Point]:
    """The points to aim at; a white bird may come down farther beside the pig."""
    (x, y), radius = pig.box.centre, scene.radius
    reach = (1, 2) if scene.bird == "white" else (1,)
    beside = [(x + side * far * radius, y) for far in reach for side in (-1, 1)]
    return [(x, y), *beside, (x, y - radius), (x, y + radius)]


def dynamite_shot(scene: Scene) -> Proposal | None:
    """TNT with a pig near it; the utility counts everything in reach of the explosion."""
    shots = [
        (_blast(scene, tnt) + 1.2 * path.utility + PIG * path.n_hit(scene.pigs), path)
        for tnt in scene.level.of_kind("tnt")
        if any(_is_near(pig, tnt) for pig in scene.pigs)
        for path in paths(scene, tnt.box.centre)
    ]
    return max(shots, key=lambda shot: shot[0], default=None)


def _is_near(pig: Target, tnt: Target) -> bool:
    (x, y), (tnt_x, tnt_y) = pig.box.centre, tnt.box.centre
    return abs(x - tnt_x) <= _TNT_PIG and abs(y - tnt_y) <= _TNT_PIG


def _blast(scene: Scene, tnt: Target) -> float:
    def within(reach: float, other: Target) -> float:
        return max(0.0, reach - _distance(tnt.box.centre, other.box.centre)) / 100

    pigs = sum(within(_TNT_REACH, pig) for pig in scene.pigs) * 3700
    blocks = sum(within(60, block) * _BLOCK_WORTH[block.kind] for block in scene.blocks)
    others = sum(within(50, other) for other in scene.level.of_kind("tnt") if other is not tnt) * 2500
    return pigs + blocks + others


def nearest_action(level: ObservedLevel, point: Point, trajectory: int) -> int:
    """The action on a trajectory whose aim is nearest to a point of the screen."""
    aims = [
        (_distance((target.box.centre[0] + offset, target.box.centre[1]), point), target.slot, offset)
        for target in level.targets
        for offset in OFFSETS
    ]
    _, slot, offset = min(aims, key=lambda aim: (aim[0], aim[1], abs(aim[2])))
    return join(slot, trajectory, offset)


def _distance(one: Point, other: Point) -> float:
    return hypot(one[0] - other[0], one[1] - other[1])


class DataLabPolicy(ScriptedPolicy):
    """Picks the best proposal of all strategies."""

    def act(self, observation: Observation) -> int:
        """Take the proposal with the highest utility (ties: the first strategy); without any, a random shot."""
        scene = make_scene(decode(observation))
        building = building_shot(scene, self.rng)
        if building is not None and building[0] < LEAST_BUILDING:
            building = None
        shots = [shot for shot in (building, pig_shot(scene), dynamite_shot(scene)) if shot is not None]
        if not shots:
            return random_action(scene, self.rng)
        _, path = max(shots, key=lambda shot: shot[0])
        return nearest_action(scene.level, path.target, path.trajectory)


def random_action(scene: Scene, rng: np.random.Generator) -> int:
    """A random action whose launch angle is in the published range; if there is none, any random action."""
    low, high = _RANDOM_DEGREES
    actions = [
        (target, trajectory, offset)
        for target in scene.level.targets for trajectory in range(len(TRAJECTORIES)) for offset in OFFSETS
    ]  # fmt: skip
    candidates = [action for action in actions if low <= _degrees(scene, *action) <= high] or actions
    if not candidates:
        return 0
    target, trajectory, offset = candidates[int(rng.integers(len(candidates)))]
    return join(target.slot, trajectory, offset)


def _degrees(scene: Scene, target: Target, trajectory: int, offset: int) -> float:
    """Launch angle of an action; 0 if it is out of reach."""
    reaching = paths(scene, (target.box.centre[0] + offset, target.box.centre[1]))
    return next((path.degrees for path in reaching if path.trajectory == trajectory), 0.0)


class DataLab(ScriptedBirdsAgent):
    """Chooses among pigs, buildings and TNT by utility."""

    name = "datalab"
    policy = DataLabPolicy
