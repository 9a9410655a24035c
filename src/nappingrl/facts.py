"""What is known of a world from outside: its spaces, its names and its time limit."""

from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray


def _no_bounds() -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class Facts:
    """What detectors and methods may know of a world without looking inside."""

    observation_low: NDArray[np.floating[Any]]
    """Of observations that are one array; its shape is theirs."""
    observation_high: NDArray[np.floating[Any]]
    n_actions: int
    """Number of discrete actions; 0: actions are numbers between `action_low` and `action_high`."""
    horizon: int
    """Steps after which an episode is cut; 0: nobody knows."""
    action_low: NDArray[np.floating[Any]] = field(default_factory=_no_bounds)
    action_high: NDArray[np.floating[Any]] = field(default_factory=_no_bounds)
    observation_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    return_limits: tuple[float, float] = (-inf, inf)
    """The paper's rolling mean alarms below the first and above the second."""

    @property
    def names(self) -> tuple[str, ...]:
        """The observations' names, or their places where they have none."""
        return self.observation_names or tuple(f"obs[{i}]" for i in range(self.observation_low.size))

    @property
    def is_continuous(self) -> bool:
        """Whether actions are numbers instead of choices."""
        return self.n_actions == 0
