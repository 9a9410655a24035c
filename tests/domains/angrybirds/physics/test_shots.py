"""Taps, the powers of birds, and explosions against published numbers."""

from math import atan2, cos, degrees, hypot, pi, radians, sin

import pytest

from domains.angrybirds.birds_range import FALL, ORIGIN, STEP, Log, ahead, level, parabola, platform, the
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.physics.scene import Item

TAP_MS = 400
TAP_STEP = 20
"""The step after which a tap of 400 ms takes effect: 3 units beyond the sling at a launch of 10 degrees."""


def shelf(x: float, y: float, type_: str = "BasicBig") -> list[Item]:
    """A pig up in the air, and what it stands on."""
    half = {"BasicBig": 0.485, "BasicMedium": 0.38}[type_]
    return [Item("pig", type_, x, y), platform(x, y - half - 0.16, width=0.5, height=0.32)]


def near_pig(log: Log) -> int:
    return min(the(log.now, "pig"), key=lambda one: one.x).id


# Taps ----------------------------------------------------------------------------------------------------------------


def test_red_can_do_nothing() -> None:
    plain = Log(level()).launch(10).step(60)
    tapped = Log(level()).launch(10, tap_ms=TAP_MS).step(60)
    assert plain.scenes == tapped.scenes


def test_yellow_gets_faster_along_its_way() -> None:
    log = Log(level(birds=("BirdYellow",))).launch(30, tap_ms=TAP_MS).step(TAP_STEP + 2)
    before, after = log.velocity(log.bird, TAP_STEP), log.velocity(log.bird, TAP_STEP + 1)
    assert log.speed(log.bird, TAP_STEP + 1) - hypot(*before) == pytest.approx(4 / 0.483, abs=0.1)
    assert atan2(after[1], after[0]) == pytest.approx(atan2(before[1], before[0]), abs=0.015)
    assert log.speed(log.bird) == pytest.approx(log.speed(log.bird, TAP_STEP + 1), abs=0.1)  # once


def test_yellow_gets_less_faster_in_sailon_where_it_is_heavier() -> None:
    log = Log(level(birds=("BirdYellow",)), "sailon").launch(30, tap_ms=TAP_MS).step(TAP_STEP + 1)
    gain = log.speed(log.bird) - log.speed(log.bird, TAP_STEP)
    assert gain == pytest.approx(4 / 0.886, abs=0.1)


def test_blue_becomes_three_of_the_same_speed() -> None:
    log = Log(level(birds=("BirdBlue",))).launch(30, tap_ms=TAP_MS).step(TAP_STEP + 1)
    assert log.find(log.bird) is None
    children = the(log.now, "bird")
    assert [one.type for one in children] == ["BirdBlue"] * 3
    x, y = parabola(30, TAP_STEP * STEP)
    t = TAP_STEP * STEP
    way, speed = (10 * cos(pi / 6), 10 * sin(pi / 6) - FALL * t), 0.0
    speed = hypot(*way)
    for child, turn in zip(children, (15, 5, -5), strict=True):
        angle = atan2(way[1], way[0]) + radians(turn)
        vx, vy = speed * cos(angle), speed * sin(angle) - FALL * STEP
        assert child.x == pytest.approx(x + vx * STEP, abs=0.004)
        assert child.y == pytest.approx(y + vy * STEP, abs=0.004)


def test_the_three_do_not_touch_each_other() -> None:
    log = Log(level(birds=("BirdBlue",))).launch(45, tap_ms=TAP_MS).step(TAP_STEP + 20)
    ids = [one.id for one in the(log.now, "bird")]
    for id_ in ids:
        first, last = log.velocity(id_, TAP_STEP + 2), log.velocity(id_)
        assert last[0] == pytest.approx(first[0], abs=1e-3)
        assert last[1] - first[1] == pytest.approx(-FALL * 18 * STEP, abs=1e-2)


def test_white_lays_an_egg_and_is_thrown_up() -> None:
    log = Log(level(birds=("BirdWhite",))).launch(10, tap_ms=TAP_MS).step(TAP_STEP + 3)
    egg = the(log.now, "egg")[0]
    vx, vy = log.velocity(egg.id)
    assert vx == pytest.approx(0, abs=1e-6)
    assert vy == pytest.approx(-6 - 9.81 * 2.5 * STEP, abs=0.2)  # the egg feels all of the gravity
    gain = log.velocity(log.bird, TAP_STEP + 1)[1] - log.velocity(log.bird, TAP_STEP)[1]
    assert gain == pytest.approx(10 / 0.849 - FALL * STEP, abs=0.1)


def test_the_egg_explodes_where_it_lands() -> None:
    """200 damage at its middle, none two units away."""
    x, _ = parabola(10, TAP_MS / 1000)
    pigs = [Item("pig", "BasicBig", x + d, -3.5 + 0.485) for d in (-2.6, 1.3)]
    log = Log(level(*pigs, birds=("BirdWhite",))).launch(10, tap_ms=TAP_MS)
    far, near = sorted(the(log.now, "pig"), key=lambda one: one.x)[:2]
    log.step_until(lambda: any(the(scene, "egg") for scene in log.scenes) and not the(log.now, "egg"), most=120)
    egg = the(log.scenes[-2], "egg")[0]
    distance = hypot(near.x - egg.x, near.y - egg.y)
    assert 80 - log.life(near.id) == pytest.approx(200 * (1 - distance / 2), abs=4)
    assert log.life(far.id) == 80
    log.step(3)
    assert log.velocity(near.id)[0] == pytest.approx(2 * (1 - distance / 2) / 0.702, rel=0.2)
    assert log.world.score == 0  # only the hits of birds give points


def test_black_explodes_on_the_tap() -> None:
    x, y = parabola(10, TAP_MS / 1000)
    log = Log(level(*shelf(x + 1.5, y + 1.0), birds=("BirdBlack",))).launch(10, tap_ms=TAP_MS)
    pig = near_pig(log)
    log.step(TAP_STEP - 1)
    assert log.life(pig) == 80
    log.step()
    distance = hypot(1.5, 1.0)
    assert 80 - log.life(pig) == pytest.approx(20 * (1 - distance / 3), abs=0.2)
    assert log.find(log.bird) is None
    log.step()
    assert log.velocity(pig)[0] == pytest.approx(4 * (1 - distance / 3) / 0.702 * 1.5 / distance, rel=0.02)


def test_black_explodes_on_the_tap_in_sailon() -> None:
    """6 damage over the distance."""
    x, y = parabola(10, TAP_MS / 1000)
    log = Log(level(*shelf(x + 1.5, y + 1.0), birds=("BirdBlack",)), "sailon").launch(10, tap_ms=TAP_MS)
    pig = near_pig(log)
    log.step(TAP_STEP)
    assert 5 - log.life(pig) == pytest.approx(6 / hypot(1.5, 1.0), abs=0.1)


@pytest.mark.parametrize(("preset", "fuse"), [("phyq", 30), ("sailon", 50)])
def test_black_explodes_a_while_after_its_first_hit(preset: str, fuse: int) -> None:
    wall = platform(ORIGIN[0] + 3, ORIGIN[1], height=4)
    log = Log(level(wall, birds=("BirdBlack",)), preset).launch(0)
    log.step_until(lambda: log.find(log.bird) is None)
    hit = next(k for k in range(2, 60) if log.velocity(log.bird, k)[0] < 5)
    assert len(log.scenes) - 1 - hit == pytest.approx(fuse, abs=1)


def test_the_fuse_does_damage() -> None:
    wall, pig = platform(ORIGIN[0] + 3, ORIGIN[1], height=4), Item("pig", "BasicBig", ORIGIN[0] + 1.0, -3.5 + 0.485)
    log = Log(level(wall, pig, birds=("BirdBlack",))).launch(0)
    victim = near_pig(log)
    log.step_until(lambda: log.find(log.bird) is None)
    x, y = log.place(log.bird, -2)
    px, py = log.place(victim, -2)
    before = log.find(victim, -2)
    harm = (before.life if before else 0.0) - log.life(victim)
    assert harm == pytest.approx(20 * (1 - hypot(px - x, py - y) / 3), abs=0.5)


# When a tap counts ---------------------------------------------------------------------------------------------------


def fastest(tap_ms: int, *items: Item, bird: str = "BirdYellow", angle: float = 10) -> float:
    log = Log(level(*items, birds=(bird,))).launch(angle, tap_ms=tap_ms).step(60)
    return max(log.speed(log.bird, k) for k in range(1, 60) if log.find(log.bird, k))


@pytest.mark.parametrize("ms", [1, 70, 200, 220])
def test_a_tap_that_comes_too_early_is_lost(ms: int) -> None:
    """The bird's x and its width of 0.56 must be over 2 units from the origin: 2.44 units of way, 0.248 s."""
    assert fastest(ms) < 11  # 10.5 from its fall to the ground


@pytest.mark.parametrize("ms", [260, 400, 700])
def test_a_tap_that_is_late_enough_counts(ms: int) -> None:
    assert fastest(ms) > 16


def test_a_tap_after_a_hit_does_nothing() -> None:
    wall = platform(ORIGIN[0] + 3, ORIGIN[1], height=4)
    assert fastest(340, wall, angle=0) < 11  # it is at the wall after 0.32 s
    assert fastest(260, wall, angle=0) > 16


def test_no_tap_without_a_time() -> None:
    assert fastest(0) < 11
    assert fastest(-5) < 11


def test_taps_come_at_five_seconds_at_the_latest() -> None:
    change = make_change({"no-gravity-for-birds": 1})
    log = Log(level(birds=("BirdYellow",)), change=change).launch(80, tap_ms=60_000).step(260)
    jumps = [k for k in range(2, 260) if log.speed(log.bird, k) - log.speed(log.bird, k - 1) > 1]
    assert jumps == [pytest.approx(251, abs=1)]


def test_a_tap_works_once() -> None:
    log = Log(level(birds=("BirdWhite",))).launch(45, tap_ms=TAP_MS).step(TAP_STEP + 100)
    eggs = {one.id for scene in log.scenes for one in the(scene, "egg")}
    assert len(eggs) == 1


# TNT -----------------------------------------------------------------------------------------------------------------


def tnt_level(distance: float) -> list[Item]:
    """TNT before the slingshot and a big pig over it."""
    tnt = ahead("tnt", "TNT", 1.5)
    x, y = tnt[0].x, tnt[0].y - 0.01
    return [*tnt, *shelf(x, y + distance)]


@pytest.mark.parametrize("distance", [1.5, 2.2, 2.8])
def test_tnt_in_phyq(distance: float) -> None:
    """100 damage and an impulse of 4 at its middle, nothing from 2.5 units on; no points for it."""
    log = Log(level(*tnt_level(distance))).launch(0)
    pig = near_pig(log)
    log.step_until(lambda: not the(log.now, "tnt"), most=40)
    share = max(0.0, 1 - distance / 2.5)
    assert 80 - log.life(pig) == pytest.approx(100 * share, abs=1.5)
    assert log.world.score == 0
    log.step()
    assert log.velocity(pig)[1] == pytest.approx(max(0.0, 4 * share / 0.702 - FALL * STEP), abs=0.15)


@pytest.mark.parametrize("distance", [1.5, 2.5, 3.3])
def test_tnt_in_sailon(distance: float) -> None:
    """6 damage over the distance, half of 4 over the distance as impulse, nothing from 3 units on."""
    log = Log(level(*tnt_level(distance)), "sailon").launch(0)
    pig = near_pig(log)
    before = log.life(pig)
    log.step_until(lambda: not the(log.now, "tnt"), most=40)
    is_near = distance < 3
    assert before - log.life(pig) == pytest.approx(6 / distance * is_near, abs=0.05)
    log.step()
    push = 4 / (2 * distance) / 0.468 - 9.81 * STEP
    assert log.velocity(pig)[1] == pytest.approx(push * is_near, abs=0.15)


def test_tnt_takes_three_damage() -> None:
    """A red bird does 5.61 * v * 0.545: at 0.8 units a second 2.4, at 1.2 it is 3.7."""
    for drop, is_gone in ((0.05, False), (0.2, True)):
        tnt = Item("tnt", "TNT", ORIGIN[0], ORIGIN[1] - 0.2 - 0.32 - drop)
        log = Log(level(tnt, platform(tnt.x, tnt.y - 0.32 - 0.32))).launch(0, 0.0).step(40)
        assert bool(the(log.now, "tnt")) != is_gone


def test_tnt_sets_off_tnt() -> None:
    first = ahead("tnt", "TNT", 1.5)
    second = [Item("tnt", "TNT", first[0].x + 2.0, 0.5), platform(first[0].x + 2.0, 0.5 - 0.33 - 0.32)]
    third = [Item("tnt", "TNT", first[0].x + 2.0, 7.0), platform(first[0].x + 2.0, 7.0 - 0.33 - 0.32)]
    world = Log(level(*first, *second, *third)).launch(0).step(60).world
    # From the first, 2.9 units away, nothing comes; nearer, it does.
    assert len(the(world.scene(), "tnt")) == 2
    second = [Item("tnt", "TNT", first[0].x + 1.0, 0.0), platform(first[0].x + 1.0, 0.0 - 0.33 - 0.32, width=0.5)]
    world = Log(level(*first, *second, *third)).launch(0).step(60).world
    assert [round(one.y) for one in the(world.scene(), "tnt")] == [7]


def test_explosions_do_not_touch_birds() -> None:
    """The bird's bounce off the TNT is its own, with the explosion or where TNT cannot explode."""
    log = Log(level(*ahead("tnt", "TNT", 1.5))).launch(0)
    log.step_until(lambda: not the(log.now, "tnt"), most=40)
    log.step(3)
    assert log.speed(log.bird) < 10.1  # 4 * (1 - 0.5 / 2.5) / 0.545 would be 5.9 more, backwards
    assert log.velocity(log.bird)[0] > -4.4  # of its own it comes back with at most 0.43 of its speed


def test_points_for_blocks_and_pigs_that_an_explosion_destroys() -> None:
    first = ahead("tnt", "TNT", 1.5)
    block = Item("block", "SquareTiny", first[0].x, first[0].y + 1.0, material="ice")
    log = Log(level(*first, block, platform(block.x, block.y - 0.3, width=0.3, height=0.3))).launch(0)
    log.step_until(lambda: not the(log.now, "tnt"), most=40)
    assert log.world.score == 500


def test_angles_of_the_range() -> None:
    """The range's own word for 10 degrees is the game's."""
    log = Log(level()).launch(10).step(1)
    vx, vy = log.velocity(log.bird)
    assert degrees(atan2(vy + FALL * STEP / 2, vx)) == pytest.approx(10, abs=0.1)
