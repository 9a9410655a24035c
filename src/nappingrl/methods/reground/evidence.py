"""When a map is believed: it must explain the new steps significantly better, and most of what is unusual in them."""

from dataclasses import dataclass

import numpy as np

from nappingrl.types import Floats

MIN_T = 3.5
"""Least t statistic of the paired differences of cost."""
MIN_GAIN = 10.0
"""Least total gain, in units of log-likelihood."""
MIN_SHARE = 0.3
"""Least share of the unusual cost that a map must explain."""
MIN_STEPS = 4
LEAST_DEVIATION = 0.02
"""Added to the standard deviation, so that a few equal differences are not infinitely significant."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of the latest steps and of the latest episodes' initial observations, under one map."""

    steps: Floats
    misfit: Floats
    """The part of `steps` that is misfit of the model, not distance from the reference."""
    starts: Floats

    @property
    def total(self) -> float:
        """The sum of all."""
        return float(self.steps.sum() + self.starts.sum())

    def unusual(self, step: float, start: float) -> float:
        """How much of it exceeds what steps and starts usually cost."""
        return float((self.misfit - step).sum() + (self.starts - start).sum())


def t_statistic(differences: Floats) -> float:
    """Student's t of paired differences; 0 for fewer than three."""
    n = len(differences)
    if n < 3:
        return 0.0
    return float(differences.mean() / ((differences.std(ddof=1) + LEAST_DEVIATION) / np.sqrt(n)))


def is_better(new: Costs, old: Costs) -> bool:
    """Whether the new map is significantly better than the old one, by the steps, or by the starts of two episodes."""
    steps, starts = old.steps - new.steps, old.starts - new.starts
    if steps.sum() + starts.sum() < MIN_GAIN or len(steps) < MIN_STEPS:
        return False
    by_steps = t_statistic(steps) > MIN_T
    by_starts = len(starts) >= 2 and starts.sum() > MIN_GAIN and steps.sum() > -0.25 * starts.sum()
    return by_steps or by_starts
