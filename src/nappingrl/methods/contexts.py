"""What was learned for each context: that of the context at hand is in force, that of others is put away."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Rows

Learned = dict[str, NDArray[Any]]
"""All that a trial has learned in one context, as named arrays; `wanted` has an entry for each region."""


def by_context(state: Mapping[str, NDArray[Any]], n: int) -> list[dict[int, Learned]]:
    """What was saved as `row/context/name`, for each of n rows by context and name."""
    found: list[dict[int, Learned]] = [{} for _ in range(n)]
    for key, array in state.items():
        if key.count("/") == 2:
            row, context, name = key.split("/")
            found[int(row)].setdefault(int(context), {})[name] = array
    return found


class ContextMemory:
    """The sets of n trials, over what reads, writes and forgets the set that is in force."""

    def __init__(
        self, n: int, read: Callable[[int], Learned], write: Callable[[int, Learned], None],
        forget: Callable[[Rows], None],
    ) -> None:  # fmt: skip
        self._read, self._write, self._forget = read, write, forget
        self.current = np.zeros(n, np.int64)
        """The context whose set is in force, by trial; there is none in 0, the context before the novelty."""
        self._others: list[dict[int, Learned]] = [{} for _ in range(n)]

    def start(self, rows: Rows) -> None:
        """A new trial begins: no context was met."""
        self.current[rows] = 0
        for row in rows:
            self._others[row] = {}

    def enter(self, row: int, context: int) -> None:
        """Put away the set of the context that is left; take out that of the one that is entered, if known."""
        old, others = int(self.current[row]), self._others[row]
        self.current[row] = context
        if old:
            others[old] = self._read(row)
            self._forget(np.array([row]))
        if context in others:
            self._write(row, others.pop(context))

    def context_sizes(self, row: int) -> dict[int, int]:
        """How many regions there are for each context."""
        return {context: len(learned["wanted"]) for context, learned in sorted(self._all(row).items())}

    def state(self) -> dict[str, NDArray[Any]]:
        """All sets of all trials, as named arrays."""
        state: dict[str, NDArray[Any]] = {"contexts": self.current}
        for row in range(len(self.current)):
            for context, learned in self._all(row).items():
                state |= {f"{row}/{context}/{name}": array for name, array in learned.items()}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave."""
        self.current[:] = state["contexts"]
        for row, sets in enumerate(by_context(state, len(self.current))):
            self._write(row, sets.pop(int(self.current[row])))
            self._others[row] = sets

    def _all(self, row: int) -> dict[int, Learned]:
        return self._others[row] | {int(self.current[row]): self._read(row)}
