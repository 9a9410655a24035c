"""DataLab: its planner, paths and their costs, strategies, and free shots in the world."""

import numpy as np
import pytest

from domains.angrybirds.birds_range import level, on_shelf, targets_of
from nappingrl.domains.angrybirds.aiming import release_point
from nappingrl.domains.angrybirds.free_shots import FIRST, number_of, shot_of
from nappingrl.domains.angrybirds.layout import Target
from nappingrl.domains.angrybirds.physics.scene import Box, Item
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.errors import BadSpecError
from nappingrl.scripted.datalab import DataLab
from nappingrl.scripted.datalab_building import building_shot, buildings
from nappingrl.scripted.datalab_flight import BLOCKED, COSTS, Path, Scene, make_scene, middle, paths, select
from nappingrl.scripted.datalab_strategies import choose, dynamite_shot, pig_shot

LOW, HIGH = 0, 1
SLING = Box(92, 248, 104, 286)
Thing = tuple[str, int, int, int, int]
"""Kind, left, top, width, height in pixels."""
PIG: Thing = ("pig", 327, 230, 14, 14)
TOWER: tuple[Thing, ...] = (
    ("wood", 310, 262, 10, 20), ("wood", 340, 262, 10, 20), ("wood", 305, 246, 50, 15), ("pig", 322, 268, 14, 14),
)  # fmt: skip
"""Two posts with a beam on top, and a pig in between."""


def scene_of(*things: Thing, bird: str = "red") -> Scene:
    targets = [
        Target(i, kind, Box(left, top, left + width, top + height))
        for i, (kind, left, top, width, height) in enumerate(things)
    ]
    return make_scene(targets, SLING, bird)


def shot(*things: Thing, trajectory: int = LOW, bird: str = "red") -> Path:
    """A shot at the middle of the first pig."""
    scene = scene_of(*things, bird=bird)
    return paths(scene, scene.pigs[0], middle(scene.pigs[0].box))[trajectory]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def in_path(path: Path, x: int) -> tuple[int, int]:
    """A point of the path."""
    return next((int(px), int(py)) for px, py in path.points if px == x)


def cost(path: Path, kind: str) -> int:
    """What one block in the path costs."""
    ((_, (x, y)),) = path.blocks
    goal = middle(path.goal.box)
    distance = float(np.hypot(x - goal[0], y - goal[1])) - 6
    return int((distance**1.4 / 400 + 1) * COSTS["red"][kind])


def test_paths_end_at_the_target() -> None:
    low, high = shot(PIG), shot(PIG, trajectory=HIGH)
    assert low.degrees < 45 < high.degrees
    for path in (low, high):
        x, y = path.points[-1]
        assert np.hypot(x - 334, y - 237) < 8


def test_nothing_is_known_of_what_is_out_of_reach_or_behind() -> None:
    scene = scene_of(PIG)
    assert paths(scene, scene.pigs[0], (2000, 240)) == []
    assert paths(scene, scene.pigs[0], (40, 240)) == []


def test_a_free_path_costs_nothing_and_a_block_by_its_distance() -> None:
    low = shot(PIG)
    assert low.utility == 0
    x, y = in_path(low, 280)
    blocked = shot(PIG, ("wood", x, y - 5, 10, 10))
    assert blocked.blocks[0][1][0] == x - 6  # a red bird's radius before the block
    assert blocked.utility == -cost(blocked, "wood")


def test_steep_paths_cost_a_fifth_more() -> None:
    x, y = in_path(shot(PIG, trajectory=HIGH), 300)
    blocked = shot(PIG, ("stone", x, y - 5, 10, 10), trajectory=HIGH)
    assert blocked.utility == int(-1.2 * cost(blocked, "stone"))


def test_nothing_counts_behind_the_object_aimed_at() -> None:
    assert shot(PIG, ("stone", 345, 200, 10, 80)).utility == 0


def test_only_what_is_below_a_platform_blocks() -> None:
    """The program takes the first corner of a platform, its bottom left one, for its top."""
    x, y = in_path(shot(PIG), 260)
    assert shot(PIG, ("platform", x - 10, y - 20, 20, 6)).utility == BLOCKED
    assert shot(PIG, ("platform", x - 10, y - 5, 20, 100)).utility == 0


def test_pigs_on_the_way_count() -> None:
    found = pig_shot(scene_of(PIG))
    assert found is not None
    assert found[0] == 5000
    x, y = in_path(shot(PIG), 280)
    found = pig_shot(scene_of(PIG, ("pig", x, y - 7, 14, 14)))
    assert found is not None
    assert found[0] == 10000
    assert found[1].target == (334, 237)


def test_the_leftmost_of_equal_pigs_is_shot_at() -> None:
    for pigs in ((PIG, ("pig", 427, 140, 14, 14)), (("pig", 427, 140, 14, 14), PIG)):
        found = pig_shot(scene_of(*pigs))
        assert found is not None
        assert found[1].target == (334, 237)


def test_takes_the_high_trajectory_where_the_low_one_is_blocked() -> None:
    x, y = in_path(shot(PIG), 260)
    low, high = choose(scene_of(PIG), rng()).path, choose(scene_of(PIG, ("stone", x, y - 10, 10, 20)), rng()).path
    assert low is not None
    assert high is not None
    assert (low.trajectory, high.trajectory) == (LOW, HIGH)


def test_of_several_objects_the_one_behind_the_lowest_rank_is_taken() -> None:
    near, far = shot(PIG), shot(("pig", 427, 230, 14, 14))
    assert select([far, near]) is far
    x, y = in_path(near, 280)
    behind_stone = shot(PIG, ("stone", x, y - 5, 10, 10))
    assert select([far, behind_stone]) is behind_stone
    assert select([]) is None


@pytest.mark.parametrize("kind", ["tnt", "other"])
def test_dynamite_beside_pigs_is_worth_more_than_a_pig_behind_stone(kind: str) -> None:
    """Also what only looks like TNT to the program, because its colours are unknown."""
    tnt: Thing = (kind, 350, 232, 12, 12)
    pigs: list[Thing] = [("pig", 366, 231, 14, 14), ("pig", 376, 231, 14, 14), ("pig", 386, 231, 14, 14)]
    found = dynamite_shot(scene_of(tnt, pigs[0]))
    assert found is not None
    assert found[1].target == (350, 238)  # the leftmost point, a bird's radius left of the middle
    assert found[0] == int((110 - 23) / 100 * 3700) + int((50 - 6) / 100 * 2500)
    choice = choose(scene_of(*pigs, tnt, ("stone", 364, 100, 2, 186)), rng())
    assert choice.path is not None
    assert choice.path.goal.kind == kind
    assert dynamite_shot(scene_of(tnt, ("pig", 460, 231, 14, 14))) is None


def test_touching_blocks_are_one_building() -> None:
    blocks = scene_of(*TOWER, ("ice", 400, 260, 10, 10)).blocks
    assert sorted(len(building.blocks) for building in buildings(blocks)) == [1, 3]


def test_a_beam_on_two_posts_with_a_pig_below_is_shot_at() -> None:
    found = building_shot(scene_of(*TOWER), rng())
    assert found is not None
    utility, path = found
    assert path.target[0] == 305
    assert 246 < path.target[1] < 261
    assert utility > 0.4 * 5000
    assert building_shot(scene_of(*TOWER, bird="white"), rng()) is None
    assert building_shot(scene_of(*TOWER[:3]), rng()) is None
    assert building_shot(scene_of(*TOWER[1:]), rng()) is None  # two blocks are no building


@pytest.mark.parametrize("bird", ["yellow", "blue", "black", "white"])
def test_birds_with_a_power_are_tapped_in_flight_and_red_ones_are_not(bird: str) -> None:
    assert choose(scene_of(PIG), rng()).tap_ms == 0
    assert 500 < choose(scene_of(PIG, bird=bird), rng()).tap_ms < 4000


def test_without_pigs_the_shot_is_random() -> None:
    scene, draw = scene_of(("wood", 400, 240, 10, 10)), rng()
    x, y = scene.origin
    shots = [choose(scene, draw) for _ in range(30)]
    angles = [np.degrees(np.arctan2(one.release[1] - y, x - one.release[0])) for one in shots]
    assert all(29.5 < angle < 59 for angle in angles)
    assert max(angles) - min(angles) > 10


def test_free_shots_are_numbers_above_all_actions() -> None:
    number = number_of((-300, 420), 1234)
    assert number >= FIRST
    assert shot_of(number) == ((-300, 420), 1234)
    assert shot_of(5) is None
    with pytest.raises(BadSpecError):
        number_of((-5000, 0), 0)


@pytest.mark.parametrize("x", [-6.0, -1.0, 4.0])
def test_its_free_shot_hits_a_pig_in_the_world(x: float) -> None:
    agent = DataLab().for_trials(1)
    agent.start(np.array([0]), np.array([7]))
    world = World(level(*on_shelf(Item("pig", "BasicMedium", x, -1.0), 0.38), has_far_pig=False))
    targets = targets_of(world.scene())
    decision = agent.decide(np.array([0]), targets.observe()[None])
    assert not decision.preferences.any()
    aimed = targets.aim(int(decision.actions[0]))
    assert aimed is not None
    world.shoot(release_point(aimed, world.scene()), aimed.tap_ms)
    assert world.status == "won"
