"""Steps as facts: what happened when which action was executed where, and when."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.snapshot import Expected
from nappingrl.world_model.repeats import place

MAX_FACTS = 8192
"""Steps of one world that are kept; more are not needed where outcomes repeat."""
MAX_STEP = 2**30
_PLACE = Expected(("m",), low=0, below="n_places")


@dataclass(slots=True, eq=False)
class Facts:
    """Distinct steps of one world."""

    times: Annotated[NDArray[np.int64], Expected(("m",), 0, MAX_STEP)]
    """The step within its episode."""
    places: Annotated[NDArray[np.int64], _PLACE]
    """Numbers of observations."""
    actions: Annotated[NDArray[np.int64], Expected(("m",), low=0, below="n_actions")]
    next_places: Annotated[NDArray[np.int64], _PLACE]
    rewards: Annotated[NDArray[np.float64], Expected(("m",))]
    terminated: Annotated[NDArray[np.bool_], Expected(("m",))]

    @property
    def n(self) -> int:
        """How many they are."""
        return len(self.times)


class _Table:
    """Rows that are only ever added, in arrays that double; reading copies nothing."""

    def __init__(self, *columns: NDArray[Any]) -> None:
        self._columns, self.n = columns, 0

    def add(self, values: Sequence[Any]) -> None:
        """Append a row."""
        if self.n == len(self._columns[0]):
            room = max(self.n, 64)
            self._columns = tuple(
                np.concatenate([column, np.zeros((room, *column.shape[1:]), column.dtype)]) for column in self._columns
            )
        for column, value in zip(self._columns, values, strict=True):
            column[self.n] = value
        self.n += 1

    def read(self) -> tuple[NDArray[Any], ...]:
        """The columns."""
        return tuple(column[: self.n] for column in self._columns)


class Places:
    """Distinct observations, numbered as they are met."""

    def __init__(self, d: int, observations: NDArray[np.float32] | None = None) -> None:
        self._numbers: dict[bytes, int] = {}
        self._table = _Table(np.zeros((0, d), np.float32))
        for observation in observations if observations is not None else ():
            self.add(observation)

    def __len__(self) -> int:
        return self._table.n

    @property
    def observations(self) -> NDArray[np.float32]:
        """(n, d) by number."""
        return self._table.read()[0]

    def find(self, observation: NDArray[np.float32]) -> int:
        """The number of an observation; -1: it is new."""
        return self._numbers.get(place(observation), -1)

    def add(self, observation: NDArray[np.float32]) -> int:
        """The number of an observation that may be new."""
        number = self._numbers.setdefault(place(observation), len(self))
        if number == len(self):
            self._table.add([observation])
        return number


Pair = tuple[int, int]
"""A place and an action."""


class Recorder:
    """Collects the distinct steps of one world, and keeps count of what a plan needs after each of them."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._steps: set[tuple[int, int, int, int, float, bool]] = set()
        """(time, place, action, next place, reward, terminated)"""
        kinds = (np.int64, np.int64, np.int64, np.int64, np.float64, np.bool_)
        self._table = _Table(*(np.zeros(0, kind) for kind in kinds))
        self.last_time = -1
        """The latest step of any episode; -1: there is none."""
        self.moves: dict[Pair, int] = {}
        """Where each action led, without those that led to several places."""
        self.outcomes: dict[Pair, set[tuple[int, float, bool]]] = {}
        """(next place, reward, terminated) of each action that was executed."""
        self._n_tries: dict[Pair, int] = {}
        self._contradicted: set[Pair] = set()
        self._n_retried = 0

    def add(
        self, time: int, observation: NDArray[np.float32], action: int, next_observation: NDArray[np.float32],
        reward: float, is_terminated: bool,
    ) -> bool:  # fmt: skip
        """Add a step; returns whether it is new."""
        if len(self._steps) >= MAX_FACTS:
            return False
        ends = self.places.add(observation), self.places.add(next_observation)
        return self._insert(time, ends[0], action, ends[1], reward, is_terminated)

    def _insert(self, time: int, place: int, action: int, end: int, reward: float, is_terminated: bool) -> bool:
        step, pair = (time, place, action, end, reward, is_terminated), (place, action)
        if step in self._steps:
            return False
        self._steps.add(step)
        self._table.add(step)
        self.last_time = max(self.last_time, time)
        known = self.outcomes.setdefault(pair, set())
        if not known:
            self.moves[pair] = end
        else:
            if self.moves.get(pair) != end:
                self.moves.pop(pair, None)
            if next((other, is_over) for other, _, is_over in known) != (end, is_terminated):
                self._contradicted.add(pair)
        known.add((end, reward, is_terminated))
        self._n_tries[pair] = self._n_tries.get(pair, 0) + 1
        self._n_retried += self._n_tries[pair] == 2
        return True

    @property
    def contradicted_share(self) -> float:
        """Of all (place, action) that were tried at several moments: the share that led to several places.

        Rewards do not count: MiniGrid pays less for a goal that is reached later.
        """
        return len(self._contradicted) / self._n_retried if self._n_retried else 0.0

    def facts(self) -> Facts:
        """What was collected, as arrays in the order in which it was met."""
        return Facts(*self._table.read())

    def restore(self, facts: Facts) -> None:
        """Go on after these."""
        columns = facts.times, facts.places, facts.actions, facts.next_places, facts.rewards, facts.terminated
        for step in zip(*(column.tolist() for column in columns), strict=True):
            self._insert(*step)
