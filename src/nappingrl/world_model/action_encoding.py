"""Actions as vectors: one-hot for choices, powers of the number for continuous ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import DomainSpec


class Pushes:
    """Turns executed actions into the vectors that a fitted world is linear in."""

    def __init__(self, domain: DomainSpec) -> None:
        self.n_actions = domain.n_actions
        self.low, self.high = np.asarray(domain.action_low, np.float64), np.asarray(domain.action_high, np.float64)
        self.size = domain.n_actions or 1 + 2 * len(self.low)

    @property
    def is_continuous(self) -> bool:
        """Whether actions are numbers."""
        return self.n_actions == 0

    def __call__(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """(m, size): one-hot, or 1, the action in [-1, 1], and its square."""
        m = len(actions)
        if not self.is_continuous:
            out = np.zeros((m, self.size))
            out[np.arange(m), actions] = 1.0
            return out
        share = self.to_shares(actions)
        return np.hstack([np.ones((m, 1)), share, share**2])

    def to_shares(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """Continuous actions (m, k), as shares of half the range: -1 to 1."""
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        shares: NDArray[np.float64] = (np.asarray(actions, np.float64) - middle) / half
        return shares

    def to_actions(self, shares: NDArray[np.float64]) -> NDArray[np.float32]:
        """Shares (m, k) as actions, cut to the range."""
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        return np.clip(middle + half * shares, self.low, self.high).astype(np.float32)
