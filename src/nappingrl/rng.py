"""Counter-based random streams, one per trial: a trial's draws do not depend on the other trials of the batch."""

import math

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Actions, Floats, Keys, Rows


class Streams:
    """The random streams of n trials.

    Examples:
        >>> streams = Streams(2)
        >>> streams.start(np.array([0, 1]), np.array([7, 7], np.uint64))
        >>> a, b = streams.uniform(np.array([0, 1]))
        >>> bool(a == b), bool(streams.uniform(np.array([0]))[0] == a)
        (True, False)
    """

    def __init__(self, n: int) -> None:
        self.keys = np.zeros(n, np.uint64)
        self.draws = np.zeros(n, np.uint64)
        """Numbers drawn from each stream so far."""

    def start(self, rows: Rows, keys: Keys) -> None:
        """Start new streams in `rows`."""
        self.keys[rows] = keys
        self.draws[rows] = 0

    def uniform(self, rows: Rows) -> Floats:
        """A number in [0, 1) for each row, (m,)."""
        numbers = (self._words(rows) >> np.uint64(11)) * 2.0**-53
        return numbers.astype(np.float64)

    def integers(self, rows: Rows, high: int) -> NDArray[np.int64]:
        """An integer in 0..high-1 for each row, (m,)."""
        return (self._words(rows) % np.uint64(high)).astype(np.int64)

    def epsilon_greedy(self, rows: Rows, wanted: Actions, n_actions: int, epsilon: float) -> Actions:
        """The wanted actions, each replaced by a random one with probability epsilon."""
        is_random = self.uniform(rows) < epsilon
        return np.where(is_random, self.integers(rows, n_actions), wanted)

    def _words(self, rows: Rows) -> NDArray[np.uint64]:
        words = np.empty(len(rows), np.uint64)
        _draw_each(self.keys, self.draws, rows, words)
        return words


@kernel(allocates=False)
def draw(key: np.uint64, counter: np.uint64) -> np.uint64:
    """Number `counter` of a stream: SplitMix64's output function at key + (counter + 1) * golden ratio."""
    z = key + (counter + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel(allocates=False)
def _draw_each(keys: Keys, draws: Keys, rows: Rows, words: Keys) -> None:
    for m in range(rows.shape[0]):
        row = rows[m]
        words[m] = draw(keys[row], draws[row])
        draws[row] += np.uint64(1)


@kernel()
def normal(key: np.uint64, counter: np.uint64) -> float:
    """The counter-th normal number of a stream."""
    a = (draw(key, np.uint64(2) * counter) >> np.uint64(11)) * 2.0**-53
    b = (draw(key, np.uint64(2) * counter + np.uint64(1)) >> np.uint64(11)) * 2.0**-53
    return math.sqrt(-2 * math.log(1.0 - a)) * math.cos(2 * math.pi * b)
