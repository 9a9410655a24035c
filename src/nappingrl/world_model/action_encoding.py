"""Actions as vectors: one-hot for discrete actions, powers for continuous ones."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import DomainSpec


class ActionEncoding:
    """Encodes executed actions as the vectors in which the world model is linear."""

    def __init__(self, domain: DomainSpec) -> None:
        self.n_actions = domain.n_actions
        self.low = np.asarray(domain.action_low, np.float64)
        self.high = np.asarray(domain.action_high, np.float64)
        self.size = domain.n_actions or 1 + 2 * len(self.low)

    @property
    def is_continuous(self) -> bool:
        """Whether actions are numbers."""
        return self.n_actions == 0

    @property
    def n_outputs(self) -> int:
        """Scores that a policy computes: one per discrete action, or one per action dimension."""
        return self.n_actions or len(self.low)

    def __call__(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """(m, size): one-hot, or 1, the action scaled to [-1, 1], and its square."""
        m = len(actions)
        if not self.is_continuous:
            out = np.zeros((m, self.size))
            out[np.arange(m), actions] = 1.0
            return out
        scaled = self.scale(actions)
        return np.hstack([np.ones((m, 1)), scaled, scaled**2])

    def scale(self, actions: NDArray[Any]) -> NDArray[np.float64]:
        """Continuous actions (m, k), scaled to [-1, 1]."""
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        scaled: NDArray[np.float64] = (np.asarray(actions, np.float64) - middle) / half
        return scaled

    def unscale(self, scaled: NDArray[np.float64]) -> NDArray[np.float32]:
        """Scaled actions (m, k) as actions, clipped to their range."""
        middle, half = (self.high + self.low) / 2, (self.high - self.low) / 2
        return np.clip(middle + half * scaled, self.low, self.high).astype(np.float32)
