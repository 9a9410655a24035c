"""Limits that values of the unchanged world rarely exceed, estimated from a few dozen of them."""

from math import log, log1p, pi, sqrt

import numpy as np

from nappingrl.types import Floats


def tail_limit(values: Floats, probability: float) -> float:
    """The value that a further one exceeds with this probability, whether the tail is heavy or light.

    The moment estimator of Dekkers, Einmahl and de Haan (1989) on the upper quarter; its index is raised by its own
    uncertainty, so that few values give a high limit, and is not below 0.
    """
    ordered = np.sort(np.maximum(values, 1e-12))[::-1]
    n = len(ordered)
    k = max(1, n // 4)
    if k >= n or probability * n >= k:
        return float(2 * ordered[0])
    logs = np.log(ordered[:k] / ordered[k])
    first, second = float(logs.mean()), float((logs**2).mean())
    light = min(1 - 0.5 / max(1 - first**2 / max(second, 1e-300), 1e-12), 0.0) if second > first**2 else 0.0
    index = min(max(first + light, 0.0) + 0.5 / sqrt(k), 2.0)
    scale = ordered[k] * first * (1 - light)
    with np.errstate(over="ignore"):
        return float(ordered[k] + scale * ((k / (n * probability)) ** index - 1) / index)


def gumbel_limit(values: Floats, probability: float, least_spread: float = 0.0) -> Floats:
    """The same along the first axis, for values that are each the largest of many with a light tail.

    A Gumbel distribution with the mean and the spread of these values.
    """
    spread = np.maximum(values.std(axis=0, ddof=1), least_spread)
    beta = spread * sqrt(6) / pi
    found: Floats = values.mean(axis=0) + beta * (-log(-log1p(-probability)) - np.euler_gamma)
    return found
