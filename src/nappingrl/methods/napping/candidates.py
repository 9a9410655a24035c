"""Principles for agents whose actions are numbers: a few other actions around the one that the agent wants."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.explain import AS_WANTED
from nappingrl.types import Actions, DomainSpec

SHARES = (0.25, -0.25, 0.5, -0.5, 1.0, -1.0)
"""How far candidates are from the agent's action, as shares of the range of each number."""
SAME = 0.01
"""Actions that differ by no more than this share of the range are about the same."""


class LocalCandidates:
    """A numbered list of actions for every wanted action: itself, moved along each number, and mirrored.

    Number 0 is the action as the agent wants it, the last one is mirrored at the middle of the box, and all are
    clipped to the box. Those that are clipped to about the wanted action make no sense.

    Examples:
        >>> around = LocalCandidates(np.array([-2.0]), np.array([2.0]))
        >>> around.all_of(np.array([[1.5]]))[0, :, 0].tolist()
        [1.5, 2.0, 0.5, 2.0, -0.5, 2.0, -2.0, -1.5]
        >>> around.names[1], around.sensible(np.array([[2.0]]))[0, 1]
        ('as wanted, plus 1 in dimension 0', np.False_)
    """

    def __init__(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        self._low, self._high = low.astype(np.float32), high.astype(np.float32)
        moves = [(i, share * (high[i] - low[i])) for i in range(len(low)) for share in SHARES]
        self._offsets = np.zeros((len(moves) + 1, len(low)), np.float32)
        for number, (i, offset) in enumerate(moves, 1):
            self._offsets[number, i] = offset
        words = [f"{AS_WANTED}, {'plus' if by > 0 else 'minus'} {abs(by):g} in dimension {i}" for i, by in moves]
        self.names = (AS_WANTED, *words, "mirrored")
        self.n = len(self.names)

    def all_of(self, wanted: Actions) -> NDArray[np.float32]:
        """All candidates (m, n, k) of the wanted actions (m, k)."""
        mirrored = (self._low + self._high) - wanted[:, None]
        moved = np.concatenate([wanted[:, None] + self._offsets, mirrored], axis=1)
        every: NDArray[np.float32] = np.clip(moved, self._low, self._high).astype(np.float32)
        return every

    def sensible(self, wanted: Actions) -> NDArray[np.bool_]:
        """Which candidates (m, n) are another action than the wanted one; that one itself makes sense too."""
        apart = np.abs(self.all_of(wanted) - wanted[:, None])
        is_apart = (apart > SAME * (self._high - self._low)).any(axis=2)
        is_sensible: NDArray[np.bool_] = np.logical_or(is_apart, np.arange(self.n) == 0)
        return is_sensible

    def take(self, wanted: Actions, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The candidates (m, k) with these numbers (m,)."""
        taken: NDArray[np.float32] = self.all_of(wanted)[np.arange(len(numbers)), numbers]
        return taken

    def number_of(self, wanted: Actions, executed: Actions, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which candidate (m,) an executed action is: the chosen one if it fits, else the nearest."""
        every = self.all_of(wanted)
        distances = np.abs(every - executed[:, None]).sum(axis=2)
        fits = distances[np.arange(len(chosen)), chosen] == 0
        return np.where(fits, chosen, distances.argmin(axis=1))


def choice_names(facts: DomainSpec) -> Sequence[str]:
    """What principles choose among in a world, in words: its actions, or the local candidates."""
    return facts.action_names if facts.n_actions else LocalCandidates(facts.action_low, facts.action_high).names
