"""Activation functions as kernels, for agents and learners."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel


@kernel(allocates=False, error_model="numpy", fastmath={"contract"})  # checking for division by zero would prevent SIMD
def tanh(values: NDArray[np.float32]) -> None:
    """Replace each value by its hyperbolic tangent.

    Without AVX-512, numpy's float32 tanh takes 19 ns per element, as long as the rest of a tick. This is the [7/6]
    continued fraction of tanh(x/4), exact to float32 for |x| <= 9, followed by the doubling formula, twice.
    """
    one, two, quarter, limit = np.float32(1), np.float32(2), np.float32(0.25), np.float32(2.25)
    a0, a1, a2 = np.float32(135135), np.float32(17325), np.float32(378)
    b1, b2, b3 = np.float32(62370), np.float32(3150), np.float32(28)
    for i in range(values.shape[0]):
        x = max(-limit, min(limit, values[i] * quarter))
        s = x * x
        t = x * (a0 + s * (a1 + s * (a2 + s))) / (a0 + s * (b1 + s * (b2 + s * b3)))
        t = two * t / (one + t * t)
        values[i] = two * t / (one + t * t)


@kernel(allocates=False)
def relu(values: NDArray[np.float32]) -> None:
    """Replace each negative value by 0; NaN stays NaN, as in torch."""
    for i in range(values.shape[0]):
        values[i] = np.float32(0) if values[i] <= 0 else values[i]
