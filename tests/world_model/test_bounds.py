"""Which observations touch the bounds of their space."""

import numpy as np

from nappingrl.world_model.bounds import is_unclipped


def test_which_observations_touch_their_bounds() -> None:
    next_states = np.array([[0.0, 5.0], [2.0, 5.0], [1.0, -1e9], [1e-9, 0.0]])
    unclipped = is_unclipped(next_states, np.array([0.0, -np.inf]), np.array([2.0, np.inf]))
    np.testing.assert_array_equal(unclipped, [[False, True], [False, True], [True, True], [False, True]])
