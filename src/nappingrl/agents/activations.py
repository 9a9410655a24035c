"""Activation functions as kernels, for agents and learners."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel


@kernel(error_model="numpy")  # a check for division by zero would keep the loop from using SIMD
def tanh(values: NDArray[np.float32]) -> None:
    """Put the hyperbolic tangent of each value in its place.

    numpy's float32 tanh takes 19 ns an element without AVX-512, as long as all else in a tick. This is the [7/6]
    continued fraction of tanh(x/4), exact to float32 for |x| <= 9, and the doubling formula applied twice.
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


@kernel()
def relu(values: NDArray[np.float32]) -> None:
    """Put 0 in the place of each negative value; what is not a number stays so, as in torch."""
    for i in range(values.shape[0]):
        values[i] = np.float32(0) if values[i] <= 0 else values[i]
