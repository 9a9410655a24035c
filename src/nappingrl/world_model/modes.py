"""Modes: a world with contacts or switches moves differently in each of them.

An observation with few values (a leg that touches the ground) is a flag; the values of all flags are the mode. The home
mode is the commonest one at the beginning of an episode. A model is fitted in each mode with enough steps, and judges
only the steps within it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Flags, Floats
from nappingrl.world_model.transitions import Transitions

MAX_VALUES = 4
"""An observation with at most this many values in the reference is a flag."""
MAX_MODES = 8
MAX_SWITCHES = 0.3
"""A flag that changes in more steps than this share tells no modes apart."""
_TOLERANCE = 1e-6


class HomeMode(NamedTuple):
    """Which observations are flags, and their values in one mode."""

    is_flag: NDArray[np.bool_]
    """(d,) constant observations included."""
    values: Floats
    """Of the flags."""

    def contains(self, states: NDArray[np.float64]) -> Flags:
        """Which states (m, d) are in the mode."""
        return np.asarray((np.abs(states[:, self.is_flag] - self.values) < _TOLERANCE).all(axis=1))

    def keeps(self, transitions: Transitions) -> Flags:
        """Which transitions stay in the mode and go on."""
        return self.contains(transitions.states) & self.contains(transitions.next_states) & ~transitions.terminated


def find_modes(transitions: Transitions) -> list[HomeMode]:
    """The modes of these transitions, the home mode first, then the commonest ones."""
    rounded = np.round(transitions.states, 6)
    is_flag = np.array([_n_values(column) <= MAX_VALUES for column in rounded.T])
    is_flag &= (np.abs(transitions.next_states - transitions.states) > _TOLERANCE).mean(axis=0) <= MAX_SWITCHES
    home = _commonest(rounded[first_steps(transitions)][:, is_flag])[0]
    others = [values for values in _commonest(rounded[:, is_flag]) if not np.array_equal(values, home)]
    return [HomeMode(is_flag, values) for values in [home, *others][:MAX_MODES]]


def find_home_mode(transitions: Transitions) -> HomeMode:
    """The commonest mode at the beginning of an episode."""
    return find_modes(transitions)[0]


def _n_values(column: Floats) -> int:
    """The number of different values; of a long column that has many, those at its beginning."""
    n_first = len(np.unique(column[:100]))
    return n_first if n_first > MAX_VALUES else len(np.unique(column))


def _commonest(values: NDArray[np.float64]) -> list[Floats]:
    """The different rows, the commonest first."""
    if not values.shape[1]:
        return [np.zeros(0)]
    rows, counts = np.unique(values, axis=0, return_counts=True)
    return [rows[i] for i in np.argsort(-counts, kind="stable")]


def first_steps(transitions: Transitions) -> Flags:
    """Which transitions are the first of their episodes."""
    return np.concatenate([[True], transitions.episodes[1:] != transitions.episodes[:-1]])
