"""What a value of the unchanged world hardly ever exceeds, from a few dozen of its values."""

from math import log, log1p, pi, sqrt

import numpy as np

from nappingrl.types import Floats


def hill_limit(values: Floats, probability: float) -> float:
    """The value that another one exceeds with this probability, if the tail of these goes on as it begins.

    Hill's estimator on the upper quarter, for values with heavy tails.
    """
    ordered = np.sort(np.maximum(values, 1e-12))[::-1]
    n = len(ordered)
    k = max(1, n // 4)
    if k >= n:
        return float(2 * ordered[0])
    index = float(np.log(ordered[:k] / ordered[k]).mean())
    # The mean over what the index may be, known from k values: its power of e is that of a gamma variable.
    with np.errstate(over="ignore"):  # few values leave the limit open: infinity
        return float(ordered[k] * np.exp(k * index * ((k / (n * probability)) ** (1 / k) - 1)))


def gumbel_limit(values: Floats, probability: float, least_spread: float = 0.0) -> Floats:
    """The same along the first axis, by a Gumbel distribution with the mean and the spread of these values.

    For values that are the largest of many with light tails.
    """
    spread = np.maximum(values.std(axis=0, ddof=1), least_spread)
    beta = spread * sqrt(6) / pi
    found: Floats = values.mean(axis=0) + beta * (-log(-log1p(-probability)) - np.euler_gamma)
    return found
