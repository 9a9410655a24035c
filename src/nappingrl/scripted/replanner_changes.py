"""Change detection of single features with a two-sided CUSUM test; features with false alarms are dropped."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from nappingrl.detectors.returns import add_to_cusum
from nappingrl.types import Floats

ALLOWANCE, LIMIT = 0.5, 5.0
"""In standard deviations: what each value may deviate at no cost, and the sum that counts as a change."""
CLIP = 6.0
"""A single value counts at most this many standard deviations."""
MIN_REFERENCE = 3
"""Values that a reference needs."""


@dataclass(slots=True)
class FeatureTest:
    """CUSUM test of one feature against its mean and spread so far."""

    min_spread: float
    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    sums: Floats = field(default_factory=lambda: np.zeros(2))

    def add(self, value: float, is_reference: bool) -> int:
        """1 if the feature has risen, -1 if it has fallen, else 0; after a change the reference is learned anew.

        Args:
            value: The feature now.
            is_reference: Whether nothing is novel, so that the value belongs to the reference.
        """
        change = self._test(value) if self.n >= MIN_REFERENCE else 0
        if change:
            self.n, self.mean, self.squares, self.sums = 0, 0.0, 0.0, np.zeros(2)
        if is_reference or self.n < MIN_REFERENCE:
            self.n += 1
            step = value - self.mean
            self.mean += step / self.n
            self.squares += step * (value - self.mean)
        return change

    def _test(self, value: float) -> int:
        spread = max(sqrt(self.squares / self.n), self.min_spread)
        deviation = max(-CLIP, min(CLIP, (value - self.mean) / spread))
        self.sums = add_to_cusum(self.sums, deviation, ALLOWANCE)
        rises, falls = (self.sums > LIMIT).tolist()
        return int(rises) - int(falls)


class Monitor:
    """One test per feature; a feature that raises an alarm before the novelty is dropped (negative selection)."""

    def __init__(self, min_spreads: Mapping[str, float]) -> None:
        self._tests = {name: FeatureTest(min_spread) for name, min_spread in min_spreads.items()}

    @property
    def features(self) -> tuple[str, ...]:
        """The features that have not been dropped."""
        return tuple(self._tests)

    def add(self, values: Mapping[str, float], is_novel: bool) -> dict[str, int]:
        """The features that changed, 1 for up and -1 for down; before the novelty they are dropped instead."""
        changes = {name: test.add(values[name], not is_novel) for name, test in self._tests.items()}
        changes = {name: change for name, change in changes.items() if change}
        if is_novel:
            return changes
        for name in changes:
            del self._tests[name]
        return {}
