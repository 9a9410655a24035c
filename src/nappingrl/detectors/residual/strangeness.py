"""Strangeness: whole episodes in a row that the model predicts worse than any episode of the calibration.

The other tests allow larger residuals where a state is unusual, because a model extrapolates badly. An agent that falls
in a changed world is in unusual states all the time, so they may miss it. This test makes no such allowance. It asks
only how whole episodes rank among those of the calibration, whatever their distribution is.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Floats, Rows
from nappingrl.world_model.reference import Judged

MIN_STEPS = 20
"""Judged steps of an episode that say anything."""
LEAST = 0.5
"""The mean strangeness of a step whose residuals are usual, in nats per observation: less is not strange."""
USUAL = 0.75
"""Quantile of the calibrated episodes up to which an episode is usual."""
N_USUAL = 3
"""Usual episodes in a row after which the original world is back: a translated agent makes a changed one look calm."""
RARITY = 0.1
"""Share of the rate of false alarms that this test may cause: it is the last to speak."""


class Strangeness:
    """Counts successive episodes that are stranger than any calibrated one.

    If nothing has changed, k successive episodes are the strangest of n + k with probability k! n! / (n + k)!; k is the
    least number for which that is rare enough.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "largest": Expected(low=0, with_inf=True), "usual": Expected(low=0), "n_needed": Expected(low=1),
        "n_strange": Expected(low=0), "n_usual": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, config: ResidualConfig) -> None:
        self.config = config
        self.largest = np.full(n, np.inf)
        """Mean strangeness of the strangest calibrated episode."""
        self.usual = np.zeros(n)
        self.n_needed = np.ones(n, np.int64)
        """k."""
        self.n_strange, self.n_usual = np.zeros((2, n), np.int64)
        """Successive episodes so far."""

    def start(self, rows: Rows) -> None:
        """Nothing is calibrated yet."""
        self.largest[rows], self.usual[rows] = np.inf, 0.0
        self.n_needed[rows] = 1
        self.forget_episodes(rows)

    def forget_episodes(self, rows: Rows) -> None:
        """Count anew."""
        self.n_strange[rows] = self.n_usual[rows] = 0

    def calibrate(self, row: int, held_out: Judged) -> None:
        """Note the strangest episode."""
        parts = np.split(held_out.strangeness, np.flatnonzero(np.diff(held_out.episodes)) + 1)
        means = [mean for mean in map(_mean, parts) if mean is not None]
        if len(means) < self.config.min_episodes:
            return
        self.largest[row], self.usual[row] = max(LEAST, *means), np.quantile(means, USUAL)
        n, k, probability = len(means), 0, 1.0
        while probability > RARITY * self.config.false_alarms:
            k += 1
            probability *= k / (n + k)
        self.n_needed[row] = k

    def end_episode(self, row: int, steps: Floats) -> None:
        """Judge an episode by the strangeness of its steps."""
        mean = _mean(steps)
        if mean is not None:
            self.n_strange[row] = self.n_strange[row] + 1 if mean > self.largest[row] else 0
            self.n_usual[row] = self.n_usual[row] + 1 if mean <= self.usual[row] else 0

    def is_alarm(self, rows: Rows) -> Flags:
        """Where enough episodes in a row were strange."""
        return np.asarray(self.n_strange[rows] >= self.n_needed[rows])

    def is_strange(self, rows: Rows) -> Flags:
        """Whether the latest episode was."""
        return np.asarray(self.n_strange[rows] > 0)

    def is_usual(self, rows: Rows) -> Flags:
        """Whether several episodes in a row were as most of the calibration."""
        return np.asarray(self.n_usual[rows] >= N_USUAL)


def _mean(steps: Floats) -> float | None:
    """The mean strangeness of the judged steps of an episode; None: there are too few."""
    is_judged = ~np.isnan(steps)
    return float(steps[is_judged].mean()) if is_judged.sum() >= MIN_STEPS else None
