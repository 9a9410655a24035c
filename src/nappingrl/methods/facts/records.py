"""Steps as facts: what happened when which action was executed where, and when."""

from dataclasses import dataclass, field
from typing import Annotated

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


class Places:
    """Distinct observations, numbered as they are met."""

    def __init__(self, d: int, observations: NDArray[np.float32] | None = None) -> None:
        self._d = d
        self._numbers: dict[bytes, int] = {}
        self._observations: list[NDArray[np.float32]] = []
        for observation in observations if observations is not None else ():
            self.add(observation)

    def __len__(self) -> int:
        return len(self._observations)

    @property
    def observations(self) -> NDArray[np.float32]:
        """(n, d) by number."""
        return np.array(self._observations, np.float32).reshape(-1, self._d)

    def find(self, observation: NDArray[np.float32]) -> int:
        """The number of an observation; -1: it is new."""
        return self._numbers.get(place(observation), -1)

    def add(self, observation: NDArray[np.float32]) -> int:
        """The number of an observation that may be new."""
        number = self._numbers.setdefault(place(observation), len(self._observations))
        if number == len(self._observations):
            self._observations.append(observation.astype(np.float32))
        return number


@dataclass(slots=True)
class Recorder:
    """Collects the distinct steps of one world."""

    places: Places
    steps: dict[tuple[int, int, int, int, float, bool], None] = field(default_factory=dict)
    """(time, place, action, next place, reward, terminated) in the order in which they were met."""

    def add(
        self, time: int, observation: NDArray[np.float32], action: int, next_observation: NDArray[np.float32],
        reward: float, is_terminated: bool,
    ) -> bool:  # fmt: skip
        """Add a step; returns whether it is new."""
        if len(self.steps) >= MAX_FACTS:
            return False
        ends = self.places.add(observation), self.places.add(next_observation)
        step = time, ends[0], action, ends[1], reward, is_terminated
        is_new = step not in self.steps
        self.steps[step] = None
        return is_new

    def facts(self) -> Facts:
        """What was collected, as arrays."""
        columns = list(zip(*self.steps, strict=True)) or [()] * 6
        kinds = (np.int64, np.int64, np.int64, np.int64, np.float64, np.bool_)
        return Facts(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))

    def restore(self, facts: Facts) -> None:
        """Go on after these."""
        columns = facts.times, facts.places, facts.actions, facts.next_places, facts.rewards, facts.terminated
        self.steps = dict.fromkeys(zip(*(column.tolist() for column in columns), strict=True))
