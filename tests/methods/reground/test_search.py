"""The search in linear worlds: what it finds, and what it must not find."""

from typing import Any

import numpy as np
import pytest

from methods.reground.linear_worlds import CONTINUOUS, DISCRETE, World, make_reference, reground
from nappingrl.methods.reground.describe import describe
from nappingrl.types import DomainSpec
from nappingrl.world_model.reference import Reference


@pytest.fixture(scope="module")
def discrete() -> Reference:
    return make_reference(DISCRETE)


@pytest.fixture(scope="module")
def continuous() -> Reference:
    return make_reference(CONTINUOUS)


def found(reference: Reference, domain: DomainSpec, n_episodes: int = 4, **change: Any) -> str:
    """The grounding found in a changed world, in words."""
    world = World(domain, 1, change.pop("drift", 0.0), change.pop("strength", 1.0))
    trial = reground(reference, domain, world.record(n_episodes, **change))
    assert trial.grounding is not None
    return describe(trial.grounding, domain)


def negated(i: int) -> Any:
    return lambda state: np.where(np.arange(4) == i, -state, state)


def moved(i: int, by: float, times: float = 1.0) -> Any:
    return lambda state: np.where(np.arange(4) == i, times * state + by, state)


def swapped(i: int, j: int) -> Any:
    order = np.arange(4)
    order[[i, j]] = j, i
    return lambda state: state[order]


@pytest.mark.parametrize(
    ("acts_as", "words"),
    [
        ([0, 2, 1, 3], "action 1 <-> action 2"),
        ([1, 2, 3, 0], "action 3 instead of action 0; action 0 instead of action 1; "
         "action 1 instead of action 2; action 2 instead of action 3"),
        ([0, 1, 1, 2], "action 3 instead of action 2; action 0 instead of action 3; "
         "action 2 acts as action 1; action 3 acts as action 2"),
    ],
    ids=["swap", "rotation", "merge"],
)  # fmt: skip
def test_discrete_actions_that_act_as_others_are_found(discrete: Reference, acts_as: list[int], words: str) -> None:
    assert found(discrete, DISCRETE, act=lambda action: acts_as[action]) == words


def test_a_lost_action_is_replaced_by_the_one_with_the_nearest_effect(discrete: Reference) -> None:
    words = found(discrete, DISCRETE, act=lambda action: [3, 1, 2, 3][action])
    assert words == "action 1 instead of action 0; action 0 acts as action 3"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda u: u * [1.0, -1.0], "action dimension 1: reversed"),
        (lambda u: -u, "action dimension 0: reversed; action dimension 1: reversed"),
        (lambda u: u[::-1], "action dimension 0: acts from dimension 1; action dimension 1: acts from dimension 0"),
    ],
    ids=["one reversed", "both reversed", "exchanged"],
)
def test_continuous_actions_are_found(continuous: Reference, act: Any, words: str) -> None:
    assert found(continuous, CONTINUOUS, act=act) == words


@pytest.mark.parametrize(("gain", "offset"), [(0.5, 0.0), (1.0, 0.25), (-0.6, 0.0)])
def test_gains_and_offsets_are_estimated(continuous: Reference, gain: float, offset: float) -> None:
    world = World(CONTINUOUS, 1)
    current = world.record(6, act=lambda u: np.clip(u * [gain, 1.0] + [offset, 0.0], -1.0, 1.0))
    grounding = reground(continuous, CONTINUOUS, current).grounding
    assert grounding is not None
    actions: Any = grounding.actions
    np.testing.assert_allclose(actions.gain, [gain, 1.0], atol=0.1)
    np.testing.assert_allclose(actions.offset, [offset, 0.0], atol=0.1)


@pytest.mark.parametrize(
    ("show", "words"),
    [
        (negated(0), "x is negated"),
        (negated(3), "w is negated"),
        (swapped(0, 3), "x <-> w"),
        (swapped(2, 3), "v <-> w"),
        (moved(2, 0.7), "v is shifted by 0.7"),
        (moved(1, 0.0, 2.0), "y is scaled by 2"),
    ],
)
def test_sensors_are_found(discrete: Reference, continuous: Reference, show: Any, words: str) -> None:
    assert found(discrete, DISCRETE, show=show) == words
    assert found(continuous, CONTINUOUS, show=show) == words


def test_a_shift_that_only_the_starts_show_is_found(discrete: Reference) -> None:
    words = found(discrete, DISCRETE, n_episodes=6, show=moved(0, 3.0))
    assert words.startswith("x is shifted by 3") or words.startswith("x is shifted by 2.9")


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_delays_are_found(discrete: Reference, continuous: Reference, delay: int) -> None:
    words = f"actions take effect {delay} step{'s' if delay > 1 else ''} late"
    assert found(discrete, DISCRETE, delay=delay) == words
    assert found(continuous, CONTINUOUS, delay=delay) == words


def test_two_changes_are_found_one_after_the_other(discrete: Reference) -> None:
    words = found(discrete, DISCRETE, 8, act=lambda action: [0, 2, 1, 3][action], show=negated(3))
    assert words == "w is negated; action 1 <-> action 2"


@pytest.mark.parametrize(
    "change",
    [
        {}, {"drift": np.array([0.0, 0.0, 0.05, 0.0])}, {"drift": np.array([0.0, 0.0, -0.1, 0.08])},
        {"strength": 0.6}, {"strength": 1.5}, {"strength": 0.0},
    ],
    ids=["unchanged", "wind", "strong wind", "weaker", "stronger", "dead"],
)  # fmt: skip
def test_nothing_is_translated_under_other_changes(discrete: Reference, change: dict[str, Any]) -> None:
    assert found(discrete, DISCRETE, **change) == ""


def test_wind_is_no_map_of_continuous_actions(continuous: Reference) -> None:
    assert found(continuous, CONTINUOUS, drift=np.array([0.0, 0.0, 0.05, -0.03])) == ""


def test_a_wrong_grounding_is_left_for_the_right_one(discrete: Reference) -> None:
    world = World(DISCRETE, 1)
    trial = reground(discrete, DISCRETE, world.record(4, act=lambda action: [1, 2, 3, 0][action]))
    trial.search(discrete, world.record(8, act=lambda action: [0, 2, 1, 3][action]))
    assert trial.grounding is not None
    assert describe(trial.grounding, DISCRETE) == "action 1 <-> action 2"
    trial.search(discrete, world.record(8))
    assert trial.grounding.is_identity
    assert not trial.is_translated


def test_searches_that_find_nothing_become_rare(discrete: Reference) -> None:
    world = World(DISCRETE, 1)
    trial, current = reground(discrete, DISCRETE, world.record(4)), world.record(4)
    due = []
    for step in range(1, 4001):
        if trial.step_is_due(is_end=False):
            due.append(step)
            trial.search(discrete, current)
    assert due == [8, 12, 16, 24, 32, 48, 64, 100, 150, 200, 300, 400, 800, 1200, 1800, 2700]
    swapped_actions = world.record(4, act=lambda action: [0, 2, 1, 3][action])
    while not trial.step_is_due(is_end=False):
        pass
    trial.search(discrete, swapped_actions)
    assert trial.is_translated


def test_it_says_why_it_translates_nothing(discrete: Reference) -> None:
    trial = reground(discrete, DISCRETE, World(DISCRETE, 1, drift=np.array([0.0, 0.0, 0.2, 0.0])).record(4))
    assert trial.why_not
    assert reground(discrete, DISCRETE, World(DISCRETE, 1).record(4)).why_not == ""


def test_a_lost_sensor_is_reported(discrete: Reference) -> None:
    current = World(DISCRETE, 1).record(4, show=lambda state: state * [1.0, 1.0, 0.0, 1.0])
    trial = reground(discrete, DISCRETE, current)
    assert trial.why_not == "v no longer changes, and a lost sensor cannot be translated"
    assert not trial.is_translated
