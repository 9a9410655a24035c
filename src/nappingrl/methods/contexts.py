"""Memory of contexts: what was learned in the current context is in force, the rest is stored."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError
from nappingrl.snapshot import Expected, Sizes, flatten, unflatten
from nappingrl.types import Rows

MAX_CONTEXTS = 64
"""Contexts that a trial remembers besides the current one."""
Learned = dict[str, NDArray[Any]]
"""Everything a trial has learned in one context, as named arrays; `wanted` has one entry per region."""
_CONTEXTS = Annotated[NDArray[np.int64], Expected(("n",), low=0)]


class ContextMemory:
    """What n trials have learned in each context, on top of functions that read, write and forget the current one.

    A trial forgets the contexts that it left longest ago when it remembers more than `MAX_CONTEXTS`, or more than
    `max_regions` regions in several of them (0: no limit).

    `record` is the type of what is learned in a context: a named tuple that states what its arrays may hold when they
    come from a file; `sizes` are those of its shapes.
    """

    def __init__(
        self, n: int, read: Callable[[int], Learned], write: Callable[[int, Learned], None],
        forget: Callable[[Rows], None], record: Any, sizes: Sizes, max_regions: int,
    ) -> None:  # fmt: skip
        self._read, self._write, self._forget = read, write, forget
        self._record, self._sizes, self._max_regions = record, {**sizes, "n": n}, max_regions
        self._by_row: Any = Annotated[list[dict[int, record]], Expected(("n",))]
        self.current = np.zeros(n, np.int64)
        """The current context by trial; in 0, the context before the novelty, nothing is learned."""
        self._others: list[dict[int, Learned]] = [{} for _ in range(n)]
        """In the order in which they were left."""

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
        while self._are_too_many(others):
            del others[next(iter(others))]

    def _are_too_many(self, others: dict[int, Learned]) -> bool:
        n_regions = sum(len(learned["wanted"]) for learned in others.values())
        return len(others) > MAX_CONTEXTS or (len(others) > 1 and 0 < self._max_regions < n_regions)

    def context_sizes(self, row: int) -> dict[int, int]:
        """Number of regions in each context."""
        return {context: len(learned["wanted"]) for context, learned in sorted(self._all(row).items())}

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything learned in every context, as named arrays."""
        rows = [
            {context: self._record(**learned) for context, learned in self._all(row).items()}
            for row in range(len(self.current))
        ]
        return {"contexts": self.current} | flatten(rows, "learned")

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""
        current = unflatten(_CONTEXTS, state, "contexts", self._sizes)
        for row, records in enumerate(unflatten(self._by_row, state, "learned", self._sizes)):
            learned = {context: record._asdict() for context, record in records.items()}
            if int(current[row]) not in learned or min(learned) < 0:
                raise BadAgentError(f"array 'contexts' holds {current[row]}; allowed: one of {sorted(learned)[:5]}")
            self._write(row, learned.pop(int(current[row])))
            self._others[row] = learned
        self.current[:] = current

    def _all(self, row: int) -> dict[int, Learned]:
        return self._others[row] | {int(self.current[row]): self._read(row)}
