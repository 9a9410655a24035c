"""Colour maps are classified correctly by our classifier and, as far as it is known, by the published one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.domains.angrybirds.ground_truth.palette import PAINTS, ColourMap, classify, distance, gray, grayed, paint
from nappingrl.errors import UnknownNameError

MARGINS = {
    "tnt": {205: 13.4, 209: 7.5},
    "black": {73: 4.5},
    "blue": {119: 13.3},
    "red": {250: 11.2, 0: 6.4, 244: 3.7},
    "white": {21: 6.1, 255: 5.5, 254: 3.5},
    "yellow": {248: 12.4},
    "ice": {19: 13.3, 123: 10.8, 87: 10.5},
    "pig": {125: 17.2, 84: 1.6},
    "platform": {36: 7.3, 68: 3.2},
    "stone": {182: 13.5, 146: 12.5, 219: 2.2},
    "wood": {136: 15.1, 240: 10.9, 245: 3.7, 204: 2.6, 208: 1.9},
}
"""How far the published classifier's score of a class is above all others, if a thing has that one colour."""
NAMES = st.sampled_from(sorted(PAINTS))
FACTORS = st.lists(st.floats(0.98, 1.02), min_size=4, max_size=4)


def wobbled(colours: ColourMap, factors: list[float]) -> ColourMap:
    shares = [share * factor for (_, share), factor in zip(colours, factors, strict=False)]
    return tuple((code, share / sum(shares)) for (code, _), share in zip(colours, shares, strict=True))


def test_every_colour_of_a_thing_has_a_map_and_only_the_bone_is_not_a_published_class() -> None:
    assert set(PAINTS) == {*MARGINS, "bone"}


@pytest.mark.parametrize("name", sorted(PAINTS))
def test_shares_are_positive_and_sum_to_one(name: str) -> None:
    shares = [share for _, share in PAINTS[name].colour_map]
    assert min(shares) > 0
    assert sum(shares) == pytest.approx(1)


@given(st.sampled_from(sorted(MARGINS)), FACTORS)
def test_the_published_classifier_reads_noisy_maps_right(name: str, factors: list[float]) -> None:
    # Scores are linear in the shares: a mixture's margin is at least the weighted mean of its colours' margins.
    colours = wobbled(PAINTS[name].colour_map, factors)
    assert {code for code, _ in colours} <= set(MARGINS[name])
    assert sum(share * MARGINS[name][code] for code, share in colours) > 0.5


@given(NAMES, FACTORS)
def test_our_classifier_reads_noisy_maps_right(name: str, factors: list[float]) -> None:
    assert classify(wobbled(PAINTS[name].colour_map, factors)) == name


@pytest.mark.parametrize("colours", [(), ((7, 1.0),), ((125, 0.45), (7, 0.55))])
def test_what_is_far_from_all_maps_is_unknown(colours: ColourMap) -> None:
    assert classify(colours) == "unknown"


def test_distance_by_hand() -> None:
    assert distance(((1, 0.5), (2, 0.5)), ((2, 0.25), (3, 0.75))) == pytest.approx(0.5 + 0.25 + 0.75)


@given(st.integers(0, 255))
def test_a_gray_has_as_much_red_as_green_and_stays_as_it_is(code: int) -> None:
    level = gray(code)
    assert level >> 5 == level >> 2 & 7
    assert gray(level) == level


def test_grays_that_coincide_are_added_up() -> None:
    assert grayed(((136, 0.25), (73, 0.25), (255, 0.5))) == ((73, 0.5), (255, 0.5))


def test_an_unknown_colour_is_named() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown colour 'grean'; allowed: black, .*"):
        paint("grean")
