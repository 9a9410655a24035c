"""Level files: the reader tolerates real-world files, refuses bad ones in one line, and restores written ones."""

import codecs
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.domains.angrybirds.levels.files import MAX_BYTES, MAX_ITEMS, parse, read, text_of, write
from nappingrl.domains.angrybirds.physics.scene import BIRDS, BLOCKS, MATERIALS, NOVEL, PIGS, Camera, Item, Level
from nappingrl.domains.angrybirds.physics.sizes import SPRITE_SIZES, extent
from nappingrl.errors import NappingError

SLOPPY = """<?xml version="1.0" encoding="utf-16"?>
<Level width ="2">
  <!-- made by hand <Pig type="none"> -->
  <Camera x="0" y="-1" minWidth="20" maxWidth="30">
  <Score highScore ="0">
  <Birds>
    <Bird type="BirdRed"/>
    <Bird type = 'BirdBlue' ></Bird>
  </Birds>
  <Slingshot x="-8" y="-2.5">
  <assetBundle path="a/b" />
  <GameObjects>
    <block y="-3.4" x = "1.5"
       rotation="90.5" material='Stone' type="RectBig" />
    <Pig type="BasicSmall" material="" x="+2" y="-.5e1" rotation="" />
    <TNT type="" x="3" y="-3.1" rotation="0"/>
    <PLATFORM type="Platform" x="4" y="5" scalex="-2" scaleY="0.5" />
    <Block type="novel_object_3" material="wood" x="5" y="0" />
  </GameObjects>
</Level>
"""
SLOPPY_LEVEL = Level(
    "sloppy",
    ("BirdRed", "BirdBlue"),
    (
        Item("block", "RectBig", 1.5, -3.4, 90.5, "stone"),
        Item("pig", "BasicSmall", 2.0, -5.0),
        Item("tnt", "TNT", 3.0, -3.1),
        Item("platform", "Platform", 4.0, 5.0, 0.0, "", 2.0, 0.5),
        Item("block", "novel_object_3", 5.0, 0.0, 0.0, "novel"),
    ),
    (-8.0, -2.5),
    Camera(0.0, -1.0, 20.0, 30.0),
    2,
)


def level_with(objects: str, birds: str = '<Bird type="BirdRed"/>') -> str:
    return f"<Level>\n{birds}\n{objects}\n</Level>"


def message(text: str, **options: bool) -> str:
    with pytest.raises(NappingError) as caught:
        parse(text, "bad", **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def refusal(text: str) -> str:
    """Why a text is not a level; empty if it is one."""
    try:
        parse(text, "any")
    except NappingError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "data",
    [
        SLOPPY.encode(),
        SLOPPY.replace("\n", "\r\n").encode(),
        codecs.BOM_UTF8 + SLOPPY.encode(),
        SLOPPY.encode("utf-16"),
        codecs.BOM_UTF16_BE + SLOPPY.encode("utf-16-be"),
        SLOPPY.encode("utf-16-le"),
        SLOPPY.encode("utf-16-be"),
        SLOPPY.replace("by hand", "by Zoë").encode(),
    ],
    ids=["ascii", "crlf", "utf-8 mark", "utf-16", "utf-16-be mark", "utf-16-le", "utf-16-be", "utf-8"],
)
def test_a_sloppy_file_is_read_whatever_its_encoding(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sloppy.xml"
    path.write_bytes(data)
    assert read(path) == SLOPPY_LEVEL


def test_what_is_missing_has_the_usual_value() -> None:
    level = parse(level_with(""), "bare")
    assert level == Level("bare", ("BirdRed",), ())
    assert parse("<Level width='1'><Camera y='3'><Bird type='BirdRed'/></Level>", "x").camera == Camera(y=3.0)


numbers = st.floats(-1e4, 1e4)
sizes = st.floats(0, 1e4, exclude_min=True)
blocks = st.one_of(
    st.tuples(st.just("block"), st.sampled_from(BLOCKS), st.sampled_from(MATERIALS)),
    st.tuples(st.just("block"), st.sampled_from((*NOVEL, "novel_object_0", "Novel.7")), st.just("novel")),
    st.tuples(st.just("pig"), st.sampled_from(PIGS), st.just("")),
    st.sampled_from((("tnt", "TNT", ""), ("platform", "Platform", ""), ("pig", "novel_object_1", "novel"))),
)
items = st.builds(
    lambda what, x, y, rotation, scale_x, scale_y, is_goal: Item(
        what[0], what[1], x, y, rotation, what[2], scale_x, scale_y, is_goal
    ),
    blocks, numbers, numbers, numbers, sizes, sizes, st.booleans(),
)  # fmt: skip
levels = st.builds(
    Level,
    st.just("any"),
    st.lists(st.sampled_from((*BIRDS, "novel_bird")), min_size=1, max_size=4).map(tuple),
    st.lists(items, max_size=4).map(tuple),
    st.tuples(numbers, numbers),
    st.builds(Camera, numbers, numbers, sizes, sizes),
    st.integers(1, 100),
)


@given(levels)
def test_what_is_written_is_read_again(level: Level) -> None:
    text = text_of(level)
    assert parse(text, "any") == level
    root = ElementTree.fromstring(text.encode())
    assert [bird.get("type") for bird in root.iter("Bird")] == list(level.birds)
    assert len(root.find("GameObjects") or ()) == len(level.items)


def test_goals_and_our_own_types_survive_a_file(tmp_path: Path) -> None:
    bone = Item("block", "Bone", 0.1 + 0.2, -3.35, material="novel", is_goal=True)
    egg = Item("block", "GreenEgg", 1 / 3, -3.0, material="novel")
    level = Level("ours", ("BirdWhite",), (bone, egg))
    write(level, tmp_path / "ours.xml")
    assert read(tmp_path / "ours.xml") == level
    assert (tmp_path / "ours.xml").read_text().count('goal="true"') == 1


@pytest.mark.parametrize("element", ["ExternalAgent", "Novelty", "Anything"])
def test_unknown_elements_are_named_or_skipped(element: str) -> None:
    text = level_with(f'<{element} type="Fan" x="1" y="2" forceMagnitude="3"/>')
    assert f"line 3: unknown element <{element}>" in message(text)
    assert parse(text, "x", skip_unknown=True).items == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["no <Level>"]),
        ("{'birds': 3}", ["no <Level>", "{'birds': 3}"]),
        ("<html></html>", ["no <Level>"]),
        ("<!DOCTYPE a [<!ENTITY b 'c'>]>" + level_with(""), ["line 1", "not a tag"]),
        ("<Level width='2'><Bird type='BirdRed'/><GameObj", ["'<GameObj'"]),
        ("<Level width='2'><Bird type='BirdRed'/>", ["cut off"]),
        (level_with("", birds=""), ["0 birds"]),
        (level_with("", birds="<Bird type='BirdRad'/>"), ["line 2", "'BirdRad'", "Did you mean 'BirdRed'?"]),
        (level_with("<Block type='RectBg' material='wood' x='0' y='0'/>"), ["line 3", "Did you mean 'RectBig'?"]),
        (level_with("<Block type='RectBig' material='woad' x='0' y='0'/>"), ["line 3", "Did you mean 'wood'?"]),
        (level_with("<Block type='RectBig' x='0' y='0'/>"), ["material", "ice, stone, wood"]),
        (level_with("<Pig type='Basic' x='0' y='0'/>"), ["type of <Pig>"]),
        (level_with("<Pig type='&lol;' x='0' y='0'/>"), ["'&lol;'"]),
        (level_with("<Pgi type='BasicSmall' x='0' y='0'/>"), ["<Pgi>", "Did you mean 'Pig'?"]),
        (level_with("<Pig type='BasicSmall' y='0'/>"), ["x of <Pig> is ''"]),
        (level_with("<Pig type='BasicSmall' x='nan' y='0'/>"), ["'nan'", "number"]),
        (level_with("<Pig type='BasicSmall' x='1_0' y='0'/>"), ["'1_0'", "number"]),
        (level_with("<Pig type='BasicSmall' x='1' y='1e999'/>"), ["y is inf"]),
        (level_with("<Pig type='BasicSmall' x='1' y='10001'/>"), ["y is 10001"]),
        (level_with("<Platform x='1' y='1' scaleX='0'/>"), ["scale_x is 0"]),
        (level_with("<Pig type='BasicSmall' x='1' x='2' y='1'/>"), ["x='2'", "once"]),
        (level_with("<Pig type=BasicSmall x='2' y='1'/>"), ["type=BasicSmall"]),
        (level_with("<Pig type='BasicSmall' x='2' y='1' goal='maybe'/>"), ["maybe", "true, false"]),
        (level_with("<Pig type='BasicSmall' x='2 y='1'/>"), ["line 3"]),
        (level_with("<Camera/><Camera/>"), ["second <Camera>"]),
        ("<Level width='1.5'><Bird type='BirdRed'/></Level>", ["whole number"]),
        ("<Level width='0'><Bird type='BirdRed'/></Level>", ["width is 0"]),
        (level_with("<Camera maxWidth='0'>"), ["max_width is 0"]),
        (level_with("<TNT x='0' y='0'/>" * (MAX_ITEMS + 1)), [f"{MAX_ITEMS + 1} objects"]),
        (level_with("<TNT x='0' y='0'/>" * 9000), ["more than 5000 tags"]),
        (level_with("", birds="<Bird type='BirdRed'/>" * 101), ["101 birds"]),
        (level_with(" " * MAX_BYTES), ["characters"]),
    ],
)  # fmt: skip
def test_bad_files_give_one_clear_line(text: str, words: list[str]) -> None:
    line = message(text)
    for word in words:
        assert word in line
    assert len(line) < 400


@pytest.mark.parametrize(
    "change",
    [
        {"birds": ()},
        {"birds": ("Parrot",)},
        {"width": 0},
        {"sling": (float("nan"), 0.0)},
        {"camera": Camera(max_width=-1.0)},
        {"items": (Item("block", "RectBig", 0.0, 0.0, material="novel"),)},
        {"items": (Item("block", "Bone", 0.0, 0.0, material="wood"),)},
        {"items": (Item("block", 'novel"', 0.0, 0.0, material="novel"),)},
        {"items": (Item("pig", "BasicSmall", float("inf"), 0.0),)},
        {"items": (Item("cloud", "Cloud", 0.0, 0.0),)},
        {"items": (Item("platform", "Platform", 0.0, 0.0, scale_x=-1.0),)},
    ],
)  # fmt: skip
def test_what_could_not_be_read_again_is_not_written(change: dict[str, object], tmp_path: Path) -> None:
    good = Level("good", ("BirdRed",), ())
    text_of(good)
    with pytest.raises(NappingError, match="level 'good'"):
        write(replace(good, **change), tmp_path / "good.xml")  # type: ignore[arg-type]
    assert not (tmp_path / "good.xml").exists()


def test_files_that_are_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "picture.xml").write_bytes(b"\x89PNG\r\n")
    with pytest.raises(NappingError, match=r"picture\.xml' is not a level file: byte 0"):
        read(tmp_path / "picture.xml")
    with pytest.raises(NappingError, match=r"Did you mean 'picture\.xml'"):
        read(tmp_path / "pictures.xml")
    with (tmp_path / "huge.xml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(NappingError, match="10,000,001 bytes"):
        read(tmp_path / "huge.xml")


@given(st.text("<>/='\" \n!-?LevlBirdRPg1", max_size=60))
def test_garbage_never_breaks_the_reader(text: str) -> None:
    assert "\n" not in refusal("<Level><Bird type='BirdRed'/>" + text + "</Level>")


def test_every_type_has_a_size() -> None:
    ours = {"Platform", "TNT", "Egg", *NOVEL}
    assert set(SPRITE_SIZES) == {*BIRDS, *PIGS, *BLOCKS} | ours


def test_extent_is_the_box_around_the_turned_object() -> None:
    """A platform of 1.28 x 0.64 turned by 30 degrees: 1.28 cos 30 + 0.64 sin 30, 1.28 sin 30 + 0.64 cos 30."""
    item = Item("platform", "Platform", 0.0, 0.0, rotation=-30.0, scale_x=2.0)
    assert extent(item) == pytest.approx((1.42851, 1.19426), abs=1e-5)
    assert extent(Item("block", "novel_object_0", 0.0, 0.0, material="novel")) == (0.84, 0.84)
