"""The seven templates: repeatable, in the world, stable, and in variants that need different shots."""

from functools import cache
from itertools import product

import pytest

from nappingrl.domains.angrybirds.acceptance.measuring import Measured, measure
from nappingrl.domains.angrybirds.actions import N_SLOTS, split
from nappingrl.domains.angrybirds.aiming import Targets, aim_at, release_point
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level
from nappingrl.domains.angrybirds.levels.templates.flights import ROUND, TALLER, USUAL, aim
from nappingrl.domains.angrybirds.novelties import PAPER_NOVELTIES, make_change
from nappingrl.domains.angrybirds.physics.scene import GROUND, Item, Level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.errors import BadSpecError
from nappingrl.trials.limits import MAX_COUNT

NUMBERS = range(300, 308)
"""One level of each variant, or more."""


def first_possible(observation: object) -> int:
    """In place of DataLab, which is not asked here."""
    return 0


@cache
def measured(name: str, is_after: bool) -> list[Measured]:
    """The first variants; `test_acceptance` has more."""
    n = len(TEMPLATES[name])
    return [measure(name, number, is_after, first_possible) for number in range(n, n + 4)]


def test_there_is_one_for_each_of_the_paper_s_novelties() -> None:
    assert tuple(TEMPLATES) == PAPER_NOVELTIES
    assert LEVELS == 350
    assert all(len(variants) >= 4 for variants in TEMPLATES.values())


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_level_is_the_same_for_the_same_number(name: str) -> None:
    assert make_level(name, 5) == make_level(name, 5)
    assert make_level(name, 5).spots == make_level(name, 5).spots
    assert make_level(name, 5).items != make_level(name, 6).items
    assert make_level(name, 5).items != make_level(name, 5, seed=1).items


@pytest.mark.parametrize("name", TEMPLATES)
def test_levels_are_in_the_world(name: str) -> None:
    """All is over the ground, right of the slingshot, on the screen; one to three pigs, one to four birds."""
    levels = [make_level(name, number) for number in range(LEVELS)]
    assert len({level.items for level in levels}) == LEVELS
    for level in levels:
        assert 1 <= len(level.birds) <= 4
        assert 1 <= sum(item.kind == "pig" for item in level.items) <= 3
        assert len(level.items) + len(level.spots) <= N_SLOTS
        for item in level.items:
            assert -10 < item.x < 17
            assert GROUND - 1 < item.y < 8
            assert item.kind == "platform" or item.y > GROUND


def test_no_level_of_a_negative_number() -> None:
    with pytest.raises(BadSpecError, match="-1"):
        make_level("bone", -1)


def test_a_level_of_the_largest_number() -> None:
    assert make_level("bone", MAX_COUNT).name.endswith(str(MAX_COUNT))


@pytest.mark.parametrize(("name", "strength"), list(product(TEMPLATES, (0.0, 1.0))))
def test_a_level_stands(name: str, strength: float) -> None:
    """Nothing falls, rolls away or dies in five seconds after loading; but wood floats up."""
    for number in NUMBERS:
        world = World(make_level(name, number), change=make_change({name: strength}))
        before = {one.id: one for one in world.scene().things}
        drawn = {(item.kind, round(item.x, 3)): item for item in world.level.items}
        world.step(250)
        after = {one.id: one for one in world.scene().things}
        assert after.keys() == before.keys()
        assert not world.is_moving
        for one in after.values():
            assert one.life == one.full_life
            was = before[one.id]
            assert (one.x, one.y) == pytest.approx((was.x, was.y), abs=0.05)
        if not (strength and name == "floating-wood"):
            for item in drawn.values():
                near = [one for one in after.values() if one.kind == item.kind and abs(one.x - item.x) < 0.1]
                assert any(abs(one.y - item.y) < 0.1 for one in near)


@pytest.mark.parametrize(("name", "novel"), [("green-egg", "GreenEgg"), ("bone", "Bone")])
def test_a_novelty_uses_the_spots_of_a_level(name: str, novel: str) -> None:
    for number in NUMBERS:
        level = make_level(name, number)
        places = [(item.x, item.is_goal) for item in make_change({name: 1.0}).level(level).items if item.type == novel]
        assert places == [(x, name == "bone") for x, _ in level.spots]


@pytest.mark.parametrize(("name", "is_after"), list(product(TEMPLATES, (False, True))))
def test_variants_need_different_shots(name: str, is_after: bool) -> None:
    levels = measured(name, is_after)
    assert all(level.found > 0 for level in levels)
    everywhere = set.intersection(*(set(level.repeated) for level in levels))
    assert not everywhere, [split(action) for action in everywhere]


@pytest.mark.parametrize("name", TEMPLATES)
def test_some_shots_fail_after_the_novelty(name: str) -> None:
    """But Pig Color changes nothing for agents that read labels."""
    before, after = ([set(level.repeated) for level in measured(name, is_after)] for is_after in (False, True))
    if name == "pig-color":
        assert before == after
    else:
        assert any(old - new for old, new in zip(before, after, strict=True))


@pytest.mark.parametrize("look", [TALLER, ROUND])
def test_a_misjudged_slingshot_shoots_short(look: str) -> None:
    usual, misjudged = aim(0.0, -2.0, look=USUAL), aim(0.0, -2.0, look=look)
    assert usual is not None
    assert misjudged is not None
    at, short = usual.lands(-2.0), misjudged.lands(-2.0)
    assert at is not None
    assert short is not None
    assert abs(at) < 1.0
    assert short < at - 1.0


def test_a_flight_goes_where_the_bird_goes() -> None:
    """The parabola that templates compute is the one that a bird flies in the world."""
    flight = aim(2.0, -1.0)
    assert flight is not None
    world = World(Level("open", ("BirdRed",), (Item("pig", "BasicMedium", 2.0, -3.12),)))
    targets = Targets()
    targets.update(ground_truth(world.scene()))
    left, top = world.level.camera.to_pixels(2.0, -1.0)
    shot = aim_at((left, top), 0, "red", "official", targets.sling, 1.0)
    world.shoot(release_point(shot, world.scene()))
    assert len(world.dots) > 5
    for x, y in world.dots:
        assert y == pytest.approx(flight.height(x), abs=0.05)
