"""One predicted step, against a literal computation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nappingrl.world_model.model import predict_step
from world_model.toy_domains import (
    literal_step,
    make_model,
)


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.booleans(), st.floats(0.5, 4))
@settings(max_examples=50, deadline=None)
def test_a_predicted_step_is_the_literal_computation(
    seed: int, d: int, action_size: int, has_products: bool, is_integrated: bool, size: float
) -> None:
    rng = np.random.default_rng(seed)
    model = make_model(rng, d, action_size, has_products)
    if is_integrated and d > 1:
        model.depends_on_next[0] = d - 1
    state, encoded = size * rng.normal(size=d), rng.normal(size=action_size)
    state = np.clip(state, model.low, model.high)
    z = (state - model.frame.centre) / model.frame.scale
    shared, after = np.empty(model.frame.n_shared), np.empty(d)
    reward = predict_step(model, state, encoded, -1, z, shared, after)
    expected, expected_reward = literal_step(model, state, encoded)
    np.testing.assert_allclose(after, expected, atol=1e-9)
    assert reward == pytest.approx(expected_reward, abs=1e-9)
    action = seed % action_size
    reward = predict_step(model, state, encoded, action, z, shared, after)
    expected, expected_reward = literal_step(model, state, np.eye(action_size)[action])
    np.testing.assert_allclose(after, expected, atol=1e-9)
    assert reward == pytest.approx(expected_reward, abs=1e-9)
