"""Names for the arrays that travel between modules, and the records that everybody uses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]  # (m,) which trials of the batch are meant
Observations = NDArray[np.float32]  # (m, *shape)
Actions = NDArray[Any]  # int64 (m,); float32 (m, k) of agents whose actions are numbers in a box
ModelStates = NDArray[np.float32]  # (m, embedding_dim)
Floats = NDArray[np.float64]  # (m,) unless said otherwise
Flags = NDArray[np.bool_]  # (m,)
Keys = NDArray[np.uint64]  # (m,) keys of counter-based random streams


@dataclass(frozen=True, slots=True)
class Decision:
    """What a frozen agent wants for m observations, from one forward pass."""

    actions: Actions
    model_states: ModelStates
    preferences: NDArray[np.float32]
    """(m, n_actions): logits or Q values, higher is better; (m, 0) where actions are numbers."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of m trials."""

    observations: Observations
    decision: Decision
    actions: Actions
    """The actions that were executed, not those the agent wanted."""
    next_observations: Observations
    rewards: Floats
    terminated: Flags
    truncated: Flags


def _no_bounds() -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass(frozen=True, slots=True)
class DomainSpec:
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


def arrays_of(thing: object) -> dict[str, NDArray[Any]]:
    """The arrays among an object's attributes, by name."""
    return {name: value for name, value in vars(thing).items() if isinstance(value, np.ndarray)}


def with_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
