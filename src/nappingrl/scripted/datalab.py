"""DataLab, a heuristic agent of the competitions, re-expressed from what its published program does.

Each strategy names its best shot and what it is worth; the best is taken. It remembers nothing. Its shots are points of
the screen; they are made by the nearest action there is.
"""

from math import hypot

import numpy as np

from nappingrl.domains.angrybirds.aiming import OFFSETS, TRAJECTORIES, join
from nappingrl.domains.angrybirds.layout import ObservedLevel, Target, decode
from nappingrl.domains.angrybirds.physics.scene import Point
from nappingrl.scripted.angrybirds import ScriptedBirdsAgent
from nappingrl.scripted.base import Observation, ScriptedPolicy
from nappingrl.scripted.datalab_building import PIG, building_shot
from nappingrl.scripted.datalab_flight import Path, Scene, make_scene, paths

LEAST_BUILDING = 1000.0
"""A building is worth a shot only from this utility on."""
_TNT_PIG, _TNT_REACH = 90.0, 110.0
_BLOCK_WORTH = {"ice": 50.0, "wood": 100.0, "stone": 400.0}
_RANDOM_DEGREES = (30.0, 58.6)

Worth = tuple[float, Path]


def pig_shot(scene: Scene) -> Worth | None:
    """The pig that is easiest to get at, in its middle or a bird's radius beside it."""
    best: tuple[tuple[float, int, float], Worth] | None = None
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
    """Where a pig is aimed at; a white bird may come down farther beside it."""
    (x, y), radius = pig.box.centre, scene.radius
    reach = (1, 2) if scene.bird == "white" else (1,)
    beside = [(x + side * far * radius, y) for far in reach for side in (-1, 1)]
    return [(x, y), *beside, (x, y - radius), (x, y + radius)]


def dynamite_shot(scene: Scene) -> Worth | None:
    """TNT with a pig near it, by all that its explosion reaches."""
    shots = [
        (_blast(scene, tnt) + 1.2 * path.utility + PIG * path.n_hit(scene.pigs), path)
        for tnt in scene.view.of_kind("tnt")
        if any(_is_near(pig, tnt) for pig in scene.pigs)
        for path in paths(scene, tnt.box.centre)
    ]
    return max(shots, key=lambda one: one[0], default=None)


def _is_near(pig: Target, tnt: Target) -> bool:
    (x, y), (tnt_x, tnt_y) = pig.box.centre, tnt.box.centre
    return abs(x - tnt_x) <= _TNT_PIG and abs(y - tnt_y) <= _TNT_PIG


def _blast(scene: Scene, tnt: Target) -> float:
    def within(reach: float, other: Target) -> float:
        return max(0.0, reach - _distance(tnt.box.centre, other.box.centre)) / 100

    pigs = sum(within(_TNT_REACH, pig) for pig in scene.pigs) * 3700
    blocks = sum(within(60, block) * _BLOCK_WORTH[block.kind] for block in scene.blocks)
    others = sum(within(50, other) for other in scene.view.of_kind("tnt") if other is not tnt) * 2500
    return pigs + blocks + others


def nearest_action(view: ObservedLevel, point: Point, trajectory: int) -> int:
    """The action on a trajectory whose aim is nearest to a point of the screen."""
    aims = [
        (_distance((target.box.centre[0] + offset, target.box.centre[1]), point), target.slot, offset)
        for target in view.targets
        for offset in OFFSETS
    ]
    _, slot, offset = min(aims, key=lambda one: (one[0], one[1], abs(one[2])))
    return join(slot, trajectory, offset)


def _distance(one: Point, other: Point) -> float:
    return hypot(one[0] - other[0], one[1] - other[1])


class DataLabPolicy(ScriptedPolicy):
    """The strategies, without memory."""

    def act(self, observation: Observation) -> int:
        """The shot of the strategy that promises most; of equals the earlier; if none has one, a shot at random."""
        scene = make_scene(decode(observation))
        building = building_shot(scene, self.rng)
        if building is not None and building[0] < LEAST_BUILDING:
            building = None
        shots = [shot for shot in (building, pig_shot(scene), dynamite_shot(scene)) if shot is not None]
        if not shots:
            return random_action(scene, self.rng)
        _, path = max(shots, key=lambda one: one[0])
        return nearest_action(scene.view, path.target, path.trajectory)


def random_action(scene: Scene, rng: np.random.Generator) -> int:
    """Any action whose launch angle is in the published range; any at all where none is."""
    low, high = _RANDOM_DEGREES
    everything = [
        (target, trajectory, offset)
        for target in scene.view.targets for trajectory in range(len(TRAJECTORIES)) for offset in OFFSETS
    ]  # fmt: skip
    wanted = [one for one in everything if low <= _degrees(scene, *one) <= high] or everything
    if not wanted:
        return 0
    target, trajectory, offset = wanted[int(rng.integers(len(wanted)))]
    return join(target.slot, trajectory, offset)


def _degrees(scene: Scene, target: Target, trajectory: int, offset: int) -> float:
    """Launch angle of an action; 0 where it has none."""
    ways = paths(scene, (target.box.centre[0] + offset, target.box.centre[1]))
    return next((path.degrees for path in ways if path.trajectory == trajectory), 0.0)


class DataLab(ScriptedBirdsAgent):
    """Pigs, buildings and dynamite, by their utility."""

    name = "datalab"
    policy = DataLabPolicy
