"""Bounds of the observation space: transitions that touch them reveal little of the dynamics."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import DomainSpec, Flags, Floats


def bounds(domain: DomainSpec) -> tuple[Floats, Floats]:
    """The bounds of the observation space as vectors."""
    return (
        np.asarray(domain.observation_low, np.float64).ravel(),
        np.asarray(domain.observation_high, np.float64).ravel(),
    )


@kernel()
def extremes(values: NDArray[np.float64]) -> tuple[Floats, Floats]:
    """(d,) the lowest and the highest of m values (m, d); numpy takes far longer along the first axis."""
    low, high = np.full(values.shape[1], np.inf), np.full(values.shape[1], -np.inf)
    for m in range(len(values)):
        for i in range(values.shape[1]):
            low[i], high[i] = min(low[i], values[m, i]), max(high[i], values[m, i])
    return low, high


def is_unclipped(observations: NDArray[np.float64], low: Floats, high: Floats) -> NDArray[np.bool_]:
    """(m, d) which observations do not touch their bounds."""
    with np.errstate(invalid="ignore"):
        span = np.where(np.isfinite(high - low), high - low, 1.0)
    near_low = np.abs(observations - low) < 1e-6 * span
    near_high = np.abs(observations - high) < 1e-6 * span
    return np.asarray(~(near_low | near_high))


def rows_unclipped(
    observations: NDArray[np.float64], low: Floats, high: Floats, clips_at_bounds: Flags
) -> NDArray[np.bool_]:
    """(m,) which rows have no clipped observation; `clips_at_bounds`, (d,) or (m, d): which observations can be."""
    return np.asarray((is_unclipped(observations, low, high) | ~clips_at_bounds).all(axis=1))
