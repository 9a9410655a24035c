"""Names for the arrays that travel between modules, and the record of one step of many trials."""

from collections.abc import Mapping
from dataclasses import dataclass
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


def arrays_of(thing: object) -> dict[str, NDArray[Any]]:
    """The arrays among an object's attributes, by name."""
    return {name: value for name, value in vars(thing).items() if isinstance(value, np.ndarray)}


def below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def take(observations: Any, at: Any) -> Any:
    """Some rows of a batch of observations, which may be a dictionary of arrays."""
    if isinstance(observations, dict):
        return {name: values[at] for name, values in observations.items()}
    return observations[at]
