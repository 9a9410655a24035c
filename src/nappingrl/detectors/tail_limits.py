"""Limits that values of the unchanged world rarely exceed, estimated from a few dozen of them."""

from math import log, log1p, pi, sqrt

import numpy as np

from nappingrl.types import Floats


def hill_limit(values: Floats, probability: float) -> float:
    """The value that a further one exceeds with this probability, for values with a heavy tail.

    Hill's estimator on the upper quarter.
    """
    ordered = np.sort(np.maximum(values, 1e-12))[::-1]
    n = len(ordered)
    k = max(1, n // 4)
    if k >= n:
        return float(2 * ordered[0])
    index = float(np.log(ordered[:k] / ordered[k]).mean())
    # The mean over the uncertainty of the index, which follows a gamma distribution.
    with np.errstate(over="ignore"):  # with few values the limit is infinite
        return float(ordered[k] * np.exp(k * index * ((k / (n * probability)) ** (1 / k) - 1)))


def gumbel_limit(values: Floats, probability: float, least_spread: float = 0.0) -> Floats:
    """The same along the first axis, for values that are each the largest of many with a light tail.

    A Gumbel distribution with the mean and the spread of these values.
    """
    spread = np.maximum(values.std(axis=0, ddof=1), least_spread)
    beta = spread * sqrt(6) / pi
    found: Floats = values.mean(axis=0) + beta * (-log(-log1p(-probability)) - np.euler_gamma)
    return found
