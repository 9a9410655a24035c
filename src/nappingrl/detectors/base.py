"""The contract of a detector, and two detectors that need no data."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.snapshot import Expected, restore_arrays
from nappingrl.types import DomainSpec, Floats, Rows, Transition, arrays_of
from nappingrl.world_model.memory import TransitionMemory

ALL_STEPS = 1 << 40
"""More steps than any episode has."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """What a detector measures at the moment: it alarms where the value leaves low..high."""

    label: str
    value: float
    low: float = -inf
    high: float = inf


class Detector:
    """Watches n trials and keeps a belief for each: `context` is 0 before the novelty, 1 in the first changed context.

    Every call may change `context` of its rows. Most detectors are latched: they only go from 0 to 1. One that
    recognises contexts may return to 0, or go on to 2. Episodes are numbered as in the paper: -40..-1 before the
    novelty, 0..39 after it.
    """

    needs_domain: ClassVar[bool] = False
    """Whether it can only be made with `for_domain`."""
    uses_memory: ClassVar[bool] = False
    """Whether it reads the transitions that `connect` gives access to."""
    saved: ClassVar[Mapping[str, Expected]] = {"context": Expected(low=0)}
    """What saved arrays may hold, by attribute; those not named here have the same type and shape as before, and
    finite numbers."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.context: Rows = np.zeros(n, np.int64)

    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "Detector":
        """A detector of n trials in a domain."""
        return cls(n)

    def connect(self, memory: TransitionMemory, agent: Agent) -> None:
        """Share the transitions that the adaptation stores; called once, if the domain's observations are one row."""

    def start(self, rows: Rows, episode: int) -> None:
        """Begin a new trial in `rows` with the given episode number: forget everything."""
        self.context[rows] = 0

    def begin_phase(self, rows: Rows, is_novel: bool) -> None:
        """The protocol's truth about the episodes that follow; only `Announced` listens."""

    def step(self, rows: Rows, transition: Transition) -> None:
        """Observe one step."""

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        """An episode ended with this return; called before the next one begins."""

    def discard_episode(self, rows: Rows) -> None:
        """Forget the unfinished episode, if there is one: another begins."""

    def explain(self, row: int) -> str:
        """What has changed, in words; empty where the detector cannot tell."""
        return ""

    def status(self, row: int) -> str:
        """Why it cannot raise an alarm now, as "is calibrating: 3 of 40 episodes"; empty: it can."""
        return ""

    def n_leading(self, row: int) -> int:
        """How many of the latest steps of the episode led to an alarm: what came before is of the original world."""
        return ALL_STEPS

    def gauge(self, row: int) -> Gauge | None:
        """Its statistic and the limits of it; None: it has no single one, or nothing to judge yet."""
        return None

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything it has learned, as named arrays, for saving: by default all arrays among its attributes."""
        return arrays_of(self)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned."""
        restore_arrays(self, state)


class Never(Detector):
    """Never alarms: the method stays as it was before the novelty."""

    def status(self, row: int) -> str:
        """Always the same."""
        return "never alarms"


class Announced(Detector):
    """Given: alarms exactly when the first episode after the novelty begins."""

    def start(self, rows: Rows, episode: int) -> None:
        """Alarm at once where the trial begins after the novelty."""
        self.context[rows] = int(episode >= 0)

    def begin_phase(self, rows: Rows, is_novel: bool) -> None:
        """Believe it."""
        self.context[rows] = int(is_novel)
