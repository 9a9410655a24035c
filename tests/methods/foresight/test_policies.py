"""Simple policies: their scores, their actions, and other scales."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.foresight.scenes import KIND, SEEDS, Array, D
from nappingrl.methods.foresight.policies import (
    FROZEN,
    LINEAR,
    QUADRATIC,
    REMAP,
    RESIDUAL,
    SimplePolicy,
    act_each,
    choose,
    n_terms,
    remaps,
    scaled_actions,
    score,
)

RATIOS = st.lists(st.floats(0.25, 4), min_size=D, max_size=D).map(np.array)


@given(SEEDS, KIND, RATIOS)
@settings(max_examples=50, deadline=None)
def test_a_rescaled_policy_does_the_same(seed: int, kind: int, ratio: Array) -> None:
    """Where the frame's scale grows z shrinks, and all scores, so all choices, stay what they were."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(3, n_terms(kind, D)))
    z = rng.normal(size=D)
    before = [score(kind, row, z) for row in weights]
    policy = SimplePolicy(kind, weights.copy(), [3.0], 4.0, 5.0)
    policy.rescale(ratio)
    after = [score(kind, row, z / ratio) for row in policy.weights]
    np.testing.assert_allclose(after, before, atol=1e-9)
    if np.diff(np.sort(before))[-1] > 1e-9:
        assert choose(kind, policy.weights, z / ratio) == choose(kind, weights, z) == int(np.argmax(before))
    assert (policy.kind, policy.returns, policy.expected, policy.estimate) == (kind, [3.0], 4.0, 5.0)


@given(SEEDS, st.sampled_from([LINEAR, QUADRATIC, RESIDUAL]), RATIOS)
@settings(max_examples=50, deadline=None)
def test_a_rescaled_policy_with_continuous_actions_does_the_same(seed: int, kind: int, ratio: Array) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(2, n_terms(kind, D) + (kind == RESIDUAL)))
    z, wanted = rng.normal(size=(4, D)), rng.uniform(-1, 1, (4, 2))
    before = scaled_actions(SimplePolicy(kind, weights.copy()), z, wanted)
    rescaled = SimplePolicy(kind, weights.copy())
    rescaled.rescale(ratio)
    after = scaled_actions(rescaled, z / ratio, wanted)
    np.testing.assert_allclose(after, before, atol=1e-9)
    assert (np.abs(before) <= 1).all()


@pytest.mark.parametrize(("kind", "weights"), [(REMAP, [[1.0, 0.0]]), (FROZEN, [[0.0]])])
def test_policies_that_ignore_the_state_are_not_rescaled(kind: int, weights: list[list[float]]) -> None:
    policy = SimplePolicy(kind, np.array(weights))
    policy.rescale(np.array([2.0, 3.0]))
    assert policy.weights.tolist() == weights


def test_other_meanings_of_the_actions() -> None:
    assert [order.tolist() for order in remaps(2)] == [[[1, 0]]]
    assert len(remaps(3)) == 5
    assert len(remaps(4)) == 23
    six = [tuple(order[0].astype(int).tolist()) for order in remaps(6)]
    assert six[0] == (5, 4, 3, 2, 1, 0)
    assert len(set(six)) == 1 + 15
    assert (0, 1, 2, 3, 4, 5) not in six
    assert all(sorted(order) == list(range(6)) for order in six)


def test_policies_act_row_by_row() -> None:
    """Frozen as wanted, a remap of what is wanted, a line through the standardised state."""
    kinds = np.array([FROZEN, REMAP, LINEAR])
    all_weights = np.zeros((3, 2, 4))
    all_weights[1, 0, :2] = [1, 0]
    all_weights[2, 1, :3] = [1.0, 0.0, -0.5]  # action 1 where z0 > 0.5
    centres, scales = np.tile([1.0, 0.0], (3, 1)), np.tile([2.0, 1.0], (3, 1))
    for x, expected in ((1.9, [1, 1, 0]), (2.1, [1, 1, 1])):  # z0 = 0.45, 0.55
        observations = np.tile(np.array([x, 7.0], np.float32), (3, 1))
        actions = np.array([1, 0, 0])
        act_each(kinds, all_weights, centres, scales, np.arange(3), observations, actions)
        assert actions.tolist() == expected


def test_the_first_of_equal_actions_is_chosen() -> None:
    assert choose(LINEAR, np.zeros((3, D + 1)), np.ones(D)) == 0
