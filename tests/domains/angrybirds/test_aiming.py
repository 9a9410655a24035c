"""Actions (object, trajectory, offset) and slots that keep their objects."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domains.angrybirds.birds_range import level, mixed, platform, targets_of
from nappingrl.domains.angrybirds.actions import ACTION_NAMES, N_ACTIONS, N_SLOTS, OFFSETS, PER_OBJECT, join, split
from nappingrl.domains.angrybirds.aiming import Targets, release_point, to_world
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.layout import decode
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.physics.scene import Box, Camera, Item, Scene, View
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.trajectory import make_planner


def sent(scene: Scene, action: int, planner: str = "official") -> tuple[tuple[float, float], int]:
    shot = targets_of(scene).aim(action, planner)
    assert shot is not None
    return shot.release, shot.tap_ms


# The numbers of actions ----------------------------------------------------------------------------------------------


def test_offsets_are_the_paper_s() -> None:
    assert sorted(OFFSETS) == [-35, -25, -15, 0, 15, 25, 35]
    assert PER_OBJECT == 14
    assert N_ACTIONS == N_SLOTS * 14


@given(action=st.integers(0, N_ACTIONS - 1))
def test_split_and_join(action: int) -> None:
    slot, trajectory, offset = split(action)
    assert 0 <= slot < N_SLOTS
    assert trajectory in (0, 1)
    assert join(slot, trajectory, offset) == action
    assert ACTION_NAMES[action] == f"object {slot + 1} {('low', 'high')[trajectory]} {offset:+d}"


def test_names_are_all_different() -> None:
    assert len(set(ACTION_NAMES)) == N_ACTIONS
    assert ACTION_NAMES[0] == "object 1 low +0"


# Slots ---------------------------------------------------------------------------------------------------------------


def test_order_is_by_class_then_from_left_to_right() -> None:
    targets = targets_of(World(mixed()).scene())
    seen = [one for one in targets.seen if one is not None]
    assert [one.colour for one in seen] == ["pig", "pig", "tnt", "wood", "wood", "ice", "stone", "platform"]
    assert seen[0].box.left < seen[1].box.left
    assert seen[3].box.left < seen[4].box.left
    assert [one.colour for one in targets.birds] == ["yellow", "red", "red"]


def test_order_does_not_depend_on_that_of_the_level() -> None:
    one, other = mixed(), mixed()
    other = replace(other, items=other.items[::-1])
    boxes = []
    for start in (one, other):
        seen = targets_of(World(start).scene()).seen
        boxes.append([(thing.colour, thing.box.left, thing.box.top) for thing in seen if thing])
    assert boxes[0] == boxes[1]


def test_slots_keep_their_objects() -> None:
    world = World(mixed())
    targets = Targets()
    targets.update(ground_truth(world.scene()))
    before = [one.id if one else None for one in targets.seen]
    gone = before[1]
    scene = world.scene()
    things = tuple(
        replace(one, x=one.x - 3 if one.id == before[4] else one.x) for one in scene.things if one.id != gone
    )
    targets.update(ground_truth(replace(scene, things=things)))
    after = [one.id if one else None for one in targets.seen]
    assert after == [*before[:1], None, *before[2:]]


def test_slots_keep_their_objects_in_play() -> None:
    world = World(mixed())
    targets = Targets()
    targets.update(ground_truth(world.scene()))
    before = [one.id if one else None for one in targets.seen]
    while world.status == "playing":
        world.shoot(release_point(targets.aim(0, "exact"), world.scene()))
        targets.update(ground_truth(world.scene()))
        after = [one.id if one else None for one in targets.seen]
        assert all(now in (None, was) for was, now in zip(before, after, strict=True))
    assert targets.seen[0] is None


def test_objects_beyond_the_last_slot_cannot_be_aimed_at() -> None:
    blocks = [Item("block", "SquareTiny", -7 + k / 2, -3.4, material="wood") for k in range(N_SLOTS + 3)]
    targets = targets_of(World(level(*blocks)).scene())
    assert len(targets.seen) == N_SLOTS
    assert targets.mask()[PER_OBJECT:].all()
    assert targets.seen[0] is not None
    assert targets.seen[0].colour == "pig"


def test_the_mask_excludes_objects_that_are_gone() -> None:
    mask = targets_of(World(mixed()).scene()).mask()
    assert mask.shape == (N_ACTIONS,)
    assert mask.dtype == np.bool_
    assert mask[: 8 * PER_OBJECT].reshape(8, PER_OBJECT).any(axis=1).all()
    assert not mask[8 * PER_OBJECT :].any()


def test_the_mask_excludes_what_is_out_of_reach() -> None:
    """A pig at the far end of the screen; the ledge's upper offsets are above the highest flight."""
    start = level(platform(8.5, -2.0, 2.0), Item("pig", "BasicMedium", 16, -3.12), has_far_pig=False)
    targets = targets_of(World(start).scene())
    mask = targets.mask()
    assert not mask[:PER_OBJECT].any()
    possible = [targets.aim(action) is not None for action in range(N_ACTIONS)]
    assert mask.tolist() == possible
    assert 0 < mask[PER_OBJECT : 2 * PER_OBJECT].sum() < PER_OBJECT


def test_an_excluded_action_throws_the_bird_away() -> None:
    world = World(mixed())
    things = {one.id: one for one in world.scene().things if one.kind != "bird"}
    assert targets_of(world.scene()).aim(N_ACTIONS - 1) is None
    world.shoot(release_point(None, world.scene()))
    assert {one.id: one for one in world.scene().things if one.kind != "bird"} == things
    assert world.birds_left == 2


# Classes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("novelty", "by", "classes"),
    [
        ("pig-color", "label", {"pig", "wood", "stone", "platform", "ice", "tnt"}),
        ("pig-color", "colour", {"pig"}),
        ("grayscale", "label", {"pig", "wood", "stone", "platform", "ice", "tnt"}),
    ],
)
def test_classes_by_label_or_by_colour(novelty: str, by: str, classes: set[str]) -> None:
    targets = Targets(by)
    targets.update(ground_truth(World(mixed(), change=make_change({novelty: 1.0})).scene()))
    seen = decode(targets.observe())
    assert {target.kind for target in seen.targets} == classes
    assert (seen.birds, seen.bird) == (3, "yellow")


def test_a_green_egg_is_a_pig_by_its_colour_only() -> None:
    scene = World(mixed(), change=make_change({"green-egg": 1.0})).scene()
    counts = {}
    for by in ("label", "colour"):
        targets = Targets(by)
        targets.update(ground_truth(scene))
        level = decode(targets.observe())
        counts[by] = len(level.of_kind("pig")), len(level.of_kind("other"))
    assert counts == {"label": (2, 1), "colour": (3, 0)}


# Shots ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("planner", ["official", "exact"])
@pytest.mark.parametrize("trajectory", [0, 1])
@pytest.mark.parametrize("offset", OFFSETS)
def test_a_shot_goes_to_the_middle_and_the_offset(planner: str, trajectory: int, offset: int) -> None:
    scene = World(mixed()).scene()
    targets = targets_of(scene)
    pig = targets.seen[0]
    assert pig is not None
    target = pig.box.centre[0], pig.box.centre[1] - offset
    plan = make_planner(planner, Box(92, 248, 104, 286), scene.camera.scale)
    angle = plan.angle(target, trajectory)
    assert angle is not None
    where, tap = sent(scene, join(0, trajectory, offset), planner)
    assert where == plan.release(angle)
    assert tap == plan.tap_ms(target, angle, (65 + 89) / 2)  # the bird on the sling is yellow


def test_red_is_not_tapped() -> None:
    start = replace(mixed(), birds=("BirdRed", "BirdYellow"))
    assert sent(World(start).scene(), 0)[1] == 0


def test_the_bird_on_the_sling_changes_with_each_shot() -> None:
    world = World(replace(mixed(), birds=("BirdRed", "BirdYellow", "BirdBlue")))
    colours = []
    while world.status == "playing":
        bird = targets_of(world.scene()).bird
        colours.append(bird)
        world.shoot((-11.0, -1.9))
    assert colours == ["red", "yellow", "blue"]


def test_an_exact_shot_hits_the_object() -> None:
    start = level(Item("pig", "BasicMedium", 2, -3.12), has_far_pig=False)
    for trajectory in (0, 1):
        world = World(start)
        where, tap = sent(world.scene(), join(0, trajectory, 0), "exact")
        world.shoot(to_world(where, world.scene().camera, world.scene().view), tap)
        assert world.status == "won"


def test_a_turned_screen_is_turned_back() -> None:
    straight = to_world((100, 300), Camera(), View())
    assert to_world((640 - 100, 480 - 300), Camera(), View(rotation=180)) == pytest.approx(straight)
