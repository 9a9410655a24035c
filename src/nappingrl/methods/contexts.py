"""Memory of contexts: what was learned in the current context is in force, the rest is stored."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Rows

Learned = dict[str, NDArray[Any]]
"""Everything a trial has learned in one context, as named arrays; `wanted` has one entry per region."""


def by_context(state: Mapping[str, NDArray[Any]], n: int) -> list[dict[int, Learned]]:
    """Arrays saved as `row/context/name`, for each of n rows by context and name."""
    by_row: list[dict[int, Learned]] = [{} for _ in range(n)]
    for key, array in state.items():
        if key.count("/") == 2:
            row, context, name = key.split("/")
            by_row[int(row)].setdefault(int(context), {})[name] = array
    return by_row


class ContextMemory:
    """What n trials have learned in each context, on top of functions that read, write and forget the current one."""

    def __init__(
        self, n: int, read: Callable[[int], Learned], write: Callable[[int, Learned], None],
        forget: Callable[[Rows], None],
    ) -> None:  # fmt: skip
        self._read, self._write, self._forget = read, write, forget
        self.current = np.zeros(n, np.int64)
        """The current context by trial; in 0, the context before the novelty, nothing is learned."""
        self._others: list[dict[int, Learned]] = [{} for _ in range(n)]

    def start(self, rows: Rows) -> None:
        """Begin a new trial: no context is known."""
        self.current[rows] = 0
        for row in rows:
            self._others[row] = {}

    def enter(self, row: int, context: int) -> None:
        """Store what was learned in the old context and recall what is known of the new one."""
        old, others = int(self.current[row]), self._others[row]
        self.current[row] = context
        if old:
            others[old] = self._read(row)
            self._forget(np.array([row]))
        if context in others:
            self._write(row, others.pop(context))

    def context_sizes(self, row: int) -> dict[int, int]:
        """Number of regions in each context."""
        return {context: len(learned["wanted"]) for context, learned in sorted(self._all(row).items())}

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything learned in every context, as named arrays."""
        state: dict[str, NDArray[Any]] = {"contexts": self.current}
        for row in range(len(self.current)):
            for context, learned in self._all(row).items():
                state |= {f"{row}/{context}/{name}": array for name, array in learned.items()}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        self.current[:] = state["contexts"]
        for row, learned in enumerate(by_context(state, len(self.current))):
            self._write(row, learned.pop(int(self.current[row])))
            self._others[row] = learned

    def _all(self, row: int) -> dict[int, Learned]:
        return self._others[row] | {int(self.current[row]): self._read(row)}
