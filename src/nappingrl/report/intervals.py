"""Confidence intervals over trials, never over episodes: the episodes of a trial share one draw.

`*_interval` takes one value per trial and returns an `Interval`, or None if there are too few trials. `*_band` does
the same for every point of a curve at once: the first axis of its arrays is the trials, and the ends are NaN where
there are too few. Compare runs on the same draws with `pair`, then take an interval of the differences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from nappingrl.errors import BadRunError, check_name, import_extra
from nappingrl.types import Floats

Statistic = Callable[..., Any]
"""Takes one array per run that ends in trials, and reduces that last axis."""

LEVEL = 0.95
BAND_RESAMPLES = 1000
RESAMPLES = 10_000
_SEED = 20231218
_BATCH = 1_000_000
"""Values resampled at a time: bounds the memory."""


@dataclass(frozen=True, slots=True)
class Band:
    """Estimates and the ends of their intervals."""

    centre: Floats
    lower: Floats
    upper: Floats


def _stats() -> Any:
    """scipy.stats, which is slow to import, and is no dependency of a run without a report."""
    return import_extra("scipy.stats", "a confidence interval", "report")


def mean_band(values: ArrayLike, level: float = LEVEL) -> Band:
    """Mean with Student's t interval; from 2 trials on."""
    array = np.asarray(values, np.float64)
    n, mean = len(array), array.mean(axis=0)
    if n < 2:
        return _without_ends(mean)
    half = _stats().t.ppf((1 + level) / 2, n - 1) * array.std(axis=0, ddof=1) / np.sqrt(n)
    return Band(mean, mean - half, mean + half)


def median_band(values: ArrayLike, level: float = LEVEL) -> Band:
    """Median between two order statistics chosen by the binomial distribution; from 6 trials on at 95 %.

    It needs no assumption on the distribution and covers with at least the level.
    """
    array = np.asarray(values, np.float64)
    n, median = len(array), np.asarray(np.median(array, axis=0))
    rank = int(_stats().binom.ppf((1 - level) / 2, n, 0.5))
    if rank < 1:
        return _without_ends(median)
    ordered = np.sort(array, axis=0)
    return Band(median, ordered[rank - 1], ordered[n - rank])


def rate_band(successes: ArrayLike, n: ArrayLike, level: float = LEVEL) -> Band:
    """Shares of n trials, one number or one of each point, with Wilson's score interval; from 2 trials on."""
    n = np.asarray(n, np.float64)
    share = np.asarray(successes, np.float64) / n
    z = float(_stats().norm.ppf((1 + level) / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    lower, upper = np.where(share == 0, 0.0, middle - half), np.where(share == 1, 1.0, middle + half)
    return Band(share, np.where(n < 2, np.nan, lower), np.where(n < 2, np.nan, upper))


def bootstrap_band(values: ArrayLike, level: float = LEVEL, resamples: int = BAND_RESAMPLES) -> Band:
    """Mean with its percentile bootstrap interval, the same draws for every column; from 2 trials on.

    For means only: it counts how often each trial is drawn. `bootstrap_interval` takes any statistic of one number.
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
    """The share of ones among the values that are not NaN."""
    is_defined = ~np.isnan(values)
    return rate_band(np.nansum(values, axis=0), is_defined.sum(axis=0))


_BY_STATISTIC = {"median": median_band, "mean": bootstrap_band, "rate": _rate}
_LEAST = {"median": 6, "mean": 2, "rate": 2}
"""Fewest trials that have an interval."""
_NAMES = {"rate": "pass rate"}


def over_trials(values: ArrayLike, statistic: str) -> Band:
    """Median (order statistics), mean (bootstrap) or rate (Wilson's) with its interval, as the figures show them.

    A NaN is an episode that a trial lacks: rates ignore it, medians and means are not defined there.

    Examples:
        >>> band = over_trials(np.arange(1.0, 101.0)[:, None], "median")
        >>> band.centre.item(), band.lower.item(), band.upper.item()
        (50.5, 40.0, 61.0)
    """
    array = np.asarray(values, np.float64)
    band = _BY_STATISTIC[check_name("statistic", statistic, _BY_STATISTIC)](array)
    gaps = np.isnan(array).any(axis=0)
    if statistic == "rate" or not gaps.any():
        return band
    return Band(*(np.where(gaps, np.nan, end) for end in (band.centre, band.lower, band.upper)))


def name_interval(statistic: str, n_trials: int) -> str:
    """What `over_trials` returns for this many trials, in words."""
    return f"{_NAMES.get(statistic, statistic)} {'without' if n_trials < _LEAST[statistic] else 'and 95 %'} interval"


def _without_ends(centre: Any) -> Band:
    unknown = np.full(np.shape(centre), np.nan)
    return Band(centre, unknown, unknown)


# ---------------------------------------------------------------------------------------------------- one number


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its confidence interval over n trials."""

    value: float
    low: float
    high: float
    level: float
    n: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """One value per trial of two runs, on the same draws."""

    novelty: NDArray[np.str_]
    """Of each pair: the strata of a stratified bootstrap."""
    first: Floats
    second: Floats
    unpaired: int
    """Trials of one run that the other lacks."""
    undefined: int
    """Pairs left out because one of the two values is not defined."""

    @property
    def difference(self) -> Floats:
        """First minus second."""
        return self.first - self.second


def pair(first: pl.DataFrame, second: pl.DataFrame, column: str) -> Pairs:
    """Join two tables of one row per trial by novelty and number."""
    key = ["novelty", "number"]
    for table in (first, second):
        if table.select(key).is_duplicated().any():
            raise BadRunError("more than one row per novelty and number; give one row per trial of one run")
    both = first.select(*key, column).join(second.select(*key, column), on=key, suffix="_second", maintain_order="left")
    if both.is_empty():
        raise BadRunError("the runs have no trial in common; pairs need the same novelties and numbers")
    columns = [pl.col(column, column + "_second").cast(pl.Float64).fill_nan(None)]
    defined = both.with_columns(columns).drop_nulls()
    return Pairs(
        novelty=defined["novelty"].to_numpy().astype(np.str_),
        first=defined[column].to_numpy(),
        second=defined[column + "_second"].to_numpy(),
        unpaired=len(first) + len(second) - 2 * len(both),
        undefined=len(both) - len(defined),
    )


def mean_interval(values: ArrayLike, level: float = LEVEL) -> Interval | None:
    """Mean with Student's t interval. All values equal: an interval of no width."""
    x = _checked(values, level)
    return _single(mean_band(x, level), level, len(x)) if len(x) else None


def median_interval(values: ArrayLike, level: float = LEVEL) -> Interval | None:
    """Median between two order statistics; covers with at least the level. None below 6 trials at 95 %."""
    x = _checked(values, level)
    return _single(median_band(x, level), level, len(x)) if len(x) else None


def rate_interval(flags: ArrayLike, level: float = LEVEL) -> Interval | None:
    """Share of true flags with Wilson's score interval."""
    x = _checked(flags, level)
    if not np.isin(x, (0.0, 1.0)).all():
        raise ValueError("a rate needs values of 0 or 1")
    return _single(rate_band(x.sum(), len(x), level), level, len(x)) if len(x) else None


def mean_difference_interval(first: ArrayLike, second: ArrayLike, level: float = LEVEL) -> Interval | None:
    """Difference of the means of two groups on different draws, with Welch's t interval; None below 2 values each.

    Its n is that of the smaller group.
    """
    a, b = _checked(first, level), _checked(second, level)
    if min(len(a), len(b)) < 2:
        return None
    difference = float(a.mean() - b.mean())
    if a.std() == 0 == b.std():
        return Interval(difference, difference, difference, level, min(len(a), len(b)))
    low, high = _stats().ttest_ind(a, b, equal_var=False).confidence_interval(level)
    return Interval(difference, float(low), float(high), level, min(len(a), len(b)))


def resampled_interval(
    statistic: Callable[[Floats], Floats], values: ArrayLike, level: float = LEVEL, resamples: int = BAND_RESAMPLES
) -> Interval | None:
    """Percentile bootstrap interval of a function of the means of columns; None below 2 trials.

    `values` is (trials, columns); `statistic` maps the means (resamples, columns) to numbers (resamples,), NaN where it
    is not defined, and such resamples are left out.
    """
    array = np.asarray(values, np.float64)
    n = len(array)
    if n < 2:
        return None
    counts = np.random.default_rng(_SEED).multinomial(n, np.full(n, 1 / n), resamples)
    found = np.asarray(statistic(counts @ array / n))
    found = found[~np.isnan(found)]
    if not len(found):
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(statistic(array.mean(axis=0)[None])[0]), float(low), float(high), level, n)


def bootstrap_interval(
    statistic: Statistic,
    *values: ArrayLike,
    rng: np.random.Generator,
    strata: ArrayLike | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """Percentile bootstrap interval of any statistic of trials.

    Several `values` are resampled together, trial by trial: they are paired. `strata` (the novelty of each trial):
    resampled within each stratum, so that its size stays; None where a stratum has a single trial.
    """
    runs = [_checked(x, level) for x in values]
    n = len(runs[0])
    labels = np.zeros(n) if strata is None else np.asarray(strata)
    if any(len(x) != n for x in (*runs, labels)):
        raise ValueError(f"{[len(x) for x in (*runs, labels)]} values; pairs and strata need one of each per trial")
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    if not groups or min(len(group) for group in groups) < 2:
        return None

    def of_trials(*groups: NDArray[np.int64], axis: int) -> Any:
        trials = np.concatenate(groups, axis=axis)
        return statistic(*(x[trials] for x in runs))

    low, high = _stats().bootstrap(
        groups, of_trials, n_resamples=resamples, batch=max(1, _BATCH // n), vectorized=True,
        confidence_level=level, method="percentile", rng=rng,
    ).confidence_interval  # fmt: skip
    return Interval(float(statistic(*runs)), float(low), float(high), level, n)


def mean(values: Floats) -> Any:
    """Mean over the trials."""
    return values.mean(axis=-1)


def iqm(values: Floats) -> Any:
    """Interquartile mean over the trials: 25 % trimmed at each end, as rliable has it."""
    return _stats().trim_mean(values, 0.25, axis=-1)


def improvement(first: Floats, second: Floats) -> Any:
    """Probability of improvement by pairs: share of trials with first > second, ties counting half.

    Each trial is compared with the same draw of the other run. rliable has no pairs and compares all runs of a task
    with all; on draws of unequal difficulty that answers another question.
    """
    return ((first > second) + 0.5 * (first == second)).mean(axis=-1)


def _single(band: Band, level: float, n: int) -> Interval | None:
    value, low, high = float(band.centre), float(band.lower), float(band.upper)
    return None if np.isnan(low) else Interval(value, low, high, level, n)


def _checked(values: ArrayLike, level: float) -> Floats:
    if not 0 < level < 1:
        raise ValueError(f"level {level:g}; allowed: between 0 and 1")
    x = np.asarray(values, np.float64)
    if x.ndim != 1:
        raise ValueError(f"values of shape {x.shape}; an interval takes one value per trial")
    if not np.isfinite(x).all():
        raise ValueError("a value is NaN or infinite; leave out trials where it is not defined, and say how many")
    return x
