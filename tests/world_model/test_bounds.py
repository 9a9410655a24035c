"""Which observations touch the bounds of their space."""

import numpy as np

from nappingrl.world_model.bounds import extremes, is_unclipped


def test_which_observations_touch_their_bounds() -> None:
    next_states = np.array([[0.0, 5.0], [2.0, 5.0], [1.0, -1e9], [1e-9, 0.0]])
    unclipped = is_unclipped(next_states, np.array([0.0, -np.inf]), np.array([2.0, np.inf]))
    np.testing.assert_array_equal(unclipped, [[False, True], [False, True], [True, True], [False, True]])


def test_the_extremes_of_each_observation() -> None:
    values = np.random.default_rng(0).normal(size=(50, 3))
    low, high = extremes(values)
    np.testing.assert_array_equal(low, values.min(axis=0))
    np.testing.assert_array_equal(high, values.max(axis=0))
    assert np.isinf(extremes(values[:0])).all()
