"""Candidates for agents with continuous actions: a few alternatives around the wanted action."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.explain import AS_WANTED
from nappingrl.types import Actions, DomainSpec

OFFSETS = (0.25, -0.25, 0.5, -0.5, 1.0, -1.0)
"""Distances of candidates from the wanted action, as shares of the range of each dimension."""
TOLERANCE = 0.01
"""Actions that differ by at most this share of the range in every dimension count as the same."""


class LocalCandidates:
    """A numbered list of candidates for every wanted action, clipped to the box of actions.

    Number 0 is the wanted action. Then it is moved along each dimension by every offset. The last candidate is the
    wanted action mirrored at the centre of the box.

    Examples:
        >>> candidates = LocalCandidates(np.array([-2.0]), np.array([2.0]))
        >>> candidates.all_of(np.array([[1.5]]))[0, :, 0].tolist()
        [1.5, 2.0, 0.5, 2.0, -0.5, 2.0, -2.0, -1.5]
        >>> candidates.names[1], candidates.valid_mask(np.array([[2.0]]))[0, 1]
        ('as wanted, plus 1 in dimension 0', np.False_)
    """

    def __init__(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        self._low = low.astype(np.float32)
        self._high = high.astype(np.float32)
        moves = [(dim, offset * (high[dim] - low[dim])) for dim in range(len(low)) for offset in OFFSETS]
        self._moves = np.zeros((len(moves) + 1, len(low)), np.float32)
        for number, (dim, by) in enumerate(moves, 1):
            self._moves[number, dim] = by
        names = [f"{AS_WANTED}, {'plus' if by > 0 else 'minus'} {abs(by):g} in dimension {dim}" for dim, by in moves]
        self.names = (AS_WANTED, *names, "mirrored")
        self.n = len(self.names)

    def all_of(self, wanted: Actions) -> NDArray[np.float32]:
        """All candidates (m, n, k) of the wanted actions (m, k)."""
        moved = wanted[:, None] + self._moves
        mirrored = (self._low + self._high) - wanted[:, None]
        candidates: NDArray[np.float32] = np.clip(
            np.concatenate([moved, mirrored], axis=1), self._low, self._high
        ).astype(np.float32)
        return candidates

    def valid_mask(self, wanted: Actions) -> NDArray[np.bool_]:
        """Which candidates (m, n) differ from the wanted action; number 0 is always valid."""
        difference = np.abs(self.all_of(wanted) - wanted[:, None])
        is_other = (difference > TOLERANCE * (self._high - self._low)).any(axis=2)
        is_valid: NDArray[np.bool_] = np.logical_or(is_other, np.arange(self.n) == 0)
        return is_valid

    def take(self, wanted: Actions, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The candidates (m, k) with these numbers (m,)."""
        actions: NDArray[np.float32] = self.all_of(wanted)[np.arange(len(numbers)), numbers]
        return actions

    def number_of(self, wanted: Actions, executed: Actions, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """The number (m,) of the candidate that was executed: the chosen one if it matches, otherwise the nearest."""
        distances = np.abs(self.all_of(wanted) - executed[:, None]).sum(axis=2)
        matches = distances[np.arange(len(chosen)), chosen] == 0
        return np.where(matches, chosen, distances.argmin(axis=1))


def choice_names(spec: DomainSpec) -> Sequence[str]:
    """Names of the choices of a principle: the actions of the domain, or the local candidates."""
    return spec.action_labels if spec.n_actions else LocalCandidates(spec.action_low, spec.action_high).names
