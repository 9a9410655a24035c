"""Surprise: several steps of an episode that do not lead where the model predicts."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.tail_limits import tail_limit
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Floats, Rows
from nappingrl.world_model.local_model import Matrix
from nappingrl.world_model.reference import Judged


class Surprise:
    """Judges the few largest residuals among the latest steps of an episode.

    A single step says little: it may be a contact or a wall that the calibration never met. The statistic is therefore
    the k-th largest surprise within a window; the longer episodes are, the more chances they have, and k is larger. Its
    limit follows from the tail of the same statistic in blocks of the calibration, by `tail_limit`; blocks, because
    a few long episodes are as good as many short ones. Each observation has its own limit: one that the model predicts
    badly now and then must not hide another that it predicts precisely.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "limit": Expected(low=0, with_inf=True), "recent": Expected(low=0), "n_seen": Expected(low=0),
        "n_alarm_steps": Expected(low=1),
    }  # fmt: skip

    def __init__(self, n: int, d: int, config: ResidualConfig) -> None:
        self.config = config
        self.limit = np.full((n, d), np.inf)
        self.recent = np.zeros((n, config.window))
        """The largest residual of each of the latest steps of this episode, as a share of its limit."""
        self.n_seen = np.zeros(n, np.int64)
        self.n_alarm_steps = np.ones(n, np.int64)
        """k, the steps beyond the limit that raise an alarm."""

    def start(self, rows: Rows) -> None:
        """There is no limit yet."""
        self.limit[rows] = np.inf
        self.forget_episode(rows)

    def forget_episode(self, rows: Rows) -> None:
        """A new episode begins."""
        self.recent[rows], self.n_seen[rows] = 0.0, 0

    def calibrate(self, row: int, held_out: Judged) -> None:
        """Set the limit."""
        config, sizes = self.config, np.abs(held_out.residuals)
        begins = np.concatenate([[0], np.flatnonzero(np.diff(held_out.episodes)) + 1, [len(sizes)]])
        n_episodes, length = len(begins) - 1, float(np.median(np.diff(begins)))
        k = int(np.clip(np.ceil(length / config.steps_per_alarm_step), 1, config.n_alarm_steps))
        self.n_alarm_steps[row] = k
        n_judged = max(1, int((sizes > 0).any(axis=0).sum()))
        for i, values in enumerate(_block_maxima(np.ascontiguousarray(sizes.T), begins, config.window, k)):
            probability = config.false_alarms * n_episodes / len(values) / n_judged
            limit = min(tail_limit(values, probability), config.max_limit_factor * float(values.max()))
            self.limit[row, i] = max(limit, config.min_limit)

    def update(self, rows: Rows, sizes: NDArray[np.float64]) -> Flags:
        """Judge a step of each row by the sizes (m, d) of its residuals; returns which are beyond a limit."""
        return _add_steps(self.limit, self.recent, self.n_seen, rows, sizes)

    def is_alarm(self, rows: Rows) -> Flags:
        """Whether enough of the latest steps are beyond the limit."""
        return _is_alarm(self.recent, self.n_alarm_steps, rows)

    def statistic(self, row: int) -> float:
        """What is compared with the limit: the k-th largest among the latest steps, as a share of the limit."""
        return float(np.sort(self.recent[row])[-int(self.n_alarm_steps[row])])

    def n_since_first(self, row: int) -> int:
        """How many of the latest steps there are since the first one in the window that is beyond the limit."""
        window, n_seen = self.config.window, int(self.n_seen[row])
        ages = (n_seen - 1 - np.flatnonzero(self.recent[row] > 1)) % window  # the ring holds step i at i % window
        return int(ages.max(initial=0)) + 1

    def is_calm(self, rows: Rows) -> Flags:
        """Whether none of the latest steps is beyond the limit."""
        return np.asarray(~(self.recent[rows] > 1).any(axis=1))


@kernel()
def _add_steps(limit: Matrix, recent: Matrix, n_seen: Rows, rows: Rows, sizes: Matrix) -> Flags:
    """Write the largest share of a limit of each step into the ring of its row; returns where it is beyond 1."""
    is_beyond = np.zeros(len(rows), np.bool_)
    for m in range(len(rows)):
        row, largest = rows[m], 0.0
        for i in range(sizes.shape[1]):
            largest = max(largest, sizes[m, i] / limit[row, i])
        recent[row, n_seen[row] % recent.shape[1]] = largest
        n_seen[row] += 1
        is_beyond[m] = largest > 1
    return is_beyond


@kernel()
def _is_alarm(recent: Matrix, n_alarm_steps: Rows, rows: Rows) -> Flags:
    is_alarm = np.zeros(len(rows), np.bool_)
    for m in range(len(rows)):
        n_beyond = 0
        for value in recent[rows[m]]:
            n_beyond += value > 1
        is_alarm[m] = n_beyond >= n_alarm_steps[rows[m]]
    return is_alarm


@kernel(allocates=False)
def _kth_largest(values: Floats, first: int, last: int, k: int, top: Floats) -> float:
    """The k-th largest of values[first:last]; 0 if there are fewer. `top` receives the k largest."""
    top[:k] = 0.0
    for t in range(first, last):
        value = values[t]
        if value > top[k - 1]:
            at = k - 1
            while at > 0 and top[at - 1] < value:
                top[at] = top[at - 1]
                at -= 1
            top[at] = value
    return float(top[k - 1])


@kernel()
def _block_maxima(sizes: Matrix, begins: NDArray[np.int64], window: int, k: int) -> Matrix:
    """(d, blocks) the largest value of the statistic in each block of each episode; `sizes` (d, m) are not negative."""
    n_blocks = 0
    for e in range(len(begins) - 1):
        n_blocks += (begins[e + 1] - begins[e] + window - 1) // window
    out, top = np.zeros((len(sizes), n_blocks)), np.empty(k)
    for i in range(len(sizes)):
        values, block = sizes[i], 0
        for e in range(len(begins) - 1):
            for first in range(begins[e], begins[e + 1], window):
                largest = -1.0
                for t in range(first, min(first + window, begins[e + 1])):
                    if values[t] > largest:  # only such a value can raise the k-th largest beyond those before
                        begin = max(begins[e], t + 1 - window)
                        largest = max(largest, _kth_largest(values, begin, t + 1, k, top))
                out[i, block] = largest
                block += 1
    return out
