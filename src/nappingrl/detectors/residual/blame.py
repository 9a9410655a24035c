"""Blame: which observations, after which action, raised an alarm."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.snapshot import Expected
from nappingrl.types import DomainSpec, Floats, Rows

LEAST_SHARE = 0.2
"""Observations with less of the blame are not named."""
ACTION_SHARE = 0.7
"""An action is named if it has this share of the blame."""


class Blame:
    """Adds up how much each observation contributed to alarms, after each discrete action."""

    saved: ClassVar[Mapping[str, Expected]] = {"amounts": Expected(low=0)}

    def __init__(self, n: int, domain: DomainSpec) -> None:
        self.domain = domain
        self.amounts = np.zeros((n, len(domain.observation_low), domain.n_actions + 1))
        """The last column: whatever the action."""

    def start(self, rows: Rows) -> None:
        """Nothing has changed."""
        self.amounts[rows] = 0.0

    def add(self, rows: Rows, sizes: NDArray[np.float64], actions: NDArray[np.float64] | None = None) -> None:
        """Add what steps (m, d) contribute; `actions` are encoded."""
        if actions is None or not self.domain.n_actions:
            self.amounts[rows, :, -1] += sizes
        else:
            self.amounts[rows, :, :-1] += sizes[:, :, None] * actions[:, None, :]

    def add_drift(self, rows: Rows, evidence: NDArray[np.float64]) -> None:
        """Add the evidence of drift (m, d, encoded actions and one more)."""
        if self.domain.n_actions:
            self.amounts[rows] += evidence
        else:
            self.amounts[rows, :, -1] += evidence.max(axis=2)

    def add_exchange(self, row: int, evidence: NDArray[np.float64], shares: Floats) -> None:
        """Add the evidence (executed, alternatives) for exchanged actions, shared by the observations (d,)."""
        if self.domain.n_actions:
            self.amounts[row, :, :-1] += np.outer(shares, evidence.max(axis=1))
        else:
            self.amounts[row, :, -1] += shares * evidence.max()

    def explain(self, row: int) -> str:
        """In words, as "angular velocity and x velocity, left engine"; empty: nothing has changed."""
        amounts = self.amounts[row]
        total = float(amounts.sum())
        if not total:
            return ""
        by_entry, by_action = amounts.sum(axis=1) / total, amounts[:, :-1].sum(axis=0) / total
        order = np.argsort(-by_entry, kind="stable")
        entries = [self.domain.observation_labels[i] for i in order if by_entry[i] >= min(LEAST_SHARE, by_entry.max())]
        words = " and ".join(entries)
        if len(by_action) > 1 and by_action.max() >= ACTION_SHARE:
            return f"{words}, {self.domain.action_labels[int(by_action.argmax())]}"
        return words
