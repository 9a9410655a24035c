"""The seven templates: stable, solvable before the novelty, and solvable after it only in another way."""

from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest

from nappingrl.domains.angrybirds.actions import ACTION_NAMES, join, split
from nappingrl.domains.angrybirds.aiming import Targets, release_point
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.levels.templates import LEVELS, TEMPLATES, make_level
from nappingrl.domains.angrybirds.novelties import PAPER_NOVELTIES, make_change
from nappingrl.domains.angrybirds.physics.scene import GROUND
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.errors import BadSpecError

NUMBERS = (0, 7, 349)
FIRST = ACTION_NAMES.index("object 1 low +0")
LOW, HIGH = 0, 1


def status_after(name: str, number: int, strength: float, actions: tuple[int, ...], planner: str = "official") -> str:
    """Play a level by these actions, one per bird."""
    world = World(make_level(name, number), change=make_change({name: strength}))
    targets = Targets()
    for action in actions:
        scene = world.scene()
        targets.update(ground_truth(scene))
        world.shoot(release_point(targets.aim(action, planner), scene))
    return world.status


def plans(name: str, number: int) -> Iterator[tuple[int, ...]]:
    """Actions in the order of how likely they help: other objects straight, then offsets."""
    targets = Targets()
    targets.update(ground_truth(World(make_level(name, number), change=make_change({name: 1.0})).scene()))
    there = targets.mask().nonzero()[0].tolist()
    singles = sorted(there, key=lambda action: (abs(split(action)[2]), split(action)[1], split(action)[0]))
    if name == "bone":  # two birds: the pig as ever, then the bone
        return ((FIRST, action) for action in singles)
    return ((action,) for action in singles)


@cache
def way_out(name: str, number: int) -> tuple[int, ...] | None:
    """Actions that solve a level after its novelty."""
    return next((plan for plan in plans(name, number) if status_after(name, number, 1.0, plan) == "won"), None)


def usual(name: str) -> tuple[int, ...]:
    return (FIRST,) * TEMPLATES[name][1]


def test_there_is_one_for_each_of_the_paper_s_novelties() -> None:
    assert tuple(TEMPLATES) == PAPER_NOVELTIES
    assert LEVELS == 350


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_level_is_the_same_for_the_same_number(name: str) -> None:
    assert make_level(name, 5) == make_level(name, 5)
    assert make_level(name, 5).items != make_level(name, 6).items
    assert make_level(name, 5).items != make_level(name, 5, seed=1).items


def test_all_levels_of_a_template_differ() -> None:
    for name in TEMPLATES:
        levels = [make_level(name, number) for number in range(LEVELS)]
        assert len({level.items for level in levels}) == LEVELS
        assert len({level.name for level in levels}) == LEVELS


@pytest.mark.parametrize("name", TEMPLATES)
def test_levels_are_in_the_world(name: str) -> None:
    """All is over the ground, right of the slingshot, on the screen; one pig, and birds."""
    for number in range(0, LEVELS, 10):
        level = make_level(name, number)
        assert level.birds
        assert sum(item.kind == "pig" for item in level.items) == 1
        for item in level.items:
            assert -10 < item.x < 17
            assert GROUND < item.y < 8


def test_no_level_of_a_negative_number() -> None:
    with pytest.raises(BadSpecError, match="-1"):
        make_level("bone", -1)


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


@pytest.mark.parametrize(("name", "number"), list(product(TEMPLATES, NUMBERS)))
def test_the_usual_shot_solves_a_level_before_and_not_after_the_novelty(name: str, number: int) -> None:
    assert status_after(name, number, 0.0, usual(name)) == "won"
    assert status_after(name, number, 1.0, usual(name)) == "lost"


@pytest.mark.parametrize(("name", "number"), list(product(TEMPLATES, NUMBERS)))
def test_another_choice_solves_it_after_the_novelty(name: str, number: int) -> None:
    plan = way_out(name, number)
    assert plan is not None
    assert plan != usual(name)


@pytest.mark.parametrize("name", ["green-egg", "pig-color"])
def test_the_pig_is_another_object(name: str) -> None:
    """The same trajectory to the pig, which now has another number: the second green one, and
    after a block, the roof and the ledge the fourth."""
    slot = {"green-egg": 1, "pig-color": 3}[name]
    won = [status_after(name, number, 1.0, (join(slot, LOW, 0),)) for number in NUMBERS]
    assert won.count("won") == len(NUMBERS)


def test_the_high_trajectory_goes_over_floating_wood() -> None:
    ways = {split(action)[1] for number in NUMBERS for action in way_out("floating-wood", number) or ()}
    assert HIGH in ways


def test_the_bone_takes_the_second_bird() -> None:
    for number in NUMBERS:
        plan = way_out("bone", number)
        assert plan is not None
        assert len(plan) == 2


def test_a_bird_that_likes_pigs_needs_another_object() -> None:
    for number in NUMBERS:
        plan = way_out("bird-likes-pig", number)
        assert plan is not None
        assert split(plan[0])[0] != 0


@pytest.mark.parametrize("name", TEMPLATES)
def test_levels_can_be_solved_before_by_the_exact_planner_too(name: str) -> None:
    for number in NUMBERS:
        assert status_after(name, number, 0.0, usual(name), "exact") == "won"
