"""Actions as vectors."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nappingrl.world_model.action_encoding import ActionEncoding
from world_model.toy_domains import (
    BOX,
    unbounded,
)


def test_actions_as_vectors() -> None:
    choices = ActionEncoding(unbounded(1, 3))
    assert (choices.size, choices.is_continuous) == (3, False)
    np.testing.assert_array_equal(choices(np.array([2, 0])), [[0, 0, 1], [1, 0, 0]])
    numbers = ActionEncoding(BOX)
    assert (numbers.size, numbers.is_continuous) == (5, True)
    found = numbers(np.array([[-2.0, 5.0], [1.0, 10.0]], np.float32))
    np.testing.assert_allclose(found, np.array([[1, -1, 0, 1, 0], [1, 0.5, 1, 0.25, 1]]))
    np.testing.assert_array_equal(numbers.unscale(np.array([[-3.0, 3.0]])), [[-2, 10]])
    assert numbers.unscale(np.zeros((1, 2))).dtype == np.float32


@given(st.floats(-2, 2), st.floats(0, 10))
@settings(max_examples=50, deadline=None)
def test_scale_and_unscale_are_inverse(first: float, second: float) -> None:
    encoding, action = ActionEncoding(BOX), np.array([[first, second]])
    scaled = encoding.scale(action)
    assert (np.abs(scaled) <= 1).all()
    np.testing.assert_allclose(encoding.unscale(scaled), action, rtol=1e-6, atol=1e-6)
