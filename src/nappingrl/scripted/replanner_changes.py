"""Changes of single features over time, by a two-sided CUSUM test; features that cry wolf are dropped."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

SLACK, LIMIT = 0.5, 5.0
"""In standard deviations: what is let pass each time, and the sum that is a change."""
LARGEST = 6.0
"""One value counts as at most this many standard deviations."""
FEWEST = 3
"""Values a reference needs."""


@dataclass(slots=True)
class Cusum:
    """One feature against the mean and spread it had until now."""

    least_spread: float
    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    up: float = 0.0
    down: float = 0.0

    def add(self, value: float, is_reference: bool) -> int:
        """1 if the feature has risen, -1 if it has fallen, else 0; after a change the values to come are the reference.

        Args:
            value: of the feature now.
            is_reference: Whether the world is as usual, so that the value says what is usual.
        """
        change = self._test(value) if self.n >= FEWEST else 0
        if change:
            self.n, self.mean, self.squares, self.up, self.down = 0, 0.0, 0.0, 0.0, 0.0
        if is_reference or self.n < FEWEST:
            self.n += 1
            step = value - self.mean
            self.mean += step / self.n
            self.squares += step * (value - self.mean)
        return change

    def _test(self, value: float) -> int:
        spread = max(sqrt(self.squares / self.n), self.least_spread)
        distance = max(-LARGEST, min(LARGEST, (value - self.mean) / spread))
        self.up = max(0.0, self.up + distance - SLACK)
        self.down = max(0.0, self.down - distance - SLACK)
        return int(self.up > LIMIT) - int(self.down > LIMIT)


class Monitor:
    """One test per feature. Negative selection: a feature that fires while nothing is new is not heard again."""

    def __init__(self, least_spreads: Mapping[str, float]) -> None:
        self._tests = {name: Cusum(least) for name, least in least_spreads.items()}

    @property
    def features(self) -> tuple[str, ...]:
        """Those that are still listened to."""
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
