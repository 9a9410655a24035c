"""The cheapest permutation, compared with scipy's."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from nappingrl.methods.reground.assignment import cheapest_assignment


@pytest.mark.parametrize("n", [1, 2, 3, 7, 18, 40])
def test_it_is_scipys(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(20):
        costs = rng.normal(size=(n, n))
        np.testing.assert_array_equal(cheapest_assignment(costs), linear_sum_assignment(costs)[1])


def test_ties_cost_the_same() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        costs = rng.integers(0, 3, (9, 9)).astype(float)
        found = cheapest_assignment(costs)
        assert sorted(found) == list(range(9))
        assert costs[np.arange(9), found].sum() == costs[linear_sum_assignment(costs)].sum()
