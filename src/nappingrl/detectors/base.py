"""The contract of a detector, and the two that look at nothing."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.snapshot import restore_arrays
from nappingrl.types import DomainSpec, Floats, Rows, Transition, arrays_of


class Detector:
    """Watches n trials and says in which world each is: `world` is 0 as before the novelty, 1 in the first other, ...

    Any of the calls may change `world` of the rows it is given. Most detectors only ever go from 0 to 1; one that
    knows a world again may go back to 0, or on to 2. Episodes are numbered as in the paper: -40..-1 before the
    novelty, 0..39 after it.
    """

    needs_domain: ClassVar[bool] = False
    """Whether it can only be made with `for_domain`."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.context: Rows = np.zeros(n, np.int64)

    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "Detector":
        """A detector of n trials in a world of which this much is known."""
        return cls(n)

    def start(self, rows: Rows, episode: int) -> None:
        """A new trial begins in `rows` with the given episode number: forget everything."""
        self.context[rows] = 0

    def begin_phase(self, rows: Rows, is_novel: bool) -> None:
        """The protocol's truth about the episodes that follow; only a detector that is told may listen."""

    def step(self, rows: Rows, transition: Transition) -> None:
        """One step of the world was seen."""

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        """An episode ended with this return; judged before the next one begins."""

    def discard_episode(self, rows: Rows) -> None:
        """The episode under way, if there is one, will not be finished: another begins."""

    def explain(self, row: int) -> str:
        """What has changed, in words; empty where the detector cannot tell."""
        return ""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything it has learned, as named arrays, for saving: by default all arrays among its attributes."""
        return arrays_of(self)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from what `state` returned."""
        restore_arrays(self, {name: state[name] for name in arrays_of(self)})


class Never(Detector):
    """Never alarms: the method stays as it was before the novelty."""


class Announced(Detector):
    """Novelty is given: alarms exactly when the first episode in the changed world begins."""

    def start(self, rows: Rows, episode: int) -> None:
        """Alarm at once where the trial begins in the changed world."""
        self.context[rows] = int(episode >= 0)

    def begin_phase(self, rows: Rows, is_novel: bool) -> None:
        """Believe it."""
        self.context[rows] = int(is_novel)
