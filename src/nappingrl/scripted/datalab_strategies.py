"""DataLab's choice of a shot: each strategy proposes its best one with a utility, and the best proposal is taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, radians

import numpy as np

from nappingrl.domains.angrybirds.layout import Target
from nappingrl.scripted.datalab_building import building_shot
from nappingrl.scripted.datalab_flight import BLOCKED, PIG, Path, Scene, middle, paths, select

LEAST_BUILDING = 1000
"""The least utility at which a building is shot at."""
_WHITE_STEPS = (-4, -2, 2, 4)
"""A white bird may come down farther beside the target; in units of its radius."""
_TNT_PIG, _TNT_REACH = 90.0, 110.0
_BLOCK_WORTH = {"ice": 50, "wood": 100, "stone": 400}
_RANDOM_DEGREES = (30.0, 58.6)
_RANDOM_TAP_MS = (2000, 3000)
_BLACK_DELAY_MS, _BLACK_AT_TNT_MS = 500, 6000

Proposal = tuple[int, Path]
"""A utility and a shot."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A shot as sent to the game: release point on the screen, when to tap, and the path unless it is random."""

    release: tuple[int, int]
    tap_ms: int
    path: Path | None = None


def choose(scene: Scene, rng: np.random.Generator) -> Choice:
    """The shot with the highest utility (ties: the first strategy); a random one if there is no pig or no shot."""
    building = building_shot(scene, rng)
    if building is not None and building[0] < LEAST_BUILDING:
        building = None
    dynamite = dynamite_shot(scene)
    proposals = [one for one in (building, pig_shot(scene), dynamite) if one is not None and one[0] > BLOCKED]
    if not scene.pigs or not proposals:
        return _random_shot(scene, rng)
    best = max(proposals, key=lambda proposal: proposal[0])
    path = best[1]
    return Choice(path.release, _tap_ms_at_tnt(path) if best is dynamite else _tap_ms(path), path)


def pig_shot(scene: Scene) -> Proposal | None:
    """The pig with the easiest path, aimed at its centre or a bird's radius beside it."""
    shots = [
        (path, path.utility + (target == middle(pig.box)), PIG * (path.n_pigs + 1) + path.utility)
        for pig in scene.pigs for target in _points(pig, scene) for path in paths(scene, pig, target)
    ]  # fmt: skip
    return _best(shots)


def dynamite_shot(scene: Scene) -> Proposal | None:
    """TNT with a pig near it; the utility counts everything in reach of the explosion."""
    shots = [
        (path, path.utility, _blast(scene, target) + int(1.2 * path.utility) + PIG * path.n_pigs)
        for tnt in scene.tnts if any(_is_near(pig, tnt) for pig in scene.pigs)
        for target in _points(tnt, scene) for path in paths(scene, tnt, target)
    ]  # fmt: skip
    return _best(shots)


def _best(shots: Sequence[tuple[Path, int, int]]) -> Proposal | None:
    """Of (path, its ease, its utility): the easiest first, then more pigs in the way, then the leftmost target."""
    order = sorted(shots, key=lambda shot: (-shot[1], -shot[0].n_pigs, shot[0].target[0]))
    chosen = select([path for path, _, _ in order])
    return next(((utility, path) for path, _, utility in order if path is chosen), None)


def _points(goal: Target, scene: Scene) -> list[tuple[int, int]]:
    """The points of an object to aim at: its middle, and others around it."""
    (x, y), radius = middle(goal.box), scene.radius
    if scene.bird == "white":
        return [(x, y), *((x + step * int(0.9 * radius), y) for step in _WHITE_STEPS)]
    return [(x, y), (x - radius, y), (x, y - radius), (x + radius, y), (x, y + radius)]


def _is_near(pig: Target, tnt: Target) -> bool:
    """Whether the top left corner of a pig lies near the middle of the TNT."""
    x, y = tnt.box.centre
    return abs(pig.box.left - x) < _TNT_PIG and abs(pig.box.top - y) < _TNT_PIG


def _blast(scene: Scene, target: tuple[int, int]) -> int:
    def within(reach: float, other: Target) -> float:
        x, y = middle(other.box)
        return max(0.0, reach - hypot(x - target[0], y - target[1])) / 100

    blocks = sum(int(within(60, block) * _BLOCK_WORTH[block.kind]) for block in scene.blocks)
    pigs = sum(int(within(_TNT_REACH, pig) * 3700) for pig in scene.pigs)
    return blocks + pigs + sum(int(within(50, tnt) * 2500) for tnt in scene.tnts)


def _tap_ms(path: Path) -> int:
    """When to tap: before the first block, or at the target."""
    first = path.percent_to_first_block
    percent = {
        "red": 0,
        "yellow": first - (10 if path.degrees > 50 else 15),
        "blue": first - 15,
        "black": 100,
        "white": 95 if path.degrees > 45 else 97 if path.degrees > 40 else 98,
    }[path.scene.bird]
    return path.tap_ms(percent) + (_BLACK_DELAY_MS if path.scene.bird == "black" else 0)


def _tap_ms_at_tnt(path: Path) -> int:
    return _BLACK_AT_TNT_MS if path.scene.bird == "black" else _tap_ms(path)


def _random_shot(scene: Scene, rng: np.random.Generator) -> Choice:
    angle = radians(rng.uniform(*_RANDOM_DEGREES))
    tap = 0 if scene.bird == "black" else int(rng.integers(*_RANDOM_TAP_MS, endpoint=True))
    return Choice(scene.release(angle), tap)
