"""Which entries of an observation the actions control: those that follow from themselves and the action alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.facts.records import Facts


def is_functional(keys: Sequence[NDArray[Any]], values: Sequence[NDArray[Any]]) -> bool:
    """Whether equal keys always have equal values (columns of the same length)."""
    keyed = _labels(keys)
    return len(np.unique(keyed)) == len(np.unique(_labels([keyed, *values])))


def _labels(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """One number for each row of these columns: the same for equal rows."""
    labels = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values = np.unique(column, return_inverse=True)[1].reshape(-1)
        labels = np.unique(labels * (len(values) + 1) + values, return_inverse=True)[1].reshape(-1)
    return labels


@dataclass(frozen=True, slots=True)
class Entries:
    """What some worlds say about each entry."""

    is_possible: NDArray[np.bool_]
    """No step contradicts that it follows from itself and the action."""
    is_moved: NDArray[np.bool_]
    """It differs by action."""

    @property
    def controlled(self) -> NDArray[np.int64]:
        """The possible ones, if at least one of them differs by action; else none."""
        is_any = (self.is_possible & self.is_moved).any()
        return np.flatnonzero(self.is_possible) if is_any else np.zeros(0, np.int64)


def judge_entries(observations: NDArray[np.float32], world: Facts, before: Entries | None = None) -> Entries:
    """What the steps of a world say about each entry, after what others have said."""
    d = observations.shape[1]
    is_possible = np.ones(d, np.bool_) if before is None else before.is_possible.copy()
    is_moved = np.zeros(d, np.bool_) if before is None else before.is_moved.copy()
    now, after = observations[world.places], observations[world.next_places]
    for i in np.flatnonzero(is_possible) if world.n else ():
        is_possible[i] = is_functional([now[:, i], world.actions], [after[:, i]])
        is_moved[i] |= not is_functional([now[:, i]], [after[:, i]])
    return Entries(is_possible, is_moved)
