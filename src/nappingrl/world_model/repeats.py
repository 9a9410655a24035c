"""Outcomes that repeat: in some worlds the same action in the same place always leads to the same place."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.world_model.transitions import Transitions

MIN_REPEATED = 30
"""Steps that must have repeated an earlier one."""
MIN_SHARE = 0.2
"""Of all steps, at least this share."""
N_FIRST = 200
"""Steps after which a world whose steps hardly repeat is given up."""


class Repeats:
    """Where each action led in each place, if that has always been the same."""

    def __init__(self, steps: Transitions) -> None:
        self._ends: dict[tuple[bytes, int], bytes] = {}
        n_repeated = 0
        for m in range(steps.n):
            key, end = (place(steps.states[m]), int(steps.actions[m].argmax())), end_of(steps, m)
            known = self._ends.setdefault(key, end)
            if known != end or (m > N_FIRST and n_repeated < MIN_SHARE * m):
                self._ends = {}
                return
            n_repeated += len(self._ends) <= m - n_repeated
        if n_repeated < max(MIN_REPEATED, MIN_SHARE * steps.n):
            self._ends = {}

    @property
    def is_usable(self) -> bool:
        """Whether outcomes repeat."""
        return bool(self._ends)

    def expects(self, state: NDArray[np.floating], action: int) -> bytes | None:
        """How the action ends, see `end_of`; None: it was never executed there."""
        return self._ends.get((place(state), action))


def end_of(steps: Transitions, m: int) -> bytes:
    """Where a step led, and whether it terminated the episode, as a key."""
    return place(steps.next_states[m]) + bytes([bool(steps.terminated[m])])


def place(observation: NDArray[np.floating]) -> bytes:
    """An observation as a key."""
    return (observation.astype(np.float32) + np.float32(0.0)).tobytes()  # -0.0 is 0.0
