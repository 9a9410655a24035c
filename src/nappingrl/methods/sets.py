"""What was learned for each world: that of the world at hand is in force, that of others is put away."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.arrays import Rows

Learned = dict[str, NDArray[Any]]
"""All that a trial has learned in one world, as named arrays; `wanted` has an entry for each region."""


def by_world(state: Mapping[str, NDArray[Any]], n: int) -> list[dict[int, Learned]]:
    """What was saved as `row/world/name`, for each of n rows by world and name."""
    found: list[dict[int, Learned]] = [{} for _ in range(n)]
    for key, array in state.items():
        if key.count("/") == 2:
            row, world, name = key.split("/")
            found[int(row)].setdefault(int(world), {})[name] = array
    return found


class Sets:
    """The sets of n trials, over what reads, writes and forgets the set that is in force."""

    def __init__(
        self, n: int, read: Callable[[int], Learned], write: Callable[[int, Learned], None],
        forget: Callable[[Rows], None],
    ) -> None:  # fmt: skip
        self._read, self._write, self._forget = read, write, forget
        self.worlds = np.zeros(n, np.int64)
        """The world whose set is in force, by trial; there is none in 0, the world before the novelty."""
        self._others: list[dict[int, Learned]] = [{} for _ in range(n)]

    def start(self, rows: Rows) -> None:
        """A new trial begins: no world was met."""
        self.worlds[rows] = 0
        for row in rows:
            self._others[row] = {}

    def enter(self, row: int, world: int) -> None:
        """Put away the set of the world that is left; take out that of the one that is entered, if known."""
        old, others = int(self.worlds[row]), self._others[row]
        self.worlds[row] = world
        if old:
            others[old] = self._read(row)
            self._forget(np.array([row]))
        if world in others:
            self._write(row, others.pop(world))

    def known(self, row: int) -> dict[int, int]:
        """How many regions there are for each world."""
        return {world: len(learned["wanted"]) for world, learned in sorted(self._all(row).items())}

    def state(self) -> dict[str, NDArray[Any]]:
        """All sets of all trials, as named arrays."""
        state: dict[str, NDArray[Any]] = {"worlds": self.worlds}
        for row in range(len(self.worlds)):
            for world, learned in self._all(row).items():
                state |= {f"{row}/{world}/{name}": array for name, array in learned.items()}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave."""
        self.worlds[:] = state["worlds"]
        for row, sets in enumerate(by_world(state, len(self.worlds))):
            self._write(row, sets.pop(int(self.worlds[row])))
            self._others[row] = sets

    def _all(self, row: int) -> dict[int, Learned]:
        return self._others[row] | {int(self.worlds[row]): self._read(row)}
