"""95 % intervals over trials, for all points of a curve at once.

The first axis of every array is the trials. Ends are NaN where the trials are too few for an interval. `statistics.py`
gives the same intervals of a single number.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom, norm, t

from nappingrl.errors import check_name

Floats = NDArray[np.float64]
LEVEL = 0.95
RESAMPLES = 1000
_SEED = 20231218


@dataclass(frozen=True, slots=True)
class Band:
    """Estimates and the ends of their intervals."""

    centre: Floats
    lower: Floats
    upper: Floats


def mean_t(values: ArrayLike, level: float = LEVEL) -> Band:
    """Mean with Student's t interval; from 2 trials on."""
    array = np.asarray(values, np.float64)
    n, mean = len(array), array.mean(axis=0)
    if n < 2:
        return _without_ends(mean)
    half = t.ppf((1 + level) / 2, n - 1) * array.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)


def median_order(values: ArrayLike, level: float = LEVEL) -> Band:
    """Median between two order statistics chosen by the binomial distribution; from 6 trials on at 95 %.

    It needs no assumption on the distribution and covers with at least the level.
    """
    array = np.asarray(values, np.float64)
    n, median = len(array), np.asarray(np.median(array, axis=0))
    rank = int(binom.ppf((1 - level) / 2, n, 0.5))
    if rank < 1:
        return _without_ends(median)
    ordered = np.sort(array, axis=0)
    return Band(median, ordered[rank - 1], ordered[n - rank])


def rate_wilson(successes: ArrayLike, n: ArrayLike, level: float = LEVEL) -> Band:
    """Shares of n trials, one number or one of each point, with Wilson's score interval; from 2 trials on."""
    n = np.asarray(n, np.float64)
    share = np.asarray(successes, np.float64) / n
    z = float(norm.ppf((1 + level) / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    lower, upper = np.where(share == 0, 0.0, middle - half), np.where(share == 1, 1.0, middle + half)
    return Band(share, np.where(n < 2, np.nan, lower), np.where(n < 2, np.nan, upper))


def mean_bootstrap(values: ArrayLike, level: float = LEVEL, resamples: int = RESAMPLES) -> Band:
    """Mean with its percentile bootstrap interval, the same draws for every column; from 2 trials on.

    Means only, by how often each trial is drawn: `statistics.bootstrap` does any statistic, one number at a time.
    """
    array = np.asarray(values, np.float64)
    n, mean = len(array), array.mean(axis=0)
    if n < 2:
        return _without_ends(mean)
    counts = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), resamples)
    means = (counts @ array.reshape(n, -1) / n).reshape(resamples, *array.shape[1:])
    lower, upper = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Band(mean, lower, upper)


def _rate(values: Floats) -> Band:
    """The share of ones among the values that are there."""
    is_there = ~np.isnan(values)
    return rate_wilson(np.nansum(values, axis=0), is_there.sum(axis=0))


_BY_STATISTIC = {"median": median_order, "mean": mean_bootstrap, "rate": _rate}
_LEAST = {"median": 6, "mean": 2, "rate": 2}
"""Trials from which on there is an interval."""
_NAMES = {"rate": "pass rate"}


def over_trials(values: ArrayLike, statistic: str) -> Band:
    """Median (order statistics), mean (bootstrap) or rate (Wilson's) with its interval, as the figures show them.

    A NaN is an episode that a trial has not: rates are of the others, medians and means are not defined there.

    Examples:
        >>> found = over_trials(np.arange(1.0, 101.0)[:, None], "median")
        >>> found.centre.item(), found.lower.item(), found.upper.item()
        (50.5, 40.0, 61.0)
    """
    array = np.asarray(values, np.float64)
    found = _BY_STATISTIC[check_name("statistic", statistic, _BY_STATISTIC)](array)
    gaps = np.isnan(array).any(axis=0)
    if statistic == "rate" or not gaps.any():
        return found
    return Band(*(np.where(gaps, np.nan, end) for end in (found.centre, found.lower, found.upper)))


def name_interval(statistic: str, n_trials: int) -> str:
    """What `over_trials` gives of so many trials, in words."""
    return f"{_NAMES.get(statistic, statistic)} {'without' if n_trials < _LEAST[statistic] else 'and 95 %'} interval"


def _without_ends(centre: Any) -> Band:
    unknown = np.full(np.shape(centre), np.nan)
    return Band(centre, unknown, unknown)
