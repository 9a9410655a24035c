"""DataLab: paths and their costs, strategies, and the resulting actions."""

import numpy as np
import pytest

from nappingrl.domains.angrybirds.aiming import split
from nappingrl.domains.angrybirds.layout import decode
from nappingrl.scripted.datalab import DataLabPolicy, dynamite_shot, nearest_action, pig_shot, random_action
from nappingrl.scripted.datalab_building import building_shot, buildings
from nappingrl.scripted.datalab_flight import BLOCKED, COSTS, Path, Scene, make_scene, paths
from scripted.birds_views import PIG, Thing, observe, pass_rates

LOW, HIGH = 0, 1
MIDDLE = (334.0, 237.0)
"""Of the pig."""
TOWER: tuple[Thing, ...] = (
    ("wood", 310, 262, 10, 20), ("wood", 340, 262, 10, 20), ("wood", 305, 246, 50, 15), ("pig", 322, 268, 14, 14),
)  # fmt: skip
"""Two posts with a beam on top, and a pig in between."""


def scene_of(*things: Thing, bird: str = "red") -> Scene:
    return make_scene(decode(observe(*things, bird=bird)))


def shot(*things: Thing, trajectory: int = LOW, bird: str = "red") -> Path:
    return paths(scene_of(*things, bird=bird), MIDDLE)[trajectory]


def act(*things: Thing, seed: int = 0) -> tuple[int, int, int]:
    return split(DataLabPolicy(np.random.default_rng(seed)).act(observe(*things)))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_paths_end_at_the_target() -> None:
    low, high = paths(scene_of(PIG), MIDDLE)
    assert low.degrees < 45 < high.degrees
    for path in (low, high):
        x, y = path.points[-1]
        assert x == MIDDLE[0]
        assert y == pytest.approx(MIDDLE[1], abs=0.5)


def test_nothing_is_known_of_what_is_out_of_reach_or_behind() -> None:
    scene = scene_of(PIG)
    assert paths(scene, (2000.0, 240.0)) == []
    assert paths(scene, (40.0, 240.0)) == []


def test_a_free_way_costs_nothing_and_a_block_by_its_distance() -> None:
    low = shot(PIG)
    assert low.utility == 0
    x, y = next(point for point in low.points if point[0] == 280)
    wood: Thing = ("wood", x, y - 5, 10, 10)
    blocked = shot(PIG, wood)
    hit = blocked.hit(decode(observe(wood)).targets[0].box)
    assert hit is not None
    assert hit[0] == x - 6  # a red bird's radius before the block
    distance = float(np.hypot(hit[0] - MIDDLE[0], hit[1] - MIDDLE[1])) - 6
    assert blocked.utility == pytest.approx(-(distance**1.4 / 400 + 1) * COSTS["red"]["wood"])


def test_steep_ways_cost_a_fifth_more() -> None:
    high = shot(PIG, trajectory=HIGH)
    x, y = next(point for point in high.points if point[0] == 300)
    blocked = shot(PIG, ("wood", x, y - 5, 10, 10), trajectory=HIGH)
    hit = blocked.hit(decode(observe(("wood", x, y - 5, 10, 10))).targets[0].box)
    assert hit is not None
    distance = float(np.hypot(hit[0] - MIDDLE[0], hit[1] - MIDDLE[1])) - 6
    assert blocked.utility == pytest.approx(-1.2 * (distance**1.4 / 400 + 1) * COSTS["red"]["wood"], rel=1e-5)


def test_platforms_reach_down_to_the_ground_and_let_nothing_through() -> None:
    assert shot(PIG, ("platform", 260, 150, 30, 6)).utility == BLOCKED
    assert shot(PIG, ("platform", 260, 260, 30, 6)).utility == 0


def test_what_has_no_known_colours_is_not_seen() -> None:
    low = shot(PIG)
    x, y = next(point for point in low.points if point[0] == 280)
    assert shot(PIG, ("other", x, y - 5, 10, 10)).utility == 0


def test_pigs_on_the_way_count() -> None:
    found = pig_shot(scene_of(PIG))
    assert found is not None
    assert found[0] == 5000
    x, y = next(point for point in shot(PIG).points if point[0] == 280)
    found = pig_shot(scene_of(PIG, ("pig", x, y - 7, 14, 14)))
    assert found is not None
    assert found[0] == 10000
    assert found[1].target == pytest.approx(MIDDLE, abs=1e-3)


def test_takes_the_high_trajectory_where_the_low_one_is_blocked() -> None:
    x, y = next(point for point in shot(PIG).points if point[0] == 260)
    assert act(PIG) == (0, LOW, 0)
    assert act(PIG, ("stone", x, y - 10, 10, 20)) == (0, HIGH, 0)


def test_dynamite_beside_pigs_is_worth_more_than_a_pig_behind_stone() -> None:
    tnt: Thing = ("tnt", 350, 232, 12, 12)
    pigs: list[Thing] = [("pig", 366, 231, 14, 14), ("pig", 376, 231, 14, 14), ("pig", 386, 231, 14, 14)]
    found = dynamite_shot(scene_of(tnt, pigs[0]))
    assert found is not None
    assert found[0] == pytest.approx((110 - 17) / 100 * 3700, rel=1e-5)
    wall: list[Thing] = [("stone", 364, 100, 2, 186)]
    assert act(*pigs, tnt, *wall)[0] == 3
    assert dynamite_shot(scene_of(tnt, ("pig", 460, 231, 14, 14))) is None


def test_touching_blocks_are_one_building() -> None:
    blocks = scene_of(*TOWER, ("ice", 400, 260, 10, 10)).blocks
    assert sorted(len(building.blocks) for building in buildings(blocks)) == [1, 3]


def test_a_beam_on_two_posts_with_a_pig_below_is_shot_at() -> None:
    found = building_shot(scene_of(*TOWER), rng())
    assert found is not None
    utility, path = found
    assert path.target[0] == pytest.approx(305, abs=1e-3)
    assert 246 < path.target[1] < 261
    assert utility > 0.4 * 5000
    assert building_shot(scene_of(*TOWER, bird="white"), rng()) is None
    assert building_shot(scene_of(*TOWER[:3]), rng()) is None
    assert building_shot(scene_of(*TOWER[1:]), rng()) is None  # two blocks are no building


def test_nearest_action_has_the_nearest_aim() -> None:
    view = decode(observe(PIG, ("wood", 400, 240, 10, 10)))
    assert split(nearest_action(view, (340.0, 237.0), LOW)) == (0, LOW, 0)
    assert split(nearest_action(view, (351.0, 237.0), HIGH)) == (0, HIGH, 15)
    assert split(nearest_action(view, (379.0, 250.0), LOW)) == (1, LOW, -25)


def test_without_pigs_any_shot_of_a_middling_angle() -> None:
    scene = scene_of(("wood", 400, 240, 10, 10), ("ice", 200, 240, 10, 10))
    draw = rng()
    for _ in range(30):
        slot, trajectory, offset = split(random_action(scene, draw))
        x, y = scene.level.targets[slot].box.centre
        angle = next(path for path in paths(scene, (x + offset, y)) if path.trajectory == trajectory).degrees
        assert 30 <= angle <= 58.6


def test_an_empty_scene_is_no_reason_to_stop() -> None:
    assert act() == (0, LOW, 0)


def test_in_the_world_it_passes_usual_levels_and_never_learns() -> None:
    before, after = pass_rates(DataLabPolicy(rng()), "taller-slingshot", 6, 6)
    assert before >= 0.8
    assert after <= 0.2
