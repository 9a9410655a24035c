"""The contract of a method: what it does with experience."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.arrays import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition
from nappingrl.score import Score


class Expert(Protocol):
    """A controller that knows the world's true parameters; domains provide one for the ceilings."""

    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """Plans (m, k) for worlds with parameters (m, p)."""
        ...

    def act(self, plans: NDArray[np.float64], observations: Observations) -> Actions:
        """Actions of m plans."""
        ...


@dataclass(frozen=True, slots=True)
class Info:
    """What a method may know of its world."""

    score: Score
    observation_shape: tuple[int, ...]
    observation_centre: NDArray[np.float64]
    """Subtracted from an observation to standardise it (space="raw")."""
    observation_scale: NDArray[np.float64]
    """Divides a centred observation to standardise it."""
    rule: str = "revised"
    space: str = "embedding"
    options: dict[str, Any] = field(default_factory=dict)
    expert: Expert | None = None
    """Only handed to privileged methods."""


class Method:
    """Acts for n trials in lock step. The default is the frozen agent: acts as it wants and learns nothing."""

    privileged = False
    """True hands the world's expert and true parameters to the method: for ceilings only."""

    def __init__(self, agent: Agent, info: Info, n: int) -> None:
        self.agent, self.info, self.n = agent, info, n

    def start(self, rows: Rows, keys: Keys) -> None:
        """A new trial begins in `rows`: forget everything. `keys` seed what the method draws."""

    def reveal(self, rows: Rows, parameters: Floats) -> None:
        """The true parameters (m, p) of the worlds of `rows`; called for privileged methods only."""

    def forward(self, rows: Rows, observations: Observations) -> Decision:
        """What the trained agent wants. Learners with weights of their own per trial override this."""
        return self.agent.forward(observations)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The actions to execute."""
        return decision.actions

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """One step was executed; called on every step, before the novelty too."""

    def end_episode(self, rows: Rows) -> None:
        """An episode ended in `rows`."""

    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many principles each row holds, and how many of them are open."""
        zeros = np.zeros(len(rows), np.int64)
        return zeros, zeros
