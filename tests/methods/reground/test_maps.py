"""Maps and their inverses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.methods.reground.maps import ContinuousMap, DiscreteMap, Grounding, SensorMap

GAINS = st.sampled_from([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])


@given(st.permutations(range(5)))
def test_a_permutation_of_actions_is_inverted(order: list[int]) -> None:
    actions = DiscreteMap.of(np.array(order))
    assert actions.is_permutation
    assert (actions.acts_as[actions.instead] == np.arange(5)).all()
    assert actions.is_identity == (order == sorted(order))


@given(st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_what_is_executed_instead_acts_as_wanted_where_any_action_does(acts_as: list[int]) -> None:
    actions = DiscreteMap.of(np.array(acts_as))
    for wanted in range(4):
        assert acts_as[actions.instead[wanted]] == wanted or wanted not in acts_as


def test_original_discrete_actions_are_those_that_are_acted_as() -> None:
    actions = DiscreteMap.of(np.array([1, 2, 0]))
    assert actions.original(np.eye(3)).argmax(axis=1).tolist() == [1, 2, 0]


@given(
    st.permutations(range(3)),
    st.lists(GAINS, min_size=3, max_size=3),
    st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=3),
)
def test_a_continuous_map_is_inverted_within_its_range(
    order: list[int], gain: list[float], offset: list[float]
) -> None:
    actions = ContinuousMap(np.array(order), np.array(gain), np.array(offset))
    wanted = np.array([[0.1, -0.2, 0.15], [0.0, 0.05, -0.1]])
    u = actions.executed(wanted)
    acted = actions.original(np.column_stack([np.ones(2), u, u**2]))[:, 1:4]
    np.testing.assert_allclose(acted, wanted, atol=1e-12)


def test_what_cannot_be_had_is_clipped() -> None:
    weak = ContinuousMap(np.arange(1), np.array([0.5]), np.zeros(1))
    assert weak.executed(np.array([[0.8]])) == 1.0
    dead = ContinuousMap(np.arange(1), np.zeros(1), np.zeros(1))
    assert dead.executed(np.array([[0.8]])) == 0.0


@given(
    st.permutations(range(4)),
    st.lists(GAINS, min_size=4, max_size=4),
    st.lists(st.floats(-3, 3), min_size=4, max_size=4),
)
def test_sensors_are_inverted(order: list[int], gain: list[float], shift: list[float]) -> None:
    sensors = SensorMap(np.array(order), np.array(gain), np.array(shift))
    states = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(sensors.original(sensors.observed(states)), states, atol=1e-9)
    np.testing.assert_allclose(sensors.observed(sensors.original(states)), states, atol=1e-9)


def test_changes_of_sensors_compose() -> None:
    sensors = SensorMap.identity(3).swapped(0, 2).negated(0).with_entry(1, 2.0, 0.5)
    np.testing.assert_allclose(sensors.original(np.array([[1.0, 2.0, 3.0]])), [[-3.0, 0.75, 1.0]])
    assert (sensors.n_changes, sensors.n_parameters) == (3, 2)


def test_only_a_grounding_that_changes_nothing_is_the_identity() -> None:
    sensors, actions = SensorMap.identity(2), DiscreteMap.identity(2)
    assert Grounding(sensors, actions).is_identity
    for other in (
        Grounding(sensors.negated(1), actions), Grounding(sensors.with_entry(0, 1.0, 0.1), actions),
        Grounding(sensors, DiscreteMap.of(np.array([1, 0]))), Grounding(sensors, actions, delay=1),
    ):  # fmt: skip
        assert not other.is_identity
        assert not other.is_same(Grounding(sensors, actions))
        assert other.is_same(other)


def test_the_signature_of_a_grounding_holds_no_estimated_numbers() -> None:
    sensors = SensorMap.identity(2).with_entry(1, 1.0, 0.3)
    actions = ContinuousMap.identity(2).with_dimension(0, -0.52, 0.1)
    grounding = Grounding(sensors, actions)
    refined = Grounding(sensors.with_entry(1, 1.0, 0.31), actions.with_dimension(0, -0.51, 0.2))
    assert grounding.signature == refined.signature
    others = [
        Grounding(sensors, actions, 1),
        Grounding(sensors, actions.with_dimension(0, 0.52, 0.1)),
        Grounding(sensors.with_entry(0, 1.0, 0.3), actions),
        Grounding(sensors.negated(1), actions),
        Grounding(sensors.swapped(0, 1), actions),
        Grounding(sensors, DiscreteMap.of(np.array([0, 1]))),
        Grounding(sensors, DiscreteMap.of(np.array([1, 0]))),
    ]
    assert len({grounding.signature, *(other.signature for other in others)}) == 1 + len(others)


def test_maps_that_cannot_be_inverted_are_refused_when_they_come_from_a_file() -> None:
    with pytest.raises(ValueError, match="same source"):
        SensorMap(np.zeros(2, np.int64), np.ones(2), np.zeros(2)).check({})
    with pytest.raises(ValueError, match="same source"):
        ContinuousMap(np.zeros(2, np.int64), np.ones(2), np.zeros(2)).check({})
    with pytest.raises(ValueError, match="almost 0"):
        SensorMap(np.arange(2), np.array([1.0, 0.0]), np.zeros(2)).check({})
