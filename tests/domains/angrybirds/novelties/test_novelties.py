"""Each novelty has its effect: on the physics, the ground truth or the goal."""

from math import hypot
from typing import Any

import pytest

from domains.angrybirds.birds_range import ORIGIN, STEP, Log, ahead, level, platform, release, the
from nappingrl.domains.angrybirds.aiming import to_world
from nappingrl.domains.angrybirds.ground_truth.state import boxes, features_of, ground_truth, sling_box
from nappingrl.domains.angrybirds.levels.templates import make_level
from nappingrl.domains.angrybirds.novelties import NOVELTIES, PAPER_NOVELTIES, make_change
from nappingrl.domains.angrybirds.physics.scene import Item, Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.pictures import picture
from nappingrl.errors import UnknownNameError


def changed(start: Level, name: str, strength: float = 1.0, preset: str = "phyq") -> Log:
    return Log(start, preset, make_change({name: strength}))


def pig_ahead(type_: str = "BasicMedium") -> Level:
    return level(*ahead("pig", type_, 1.0), birds=("BirdRed", "BirdRed"), has_far_pig=False)


def of_everything() -> Level:
    return level(
        Item("block", "RectFat", -4, -3.28, material="wood"), Item("block", "Circle", -2, -3.1, material="ice"),
        Item("block", "SquareHole", 0, -3.08, material="stone"), Item("tnt", "TNT", 2, -3.17),
    )  # fmt: skip


def geometries(log: Log) -> list[dict[str, Any]]:
    return [feature["geometry"] for feature in features_of(ground_truth(log.now))]


def test_the_paper_s_seven() -> None:
    assert PAPER_NOVELTIES == (
        "green-egg", "bone", "taller-slingshot", "pig-color", "circumcircle", "floating-wood", "bird-likes-pig",
    )  # fmt: skip
    assert len(NOVELTIES) == 14


# Nothing at strength 0 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NOVELTIES)
def test_strength_0_changes_nothing(name: str) -> None:
    start = level(
        *ahead("block", "SquareHole", 2.0, "wood"), Item("block", "SquareHole", -5, -3.08, material="ice"),
        Item("block", "SquareHole", -5, -2.24, material="wood"), Item("pig", "BasicMedium", -3, -3.12),
        birds=("BirdRed", "BirdRed"),
    )  # fmt: skip
    plain, other = World(start), World(start, change=make_change({name: 0.0}))
    assert ground_truth(plain.scene()) == ground_truth(other.scene())
    assert (picture.draw(plain.scene()) == picture.draw(other.scene())).all()
    for degrees in (2, 14):
        plain.shoot(release(degrees))
        other.shoot(release(degrees))
        assert plain.scene() == other.scene()
        assert (plain.score, plain.status, plain.goals_left) == (other.score, other.status, other.goals_left)


def test_unknown_novelty() -> None:
    with pytest.raises(UnknownNameError, match="green-egg"):
        make_change({"green-eg": 1.0})


# The paper's seven ---------------------------------------------------------------------------------------------------


def test_green_egg_looks_like_a_pig_to_the_eye_only() -> None:
    log = changed(pig_ahead(), "green-egg")
    seen = boxes(ground_truth(log.now))
    pigs = [one for one in seen if one.colour == "pig"]
    assert len(pigs) == 2
    assert len({one.label for one in pigs}) == 2
    egg = next(one for one in pigs if not one.label.startswith("pig"))
    geometry = next(
        feature["geometry"]
        for feature in features_of(ground_truth(log.now))
        if feature["properties"]["id"] == str(egg.id)
    )
    assert len(geometry["coordinates"][0]) == 4  # a box
    assert (log.world.pigs_left, log.world.goals_left) == (1, 1)


def test_green_egg_is_no_target() -> None:
    log = changed(pig_ahead(), "green-egg")
    assert log.world.shoot(release(0))
    assert log.world.status == "won"
    assert len([one for one in boxes(ground_truth(log.world.scene())) if one.colour == "pig"]) == 1


def test_bone_must_be_destroyed() -> None:
    log = changed(pig_ahead(), "bone")
    assert (log.world.pigs_left, log.world.goals_left) == (1, 2)
    log.world.shoot(release(0))
    assert (log.world.pigs_left, log.world.goals_left, log.world.status) == (0, 1, "playing")
    log.world.shoot((ORIGIN[0] + 1, ORIGIN[1]))
    assert log.world.status == "lost"


@pytest.mark.parametrize("preset", ["phyq", "sailon"])
def test_a_bird_breaks_the_bone(preset: str) -> None:
    """The bone lies 2.5 units before a pig on the ground: a level shot comes down there."""
    start = level(Item("pig", "BasicMedium", -1.0, -3.12), birds=("BirdRed",) * 2, has_far_pig=False)
    log = changed(start, "bone", preset=preset)
    bone = the(log.now, "block", "Bone")[0]
    assert bone.x == pytest.approx(-3.5, abs=0.01)
    assert len({one.colour for one in boxes(ground_truth(log.now))}) == 3  # neither bird nor pig
    log.launch(-0.5)
    log.step_until(lambda: log.find(bone.id) is None, most=150)
    assert log.world.goals_left == log.world.pigs_left


@pytest.mark.parametrize("name", ["green-egg", "bone"])
def test_strength_is_the_number_of_eggs_and_bones(name: str) -> None:
    start = level(Item("pig", "BasicMedium", 5.0, -3.12), has_far_pig=False)
    things = the(changed(start, name, 3).now, "block")
    assert len(things) == 3
    assert len({round(one.x, 1) for one in things}) == 3


def test_taller_slingshot() -> None:
    plain, tall = Log(level()), changed(level(), "taller-slingshot")
    boxes_px = [sling_box(ground_truth(log.now)) for log in (plain, tall)]
    heights = [bottom - top for _, top, _, bottom in boxes_px]
    assert heights[1] == pytest.approx(2 * heights[0], abs=1)
    assert boxes_px[0][3] == boxes_px[1][3]  # it grows upwards
    start = tall.now.sling.origin[1]
    assert start - ORIGIN[1] == pytest.approx(2.055)
    bird = the(tall.now, "bird")[0]
    assert bird.y == pytest.approx(start)
    reaches = []
    for log in (plain, tall):
        log.launch(30)
        log.step_until(lambda log=log: log.place(log.bird)[1] < -3.0)
        reaches.append(log.place(log.bird)[0])
    assert reaches[1] > reaches[0] + 1


def test_pig_colour() -> None:
    plain, green = (
        boxes(ground_truth(log.now)) for log in (Log(of_everything()), changed(of_everything(), "pig-color"))
    )
    assert {one.colour for one in plain} == {"wood", "ice", "stone", "tnt", "pig", "platform", "red"}
    assert {one.colour for one in green} == {"pig", "red"}
    assert [one.label for one in plain] == [one.label for one in green]
    assert [one.colour for one in green if one.label.startswith("bird")] == ["red"]


def test_circumcircle() -> None:
    plain, round_ = Log(of_everything()), changed(of_everything(), "circumcircle")
    assert {one.get("type") for one in geometries(plain)} == {None, "Polygon"}
    assert {one.get("type") for one in geometries(round_)} == {None, "Circle"}
    for polygon, circle in zip(geometries(plain), geometries(round_), strict=True):
        if polygon:
            x, y = circle["center"]
            far = [hypot(px - x, py - y) for px, py in polygon["coordinates"][0]]
            assert max(far) == pytest.approx(circle["radius"], abs=1.6)


@pytest.mark.parametrize(("below", "floats"), [("ice", True), ("stone", False), ("wood", False)])
def test_floating_wood(below: str, floats: bool) -> None:
    lower = Item("block", "SquareHole", -5, -3.5 + 0.382, material=below)
    upper = Item("block", "SquareHole", -5, -3.5 + 3 * 0.382, material="wood")
    log = changed(level(lower, upper), "floating-wood")
    log.step(100)
    bottom, top = sorted(the(log.now, "block"), key=lambda one: one.y)
    gap = top.y - bottom.y - 0.7636
    assert (gap > 0.5) == floats
    assert gap == pytest.approx(0.8 if floats else 0.0, abs=0.1)
    log.step(200)
    assert (log.world.is_moving, log.place(top.id)[1]) == (False, pytest.approx(top.y, abs=0.02))


def test_nothing_but_wood_floats_on_ice() -> None:
    lower = Item("block", "SquareHole", -5, -3.5 + 0.382, material="ice")
    upper = Item("block", "SquareHole", -5, -3.5 + 3 * 0.382, material="stone")
    log = changed(level(lower, upper), "floating-wood").step(100)
    bottom, top = sorted(the(log.now, "block"), key=lambda one: one.y)
    assert top.y - bottom.y == pytest.approx(0.7636, abs=0.03)


@pytest.mark.parametrize("preset", ["phyq", "sailon"])
def test_bird_likes_pig(preset: str) -> None:
    log = changed(pig_ahead(), "bird-likes-pig", preset=preset)
    pig = the(log.now, "pig")[0]
    before = pig.life
    log.launch(0).step_until(lambda: log.place(log.bird)[0] > ORIGIN[0] + 0.3)
    log.step(5)
    assert log.life(pig.id) == before
    assert log.place(pig.id)[0] > pig.x  # but it was hit


def test_only_the_red_bird_likes_pigs() -> None:
    start = level(*ahead("pig", "BasicMedium", 1.0), birds=("BirdYellow",), has_far_pig=False)
    log = changed(start, "bird-likes-pig")
    log.world.shoot(release(0))
    assert log.world.status == "won"


def test_other_things_still_hurt_pigs_that_birds_like() -> None:
    tnt = ahead("tnt", "TNT", 1.5)
    pig = Item("pig", "BasicMedium", tnt[0].x, tnt[0].y + 1.2)
    start = level(*tnt, pig, platform(pig.x, pig.y - 0.38 - 0.1, width=0.5, height=0.2), has_far_pig=False)
    log = changed(start, "bird-likes-pig")
    log.world.shoot(release(0))
    assert log.world.status == "won"
    stone = Item("block", "RectFat", 0, 11.0, material="stone")
    fall = changed(level(stone, Item("pig", "BasicMedium", 0, -3.12), has_far_pig=False), "bird-likes-pig")
    assert fall.step(80).world.pigs_left == 0


# Others --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("strength", "bounce"), [(0.0, 0.43), (0.5, 0.665), (1.0, 0.9)])
def test_bouncier_bird(strength: float, bounce: float) -> None:
    """How fast it comes back from a wall."""
    log = changed(level(platform(ORIGIN[0] + 3, ORIGIN[1], height=4)), "bouncier-bird", strength).launch(0).step(40)
    before, after = log.velocity(log.bird, 10)[0], log.velocity(log.bird)[0]
    assert -after / before == pytest.approx(bounce, abs=0.03)


def test_tougher_wood() -> None:
    """A red bird takes 58.7 from a wooden block of 50, which with three times the life stands it."""
    lives = []
    for strength in (1.0, 0.0):
        log = changed(level(*ahead("block", "RectSmall", 1.0, "wood")), "tougher-wood", strength)
        block = the(log.now, "block")[0]
        log.launch(2).step_until(lambda log=log, block=block: log.life(block.id) < block.full_life, most=40)
        lives.append(log.life(block.id))
    assert lives[0] == pytest.approx(150 - 58.7, abs=1)
    assert lives[1] == 0
    stone = changed(level(*ahead("block", "RectSmall", 1.0, "stone")), "tougher-wood")
    assert the(stone.now, "block")[0].life == 80


def test_lighter_blocks() -> None:
    """A stone that falls on a pig does a tenth of the damage, less what the pig stands."""
    harms = []
    for strength in (0.0, 1.0):
        stone, pig = Item("block", "RectFat", 0, 11.0, material="stone"), Item("pig", "BasicBig", 0, -3.5 + 0.485)
        log = changed(level(stone, pig, has_far_pig=False), "lighter-blocks", strength)
        victim = the(log.now, "pig")[0]
        log.step_until(lambda log=log, victim=victim: log.life(victim.id) < 80)
        harms.append(80 - log.life(victim.id))
    assert harms[1] + 1 == pytest.approx((harms[0] + 1) / 10, rel=0.01)


def test_lighter_blocks_fly_farther() -> None:
    ends = []
    for strength in (0.0, 1.0):
        log = changed(level(*ahead("block", "SquareHole", 1.0, "stone")), "lighter-blocks", strength).launch(0)
        block = the(log.now, "block")[0]
        log.step_until(lambda log=log, block=block: log.life(block.id) < block.full_life, most=40)
        log.step(2)
        ends.append(log.velocity(block.id)[0])
    # Masses 0.545 and 2.737 or 0.2737, bounce 0.43, hit in the middle but for a turn.
    assert ends[0] == pytest.approx(10 * 1.43 * 0.545 / (0.545 + 2.737), rel=0.2)
    assert ends[1] == pytest.approx(10 * 1.43 * 0.545 / (0.545 + 0.2737), rel=0.2)


def test_no_gravity_for_birds() -> None:
    log = changed(level(), "no-gravity-for-birds").launch(20).step(60)
    assert log.velocity(log.bird, 1) == pytest.approx(log.velocity(log.bird), abs=1e-3)
    assert log.speed(log.bird) == pytest.approx(10, abs=0.01)
    block = changed(level(Item("block", "RectFat", 0, 11.0, material="wood")), "no-gravity-for-birds")
    assert the(block.now, "block")[0].y < 5  # blocks fall as ever


def test_storm() -> None:
    """2 units/s^2 to the left: on birds, and nothing else."""
    plain, windy = Log(of_everything()).launch(40).step(60), changed(of_everything(), "storm").launch(40).step(60)
    t = 60 * STEP
    assert plain.place(plain.bird)[0] - windy.place(windy.bird)[0] == pytest.approx(2 * t * t / 2, rel=0.03)
    assert plain.place(plain.bird)[1] == pytest.approx(windy.place(windy.bird)[1], abs=1e-4)
    assert the(plain.now, "block") == the(windy.now, "block")
    half = changed(of_everything(), "storm", 0.5).launch(40).step(60)
    assert plain.place(plain.bird)[0] - half.place(half.bird)[0] == pytest.approx(t * t / 2, rel=0.03)


def test_grayscale() -> None:
    plain, gray = Log(of_everything()), changed(of_everything(), "grayscale")
    shown = picture.draw(gray.now)
    assert (shown[..., 0] == shown[..., 1]).all()
    assert (shown[..., 1] == shown[..., 2]).all()
    assert (picture.draw(plain.now)[..., 0] != picture.draw(plain.now)[..., 2]).any()
    for feature in features_of(ground_truth(gray.now)):
        for entry in feature["properties"]["colormap"]:
            red, green, blue = entry["color"] >> 5, entry["color"] >> 2 & 7, entry["color"] & 3
            assert abs(red - green) <= 1
            assert abs(red / 7 - blue / 3) <= 0.2
    assert geometries(plain) == geometries(gray)


def test_rotated_screen() -> None:
    plain, turned = Log(of_everything()), changed(of_everything(), "rotated-screen")
    for one, other in zip(geometries(plain), geometries(turned), strict=True):
        for ring, turned_ring in zip(one.get("coordinates", []), other.get("coordinates", []), strict=True):
            assert turned_ring == [[640 - x, 480 - y] for x, y in ring]
    assert (picture.draw(turned.now)[::-1, ::-1] == picture.draw(plain.now)).mean() > 0.97


def test_a_release_on_the_turned_screen_is_that_of_the_straight_one() -> None:
    scenes = []
    for strength in (0.0, 1.0):
        world = World(of_everything(), change=make_change({"rotated-screen": strength}))
        x, y = 40, 290
        scene = world.scene()
        if strength:
            x, y = 640 - x, 480 - y
        world.shoot(to_world((x, y), scene.camera, scene.view))
        scenes.append(world.scene().things)
    assert scenes[0] == scenes[1]


# Together ------------------------------------------------------------------------------------------------------------


def test_several_at_once() -> None:
    log = Log(pig_ahead(), change=make_change({"taller-slingshot": 1, "green-egg": 2, "bone": 1, "circumcircle": 1}))
    assert log.now.sling.origin[1] > 0
    assert sorted(one.type for one in the(log.now, "block")) == ["Bone", "GreenEgg", "GreenEgg"]
    assert {one.get("type") for one in geometries(log)} == {None, "Circle"}
    assert log.world.goals_left == 2


@pytest.mark.parametrize("name", NOVELTIES)
@pytest.mark.parametrize("preset", ["phyq", "sailon"])
def test_a_changed_level_can_be_played(name: str, preset: str) -> None:
    world = World(make_level("bone", 3), preset, make_change({name: 1.0}))
    while world.status == "playing":
        assert world.shoot(release(20))
    assert world.status in ("won", "lost")
    assert not world.is_moving
