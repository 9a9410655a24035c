"""A run over its trials beyond the mean: IQM, probability of improvement, performance profile."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nappingrl.errors import BadRunError
from nappingrl.report.best_control import find_frozen
from nappingrl.report.intervals import (
    BAND_RESAMPLES,
    Band,
    Interval,
    bootstrap_interval,
    improvement,
    iqm,
    over_trials,
    pair,
)
from nappingrl.report.runs import Run
from nappingrl.types import Floats

POINTS = 51
"""Returns at which a profile is measured."""
_SEED = 20231218


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The final levels of a run's trials."""

    iqm: float
    iqm_interval: Interval | None
    """Bootstrap over trials within each novelty; None: a novelty has a single trial."""
    improvement: float | None
    """Probability of ending above the frozen agent; None: there is no such run on the same draws."""
    improvement_interval: Interval | None


def aggregate(run: Run, runs: Sequence[Run]) -> Aggregate:
    """The run, beside the frozen run among `runs` that met the same draws with the same agent."""
    rng = np.random.default_rng(_SEED)
    level, strata = run.levels["level"].to_numpy(), run.levels["novelty"].to_numpy()
    interval = bootstrap_interval(iqm, level, rng=rng, strata=strata, resamples=BAND_RESAMPLES)
    frozen = find_frozen(run, runs)
    if frozen is None or frozen is run:
        return Aggregate(float(iqm(level)), interval, None, None)
    try:
        both = pair(run.levels, frozen.levels, "level")
    except BadRunError:  # partial runs without a trial in common
        return Aggregate(float(iqm(level)), interval, None, None)
    better = bootstrap_interval(
        improvement, both.first, both.second, rng=rng, strata=both.novelty, resamples=BAND_RESAMPLES
    )
    return Aggregate(float(iqm(level)), interval, float(improvement(both.first, both.second)), better)


def profile(run: Run, span: tuple[float, float]) -> tuple[Floats, Band]:
    """Returns from the lowest to the highest, and the share of trials whose final level is at least each of them."""
    levels = run.levels["level"].to_numpy()
    returns = np.linspace(*span, POINTS)
    reached = levels[:, None] >= returns - 1e-9 * (span[1] - span[0])
    return returns, over_trials(reached.astype(np.float64), "rate")
