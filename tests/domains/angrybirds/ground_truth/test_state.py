"""The ground truth against numbers computed by hand, and its reader."""

import json
from dataclasses import replace
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.domains.angrybirds.ground_truth.labels import damage_stage, label
from nappingrl.domains.angrybirds.ground_truth.outlines import contours
from nappingrl.domains.angrybirds.ground_truth.raster import CHANNELS, raster
from nappingrl.domains.angrybirds.ground_truth.state import (
    FLOAT_MAX,
    boxes,
    features_of,
    ground_truth,
    payload,
    sling_box,
)
from nappingrl.domains.angrybirds.physics.scene import GROUND, Camera, Scene, Sling, Thing, View
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES
from nappingrl.errors import BadObservationError, UnknownNameError

PHYQ = Sling(-12.485, -3.505, -11.8, -1.45, (-12.15, -1.7))
"""At 640 / 35 = 18.2857 pixels per unit."""
OLD, OLD_CAMERA = Sling(-8.485, -3.505, -7.8, -1.45, (-8.15, -1.7)), Camera(0, 2, 20, 30)
"""At 21.333 pixels per unit."""
DOTS = ((-10.0, 0.0), (-9.0, 1.0), (-8.0, 1.5))


def thing(type_: str, x: float = 0.0, y: float = -1.0, **more: Any) -> Thing:
    known: dict[str, Any] = {
        "id": -7, "kind": "block", "material": "", "angle": 0.0, "scale_x": 1.0, "scale_y": 1.0, "life": 10.0,
        "full_life": 10.0, "colour": "wood", "is_goal": False,
    }  # fmt: skip
    return Thing(type=type_, x=x, y=y, **(known | more))


PIG = thing("BasicSmall", 5.0, -3.2, id=-3, kind="pig", colour="pig")
BIRD = thing("BirdRed", *PHYQ.origin, id=-4, kind="bird", colour="red")
WOOD = thing("RectFat", id=-5, material="wood")
PLATFORM = thing("Platform", 8.0, 2.0, id=-6, kind="platform", colour="platform", life=float("inf"), scale_x=2.0)


def scene(*things: Thing, **more: Any) -> Scene:
    known: dict[str, Any] = {"camera": Camera(), "sling": PHYQ, "dots": (), "view": View(), "next_bird": None}
    return Scene(things=things, **(known | more))


def labels(truth: list[dict[str, Any]]) -> list[str]:
    return [feature["properties"]["label"] for feature in features_of(truth)]


def points(feature: dict[str, Any]) -> list[list[int]]:
    found = feature["geometry"]["coordinates"]
    return found if feature["geometry"]["type"] == "MultiPoint" else [point for ring in found for point in ring]


# ---- outlines -----------------------------------------------------------------------------------------------------

CORNERS = {
    "BasicSmall": [8], "BirdRed": [11], "BirdBlue": [11], "BirdYellow": [19], "BirdWhite": [17], "BirdBlack": [19],
    "Circle": [13], "CircleSmall": [8], "SquareHole": [6, 4], "Triangle": [7], "TriangleHole": [6, 3], "Platform": [4],
    "TNT": [4], "RectBig": [4], "RectMedium": [4], "RectFat": [4], "RectSmall": [4], "RectTiny": [4],
    "SquareSmall": [4], "SquareTiny": [4], "GreenEgg": [4],
}  # fmt: skip


@pytest.mark.parametrize("type_", sorted(SPRITE_SIZES))
def test_an_outline_is_as_big_as_its_picture_and_has_the_corners_of_the_game(type_: str) -> None:
    outer, *holes = contours(thing(type_, 2.0, 3.0))
    xs, ys = zip(*outer, strict=True)
    width, height = SPRITE_SIZES[type_]
    assert (min(xs), max(xs)) == pytest.approx((2 - width / 2, 2 + width / 2))
    assert (min(ys), max(ys)) == pytest.approx((3 - height / 2, 3 + height / 2))
    assert [len(ring) for ring in (outer, *holes)] == CORNERS.get(type_, [len(outer)])
    assert all(abs(x - 2) < width / 2 and abs(y - 3) < height / 2 for ring in holes for x, y in ring)


def test_a_platform_is_stretched_and_then_turned_against_the_clock() -> None:
    (ring,) = contours(thing("Platform", 1.0, 0.0, scale_x=2.0, angle=pi / 2))
    # Half 0.64 by 0.32: bottom left (-0.64, -0.32) comes to (0.32, -0.64).
    assert ring[0] == pytest.approx((1.32, -0.64))


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown type of object 'RectFatt'; .*"):
        contours(thing("RectFatt"))


# ---- the form -----------------------------------------------------------------------------------------------------


def test_ground_and_sling_are_where_the_game_has_them() -> None:
    ground, sling = features_of(ground_truth(scene()))
    assert ground["geometry"] == {}
    assert (ground["properties"]["yindex"], ground["properties"]["colormap"]) == (286, [])
    assert sling["geometry"] == {"type": "Polygon", "coordinates": [[[92, 286], [92, 248], [104, 248], [104, 286]]]}
    assert sling_box(ground_truth(scene())) == (92, 248, 104, 286)
    old = ground_truth(scene(sling=OLD, camera=OLD_CAMERA))
    assert (sling_box(old), features_of(old)[0]["properties"]["yindex"]) == ((139, 314, 154, 357), 357)


def test_a_block_by_hand() -> None:
    # The middle of the screen is (0, -1); half the block is 0.425 x 0.215 units = 7.77 x 3.93 pixels.
    feature = features_of(ground_truth(scene(WOOD)))[2]
    assert feature["geometry"]["coordinates"] == [[[312, 244], [312, 236], [328, 236], [328, 244]]]
    assert feature["properties"]["id"] == "-5"
    assert feature["properties"]["colormap"][0] == {"color": 136, "percent": 0.35}


def test_developers_are_told_labels_and_lives_and_others_are_not() -> None:
    whole = scene(PIG, BIRD, WOOD, PLATFORM, dots=DOTS)
    dev, normal = ground_truth(whole), ground_truth(whole, dev=False)
    fixed = ["Ground", "Slingshot", "Trajectory"]
    assert labels(dev) == [*fixed, "pig_basic_small_1", "bird_red_1", "wood_rect_fat_1", "Platform"]
    assert labels(normal) == [*fixed, *["Object"] * 4]
    lives = [feature["properties"].get("currentLife") for feature in features_of(dev)]
    assert lives == [None, FLOAT_MAX, None, 10.0, 10.0, 10.0, FLOAT_MAX]
    assert all("currentLife" not in feature["properties"] for feature in features_of(normal))


@pytest.mark.parametrize(
    ("type_", "kind", "material", "expected"),
    [
        ("BasicMedium", "pig", "", "pig_basic_medium_1"),
        ("BirdYellow", "bird", "", "bird_yellow_1"),
        ("CircleSmall", "block", "ice", "ice_circle_small_1"),
        ("SquareHole", "block", "stone", "stone_square_hole_1"),
        ("Triangle", "block", "wood", "wood_triang_1"),
        ("TriangleHole", "block", "wood", "wood_triang_hole_1"),
        ("TNT", "tnt", "", "TNT"),
        ("GreenEgg", "block", "novel", "novel_object"),
        ("Bone", "block", "novel", "novel_object"),
    ],
)
def test_labels_are_names_of_the_games_pictures(type_: str, kind: str, material: str, expected: str) -> None:
    assert label(thing(type_, kind=kind, material=material)) == expected


@pytest.mark.parametrize(("life", "stage"), [(10, 1), (6.1, 1), (6, 2), (4, 3), (2, 4), (0, 4), (float("inf"), 1)])
def test_damage_stages(life: float, stage: int) -> None:
    assert damage_stage(thing("RectFat", life=life)) == stage


def test_what_cannot_be_damaged_is_whole() -> None:
    assert damage_stage(thing("Platform", life=float("inf"), full_life=float("inf"))) == 1
    assert damage_stage(thing("RectFat", life=0.0, full_life=0.0)) == 1


def test_the_trajectory_is_there_only_with_dots() -> None:
    assert "Trajectory" not in labels(ground_truth(scene(PIG)))
    trajectory = features_of(ground_truth(scene(dots=((0.0, -1.0), (1.0, -1.0)))))[2]
    assert trajectory["geometry"] == {"type": "MultiPoint", "coordinates": [[320, 240], [338, 240]]}


@pytest.mark.parametrize(
    ("x", "y", "is_seen"),
    [
        (-18.0, 0.0, False), (-17.5, 0.0, True), (18.0, 0.0, False), (17.5, 0.0, True),
        (0.0, 12.5, False), (0.0, 12.1, True), (0.0, GROUND - 0.3, False), (0.0, GROUND, True),
    ],
)  # fmt: skip
def test_things_beyond_an_edge_or_under_the_ground_are_left_out(x: float, y: float, is_seen: bool) -> None:
    assert bool(boxes(ground_truth(scene(replace(WOOD, x=x, y=y))))) == is_seen


def test_the_payload_is_compact_json_with_a_tail_of_five_bytes() -> None:
    whole = scene(PIG, BIRD, WOOD, PLATFORM, dots=DOTS)
    sent = payload(whole)
    assert sent[-5:] == b"     "
    assert json.loads(sent[:-5]) == ground_truth(whole)
    assert b" " not in sent[:-5]
    assert b"\n" not in sent


def test_the_example_of_the_docs_is_what_comes_out() -> None:
    page = Path(__file__).parents[4] / "docs" / "domains" / "angrybirds-state.md"
    example = page.read_text().split("```json\n")[1].split("```")[0]
    assert json.loads(example) == ground_truth(scene(PIG, replace(WOOD, life=5.0), dots=DOTS[:2]))


# ---- noise --------------------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32))
def test_noise_moves_whole_things_and_single_dots_by_a_pixel_but_no_birds(seed: int) -> None:
    whole = scene(PIG, BIRD, WOOD, PLATFORM, dots=DOTS)
    exact = features_of(ground_truth(whole))
    noisy = features_of(ground_truth(whole, noise=np.random.default_rng(seed)))
    assert [noisy[i] for i in (0, 1, 4)] == [exact[i] for i in (0, 1, 4)]  # ground, sling, bird
    for was, now in zip(exact[2:], noisy[2:], strict=True):
        moves = {(b[0] - a[0], b[1] - a[1]) for a, b in zip(points(was), points(now), strict=True)}
        assert moves <= {(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)}
        assert len(moves) == 1 or was["geometry"]["type"] == "MultiPoint"
        shares = [entry["percent"] for entry in now["properties"]["colormap"]]
        assert sum(shares) == pytest.approx(1 if shares else 0)
        assert shares == pytest.approx([entry["percent"] for entry in was["properties"]["colormap"]], rel=0.021)


def test_the_length_of_a_shift_is_a_clamped_normal_in_any_direction() -> None:
    # Integrated over the length (a sixth of it at 1), a component rounds to 0 in 73.1 % of the draws.
    n = 4000
    truth = ground_truth(scene(dots=((0.0, -1.0),) * n), noise=np.random.default_rng(1))
    moves = np.array(points(features_of(truth)[2])) - [320, 240]
    assert np.abs(moves.mean(0)).max() < 0.04
    assert (moves == 0).mean(0) == pytest.approx([0.731, 0.731], abs=0.02)


# ---- changes of the view ------------------------------------------------------------------------------------------


def test_circles_instead_of_shapes() -> None:
    truth = ground_truth(scene(BIRD, WOOD, view=View(circumcircle=True)))
    _, sling, _, block = features_of(truth)
    # Half diagonals: 0.4763 units = 8.71 pixels; 1.0831 units = 19.81 pixels.
    assert block["geometry"] == {"type": "Circle", "center": [320, 240], "radius": 9}
    assert sling["geometry"] == {"type": "Circle", "center": [98, 267], "radius": 20}
    seen = boxes(truth)[1]
    assert seen.box == (311, 231, 329, 249)
    assert sling_box(truth) == (78, 247, 118, 287)


def test_noise_moves_circles_too() -> None:
    whole = scene(*[replace(WOOD, id=-i) for i in range(1, 40)], view=View(circumcircle=True))
    noisy = features_of(ground_truth(whole, noise=np.random.default_rng(2)))[2:]
    assert len({tuple(feature["geometry"]["center"]) for feature in noisy}) > 3


def test_grayscale_takes_the_colours_away() -> None:
    seen = boxes(ground_truth(scene(PIG, WOOD, view=View(grayscale=True))))
    assert [one.colour for one in seen] != ["pig", "wood"]
    for feature in features_of(ground_truth(scene(PIG, WOOD, view=View(grayscale=True))))[2:]:
        codes = [entry["color"] for entry in feature["properties"]["colormap"]]
        assert all(code >> 5 == code >> 2 & 7 for code in codes)


@pytest.mark.parametrize("is_circle", [False, True])
def test_a_turned_screen_turns_everything_about_its_centre(is_circle: bool) -> None:
    whole = scene(PIG, BIRD, WOOD, PLATFORM, dots=DOTS, view=View(circumcircle=is_circle))
    turned = replace(whole, view=replace(whole.view, rotation=180))
    upright, around = (features_of(ground_truth(view)) for view in (whole, turned))
    assert around[0]["properties"]["yindex"] == 480 - 286
    for was, now in zip(upright[1:], around[1:], strict=True):
        if was["geometry"]["type"] == "Circle":
            x, y = was["geometry"]["center"]
            assert now["geometry"] == was["geometry"] | {"center": [640 - x, 480 - y]}
        else:
            assert points(now) == [[640 - x, 480 - y] for x, y in points(was)]
        assert now["properties"] == was["properties"]


# ---- readers ------------------------------------------------------------------------------------------------------


def test_readers_see_ids_colours_and_boxes_in_order() -> None:
    seen = boxes(ground_truth(scene(PIG, BIRD, WOOD, PLATFORM, dots=DOTS), dev=False))
    assert [(one.id, one.colour) for one in seen] == [(-3, "pig"), (-4, "red"), (-5, "wood"), (-6, "platform")]
    assert seen[2].box == (312, 236, 328, 244)


def test_things_coloured_like_pigs_are_seen_as_pigs() -> None:
    painted = [replace(one, colour="pig") for one in (PIG, BIRD, WOOD)]
    seen = boxes(ground_truth(scene(*painted)))
    assert [one.colour for one in seen] == ["pig"] * 3
    assert [one.label for one in seen] == ["pig_basic_small_1", "bird_red_1", "wood_rect_fat_1"]


def test_readers_say_what_is_wrong() -> None:
    truth = ground_truth(scene(WOOD))
    del features_of(truth)[1]
    with pytest.raises(BadObservationError, match="without a Slingshot"):
        sling_box(truth)
    features_of(truth)[1]["geometry"]["type"] = "Point"
    with pytest.raises(BadObservationError, match="object -5 is a 'Point'; allowed: Polygon, Circle"):
        boxes(truth)
    with pytest.raises(BadObservationError, match="one FeatureCollection"):
        boxes([])


# ---- the raster ---------------------------------------------------------------------------------------------------


def boxed(x0: int, y0: int, x1: int, y1: int, colour: str = "wood") -> list[dict[str, Any]]:
    """A ground truth with one box."""
    truth = ground_truth(scene(replace(WOOD, colour=colour)))
    features_of(truth)[2]["geometry"]["coordinates"] = [[[x0, y1], [x0, y0], [x1, y0], [x1, y1]]]
    return truth


@given(st.integers(1, 640), st.integers(1, 480))
def test_a_coordinate_falls_between_its_two_points(x: int, y: int) -> None:
    across, down = np.linspace(0, 640, 160), np.linspace(0, 480, 120)
    rows, columns = np.nonzero(raster(boxed(x, y, x, y))[CHANNELS.index("wood")])
    assert rows.size == 1
    assert across[columns[0]] < x <= across[columns[0] + 1]
    assert down[rows[0]] < y <= down[rows[0] + 1]


def test_boxes_are_filled_clipped_and_put_into_their_channel() -> None:
    picture = raster(boxed(-20, 0, 9, 5, "ice"))
    assert picture.shape == (12, 120, 160)
    assert picture.dtype == np.float32
    # Points lie 4.025 pixels apart across and 4.034 down: 9 is in bin 2, 5 in bin 1.
    assert picture[CHANNELS.index("ice")].sum() == 3 * 2
    assert picture[CHANNELS.index("ice"), :2, :3].all()
    # The sling from (92, 248) to (104, 286): bins 22 to 25 across, 61 to 70 down.
    assert picture[0].sum() == picture[0, 61:71, 22:26].sum() == 40
    assert picture[1:].sum() == 6


def test_an_unknown_colour_is_drawn_as_tnt() -> None:
    assert raster(boxed(300, 200, 310, 210, "bone"))[CHANNELS.index("tnt")].any()


def test_platforms_are_drawn_in_developer_mode_too() -> None:
    assert raster(ground_truth(scene(PLATFORM)))[CHANNELS.index("platform")].any()
