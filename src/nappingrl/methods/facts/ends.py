"""Which endings are good, and what the best and the worst that can happen are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.facts.records import Facts

UNKNOWN_RISK = 0.15
"""How likely what was never tried is believed to end badly, before anything near it was tried."""
FINAL_DISCOUNT = 0.9
"""What a reward at the horizon is worth: among safe ways, prefer a short one."""


@dataclass(frozen=True, slots=True)
class Stakes:
    """What there is to win and to lose."""

    best: float
    worst: float
    least_good: float
    """Endings with this reward, or more, are good."""
    step_reward: float
    """The commonest reward of a step that ends nothing."""
    discount: float

    @property
    def unknown(self) -> float:
        """What is expected of something that was never tried."""
        return (1 - UNKNOWN_RISK) * self.best + UNKNOWN_RISK * self.worst

    def is_good(self, rewards: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rewards of a termination are good."""
        return np.asarray(rewards >= self.least_good)


def stakes(original: Facts, now: Facts, horizon: int) -> Stakes:
    """Read the stakes off what happened in both worlds."""
    rewards = np.concatenate([original.rewards, now.rewards])
    ends = np.concatenate([original.terminated, now.terminated])
    steps = rewards[~ends]
    values, counts = np.unique(steps, return_counts=True)
    usual = float(values[counts.argmax()]) if len(values) else 0.0
    good_before = original.rewards[original.terminated]
    least = float(good_before.min()) if len(good_before) else float(np.nextafter(usual, np.inf))
    final = rewards[ends]
    best = float(max(final.max(initial=-np.inf), least))
    worst = float(min(final.min(initial=np.inf), usual, best - max(abs(best), 1e-9)))
    return Stakes(best, worst, least, usual, FINAL_DISCOUNT ** (1 / max(horizon, 1)))
