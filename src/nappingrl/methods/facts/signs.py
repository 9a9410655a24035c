"""Signs: what the entries that actions do not control say of the risk of an action, such as a car in the next cell."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.facts.records import Facts

MAX_SIGNS = 64
"""Entries that are looked at; the first ones, if there are more."""
PRIOR_WEIGHT = 1.0
"""Steps that the risk without any sign counts for."""


class Signs:
    """Counts for each action how it ended while an entry differed from its usual value.

    `is_told`: the entries that are no signs, because a plan knows them anyway.
    """

    def __init__(self, observations: NDArray[np.float32], is_told: NDArray[np.bool_], n_actions: int) -> None:
        self._entries = np.flatnonzero(~is_told)[:MAX_SIGNS]
        self._usual = np.array([_commonest(column) for column in observations[:, self._entries].T], np.float32)
        shape = n_actions, len(self._entries) + 1
        self._n, self._n_bad = np.zeros(shape), np.zeros(shape)
        """The last column: while no entry differed."""

    def shown(self, observations: NDArray[np.float32]) -> NDArray[np.bool_]:
        """(m, signs) which signs are shown; the last one: no other is."""
        differs = observations[:, self._entries] != self._usual
        return np.column_stack([differs, ~differs.any(axis=1)])

    def count(self, shown: NDArray[np.bool_], facts: Facts, is_bad: NDArray[np.bool_], action: int, meant: int) -> None:
        """Count the steps with the action `meant` as steps with `action`; `shown`: by place."""
        is_counted = facts.actions == meant
        at = shown[facts.places[is_counted]]
        self._n[action] += at.sum(axis=0)
        self._n_bad[action] += at[is_bad[is_counted]].sum(axis=0)

    def risks(self, shown: NDArray[np.bool_], before: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m, n_actions) the risk of each action by its worst sign; `before`: the risk without signs."""
        risk = np.zeros_like(before)
        for sign in np.flatnonzero(shown.any(axis=0)):
            by_sign = (self._n_bad[:, sign] + PRIOR_WEIGHT * before) / (self._n[:, sign] + PRIOR_WEIGHT)
            risk = np.maximum(risk, np.where(shown[:, sign, None], by_sign, 0.0))
        return risk


def _commonest(column: NDArray[np.float32]) -> float:
    values, counts = np.unique(column, return_counts=True)
    return float(values[counts.argmax()])
