"""Pictures agree with the ground truth and show all details of a scene."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.ground_truth.palette import PAINTS
from nappingrl.domains.angrybirds.ground_truth.state import boxes, ground_truth
from nappingrl.domains.angrybirds.physics.scene import (
    BIRDS,
    BLOCKS,
    MATERIALS,
    NOVEL,
    PIGS,
    Camera,
    Scene,
    Sling,
    Thing,
    View,
)
from nappingrl.domains.angrybirds.pictures.picture import draw
from nappingrl.errors import BadSpecError

SLING = Sling(-12.485, -3.505, -11.8, -1.45, (-12.15, -1.7))
CLOSE = Camera(0.0, -1.0, 4.0, 6.0)
"""Where details can be told: 107 pixels per unit."""
LOOKS = [
    *[(type_, "bird", "", type_.removeprefix("Bird").lower()) for type_ in BIRDS],
    *[(type_, "pig", "", "pig") for type_ in PIGS],
    *[(type_, "block", material, material) for type_ in BLOCKS for material in MATERIALS],
    *[(type_, "block", "novel", colour) for type_, colour in zip(NOVEL, ("pig", "bone"), strict=True)],
    ("TNT", "tnt", "", "tnt"),
    ("Platform", "platform", "", "platform"),
    ("Egg", "egg", "", "white"),
]


def thing(type_: str, kind: str = "block", material: str = "", colour: str = "", **more: Any) -> Thing:
    known: dict[str, Any] = {
        "id": -2, "x": 0.0, "y": -1.0, "angle": 0.0, "scale_x": 1.0, "scale_y": 1.0, "life": 10.0, "full_life": 10.0,
        "is_goal": False,
    }  # fmt: skip
    return Thing(type=type_, kind=kind, material=material, colour=colour or material, **(known | more))


def scene(*things: Thing, **more: Any) -> Scene:
    known: dict[str, Any] = {"camera": CLOSE, "sling": SLING, "dots": (), "view": View(), "next_bird": None}
    return Scene(things=things, **(known | more))


def changed(one: NDArray[np.uint8], two: NDArray[np.uint8]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (one != two).any(-1)
    return found


@pytest.mark.parametrize(("type_", "kind", "material", "colour"), LOOKS)
def test_a_thing_is_painted_in_its_colours_where_the_ground_truth_says(
    type_: str, kind: str, material: str, colour: str
) -> None:
    shown = scene(thing(type_, kind, material, colour, angle=0.4))
    (box,) = boxes(ground_truth(shown))
    picture = draw(shown)
    rows, columns = np.nonzero(changed(picture, draw(scene())))
    edges = np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
    # Round things are drawn rounder, eyebrows may stick out, and turned ovals reach less far than turned polygons.
    assert np.abs(edges - list(box.box)).max() <= 10
    shades = PAINTS[colour].shades
    own = np.array([shades.base, shades.light, shades.dark, shades.line, shades.accent, shades.mark])
    far = np.abs(picture[rows, columns][:, None].astype(int) - own).sum(-1).min(-1)
    assert (far <= 12).mean() > 0.55  # the rest: eyes, and the edges between two shades


def test_the_size_follows_the_scale() -> None:
    assert draw(scene()).shape == (480, 640, 3)
    assert draw(scene(), 2).shape == (960, 1280, 3)
    assert draw(scene()).dtype == np.uint8
    with pytest.raises(BadSpecError, match="scale is 0; allowed: 1 to 4"):
        draw(scene(), 0)


def test_one_can_look_through_a_hole() -> None:
    for type_ in ("SquareHole", "TriangleHole"):
        is_changed = changed(draw(scene(thing(type_, material="wood"))), draw(scene()))
        assert not is_changed[243:250, 317:323].any()
        assert is_changed.any()


def test_every_stage_of_damage_looks_different() -> None:
    for type_, kind, material, colour in (("RectFat", "block", "ice", "ice"), ("BasicBig", "pig", "", "pig")):
        pictures = [draw(scene(thing(type_, kind, material, colour, life=life))) for life in (10, 5, 3, 1)]
        assert all(changed(one, two).sum() > 20 for one, two in pairwise(pictures))


def test_a_platform_is_stretched() -> None:
    slab = thing("Platform", "platform", colour="platform", scale_x=3.0, scale_y=0.5)
    rows, columns = np.nonzero(changed(draw(scene(slab)), draw(scene())))
    assert np.ptp(columns) == pytest.approx(3 * 0.64 * CLOSE.scale, abs=2)
    assert np.ptp(rows) == pytest.approx(0.5 * 0.64 * CLOSE.scale, abs=2)


def test_the_view_can_be_gray_or_turned() -> None:
    shown = scene(thing("RectFat", material="wood"))
    upright = draw(shown)
    gray = draw(replace(shown, view=View(grayscale=True)))
    assert (gray == gray[..., :1]).all()
    assert changed(gray, upright).any()
    assert (draw(replace(shown, view=View(rotation=180))) == upright[::-1, ::-1]).all()


def test_painting_everything_like_pigs_makes_it_green() -> None:
    wooden = thing("RectFat", material="wood")
    picture = draw(scene(replace(wooden, colour="pig")))[230:250, 300:340].reshape(-1, 3).astype(int)
    assert (picture[:, 1] > picture[:, 0]).all()
    assert (picture[:, 1] > picture[:, 2]).all()


def test_dots_band_and_sling_are_drawn() -> None:
    sling = Sling(-0.485, -3.505, 0.2, -1.45, (-0.15, -1.7))
    bird = thing("BirdRed", "bird", colour="red", x=-0.15, y=-1.7)
    empty, resting = draw(scene(bird, sling=sling)), draw(scene(bird, sling=sling, next_bird=-2))
    assert changed(empty, resting).sum() > 50
    assert changed(draw(scene(sling=sling)), draw(scene())).sum() > 1000
    assert changed(draw(scene(dots=((1.0, 0.0),))), draw(scene())).sum() > 200


def test_drawing_leaves_no_trace() -> None:
    before = draw(scene())
    draw(scene(thing("RectFat", material="wood")))
    assert (draw(scene()) == before).all()
