"""Intervals over trials, never over episodes: the episodes of a trial share one draw and are not independent.

Every function takes one value per trial and gives None where the trials are too few for an interval; `intervals.py` has
the formulas, for whole curves too. Runs that met the same draws are compared by pairs: `pair`, then any interval of the
differences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from nappingrl.errors import BadRunError
from nappingrl.report import intervals
from nappingrl.report.intervals import LEVEL, Floats

Statistic = Callable[..., Any]
"""Takes arrays that end in trials, one per run, and reduces that last axis."""

RESAMPLES = 10_000
_BATCH = 1_000_000
"""Values that are resampled at a time: bounds the memory."""


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
    """Trials of either run that the other has not."""
    undefined: int
    """Pairs left out because the value is not defined for one of them."""

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


def mean_t(values: ArrayLike, level: float = LEVEL) -> Interval | None:
    """Mean with Student's t interval. All values equal: an interval of no width."""
    x = _checked(values, level)
    return _single(intervals.mean_t(x, level), level, len(x)) if len(x) else None


def median_order(values: ArrayLike, level: float = LEVEL) -> Interval | None:
    """Median between two order statistics; covers with at least the level. None below 6 trials at 95 %."""
    x = _checked(values, level)
    return _single(intervals.median_order(x, level), level, len(x)) if len(x) else None


def rate_wilson(flags: ArrayLike, level: float = LEVEL) -> Interval | None:
    """Share of true flags with Wilson's score interval."""
    x = _checked(flags, level)
    if not np.isin(x, (0.0, 1.0)).all():
        raise ValueError("a rate needs values of 0 or 1")
    return _single(intervals.rate_wilson(x.sum(), len(x), level), level, len(x)) if len(x) else None


def bootstrap(
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

    low, high = stats.bootstrap(
        groups, of_trials, n_resamples=resamples, batch=max(1, _BATCH // n), vectorized=True,
        confidence_level=level, method="percentile", rng=rng,
    ).confidence_interval  # fmt: skip
    return Interval(float(statistic(*runs)), float(low), float(high), level, n)


def mean(values: Floats) -> Any:
    """Mean over the trials."""
    return values.mean(axis=-1)


def iqm(values: Floats) -> Any:
    """Interquartile mean over the trials: 25 % trimmed at each end, as rliable has it."""
    return stats.trim_mean(values, 0.25, axis=-1)


def improvement(first: Floats, second: Floats) -> Any:
    """Probability of improvement by pairs: share of trials with first > second, ties counting half.

    Each trial is compared with the same draw of the other run. rliable has no pairs and compares all runs of a task
    with all; on draws of unequal difficulty that answers another question.
    """
    return ((first > second) + 0.5 * (first == second)).mean(axis=-1)


def mean_bootstrap(values: ArrayLike, rng: np.random.Generator, **options: Any) -> Interval | None:
    """Mean with its bootstrap interval; options: those of `bootstrap`."""
    return bootstrap(mean, values, rng=rng, **options)


def iqm_bootstrap(values: ArrayLike, rng: np.random.Generator, **options: Any) -> Interval | None:
    """Interquartile mean with its bootstrap interval; options: those of `bootstrap`."""
    return bootstrap(iqm, values, rng=rng, **options)


def improvement_bootstrap(
    first: ArrayLike, second: ArrayLike, rng: np.random.Generator, **options: Any
) -> Interval | None:
    """Probability of improvement of paired trials with its bootstrap interval; options: those of `bootstrap`."""
    return bootstrap(improvement, first, second, rng=rng, **options)


def _single(band: intervals.Band, level: float, n: int) -> Interval | None:
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
