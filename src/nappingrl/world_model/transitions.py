"""Transitions of many trials in bounded memory."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Floats, Rows


class Seen(NamedTuple):
    """Transitions of one trial, in the order in which they were seen."""

    states: NDArray[np.float64]
    """(m, d)"""
    pushes: NDArray[np.float64]
    """(m, b) actions as vectors."""
    nexts: NDArray[np.float64]
    rewards: Floats
    ended: NDArray[np.bool_]
    episodes: NDArray[np.int64]

    def at(self, which: Any) -> "Seen":
        """Some of them."""
        return Seen(*(array[which] for array in self))


class Memory:
    """The transitions of n trials. A full one forgets every second of the older half, but not endings."""

    def __init__(self, n: int, dim: int, n_pushes: int, most: int = 2048, size: int = 256) -> None:
        self.n, self.most = n, most
        size = min(size, most)
        self.count = np.zeros(n, np.int64)
        self._arrays: tuple[NDArray[Any], ...] = (
            np.zeros((n, size, dim), np.float32), np.zeros((n, size, n_pushes), np.float32),
            np.zeros((n, size, dim), np.float32), np.zeros((n, size)), np.zeros((n, size), np.bool_),
            np.zeros((n, size), np.int32),
        )  # fmt: skip

    def clear(self, rows: Rows) -> None:
        """Forget everything of these rows."""
        self.count[rows] = 0

    def add(
        self, rows: Rows, states: NDArray[Any], pushes: NDArray[Any], nexts: NDArray[Any], rewards: Floats,
        ended: NDArray[np.bool_], episodes: Rows,
    ) -> None:  # fmt: skip
        """One transition of each of these rows."""
        if len(rows) == 0:
            return
        if self.count[rows].max() >= self._arrays[0].shape[1]:
            self._make_room(rows)
        at = rows, self.count[rows]
        for array, values in zip(self._arrays, (states, pushes, nexts, rewards, ended, episodes), strict=True):
            array[at] = values
        self.count[rows] += 1

    def read(self, row: int) -> Seen:
        """What is remembered of one trial."""
        count = self.count[row]
        states, pushes, nexts, rewards, ended, episodes = (array[row, :count] for array in self._arrays)
        return Seen(
            states.astype(np.float64), pushes.astype(np.float64), nexts.astype(np.float64), rewards.copy(),
            ended.copy(), episodes.astype(np.int64),
        )  # fmt: skip

    def write(self, row: int, seen: Seen) -> None:
        """Put back what `read` gave, or a part of it."""
        if len(seen.rewards) > self._arrays[0].shape[1]:
            self._arrays = tuple(_grown(array, len(seen.rewards)) for array in self._arrays)
        for array, values in zip(self._arrays, seen, strict=True):
            array[row, : len(values)] = values
        self.count[row] = len(seen.rewards)

    def _make_room(self, rows: Rows) -> None:
        size = self._arrays[0].shape[1]
        if size < self.most:
            self._arrays = tuple(_grown(array, min(2 * size, self.most)) for array in self._arrays)
            return
        half = size // 2
        for row in rows[self.count[rows] >= size]:
            keep = np.arange(size) >= half
            keep[:half:2] = True
            older = np.flatnonzero(self._arrays[4][row, :half])
            keep[older[max(0, len(older) - size // 8) :]] = True  # endings are rare and say the most
            count = int(keep.sum())
            for array in self._arrays:
                array[row, :count] = array[row, :size][keep]
            self.count[row] = count


def _grown(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.zeros((len(array), size, *array.shape[2:]), array.dtype)
    grown[:, : array.shape[1]] = array
    return grown
