"""The task generator: position of the anchor, objects that move with it, and distractors."""

from dataclasses import replace
from math import cos, pi, sin
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.domains.angrybirds.levels.files import parse, text_of
from nappingrl.domains.angrybirds.levels.placement import (
    RULES,
    Along,
    Boxes,
    Pick,
    PlacementRule,
    Reach,
    ReachLine,
    low_left,
    low_right,
)
from nappingrl.domains.angrybirds.levels.tasks import anywhere, generate, generate_many
from nappingrl.domains.angrybirds.physics.scene import GROUND, Item, Level
from nappingrl.domains.angrybirds.physics.sizes import extent
from nappingrl.errors import BadSpecError, UnknownNameError

PIG = Item("pig", "BasicSmall", 0.0, -2.0)
SHELF = Item("platform", "Platform", 0.1, -2.4, scale_x=2.0, scale_y=0.5)
TEMPLATE = Level(
    "shelf",
    ("BirdRed",),
    (
        Item("block", "SquareHole", -0.5, 0.5, 15.0, "stone"),
        Item("block", "SquareHole", 0.5, 1.5, 0.0, "stone"),
        Item("block", "SquareHole", 0.5, 0.5, 0.0, "wood"),
        Item("block", "CircleSmall", 1.0, 0.0, 0.0, "stone"),
        Item("block", "RectBig", 0.0, 1.0, 0.0, "ice"),
        PIG,
        Item("pig", "BasicBig", 1.0, -1.8),
        SHELF,
    ),
)
"""Holds everything that some rule of the table takes for its anchor."""
RAISED = replace(TEMPLATE, items=tuple(replace(item, y=item.y + 3) for item in TEMPLATE.items))
"""The same so high that every rule has room for it."""
REACH = Reach((-12.0, -2.5))


def tasks(template_id: str, n: int = 60, template: Level = TEMPLATE) -> list[Level]:
    return generate_many(template, template_id, n, seed=5)


def anchors(template_id: str, n: int = 60) -> list[tuple[float, float]]:
    """Where the first pig comes to lie."""
    pig = TEMPLATE.items.index(PIG)
    return [(task.items[pig].x, task.items[pig].y) for task in tasks(template_id, n)]


@pytest.mark.parametrize("point", [(-6.51, 7.10), (0.025, 4.229), (5.231, 0.489), (9.459, -3.494)])
def test_line_of_reach_passes_through_the_published_points(point: tuple[float, float]) -> None:
    assert REACH.height(point[0]) == pytest.approx(point[1], abs=0.05)
    assert REACH.farthest(point[1]) == pytest.approx(point[0], abs=0.12)


@given(st.floats(0.05, 1.5), st.floats(0.0, 4.0))
def test_no_flight_rises_above_the_line_of_reach(angle: float, time: float) -> None:
    """Section by section of time: start one unit behind the origin, 10 units/s, gravity 4.7088."""
    x = -12.15 + (10 * time - 1) * cos(angle)
    y = -1.7 + (10 * time - 1) * sin(angle) - 4.7088 / 2 * time**2
    if x > -12.1:
        assert y <= REACH.height(x) + 1e-9


def test_the_line_of_reach_is_touched_by_a_flight() -> None:
    x = 2.0
    best = -10.0
    for angle in np.linspace(0.2, 1.5, 2000):
        time = ((x + 12.15) / cos(angle) + 1) / 10
        best = max(best, -1.7 + (10 * time - 1) * sin(angle) - 4.7088 / 2 * time**2)
    assert REACH.height(x) == pytest.approx(best, abs=1e-5)
    assert REACH.height(REACH.farthest(-3.0)) == pytest.approx(-3.0)
    with pytest.raises(BadSpecError, match="left of where birds are launched"):
        REACH.height(-13.0)


def test_the_table_has_all_templates() -> None:
    counts: dict[str, int] = {}
    for key in RULES:
        counts[key[:3]] = counts.get(key[:3], 0) + 1
    assert counts == {
        "1_1": 5, "1_2": 5, "2_1": 6, "2_2": 5, "2_3": 5, "2_4": 6, "3_1": 5, "3_2": 4, "3_3": 4, "3_4": 4, "3_5": 5,
        "3_6": 6, "3_7": 5, "3_8": 2, "3_9": 8,
    }  # fmt: skip


@pytest.mark.parametrize("template_id", sorted(RULES))
def test_everything_moves_alike_and_the_blocks_stand_clear_on_the_ground(template_id: str) -> None:
    n = len(RAISED.items)
    for task in tasks(template_id, 8, RAISED):
        kept, added = task.items[:n], task.items[n:]
        shifts = {
            (round(b.x - a.x, 9), round(b.y - a.y, 9))
            for a, b in zip(RAISED.items, kept, strict=True)
            if a.kind == "pig" or template_id not in ("1_1_1", "1_2_1")
        }
        assert len(shifts) == 1
        assert [replace(b, x=a.x, y=a.y) for a, b in zip(RAISED.items, kept, strict=True)] == list(RAISED.items)
        assert (task.birds, task.sling, task.camera) == (RAISED.birds, RAISED.sling, RAISED.camera)
        assert len(added) <= 3
        for i, block in enumerate(added):
            assert block.y - extent(block)[1] / 2 == pytest.approx(GROUND)
            assert -9.96 <= block.x <= 9.397
            assert block.rotation == 0
            for other in (*kept, *added[:i]):
                width, height = extent(other)
                if other.y - height / 2 < -2.5:
                    assert abs(block.x - other.x) >= width / 2 + 1.05 - 1e-9
        assert parse(text_of(task), task.name) == task


def test_sideways_only() -> None:
    places = anchors("1_1_1", 200)
    assert {y for _, y in places} == {-2.0}
    assert -9.96 <= min(places)[0] < -9.5
    assert 8.9 < max(places)[0] <= REACH.farthest(-3.26) < 9.3
    wall = tasks("1_2_1", 20)
    assert all(SHELF in task.items for task in wall)
    assert len({task.items[5].x for task in wall}) == 20


def test_below_the_line() -> None:
    places = anchors("1_1_2", 200)
    assert all(-7 <= x <= 6 and -2.83 <= y <= min(4, REACH.height(x)) for x, y in places)
    assert max(y for _, y in places) > 3.5
    assert max(x for x, _ in places) > 5.5


def test_a_point_on_the_line() -> None:
    shifted = [task.items[7] for task in tasks("2_3_1", 40)]
    for shelf in shifted:
        x, y = shelf.x + 2.44 - SHELF.x, shelf.y + 1.712 - SHELF.y
        assert y == pytest.approx(REACH.height(x))


def test_boxes_without_a_quarter() -> None:
    """x in [-8, 4]: up to -2 only the lower half of y; as many tasks in both halves."""
    places = anchors("1_2_2", 400)
    left = [y for x, y in places if x < -2]
    right = [y for x, y in places if x >= -2]
    assert max(left) <= 0.3
    assert 1.5 < max(right) <= 2
    assert 150 < len(left) < 250
    assert low_right(0, 2, 0, 2) == Boxes(((0, 1.0, 0, 2), (1.0, 2, 0, 1.0)))
    assert low_left(0, 2, 0, 2) == Boxes(((0, 1.0, 0, 1.0), (1.0, 2, 0, 2)))


def test_out_of_reach() -> None:
    """Above y = 0.8 x is 3.4 to 10.4, below it 10.4 to 14.4."""
    for x, y in anchors("2_1_2", 200):
        assert (3.4 <= x <= 10.4 and 0.8 <= y <= 4) or (10.4 <= x <= 14.4 and -2.4 <= y <= 0.8)


@pytest.mark.parametrize(
    ("template_id", "item"),
    [("3_1_1", 0), ("3_2_2", 1), ("3_2_3", 0), ("3_1_6", 2), ("3_1_3", 3), ("3_2_1", 4), ("3_2_4", 7)],
)
def test_anchors_that_are_blocks(template_id: str, item: int) -> None:
    """The first, highest or lowest stone square, the wooden one, the ball, the bar and the platform."""
    pick = RULES[template_id].anchor
    assert isinstance(pick, Pick)
    assert pick.find(TEMPLATE) == (TEMPLATE.items[item].x, TEMPLATE.items[item].y)


def test_nothing_moves_where_only_the_timing_matters() -> None:
    assert all(task.items[: len(TEMPLATE.items)] == TEMPLATE.items for task in tasks("3_8_1", 5))


def test_pigs_and_blocks_are_never_buried() -> None:
    """The line of reach ends at the ground, where what hangs below its point would be in it."""
    low = [min(i.y - extent(i)[1] / 2 for i in task.items if i.kind != "platform") for task in tasks("2_3_1", 400)]
    assert GROUND - 0.05 <= min(low) < GROUND + 0.3


def test_the_same_seed_gives_the_same_tasks() -> None:
    first = generate_many(TEMPLATE, "1_1_2", 4, seed=3)
    assert first == generate_many(TEMPLATE, "1_01_02", 9, seed=3)[:4] == generate_many(TEMPLATE, "1_1_2_1", 4, seed=3)
    assert [task.name for task in first] == [f"1_01_02_0000{i}" for i in (1, 2, 3, 4)]
    assert len({task.items for task in first + generate_many(TEMPLATE, "1_1_2", 4, seed=4)}) == 8
    assert generate(TEMPLATE, "1_1_2", np.random.default_rng(8)) == generate(
        TEMPLATE, "1_1_2", np.random.default_rng(8)
    )


def test_another_slingshot_takes_all_ranges_along() -> None:
    moved = replace(TEMPLATE, sling=(-8.0, -2.5), items=tuple(replace(i, x=i.x + 4) for i in TEMPLATE.items))
    for here, there in zip(tasks("1_1_2", 10), tasks("1_1_2", 10, moved), strict=True):
        assert [i.x + 4 for i in here.items] == pytest.approx([i.x for i in there.items])
        assert [i.y for i in here.items] == [i.y for i in there.items]


def test_a_crowded_ground_gets_fewer_blocks() -> None:
    floor = Item("platform", "Platform", 0.0, -3.3, scale_x=40.0, scale_y=0.1)
    crowded = replace(TEMPLATE, items=(*TEMPLATE.items, floor))
    assert len(tasks("3_8_1", 1, crowded)[0].items) == len(crowded.items)


def test_any_other_template() -> None:
    """The lowest underside is 1 - 0.06 above the ground, so the pig at -2 may come down by that much."""
    rule = anywhere(TEMPLATE)
    assert rule.where == ReachLine(-10.0, 6.0, pytest.approx(-2.94), 4.0)
    levels = generate_many(TEMPLATE, "mine", 50, 1, rule)
    assert levels[49].name == "mine_00050"
    for level in levels:
        for item in level.items:
            assert item.y - extent(item)[1] / 2 >= GROUND - 1e-9
            assert item.x - extent(item)[0] / 2 >= -11.5


def test_what_stands_on_the_ground_stays_there() -> None:
    standing = Level("standing", ("BirdRed",), (replace(PIG, y=-3.275),))
    assert anywhere(standing).where == Along(-9.96, 9.397, height=-3.275)
    assert {level.items[0].y for level in generate_many(standing, "x", 10, 1, anywhere(standing))} == {-3.275}


def test_bad_requests_give_one_clear_line() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(UnknownNameError, match=r"'1_1_3'; known: 1_1_1, 1_1_2, 1_1_4.*anywhere\(template\)"):
        generate(TEMPLATE, "1_1_3", rng)
    with pytest.raises(UnknownNameError, match="from 1_1_1 to 3_9_8"):
        generate(TEMPLATE, "mine", rng)
    with pytest.raises(BadSpecError, match="'empty' has no first stone SquareHole"):
        generate(Level("empty", ("BirdRed",), ()), "3_1_1", rng)
    with pytest.raises(BadSpecError, match="no place for template 'shelf'"):
        generate(TEMPLATE, "mine", rng, PlacementRule(where=ReachLine(0.0, 1.0, 50.0, 60.0)))
    with pytest.raises(BadSpecError, match="n is -1"):
        generate_many(TEMPLATE, "1_1_1", -1, 0)


def test_the_best_angle_to_the_ground_is_that_of_the_published_flight() -> None:
    """Reach 9.445 at 43.6 degrees from the slingshot of the benchmark."""
    assert REACH.farthest(GROUND) == pytest.approx(9.445, abs=0.002)
    angle = 43.6 * pi / 180
    time = ((9.445 + 12.15) / cos(angle) + 1) / 10
    assert -1.7 + (10 * time - 1) * sin(angle) - 4.7088 / 2 * time**2 == pytest.approx(GROUND, abs=0.005)


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = Path(__file__).parents[4] / "docs" / "domains" / "angrybirds-levels.md"
    example = page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(example, page.name, "exec"), {})
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["1_01_02_00001", "1_01_02_00002", "1_01_02_00003"]
    assert capsys.readouterr().out.splitlines()[-1] == "shelf_00001"
