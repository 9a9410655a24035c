"""Principles as readable rules."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl.domains.cartpole import CartPole
from nappingrl.domains.mountaincar import MountainCar
from nappingrl.explain import ReadableRule, summarise_principles

ACTIONS = ("LEFT", "COAST", "RIGHT")
Row = tuple[float, int, set[int], int, float]  # situation, wanted, candidates, visits, best score


def table(*rows: Row) -> dict[str, NDArray[Any]]:
    """What Principles.table gives, with one-number situations."""
    return {
        "situation": np.array([[row[0]] for row in rows], np.float32).reshape(len(rows), 1),
        "wanted": np.array([row[1] for row in rows], np.int64),
        "candidates": np.array([[a in row[2] for a in range(3)] for row in rows], np.bool_).reshape(len(rows), 3),
        "visits": np.array([row[3] for row in rows], np.int64),
        "best": np.array([row[4] for row in rows]),
    }


def side(situation: NDArray[Any]) -> str:
    return "right of it" if situation[0] > 0 else "left of it"


def read(*rows: Row) -> list[ReadableRule]:
    return summarise_principles(table(*rows), side, ACTIONS)


def test_the_sentence_of_the_readme() -> None:
    rule = ReadableRule("pole leaning right and falling", "LEFT", ("RIGHT",), 1, 212, 0.03)
    assert str(rule) == "pole leaning right and falling: wanted LEFT, now RIGHT; 212 visits, score 0.03"


@pytest.mark.parametrize(
    ("now", "regions", "text"),
    [
        (("LEFT", "COAST"), 1, "s: wanted RIGHT, still trying LEFT or COAST; 5 visits, score 1"),
        (("RIGHT",), 1, "s: wanted RIGHT, still RIGHT; 5 visits, score 1"),
        (("LEFT",), 3, "s: wanted RIGHT, now LEFT; 5 visits in 3 regions, score 1"),
    ],
)
def test_open_unchanged_and_grouped_rules(now: Sequence[str], regions: int, text: str) -> None:
    assert str(ReadableRule("s", "RIGHT", tuple(now), regions, 5, 1.0)) == text


def test_one_principle() -> None:
    assert read((0.5, 0, {2}, 7, 0.25)) == [ReadableRule("right of it", "LEFT", ("RIGHT",), 1, 7, 0.25)]


def test_principles_that_read_alike_are_one_rule_with_scores_averaged_over_visits() -> None:
    rules = read((0.5, 0, {2}, 3, 1.0), (-0.5, 0, {2}, 2, 9.0), (0.1, 0, {2}, 1, 5.0))
    assert rules == [
        ReadableRule("right of it", "LEFT", ("RIGHT",), 2, 4, 2.0),
        ReadableRule("left of it", "LEFT", ("RIGHT",), 1, 2, 9.0),
    ]


def test_what_differs_in_wish_or_candidates_stays_apart() -> None:
    rules = read((0.5, 0, {2}, 1, 0.0), (0.5, 1, {2}, 2, 0.0), (0.5, 0, {1, 2}, 3, 0.0))
    assert [(rule.wanted, rule.now) for rule in rules] == [
        ("LEFT", ("COAST", "RIGHT")),
        ("COAST", ("RIGHT",)),
        ("LEFT", ("RIGHT",)),
    ]


def test_the_most_visited_come_first() -> None:
    rules = read((0.5, 0, {2}, 1, 0.0), (-0.5, 0, {2}, 8, 0.0), (-0.5, 1, {2}, 3, 0.0))
    assert [rule.visits for rule in rules] == [8, 3, 1]


def test_no_principles_no_rules() -> None:
    assert read() == []


@pytest.mark.parametrize(
    ("angle", "speed", "words"),
    [
        (0.1, 0.2, "pole leaning right and falling"),
        (0.1, -0.2, "pole leaning right and rising"),
        (-0.1, -0.2, "pole leaning left and falling"),
        (-0.1, 0.2, "pole leaning left and rising"),
    ],
)
def test_cartpole_in_words(angle: float, speed: float, words: str) -> None:
    assert CartPole.spec.describe(np.array([0.0, 0.0, angle, speed])) == words


@pytest.mark.parametrize(
    ("position", "velocity", "words"),
    [
        (-0.3, 0.01, "right of the valley's floor, rolling right"),
        (-0.9, 0.01, "left of the valley's floor, rolling right"),
        (-0.9, -0.01, "left of the valley's floor, rolling left"),
        (-0.9, 0.0, "left of the valley's floor"),
        (-np.pi / 6, 0.0, "at the centre"),
    ],
)
def test_mountaincar_in_words(position: float, velocity: float, words: str) -> None:
    assert MountainCar.spec.describe(np.array([position, velocity])) == words
