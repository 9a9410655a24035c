"""Transitions of many trials in bounded memory."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.snapshot import MAX_EPISODE, Expected, Sizes
from nappingrl.types import Flags, Floats, Rows, Transition
from nappingrl.world_model.action_encoding import ActionEncoding

MAX_VALUE = 1e12
"""The largest magnitude of an observation or a reward that is learned from."""
_EPISODE = Expected(("m",), -MAX_EPISODE, MAX_EPISODE)


class Transitions(NamedTuple):
    """Transitions of one trial in the order of time, or one transition of each of m trials."""

    states: Annotated[NDArray[np.float64], Expected(("m", "d"), -MAX_VALUE, MAX_VALUE)]
    actions: Annotated[NDArray[np.float64], Expected(("m", "b"), -MAX_VALUE, MAX_VALUE)]
    """Encoded."""
    next_states: Annotated[NDArray[np.float64], Expected(("m", "d"), -MAX_VALUE, MAX_VALUE)]
    rewards: Annotated[Floats, Expected(("m",), -MAX_VALUE, MAX_VALUE)]
    terminated: Annotated[NDArray[np.bool_], Expected(("m",))]
    episodes: Annotated[NDArray[np.int64], _EPISODE]

    def check(self, sizes: Sizes) -> None:
        """Raise if there are more than a buffer takes."""
        if self.n > sizes["capacity"]:
            raise ValueError(f"{self.n} transitions; at most {sizes['capacity']} are kept")

    @property
    def n(self) -> int:
        """How many transitions these are."""
        return len(self.rewards)

    def at(self, which: Any) -> "Transitions":
        """A selection, by index, mask or slice."""
        return Transitions(*(array[which] for array in self))


def encode(step: Transition, encoding: ActionEncoding, episodes: Rows) -> Transitions:
    """One step of m trials, with encoded actions; observations stay float32."""
    states: Any = step.observations
    next_states: Any = step.next_observations
    return Transitions(states, encoding(step.actions), next_states, step.rewards, step.terminated, episodes)


class TransitionBuffer:
    """The transitions of n trials. A full trial drops every second one of its older half, but keeps terminal ones."""

    def __init__(self, n: int, dim: int, action_size: int, capacity: int = 2048, size: int = 256) -> None:
        self.n, self.capacity = n, capacity
        size = min(size, capacity)
        self.count = np.zeros(n, np.int64)
        self._arrays: tuple[NDArray[Any], ...] = (
            np.zeros((n, size, dim), np.float32), np.zeros((n, size, action_size), np.float32),
            np.zeros((n, size, dim), np.float32), np.zeros((n, size)), np.zeros((n, size), np.bool_),
            np.zeros((n, size), np.int32),
        )  # fmt: skip

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of saved transitions."""
        states, actions, *_ = self._arrays
        return {"d": states.shape[2], "b": actions.shape[2], "capacity": self.capacity}

    def clear(self, rows: Rows) -> None:
        """Drop all transitions of these rows."""
        self.count[rows] = 0

    def add(self, rows: Rows, transitions: Transitions, keep: Flags | None = None) -> None:
        """Append one transition to each of these rows; `keep`: only to some of them."""
        shapes = [values.shape for values in transitions]
        if shapes != [(len(rows), *array.shape[2:]) for array in self._arrays]:
            raise ValueError(f"transitions of the shapes {shapes} for {len(rows)} rows")
        kept = rows if keep is None else rows[keep]
        if len(kept) == 0:
            return
        if self.count[kept].max() >= self._arrays[0].shape[1]:
            self._make_room(kept)
        which = np.arange(len(rows)) if keep is None else np.flatnonzero(keep)
        _append(self._arrays, self.count, kept, which, tuple(transitions))

    def read(self, row: int) -> Transitions:
        """A copy of the transitions of one trial."""
        return self._copy(row, slice(0, int(self.count[row])))

    def _copy(self, row: int, which: slice) -> Transitions:
        states, actions, next_states, rewards, terminated, episodes = (array[row, which] for array in self._arrays)
        return Transitions(
            states.astype(np.float64), actions.astype(np.float64), next_states.astype(np.float64), rewards.copy(),
            terminated.copy(), episodes.astype(np.int64),
        )  # fmt: skip

    def read_episode(self, row: int) -> Transitions:
        """A copy of the transitions of the latest episode of one trial, which has one."""
        count = self.count[row]
        *_, episodes = self._arrays
        first = np.searchsorted(episodes[row, :count], episodes[row, count - 1])
        return self._copy(row, slice(int(first), int(count)))

    def write(self, row: int, transitions: Transitions) -> None:
        """Replace the transitions of one trial."""
        if transitions.n > self._arrays[0].shape[1]:
            self._arrays = tuple(_resized(array, transitions.n) for array in self._arrays)
        for array, values in zip(self._arrays, transitions, strict=True):
            array[row, : len(values)] = values
        self.count[row] = transitions.n

    def _make_room(self, rows: Rows) -> None:
        size = self._arrays[0].shape[1]
        if size < self.capacity:
            self._arrays = tuple(_resized(array, min(2 * size, self.capacity)) for array in self._arrays)
            return
        half = size // 2
        terminated = Transitions._fields.index("terminated")
        for row in rows[self.count[rows] >= size]:
            keep = np.arange(size) >= half
            keep[:half:2] = True
            terminal = np.flatnonzero(self._arrays[terminated][row, :half])
            keep[terminal[max(0, len(terminal) - size // 8) :]] = True  # rare, and the most informative
            count = int(keep.sum())
            for array in self._arrays:
                array[row, :count] = array[row, :size][keep]
            self.count[row] = count


@kernel(allocates=False)
def _append(
    arrays: tuple[NDArray[Any], ...], count: Rows, rows: Rows, which: Rows, values: tuple[NDArray[Any], ...]
) -> None:
    """Write values[...][which[m]] behind the last transition of rows[m], and count it."""
    states, actions, next_states, rewards, terminated, episodes = arrays
    states_of, actions_of, next_states_of, rewards_of, terminated_of, episodes_of = values
    for m in range(len(rows)):
        row, step = rows[m], which[m]
        at = count[row]
        for i in range(states.shape[2]):
            states[row, at, i] = states_of[step, i]
            next_states[row, at, i] = next_states_of[step, i]
        for i in range(actions.shape[2]):
            actions[row, at, i] = actions_of[step, i]
        rewards[row, at], terminated[row, at], episodes[row, at] = (
            rewards_of[step],
            terminated_of[step],
            episodes_of[step],
        )
        count[row] = at + 1


def _resized(array: NDArray[Any], size: int) -> NDArray[Any]:
    resized = np.zeros((len(array), size, *array.shape[2:]), array.dtype)
    resized[:, : array.shape[1]] = array
    return resized


def episode_steps(transitions: Transitions) -> list[NDArray[np.int64]]:
    """The steps of each episode."""
    if not transitions.n:
        return []
    ends = np.flatnonzero(transitions.episodes[1:] != transitions.episodes[:-1]) + 1
    return np.split(np.arange(transitions.n), ends)


def episode_returns(transitions: Transitions) -> Floats:
    """The return of each episode."""
    return np.array([transitions.rewards[steps].sum() for steps in episode_steps(transitions)])
