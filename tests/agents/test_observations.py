"""Batches of observations, as arrays and as dictionaries."""

from typing import Any

import numpy as np
import pytest

from nappingrl import agents
from nappingrl.agents.observations import (
    are_equal,
    as_batch,
    as_column,
    length_of,
    take,
    take_padded,
    take_transition,
)
from nappingrl.errors import BadObservationError, BadSpecError
from nappingrl.types import Decision, Transition

ARRAY = np.arange(10.0).reshape(5, 2)
BATCHES: list[Any] = [ARRAY, {"x": ARRAY, "n": np.arange(5)}]


@pytest.mark.parametrize("batch", BATCHES)
def test_rows_of_a_batch(batch: Any) -> None:
    assert length_of(batch) == 5
    assert length_of(take(batch, np.array([1, 3]))) == 2
    assert are_equal(take(batch, slice(None)), batch)
    assert not are_equal(take(batch, np.array([1, 1, 2, 3, 4])), batch)
    assert are_equal(take_padded(batch, 3, 4), take(batch, np.array([3, 4, 4, 4])))
    assert are_equal(take_padded(batch, 0, 2), take(batch, slice(0, 2)))


def test_entries_of_other_lengths_are_refused() -> None:
    with pytest.raises(BadObservationError, match=r"lengths \[3, 5\]"):
        length_of({"x": ARRAY, "n": np.arange(3)})


def test_a_batch_axis_is_added_to_one_observation() -> None:
    agent = agents.load("ppo", "cartpole")
    batch, is_single = as_batch(agent, [0.0, 0.1, 0.2, 0.3])
    assert (batch.shape, is_single) == ((1, 4), True)
    batch, is_single = as_batch(agent, np.zeros((3, 4)))
    assert (batch.shape, is_single) == ((3, 4), False)
    with pytest.raises(BadObservationError, match="trained on"):
        as_batch(agent, 0.5)
    with pytest.raises(BadObservationError, match="unpack it first"):
        as_batch(agent, (np.zeros(4), {}))


def test_columns_have_one_value_per_observation() -> None:
    np.testing.assert_array_equal(as_column("reward", 2, np.float64, 1), [2.0])
    with pytest.raises(BadSpecError, match=r"reward of shape \(2,\) given for 3 observations"):
        as_column("reward", [1, 2], np.float64, 3)


def test_rows_of_a_transition() -> None:
    decision = Decision(np.arange(5), ARRAY, ARRAY * 2)
    flags = np.arange(5) > 2
    transition = Transition(ARRAY, decision, np.arange(5) + 1, ARRAY + 1, np.arange(5.0), flags, ~flags)
    part = take_transition(transition, flags)
    assert part.actions.tolist() == [4, 5]
    assert part.decision.actions.tolist() == [3, 4]
    assert part.rewards.tolist() == [3.0, 4.0]
    assert part.terminated.all()
    assert not part.truncated.any()
    np.testing.assert_array_equal(part.next_observations, ARRAY[3:] + 1)
    np.testing.assert_array_equal(part.decision.preferences, ARRAY[3:] * 2)
