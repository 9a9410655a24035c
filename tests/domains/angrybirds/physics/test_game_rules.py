"""The rules of the released game, where its logs differ from the published source: preset phyq-game."""

import pytest

from domains.angrybirds.birds_range import Log, ahead, level, platform, the
from nappingrl.domains.angrybirds.physics.scene import Item

GAME = "phyq-game"
RED, BLACK, YELLOW = 0.545, 0.754, 0.483
"""Masses of birds."""
PIGS = {"BasicSmall": 0.302, "BasicMedium": 0.431, "BasicBig": 0.702}
"""Masses of pigs."""
DEFENCE = {"wood": 2.5, "stone": 15.0, "ice": 2.0}


@pytest.mark.parametrize("material", DEFENCE)
def test_each_hit_of_a_bird_is_dealt_twice_and_gives_its_damage_in_points(material: str) -> None:
    log = Log(level(*ahead("block", "Circle", 1.0, material)), GAME)
    harm, speed = log.launch(0, 0.4).first_harm(the(log.now, "block")[0].id)
    once = 11.22 * speed * RED - DEFENCE[material]
    assert harm == pytest.approx(2 * once, rel=1e-3)
    assert log.world.score == 2 * round(once)


@pytest.mark.parametrize(("drawn", "n_times"), [(0.25, 2), (0.29, 1), (0.31, 1)])
def test_points_are_given_while_the_remaining_life_exceeds_the_damage(drawn: float, n_times: int) -> None:
    """A stone of 140: both contacts give points up to a damage of 140 / 3, only the first one above."""
    log = Log(level(*ahead("block", "RectFat", 1.0, "stone"), birds=("BirdBlack",)), GAME)
    harm, speed = log.launch(0, drawn).first_harm(the(log.now, "block")[0].id)
    once = 11.22 * speed * BLACK * 2.5 - 15
    assert (once < 140 / 3) == (n_times == 2)
    assert harm == pytest.approx(2 * once, rel=1e-3)
    assert log.world.score == n_times * round(once)


def test_the_second_contact_can_destroy() -> None:
    log = Log(level(*ahead("block", "RectFat", 1.0, "stone"), birds=("BirdBlack",)), GAME)
    block = the(log.now, "block")[0]
    _, speed = log.launch(0, 0.4).first_harm(block.id)
    assert 70 < 11.22 * speed * BLACK * 2.5 - 15 < 140
    assert log.find(block.id) is None
    assert log.world.score == 500


@pytest.mark.parametrize("pig", ["BasicMedium", "BasicBig"])
@pytest.mark.parametrize(("bird", "mass"), [("BirdRed", None), ("BirdYellow", YELLOW)])
def test_a_bird_hurts_a_pig_by_its_own_mass_unless_it_bounces_off(bird: str, mass: float | None, pig: str) -> None:
    log = Log(level(*ahead("pig", pig, 0.75), birds=(bird,), has_far_pig=False), GAME)
    harm, speed = log.launch(0, 0.2).first_harm(the(log.now, "pig")[0].id)
    once = 11.22 / 2 * speed * (mass or PIGS[pig]) - 1
    assert harm == pytest.approx(2 * once, rel=1e-3)
    assert log.world.score == 2 * round(once)


def test_a_big_pig_just_survives_a_full_shot() -> None:
    """38.4 of its 80 twice, with points for the first contact only."""
    log = Log(level(*ahead("pig", "BasicBig", 0.75), has_far_pig=False), GAME).launch(0)
    harm, _ = log.first_harm(the(log.now, "pig")[0].id)
    assert harm == pytest.approx(2 * 38.4, abs=0.4)
    assert (log.world.pigs_left, log.world.score) == (1, 38)


@pytest.mark.parametrize(("type_", "material", "mass"), [("RectFat", "stone", 1.152), ("RectTiny", "ice", 0.052)])
def test_bodies_that_part_after_an_impact_are_hurt_by_their_own_mass(type_: str, material: str, mass: float) -> None:
    falling, pig = Item("block", type_, 0, 11.0, material=material), Item("pig", "BasicBig", 0, -3.5 + 0.485)
    log = Log(level(falling, pig, has_far_pig=False), GAME)
    (block,), (victim,) = the(log.now, "block"), the(log.now, "pig")
    log.step_until(lambda: log.life(victim.id) < 80)
    speed = log.speed(block.id, -2)
    assert 80 - log.life(victim.id) == pytest.approx(11.22 / 2 * speed * 0.702 - 1, rel=1e-3)
    harm = max(0.0, 11.22 / 2 * speed * mass - DEFENCE[material])
    assert block.life - log.life(block.id) == pytest.approx(harm, rel=1e-3)


@pytest.mark.parametrize(("rotation", "mass"), [(0.0, 0.702), (50.0, 1.0)])
def test_a_platform_is_the_attacker_of_what_slides_along_it(rotation: float, mass: float) -> None:
    """A pig that falls flat bounces and is hurt by its own mass; on a slope it slides on, and the platform weighs 1."""
    slope = platform(0, 0, 3.0, rotation=rotation)
    log = Log(level(Item("pig", "BasicBig", 0, 11.0), slope, has_far_pig=False), GAME)
    pig = the(log.now, "pig")[0]
    log.step_until(lambda: log.life(pig.id) < 80)
    assert 80 - log.life(pig.id) == pytest.approx(5.61 * log.speed(pig.id, -2) * mass - 1, rel=1e-3)
