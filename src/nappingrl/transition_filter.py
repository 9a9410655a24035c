"""Which transitions are fit to learn from: one bad number of a sensor must not end adaptation."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Actions, Flags, Floats, Observations, Rows

MAX_MAGNITUDE = 1e12
"""A step with a greater number is dropped."""
MAX_GROWTH = 1e6
"""A step with a number this many times the largest one so far, or the largest below 1, is dropped."""
MIN_STEPS = 20
"""Steps of a trial before growth is judged."""

_OBSERVATION, _REWARD = 0, 1
_MAX_SQUARES = MAX_GROWTH**2
_FLOATS = "fd"  # numpy's characters for float32 and float64


class FilterArrays(NamedTuple):
    """The filter as kernels see it."""

    largest: Floats
    """(n, 2): the largest magnitudes of the accepted observations and rewards."""
    n_accepted: Rows
    n_dropped: Rows
    is_dropped: Flags
    """Whether the latest step of each trial was dropped."""


class TransitionFilter:
    """Drops the steps of n trials whose numbers are not finite or absurdly large, and counts them.

    Observations and rewards are judged apart, each trial by itself. A dropped step leaves no trace but its count.
    """

    def __init__(self, n: int) -> None:
        self.arrays = FilterArrays(
            np.zeros((n, 2)), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_)
        )
        self.largest, self.n_accepted, self.n_dropped, self.is_dropped = self.arrays

    def start(self, rows: Rows) -> None:
        """Begin new trials: forget everything."""
        for array in self.arrays:
            array[rows] = 0

    def counts(self) -> list[tuple[int, int, float, float]]:
        """For each trial: steps dropped, steps accepted, and the largest observation and reward."""
        columns = self.n_dropped, self.n_accepted, self.largest[:, _OBSERVATION], self.largest[:, _REWARD]
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def restore(self, counts: Iterable[tuple[int, int, float, float]]) -> None:
        """Continue from what `counts` returned."""
        for row, (n_dropped, n_accepted, observation, reward) in enumerate(counts):
            self.n_dropped[row], self.n_accepted[row] = n_dropped, n_accepted
            self.largest[row] = observation, reward

    def accept(
        self,
        rows: Rows,
        observations: Observations | None,
        actions: Actions,
        next_observations: Observations,
        rewards: Floats,
    ) -> Flags | None:
        """Which steps are fit to learn from; None: all of them. `observations` are None if they are known to be fit."""
        after = _as_table(next_observations)
        if actions.dtype.kind == "f":
            after = np.concatenate([after, actions.reshape(len(actions), -1)], axis=1)
        usable = None if observations is None else self.are_usable(rows, observations)
        if usable is not None:
            after = np.where(usable[:, None], after, np.nan)
        n_bad = _judge(self.arrays, rows, after, rewards)
        return ~self.is_dropped[rows] if n_bad else None

    def are_usable(self, rows: Rows, observations: Observations) -> Flags | None:
        """Which observations the method may see; None: all of them."""
        if _are_small(observations):
            return None
        usable: Flags = np.abs(_as_table(observations)).max(axis=1, initial=0.0) <= self._limits(rows)
        return None if usable.all() else usable

    def repair(self, rows: Rows, observations: Any) -> Any:
        """The observations with 0 in the place of every bad number."""
        if isinstance(observations, dict):
            return {key: self.repair(rows, array) for key, array in observations.items()}
        limits = self._limits(rows).reshape(-1, *[1] * (observations.ndim - 1))
        return np.where(np.abs(observations) <= limits, observations, observations.dtype.type(0))

    def _limits(self, rows: Rows) -> Floats:
        """The largest magnitude of an observation that is accepted."""
        growth = MAX_GROWTH * np.maximum(self.largest[rows, _OBSERVATION], 1.0)
        limits: Floats = np.where(self.n_accepted[rows] < MIN_STEPS, MAX_MAGNITUDE, np.minimum(growth, MAX_MAGNITUDE))
        return limits


def _are_small(observations: Any) -> bool:
    """A quick test that no number can be too large: the sum of squares bounds each of them."""
    if isinstance(observations, dict) or observations.dtype.char not in _FLOATS:
        return False
    return bool(np.vdot(observations, observations) < _MAX_SQUARES)


def _as_table(batch: Any) -> NDArray[Any]:
    """Observations as (m, numbers), float32 or float64."""
    if isinstance(batch, dict):
        return np.concatenate([_as_table(batch[key]) for key in sorted(batch)], axis=1, dtype=np.float64)
    if batch.dtype.char not in _FLOATS:
        batch = batch.astype(np.float64)
    table: NDArray[Any] = batch if batch.ndim == 2 else batch.reshape(len(batch), -1)
    return table


@kernel(allocates=False)
def _judge(arrays: FilterArrays, rows: Rows, values: NDArray[Any], rewards: Floats) -> int:
    """Accept or drop one step of each row; returns the number of dropped ones."""
    n_bad = 0
    for m in range(len(rows)):
        n_bad += not accept(arrays, rows[m], values[m], rewards[m])
    return n_bad


@kernel(allocates=False)
def accept(arrays: FilterArrays, row: int, values: NDArray[Any], reward: float) -> bool:
    """Accept or drop one step of a trial."""
    largest, n_accepted, n_dropped, is_dropped = arrays
    limit, reward_limit = _limit(arrays, row, _OBSERVATION), _limit(arrays, row, _REWARD)
    reward, magnitude = abs(reward), 0.0
    is_good = reward <= reward_limit
    for k in range(values.shape[0]):
        value = abs(values[k])
        is_good &= value <= limit
        magnitude = max(magnitude, value)
    is_dropped[row] = not is_good
    if is_good:
        n_accepted[row] += 1
        largest[row, _OBSERVATION] = max(largest[row, _OBSERVATION], magnitude)
        largest[row, _REWARD] = max(largest[row, _REWARD], reward)
    else:
        n_dropped[row] += 1
    return is_good


@kernel(allocates=False)
def is_usable(arrays: FilterArrays, row: int, values: NDArray[Any]) -> bool:
    """Whether the method may see this observation."""
    limit = _limit(arrays, row, _OBSERVATION)
    is_good = True
    for k in range(values.shape[0]):
        is_good &= abs(values[k]) <= limit
    return is_good


@kernel(allocates=False)
def _limit(arrays: FilterArrays, row: int, which: int) -> float:
    """The largest magnitude that is accepted."""
    if arrays.n_accepted[row] < MIN_STEPS:
        return MAX_MAGNITUDE
    return float(min(MAX_MAGNITUDE, MAX_GROWTH * max(arrays.largest[row, which], 1.0)))
