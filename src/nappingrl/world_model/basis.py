"""Features of the world model: curves of each observation, products of two, and an affine part per action."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats

N_CURVES = 5
"""Chebyshev polynomials T2..T6 of each observation."""


class Frame(NamedTuple):
    """How observations are scaled to about [-1, 1], and which features are computed from them."""

    centre: Floats
    """(d,)"""
    scale: Floats
    """(d,) the largest deviation from the centre in the data."""
    has_products: bool
    """Whether products of two observations are features, too."""
    n_shared: int
    """How many features do not depend on the action."""


@kernel()
def make_frame(centre: Floats, scale: Floats, has_products: bool) -> Frame:
    """The frame of observations with this centre and scale."""
    d = len(centre)
    return Frame(centre, scale, has_products, d * N_CURVES + (d * (d - 1) // 2 if has_products else 0))


@kernel(allocates=False)
def standardise(frame: Frame, state: Floats, z: Floats) -> None:
    """Write a state, scaled to about [-1, 1], into `z`."""
    for i in range(state.shape[0]):
        z[i] = (state[i] - frame.centre[i]) / frame.scale[i]


@kernel(allocates=False)
def shared_features(frame: Frame, z: Floats, out: Floats) -> None:
    """Write the features of a standardised state that all actions share into `out`.

    Beyond the largest deviation in the data the curves stay constant: only the affine part extrapolates.
    """
    d = z.shape[0]
    for i in range(d):
        x = min(max(z[i], -1.0), 1.0)
        before, now = 1.0, x
        for k in range(N_CURVES):
            before, now = now, 2 * x * now - before
            out[i * N_CURVES + k] = now
    if frame.has_products:
        at = d * N_CURVES
        for i in range(d):
            x = min(max(z[i], -1.0), 1.0)
            for j in range(i + 1, d):
                out[at] = x * min(max(z[j], -1.0), 1.0)
                at += 1


@kernel()
def design(frame: Frame, states: NDArray[np.float64], actions: NDArray[np.float64]) -> NDArray[np.float64]:
    """The features of m states (m, d) with encoded actions (m, b), the affine part last: (m, shared + b (d + 1))."""
    m, d = states.shape
    b = actions.shape[1]
    z = np.empty(d)
    out = np.zeros((m, frame.n_shared + b * (d + 1)))
    for row in range(m):
        standardise(frame, states[row], z)
        shared_features(frame, z, out[row])
        for k in range(b):
            weight = actions[row, k]
            if weight != 0.0:
                at = frame.n_shared + k * (d + 1)
                for i in range(d):
                    out[row, at + i] = weight * z[i]
                out[row, at + d] = weight
    return out
