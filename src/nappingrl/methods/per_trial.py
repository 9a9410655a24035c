"""Base class of methods that learn by an object per trial instead of arrays over trials."""

from abc import abstractmethod
from typing import Generic, Protocol, TypeVar

import numpy as np
from typing_extensions import override

from nappingrl.methods.base import Method
from nappingrl.types import Flags, Keys, Rows


class Trial(Protocol):
    """What such an object can tell."""

    def context_sizes(self) -> dict[int, int]:
        """Number of policies, plans or outcomes learned in each context."""


OneTrial = TypeVar("OneTrial", bound=Trial)


class PerTrialMethod(Method, Generic[OneTrial]):
    """Holds `trials`, and makes them anew when trials start; a subclass makes them in its constructor first."""

    trials: list[OneTrial]

    @abstractmethod
    def make_trial(self, key: int) -> OneTrial:
        """A trial that has learned nothing; `key` seeds its random draws."""

    def make_trials(self) -> list[OneTrial]:
        """One of each row, before any trial starts."""
        return [self.make_trial(0) for _ in range(self.n)]

    @abstractmethod
    def has_policy(self, row: int) -> bool:
        """Whether it has something else to do than the frozen agent."""

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
            self.trials[row] = self.make_trial(key)

    def with_policy(self, rows: Rows) -> Flags:
        """Which rows have something else to do than the frozen agent."""
        return np.array([self.has_policy(row) for row in rows.tolist()], np.bool_)

    @override
    def regions(self, rows: Rows) -> tuple[Rows, Rows]:
        """One policy where there is one; none is open."""
        return self.with_policy(rows).astype(np.int64), np.zeros(len(rows), np.int64)

    @override
    def context_sizes(self, row: int) -> dict[int, int]:
        return self.trials[row].context_sizes()
