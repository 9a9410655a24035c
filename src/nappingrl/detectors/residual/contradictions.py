"""Contradictions: where outcomes always repeated, an action leads elsewhere than it always did."""

from zlib import crc32

import numpy as np

from nappingrl.types import Flags, Rows
from nappingrl.world_model.memory import TransitionMemory
from nappingrl.world_model.repeats import end_of, place
from nappingrl.world_model.transitions import Transitions

N_LATEST = 10
"""Steps that repeat an earlier one, among which"""
N_CONTRADICTED = 2
"""that must contradict it for an alarm. A single one may be a rare accident."""


class Contradictions:
    """Counts steps that contradict the original world."""

    def __init__(self, n: int) -> None:
        self.latest = np.zeros((n, N_LATEST), np.bool_)
        """Which of the latest steps that repeat an earlier one contradict it."""
        self.n_confirmed = np.zeros(n, np.int64)
        """Steps that repeat an earlier one, since the last contradiction."""
        self.contradicted = np.zeros((n, N_LATEST), np.int64)
        """Checksums of the latest places and actions whose outcomes were others; 0: none."""
        self.is_retried = np.zeros(n, np.bool_)
        """Whether one of these had its old outcome, since the last contradiction."""

    def start(self, rows: Rows) -> None:
        """Nothing was judged yet."""
        self.latest[rows], self.n_confirmed[rows] = False, 0
        self.contradicted[rows], self.is_retried[rows] = 0, False

    def update(self, rows: Rows, steps: Transitions, memory: TransitionMemory) -> None:
        """Judge a step of each row."""
        for m, row in enumerate(rows.tolist()):
            repeats = memory.repeats(row)
            if repeats is None:
                continue
            action = int(steps.actions[m].argmax())
            expected = repeats.expects(steps.states[m], action)
            if expected is None:
                continue
            is_contradicted = expected != end_of(steps, m)
            self.latest[row] = np.append(self.latest[row, 1:], is_contradicted)
            self.n_confirmed[row] = 0 if is_contradicted else self.n_confirmed[row] + 1
            key = crc32(place(steps.states[m]), action)
            is_among = bool((self.contradicted[row] == key).any())
            self.is_retried[row] = not is_contradicted and (self.is_retried[row] or is_among)
            if is_contradicted and not is_among:
                self.contradicted[row] = np.append(self.contradicted[row, 1:], key)

    def is_alarm(self, rows: Rows) -> Flags:
        """Where the world has changed."""
        return np.asarray(self.latest[rows].sum(axis=1) >= N_CONTRADICTED)

    def is_back(self, rows: Rows) -> Flags:
        """Where the original world is back. Ways round the change repeat earlier steps too, and say nothing of that."""
        return np.asarray((self.n_confirmed[rows] >= N_LATEST) & self.is_retried[rows])
