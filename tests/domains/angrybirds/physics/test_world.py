"""The world against published numbers: flight, scores, the end of a level."""

from math import atan2, hypot, pi, sqrt

import pytest

from domains.angrybirds.birds_range import (
    FALL,
    ORIGIN,
    STEP,
    Log,
    ahead,
    backwards,
    level,
    parabola,
    platform,
    release,
    the,
)  # fmt: skip
from nappingrl.domains.angrybirds.levels.templates import make_level
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.physics.scene import BIRDS, Item
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.errors import BadSpecError, UnknownNameError

# Flight --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["phyq", "sailon"])
@pytest.mark.parametrize("bird", BIRDS)
@pytest.mark.parametrize(("degrees", "drawn"), [(10.0, 1.0), (43.6, 1.0), (75.0, 1.0), (30.0, 0.5)])
def test_flight_is_the_published_one_for_every_bird(preset: str, bird: str, degrees: float, drawn: float) -> None:
    log = Log(level(birds=(bird,)), preset).launch(degrees, drawn).step(10)
    places = [log.place(log.bird, k) for k in range(11)]
    (x0, y0), (x1, y1), (x2, y2) = places[0], places[5], places[10]
    t = 5 * STEP
    gravity = -(y2 - 2 * y1 + y0) / t**2
    launch = (x1 - x0) / t, (y1 - y0) / t + gravity * t / 2
    assert gravity == pytest.approx(4.7088, rel=0.005)
    assert x2 - 2 * x1 + x0 == pytest.approx(0, abs=1e-5)  # no drag
    assert hypot(*launch) == pytest.approx(10 * drawn, rel=0.005)
    assert atan2(launch[1], launch[0]) == pytest.approx(degrees * pi / 180, abs=0.002)
    assert places[0] == pytest.approx(parabola(degrees, 0, drawn), abs=1e-5)


def test_full_reach_from_the_phyq_sling() -> None:
    log = Log(level()).launch(43.6)
    log.step_until(lambda: log.place(log.bird)[1] < -3.0)
    (x, y), (vx, vy) = log.place(log.bird), log.velocity(log.bird)
    vy -= FALL * STEP / 2  # from the middle of the step to its end
    t = (vy + sqrt(vy * vy + 2 * FALL * (y + 3.5))) / FALL  # on through the ground, to y = -3.5
    assert x + vx * t == pytest.approx(9.445, rel=0.005)


def test_the_best_angle_is_that_of_the_greatest_reach() -> None:
    def landing(degrees: float) -> float:
        log = Log(level()).launch(degrees)
        log.step_until(lambda: log.place(log.bird)[1] < -3.2)
        (x1, y1), (x0, y0) = log.place(log.bird), log.place(log.bird, -2)
        return x1 + (x0 - x1) * (-3.2 - y1) / (y0 - y1)

    best = landing(43.6)
    assert best > landing(41.0)
    assert best > landing(46.2)


def test_a_draw_over_one_unit_is_a_full_draw() -> None:
    places = []
    for drawn in (1.0, 7.0):
        world = World(level())
        world.launch(release(30.0, drawn))
        world.step(20)
        places.append(the(world.scene(), "bird")[0])
    assert (places[0].x, places[0].y) == pytest.approx((places[1].x, places[1].y), abs=1e-4)


def test_drawing_takes_a_second() -> None:
    world = World(level())
    before = world.time
    world.launch(release(45))
    assert world.time - before == pytest.approx(1.0)


def test_dots_every_tenth_of_a_second_until_the_first_hit() -> None:
    log = Log(level(platform(ORIGIN[0] + 5, ORIGIN[1], height=6))).launch(0)
    log.step(100)
    # 5.8 units to the platform, less the bird's radius: it hits 0.52 to 0.54 s after its release.
    assert len(log.now.dots) == 5
    for k, dot in enumerate(log.now.dots, 1):
        assert dot == pytest.approx(parabola(0, 0.1 * k), abs=0.005)


def test_dots_are_those_of_the_last_flight() -> None:
    world = World(level(birds=("BirdRed", "BirdRed")))
    world.shoot(release(40))
    first = world.scene().dots
    world.shoot(release(70))
    assert first[0] == pytest.approx(parabola(40, 0.1), abs=0.005)
    assert world.scene().dots[0] == pytest.approx(parabola(70, 0.1), abs=0.005)


def test_birds_do_not_touch_birds() -> None:
    """A shot backwards and low, through the places where others wait, is the same as without them."""
    flights = []
    for n_birds in (1, 5):
        log = Log(level(birds=("BirdRed",) * n_birds)).launch(180 + 25).step(40)
        flights.append([log.place(log.bird, k) for k in range(41)])
    assert flights[0] == flights[1]
    assert min(y for _, y in flights[0]) < -3.2


# Scores and ends -----------------------------------------------------------------------------------------------------


def test_points_for_a_destroyed_block() -> None:
    log = Log(level(*ahead("block", "SquareSmall", 1.0, "ice"))).launch(0)
    block = the(log.now, "block")[0]
    log.step_until(lambda: log.find(block.id) is None, most=30)
    assert log.world.score == 500


def test_unused_birds_count_when_won() -> None:
    world = World(level(*ahead("pig", "BasicSmall", 1.0), birds=("BirdRed",) * 3, has_far_pig=False))
    assert world.shoot(release(0))
    assert (world.status, world.score, world.birds_left) == ("won", 5000 + 2 * 10000, 2)
    assert not world.shoot(release(0))
    assert not world.launch(release(0))
    assert world.score == 25000


def test_lost_when_the_last_bird_is_gone() -> None:
    world = World(level(birds=("BirdRed", "BirdBlue")))
    assert backwards(world)
    assert (world.status, world.birds_left) == ("playing", 1)
    assert backwards(world)
    assert (world.status, world.birds_left, world.score, world.pigs_left) == ("lost", 0, 0, 1)
    assert not backwards(world)


def test_the_last_bird_wins_by_what_is_still_falling() -> None:
    """The bird is gone after half a second, the pig lands two seconds later: won, not lost."""
    log = Log(level(Item("pig", "BasicSmall", 0.0, 60.0), has_far_pig=False)).launch(180 - 10)
    log.step_until(lambda: log.find(log.bird) is None)
    assert (log.world.birds_left, log.world.pigs_left, log.world.status) == (0, 1, "playing")
    log.world.settle()
    assert (log.world.status, log.world.score) == ("won", 5000)


def test_out_of_the_world_is_dead_without_points() -> None:
    """A pig on a slope at the right edge rolls out: 17.5 and half its width."""
    pig = Item("pig", "BasicBig", 17.0, 5.0)
    world = World(level(pig, platform(17.0, 4.0, width=3, rotation=-25), birds=("BirdRed",) * 2, has_far_pig=False))
    assert world.pigs_left == 0
    assert world.score == 0
    assert not the(world.scene(), "pig")
    backwards(world)
    assert (world.status, world.score) == ("won", 10000)


def test_a_thing_half_over_the_edge_lives() -> None:
    shelf = platform(17.0, 3.0, width=2)
    world = World(level(Item("pig", "BasicBig", 17.5 + 0.3, 3.0 + 0.32 + 0.485), shelf, has_far_pig=False))
    assert world.pigs_left == 1


def test_a_bird_that_leaves_sideways_is_gone_at_once() -> None:
    log = Log(level()).launch(180 - 10)
    log.step_until(lambda: log.find(log.bird) is None)
    x, _ = log.place(log.bird, -2)
    assert -17.5 - 0.225 - 0.2 <= x - 0.2 <= -17.5 - 0.225 + 0.05
    assert log.world.status == "lost"


def test_a_bird_is_taken_away_three_seconds_after_its_hit_at_the_earliest() -> None:
    log = Log(level(platform(ORIGIN[0] + 5, ORIGIN[1], height=6))).launch(0)
    log.step_until(lambda: log.find(log.bird) is None, most=1100)
    hit = next(k for k in range(2, 60) if log.velocity(log.bird, k)[0] < 5)
    after = len(log.scenes) - 1 - hit
    assert after >= 149
    assert min(after % 50, -after % 50) <= 2  # looked at once a second
    x0, x1 = log.place(log.bird, -2), log.place(log.bird, -3)
    assert hypot(x0[0] - x1[0], x0[1] - x1[1]) < 0.001 * STEP * 2


def test_a_bird_is_taken_away_twenty_seconds_after_its_launch() -> None:
    log = Log(level(), change=make_change({"no-gravity-for-birds": 1})).launch(90)
    log.step_until(lambda: log.find(log.bird) is None, most=1100)
    assert len(log.scenes) - 1 == pytest.approx(1000, abs=1)


def test_a_shot_is_refused_while_a_bird_flies() -> None:
    world = World(level(birds=("BirdRed", "BirdRed")))
    assert world.launch(release(45))
    world.step(5)
    assert not world.launch(release(45))
    assert world.birds_left == 1


def test_where_birds_wait() -> None:
    world = World(level(birds=("BirdRed", "BirdBlack", "BirdYellow")))
    x, y = ORIGIN
    places = [(one.x, one.y) for one in the(world.scene(), "bird")]
    assert places[0] == pytest.approx((x, y))
    assert places[1] == pytest.approx((x - 1.75 * 0.64, -3.5 + 0.43))
    assert places[2] == pytest.approx((x - 2 * 1.75 * 0.56, -3.5 + 0.265))


def test_birds_wait_where_they_are_while_others_are_shot() -> None:
    world = World(level(birds=("BirdRed", "BirdBlack", "BirdYellow")))
    before = {one.id: (one.x, one.y) for one in the(world.scene(), "bird")}
    red, black, yellow = before
    world.launch((ORIGIN[0] + 1, ORIGIN[1] - 0.2))
    world.step(3)
    during = {one.id: (one.x, one.y) for one in the(world.scene(), "bird")}
    assert (during[black], during[yellow]) == (before[black], before[yellow])
    world.settle()
    after = {one.id: (one.x, one.y) for one in the(world.scene(), "bird")}
    assert after == {black: pytest.approx(ORIGIN), yellow: before[yellow]}
    assert red not in after
    assert world.scene().next_bird == black


def test_ids_are_negative_and_stay() -> None:
    world = World(level(*ahead("block", "Circle", 1.0, "stone"), birds=("BirdRed", "BirdRed")))
    before = [one.id for one in world.scene().things]
    world.shoot(release(0))
    after = [one.id for one in world.scene().things]
    assert len(set(before)) == len(before)
    assert all(id_ < 0 for id_ in before)
    assert set(after) <= set(before)


def test_order_of_the_ground_truth() -> None:
    items = [
        platform(0, 3), Item("tnt", "TNT", -6, -3.17), Item("block", "RectFat", -4, -3.28, material="wood"),
        Item("block", "Circle", -2, -3.1, material="ice"), Item("pig", "BasicMedium", 2, -3.1),
        Item("pig", "BasicSmall", 4, -3.2),
    ]  # fmt: skip
    scene = World(level(*items, birds=("BirdRed", "BirdBlue"))).scene()
    assert [one.type for one in scene.things] == [
        "BasicSmall", "BasicBig", "BasicMedium", "BirdRed", "BirdBlue", "Circle", "RectFat", "TNT",
        "Platform", "Platform",
    ]  # fmt: skip


def test_the_world_stands_still_between_shots() -> None:
    world = World(make_level("pig-color", 0))
    before = world.scene()
    world.step(250)
    assert world.scene() == before


def test_wrong_names() -> None:
    with pytest.raises(UnknownNameError, match="phyq"):
        World(level(), "phyk")
    with pytest.raises(BadSpecError, match="novel_object_3"):
        World(level(Item("block", "novel_object_3", 0, 0)))
