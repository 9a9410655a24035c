"""Which entries of an observation the actions control: those that follow from themselves and the action alone."""

from collections.abc import Sequence
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


def contradicted_share(facts: Facts) -> float:
    """Of all (place, action) that were tried at several moments: the share that led to several places.

    Rewards do not count: MiniGrid pays less for a goal that is reached later.
    """
    tried = _labels([facts.places, facts.actions]) if facts.n else np.zeros(0, np.int64)
    outcomes = np.unique(
        _labels([tried, facts.next_places, facts.terminated]) if facts.n else tried, return_index=True
    )[1]
    n_tries, n_outcomes = np.bincount(tried), np.bincount(tried[outcomes], minlength=1)
    is_judged = n_tries > 1
    return float((n_outcomes[is_judged] > 1).mean()) if is_judged.any() else 0.0


def controlled_entries(observations: NDArray[np.float32], worlds: Sequence[Facts]) -> NDArray[np.int64]:
    """Entries that no step of any world contradicts, if at least one of them differs by action; else none."""
    d = observations.shape[1]
    is_possible, is_moved = np.ones(d, np.bool_), np.zeros(d, np.bool_)
    for world in worlds:
        now, after = observations[world.places], observations[world.next_places]
        for i in np.flatnonzero(is_possible) if world.n else ():
            is_possible[i] = is_functional([now[:, i], world.actions], [after[:, i]])
            is_moved[i] |= not is_functional([now[:, i]], [after[:, i]])
    return np.flatnonzero(is_possible) if (is_possible & is_moved).any() else np.zeros(0, np.int64)
