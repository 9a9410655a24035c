"""Damage against the published formulas, in collisions computed by hand."""

from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domains.angrybirds.birds_range import (
    FALL,
    ORIGIN,
    STEP,
    Log,
    ahead,
    level,
    platform,
    the,
)  # fmt: skip
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.physics.scene import BIRDS, Item

MASSES = {
    "phyq": {"BirdRed": 0.545, "BirdBlue": 0.458, "BirdYellow": 0.483, "BirdWhite": 0.849, "BirdBlack": 0.754},
    "sailon": {"BirdRed": 1.0, "BirdBlue": 0.3737, "BirdYellow": 0.886, "BirdWhite": 1.1, "BirdBlack": 1.384},
}
HARM = {
    "phyq": {
        "BirdRed": (1, 1, 1), "BirdBlue": (1, 1, 4), "BirdYellow": (2.4, 1, 1.2), "BirdWhite": (0.8, 1, 0.8),
        "BirdBlack": (1, 2.5, 1),
    },
    "sailon": {
        "BirdRed": (0.5, 0.3, 1.5), "BirdBlue": (0.5, 0.1, 2), "BirdYellow": (2, 0.5, 0.4),
        "BirdWhite": (0.5, 0.5, 0.5), "BirdBlack": (1, 0.2, 1),
    },
}  # fmt: skip
"""Of wood, stone and ice."""
MATERIALS = ("wood", "stone", "ice")
DEFENCE = {"wood": 2.5, "stone": 15.0, "ice": 2.0}


@pytest.mark.parametrize("preset", ["phyq", "sailon"])
@pytest.mark.parametrize("bird", BIRDS)
@pytest.mark.parametrize("material", MATERIALS)
def test_damage_of_each_bird_to_each_material(preset: str, bird: str, material: str) -> None:
    log = Log(level(*ahead("block", "Circle", 1.0, material), birds=(bird,)), preset)
    block = the(log.now, "block")[0]
    harm, speed = log.launch(0, 0.4).first_harm(block.id)
    factor = HARM[preset][bird][MATERIALS.index(material)]
    expected = {
        "phyq": 11.22 * speed * MASSES["phyq"][bird] * factor - DEFENCE[material],
        "sailon": speed * factor,
    }[preset]
    assert 4.0 < speed < 4.2
    assert harm == pytest.approx(expected, rel=1e-3)
    points = round(harm if preset == "phyq" else 10 * harm) * 10
    assert log.world.score == (points if points > 10 else 0)


@pytest.mark.parametrize("bird", BIRDS)
@pytest.mark.parametrize("pig", ["BasicMedium", "BasicBig"])
def test_damage_of_each_bird_to_pigs_in_phyq(bird: str, pig: str) -> None:
    log = Log(level(*ahead("pig", pig, 0.75), birds=(bird,), has_far_pig=False))
    one = the(log.now, "pig")[0]
    harm, speed = log.launch(0, 0.2).first_harm(one.id)
    assert harm == pytest.approx(11.22 / 2 * speed * MASSES["phyq"][bird] - 1, rel=1e-3)
    assert log.world.score == round(harm) * 10


@pytest.mark.parametrize("pig", ["BasicMedium", "BasicBig"])
def test_a_pig_loses_the_relative_speed_in_sailon(pig: str) -> None:
    log = Log(level(*ahead("pig", pig, 0.75), has_far_pig=False), "sailon")
    harm, speed = log.launch(0, 0.2).first_harm(the(log.now, "pig")[0].id)
    assert harm == pytest.approx(speed, rel=1e-3)


def test_a_full_shot_on_pigs_of_each_size_in_phyq() -> None:
    """Published: 30 damage at 10 units a second, so small and medium ones die and a big one takes three hits."""
    for pig, life in (("BasicSmall", 1), ("BasicMedium", 15)):
        log = Log(level(*ahead("pig", pig, 0.75), has_far_pig=False)).launch(0)
        harm, _ = log.first_harm(the(log.now, "pig")[0].id)
        assert (harm, log.world.score, log.world.pigs_left) == (life, 5000, 0)
    log = Log(level(*ahead("pig", "BasicBig", 0.75), has_far_pig=False)).launch(0)
    harm, _ = log.first_harm(the(log.now, "pig")[0].id)
    assert harm == pytest.approx(29.6, abs=0.2)
    assert log.world.pigs_left == 1
    assert log.world.score == 300


@pytest.mark.parametrize(("height", "is_killed"), [(0.030, False), (0.090, True)])
def test_a_small_pig_dies_of_a_red_bird_faster_than_0_65(height: float, is_killed: bool) -> None:
    # The bird falls on it from the slingshot: collider 0.20 below the bird's middle, pig's top 0.217 above its own.
    pig = Item("pig", "BasicSmall", ORIGIN[0], ORIGIN[1] - 0.20 - 0.217 - height)
    log = Log(level(pig, platform(pig.x, pig.y - 0.217 - 0.32), has_far_pig=False)).launch(0, 0.0)
    log.step_until(lambda: len(log.scenes) > 2 and log.velocity(log.bird)[1] > -0.05, most=60)
    fastest = max(log.speed(log.bird, -k) for k in range(1, len(log.scenes) - 1))
    assert (fastest > 0.654) == is_killed
    assert log.world.pigs_left == (0 if is_killed else 1)


@pytest.mark.parametrize(
    ("material", "mass", "bounce"), [("wood", 0.432, 0.0), ("stone", 1.152, 0.1), ("ice", 0.216, 0.2)]
)
def test_a_block_that_falls_on_the_ground(material: str, mass: float, bounce: float) -> None:
    """It falls for over two seconds, so that it can be hurt when it lands, and once more after each bounce."""
    log = Log(level(Item("block", "RectFat", 0, 11.0, material=material)))
    block = the(log.now, "block")[0]
    assert block.life == block.full_life
    log.step(200)
    speed, harm = sqrt(2 * FALL * (11 + 3.5 - 0.3772 / 2)), 0.0
    while speed > 1:
        harm += max(0.0, 11.22 / 2 * speed * mass - DEFENCE[material])
        speed *= bounce
    assert block.life - log.life(block.id) == pytest.approx(harm, rel=0.03)
    assert log.world.score == 0  # only hits of birds give points


def test_a_block_that_falls_on_a_pig_is_the_attacker_for_both() -> None:
    stone, pig = Item("block", "RectFat", 0, 11.0, material="stone"), Item("pig", "BasicBig", 0, -3.5 + 0.485)
    log = Log(level(stone, pig, has_far_pig=False))
    (block,), (victim,) = the(log.now, "block"), the(log.now, "pig")
    log.step_until(lambda: log.life(victim.id) < 80)
    speed = log.speed(block.id, -2)
    assert 80 - log.life(victim.id) == pytest.approx(11.22 / 2 * speed * 1.152 - 1, rel=1e-3)
    assert 140 - log.life(block.id) == pytest.approx(11.22 / 2 * speed * 1.152 - 15, rel=1e-3)


def test_the_faster_body_is_the_attacker_not_the_heavier() -> None:
    ice = Item("block", "RectTiny", 0, 11.0, material="ice")
    pig = Item("pig", "BasicBig", 0, -3.5 + 0.485)
    log = Log(level(ice, pig, has_far_pig=False))
    (block,), (victim,) = the(log.now, "block"), the(log.now, "pig")
    log.step_until(lambda: log.life(victim.id) < 80)
    assert 80 - log.life(victim.id) == pytest.approx(11.22 / 2 * log.speed(block.id, -2) * 0.052 - 1, rel=1e-2)


def test_a_falling_pig_is_its_own_attacker() -> None:
    log = Log(level(Item("pig", "BasicBig", 0, 11.0), has_far_pig=False))
    pig = the(log.now, "pig")[0]
    log.step_until(lambda: log.life(pig.id) < 80)
    speed = log.speed(pig.id, -2)
    assert 80 - log.life(pig.id) == pytest.approx(5.61 * speed * 0.702 - 1, rel=1e-3)
    log = Log(level(Item("pig", "BasicMedium", 0, 11.0))).step(80)
    assert log.world.score == 5000  # 5.61 * 11.5 * 0.431 - 1 = 27 of 15


@pytest.mark.parametrize(("preset", "is_alive"), [("phyq", True), ("sailon", False)])
def test_nothing_is_hurt_in_the_first_two_seconds_of_phyq(preset: str, is_alive: bool) -> None:
    """A pig that falls three units at once; in sailon all are mortal from the start."""
    log = Log(level(Item("pig", "BasicSmall", 0, 0.0), has_far_pig=False), preset)
    log.step(150)
    assert log.world.pigs_left == is_alive
    if is_alive:
        assert the(log.now, "pig")[0].life == 1


def test_two_seconds_are_not_three() -> None:
    """The same pig from high up lands after them."""
    log = Log(level(Item("pig", "BasicSmall", 0, 7.0), has_far_pig=False))
    assert log.world.time == pytest.approx(2.0)
    assert log.world.pigs_left == 1
    log.step(60)
    assert log.world.pigs_left == 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(gap=st.floats(0.9, 1.3), degrees=st.floats(-8, 8), bounce=st.sampled_from([0, 1]))
def test_no_contact_is_missed(gap: float, degrees: float, bounce: int) -> None:
    """Wherever within a step the bird comes and goes again: what it did is the damage of its speed."""
    change = make_change({"bouncier-bird": bounce})
    log = Log(level(*ahead("block", "SquareHole", gap, "stone")), change=change)
    block = the(log.now, "block")[0]
    harm, speed = log.launch(degrees).first_harm(block.id, most=20)
    assert harm == pytest.approx(11.22 * speed * 0.545 - 15, rel=1e-3)
    assert log.scenes[-1].dots == tuple(log.world.dots)[: len(log.scenes) // 5]


@settings(max_examples=25, deadline=None, derandomize=True)
@given(gap=st.floats(0.9, 1.3))
def test_no_pig_is_missed(gap: float) -> None:
    log = Log(level(*ahead("pig", "BasicBig", gap), has_far_pig=False))
    harm, speed = log.launch(0).first_harm(the(log.now, "pig")[0].id, most=20)
    assert harm == pytest.approx(5.61 * speed * 0.545 - 1, rel=1e-3)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    type_=st.sampled_from(["RectTiny", "CircleSmall", "SquareSmall", "RectSmall"]),
    material=st.sampled_from(["wood", "ice"]),
    bird=st.sampled_from(["BirdRed", "BirdBlue", "BirdYellow"]),
    gap=st.floats(0.9, 1.4),
    degrees=st.floats(0, 5),
)
def test_a_block_that_a_bird_pushed_is_hurt(type_: str, material: str, bird: str, gap: float, degrees: float) -> None:
    """Also where the bird hits what the block stands on in the same step: nothing but the bird can move the block."""
    log = Log(level(*ahead("block", type_, gap, material), birds=(bird,)))
    block = the(log.now, "block")[0]
    log.launch(degrees).step(2)
    for _ in range(20):
        log.step()
        if log.find(block.id) is None:
            return
        if log.speed(block.id) > 1:
            log.step()
            assert log.life(block.id) < block.full_life
            return


def test_a_hit_is_counted_once() -> None:
    """A bird that falls on a stone and stays there: one hit, and a bounce too slow to do harm."""
    stone = Item("block", "SquareHole", ORIGIN[0], -3.5 + 0.382, material="stone")
    log = Log(level(stone))
    block = the(log.now, "block")[0]
    harm, speed = log.launch(0, 0.0).first_harm(block.id)
    assert speed == pytest.approx(sqrt(2 * FALL * (1.8 - 0.2 - 0.764)), abs=2 * FALL * STEP)
    assert harm == pytest.approx(11.22 * speed * 0.545 - 15, rel=1e-3)
    log.step(100)
    assert 160 - log.life(block.id) == harm
    assert log.place(log.bird)[1] > stone.y
