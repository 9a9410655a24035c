"""Modes: a world with contacts or switches moves differently in each of them.

An observation with few values (a leg that touches the ground) tells modes apart. Models are fitted in the home mode,
the commonest one at the beginning of an episode, and judge only the steps within it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Flags, Floats
from nappingrl.world_model.transitions import Transitions

MAX_VALUES = 4
"""An observation with at most this many values in the reference is a flag."""
_TOLERANCE = 1e-6


class HomeMode(NamedTuple):
    """Which observations are flags, and their values at the beginning of most episodes."""

    is_flag: NDArray[np.bool_]
    """(d,)"""
    values: Floats
    """Of the flags."""

    def contains(self, states: NDArray[np.float64]) -> Flags:
        """Which states (m, d) are in the home mode."""
        return np.asarray((np.abs(states[:, self.is_flag] - self.values) < _TOLERANCE).all(axis=1))

    def keeps(self, transitions: Transitions) -> Flags:
        """Which transitions stay in the home mode and go on."""
        return self.contains(transitions.states) & self.contains(transitions.next_states) & ~transitions.terminated


def find_home_mode(transitions: Transitions) -> HomeMode:
    """The home mode of these transitions."""
    rounded = np.round(transitions.states, 6)
    is_flag = np.array([len(np.unique(column)) <= MAX_VALUES for column in rounded.T])
    values, counts = np.unique(rounded[first_steps(transitions)][:, is_flag], axis=0, return_counts=True)
    return HomeMode(is_flag, values[counts.argmax()])


def first_steps(transitions: Transitions) -> Flags:
    """Which transitions are the first of their episodes."""
    return np.concatenate([[True], transitions.episodes[1:] != transitions.episodes[:-1]])
