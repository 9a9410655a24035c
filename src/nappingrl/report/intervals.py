"""95 % intervals over trials for all points of a curve at once.

`median_order`, `mean_bootstrap` and `rate_wilson` of statistics.py are the same intervals for one number; a curve of 80
episodes over 5000 trials needs arrays.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from nappingrl.registry import check_name

Floats = NDArray[np.float64]
LEVEL = 0.95
RESAMPLES = 1000
INTERVAL_NAMES = {"median": "order-statistic", "mean": "bootstrap"}
"""Statistic over trials -> how its interval is made; said in docs/figures.md."""
_SEED = 20231218


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the ends of its interval."""

    centre: Floats
    lower: Floats
    upper: Floats


def over_trials(values: NDArray[Any], statistic: str) -> Interval:
    """Median or mean over the first axis (trials) with its 95 % interval.

    The median's interval lies between two order statistics, so it needs no assumption on the distribution. The mean's
    is the percentile bootstrap over trials. Ends are NaN where trials are too few: below 6 and below 2.

    Examples:
        >>> found = over_trials(np.arange(1.0, 101.0)[:, None], "median")
        >>> found.centre.item(), found.lower.item(), found.upper.item()
        (50.5, 40.0, 61.0)
    """
    check_name("statistic", statistic, INTERVAL_NAMES)
    array = np.asarray(values, np.float64)
    n = len(array)
    if statistic == "median":
        ordered = np.sort(array, axis=0)
        rank = int(binom.ppf((1 - LEVEL) / 2, n, 0.5))
        if rank < 1:
            return _without_interval(np.median(array, axis=0))
        return Interval(np.median(array, axis=0), ordered[rank - 1], ordered[n - rank])
    if n < 2:
        return _without_interval(array.mean(axis=0))
    lower, upper = np.quantile(_resampled_means(array), [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return Interval(array.mean(axis=0), lower, upper)


def _without_interval(centre: Any) -> Interval:
    unknown = np.full(np.shape(centre), np.nan)
    return Interval(centre, unknown, unknown)


def _resampled_means(values: Floats) -> Floats:
    """Means over trials drawn with replacement: the same draws for every column of a (trials, ...) array."""
    n = len(values)
    counts = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    means: Floats = (counts @ values.reshape(n, -1) / n).reshape(RESAMPLES, *values.shape[1:])
    return means


def of_share(successes: NDArray[np.int64], n: int) -> Interval:
    """A share of n trials with Wilson's 95 % interval."""
    z = float(norm.ppf((1 + LEVEL) / 2))
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Interval(share, middle - half, middle + half)
