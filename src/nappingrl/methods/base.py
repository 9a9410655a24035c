"""The contract of a method: what it does with experience."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError, BadSpecError, check_name
from nappingrl.registry import methods
from nappingrl.score import Score
from nappingrl.types import Actions, Decision, DomainSpec, Flags, Floats, Keys, Observations, Rows, Transition


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a method: its default, what is allowed, and what it does."""

    default: str | float | None
    """A word, a number, or None: the method decides."""
    description: str
    words: tuple[str, ...] = ()
    """The words that are allowed; empty: a number."""
    low: float = 0.0
    high: float = np.inf
    """The least and the greatest number that is allowed."""
    is_whole: bool = False
    """Whether only whole numbers are allowed."""

    def read(self, name: str, value: Any) -> str | float:
        """The value, checked; numbers may come as text."""
        if self.words:
            return check_name(name, str(value), self.words)
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise BadSpecError(f"option {name}={value} is not a number") from None
        if not np.isfinite(number) or not self.low <= number <= self.high:
            raise BadSpecError(f"option {name}={value} is outside its range, {self.low:g} to {self.high:g}")
        if self.is_whole and number != int(number):
            raise BadSpecError(f"option {name}={value} is not a whole number")
        return number


class Expert(Protocol):
    """A controller that knows the world's true parameters; domains provide one for the ceilings."""

    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """Plans (m, k) for worlds with parameters (m, p)."""
        ...

    def act(self, plans: NDArray[np.float64], observations: Observations, steps: Rows) -> Actions:
        """Actions of m plans, `steps` after the beginning of their episodes."""
        ...


@dataclass(frozen=True, slots=True)
class MethodInfo:
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
    mask: Callable[[Observations], NDArray[np.bool_] | None] | None = None
    """Which actions make sense in m observations (m, actions), or None where all do."""
    order: NDArray[np.int64] | None = None
    """For each wanted action all actions in the order in which a person would try them instead."""
    won: Callable[[Rows, Flags, Floats], Flags] | None = None
    """Which ended episodes (lengths, terminated, returns) are a success; None where nobody knows."""
    domain: DomainSpec | None = None
    """The world's spaces and time limit; None where nobody has told them."""


class Method:
    """Acts for n trials in lock step. The default is the frozen agent: acts as it wants and learns nothing."""

    role: ClassVar[str] = "method"
    """method, baseline, control or oracle: how reports read its results."""
    detector: ClassVar[str] = ""
    """The detector that it is used with unless told otherwise; empty: the domain's."""
    learns_from_others: ClassVar[bool] = False
    """Whether it learns from steps whose actions it did not choose."""
    accepts_stateful_agents: ClassVar[bool] = False
    """Whether agents with a memory of their own are allowed."""
    needs_discrete: ClassVar[bool] = False
    """Whether agents whose actions are numbers are refused."""
    privileged = False
    """True hands the world's expert and true parameters to the method: for ceilings only."""
    options: ClassVar[Mapping[str, Option]] = {}
    """The options it takes, by name."""

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        if agent.is_stateful and not self.accepts_stateful_agents:
            raise BadAgentError(f"agent {agent.name} plays by rules of its own; allowed method for it: frozen")
        if self.needs_discrete and agent.action_low is not None:
            others = [name for name in methods.names() if not methods.get(name).needs_discrete]
            raise BadAgentError(
                f"method {type(self).__name__.lower()} needs discrete actions; those of agent {agent.name} are "
                f"numbers; allowed methods for it: {', '.join(others)}"
            )
        self.agent, self.info, self.n = agent.for_trials(n), info, n

    def start(self, rows: Rows, keys: Keys) -> None:
        """A new trial begins in `rows`: forget everything. `keys` seed what the method draws."""
        self.agent.start(rows, keys)

    def reveal(self, rows: Rows, parameters: Floats) -> None:
        """The true parameters (m, p) of the worlds of `rows`; called for privileged methods only."""

    def forward(self, rows: Rows, observations: Observations) -> Decision:
        """What the trained agent wants. Learners with weights of their own per trial override this."""
        return self.agent.decide(rows, observations)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The actions to execute."""
        return decision.actions

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """One step was executed; called on every step, before the novelty too."""
        self.agent.watch(rows, transition, detected)

    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        """The detector now believes these rows to be in these worlds (0: as before the novelty); before `learn`."""

    def end_episode(self, rows: Rows) -> None:
        """An episode ended in `rows`."""

    def option(self, name: str) -> Any:
        """The value of an option: the one that was given, else its default."""
        return self.info.options.get(name, self.options[name].default)

    def notes(self) -> list[str]:
        """What a user should know before reading the results, one line each."""
        return []

    def diverged(self, rows: Rows) -> Flags:
        """Where a learner's numbers were no longer finite, so that it stopped learning."""
        return np.zeros(len(rows), np.bool_)

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The principles of one trial as named arrays (`Principles.table`); empty where there are none."""
        return {}

    @property
    def choice_names(self) -> tuple[str, ...]:
        """What the numbers in `table` stand for; empty: the world's actions."""
        return ()

    def describe(self, row: int) -> str:
        """The rule in force in words; empty where there is none."""
        return ""

    def context_sizes(self, row: int) -> dict[int, int]:
        """How much was learned for each world that was met, by its number."""
        return {}

    def discard_episode(self, rows: Rows) -> None:
        """The episode under way, if there is one, will not be finished: another begins."""

    def state(self) -> dict[str, NDArray[Any]]:
        """What was learned, as named arrays, so that it can be saved."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave."""

    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many principles each row holds, and how many of them are open."""
        zeros = np.zeros(len(rows), np.int64)
        return zeros, zeros


def read_options(method: str, kind: type[Method], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a method, checked; those at their default are left out."""
    for name in given:
        if not kind.options:
            raise BadSpecError(f"option '{name}' was given, but method {method} has no options")
        check_name(f"option of method {method}", name, kind.options)
    read = {name: kind.options[name].read(name, value) for name, value in given.items()}
    return {name: value for name, value in read.items() if value != kind.options[name].default}
