"""The features of the world model."""

import numpy as np

from nappingrl.world_model.basis import design, make_frame


def test_features_by_hand() -> None:
    """T2..T6 of both, the product, then [z, 1] for each encoded; beyond the scale only z itself goes on."""
    frame = make_frame(np.array([1.0, 0.0]), np.array([2.0, 1.0]), True)
    found = design(frame, np.array([[2.0, 3.0]]), np.array([[0.0, 2.0]]))[0]
    x = 0.5
    curves: list[float] = [2 * x**2 - 1, 4 * x**3 - 3 * x, 8 * x**4 - 8 * x**2 + 1, 16 * x**5 - 20 * x**3 + 5 * x]
    curves += [32 * x**6 - 48 * x**4 + 18 * x**2 - 1]
    expected: list[float] = [*curves, *[1.0] * 5, 0.5, 0, 0, 0, 1.0, 6.0, 2.0]
    np.testing.assert_allclose(found, expected)
