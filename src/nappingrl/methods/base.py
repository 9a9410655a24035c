"""The contract of a method."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.observations import take, take_transition
from nappingrl.errors import BadAgentError, BadSpecError
from nappingrl.methods.compiled import CompiledMethod
from nappingrl.methods.value_estimate import ValueEstimate
from nappingrl.options import Option, read_values
from nappingrl.registry import methods
from nappingrl.score import Score
from nappingrl.types import (
    Actions,
    Decision,
    DomainSpec,
    Flags,
    Floats,
    Keys,
    Observations,
    OracleController,
    Rows,
    Transition,
)  # fmt: skip
from nappingrl.world_model.memory import TransitionMemory


@dataclass(frozen=True, slots=True)
class MethodInfo:
    """What a method may know."""

    domain: DomainSpec
    """Its `name` is empty where only the shapes are known."""
    score: Score | None = None
    """The paper's Eval; None for methods that take none."""
    options: Mapping[str, Any] = field(default_factory=dict)
    oracle: OracleController | None = None
    """Only for privileged methods."""
    value: ValueEstimate | None = None
    """What the score `learned` is computed from; None for other scores."""
    memory: TransitionMemory | None = None
    """The transitions of all trials, for methods that use them; None: the observations are not one row of numbers."""


class Forecast(NamedTuple):
    """Returns that a method expects by its own model of the changed world."""

    agent: float
    """If the frozen agent plays an episode."""
    own: float
    """If the method does."""


class Method:
    """Acts for n trials in lock step. The base class acts as the frozen agent wants and learns nothing."""

    name: str = ""
    """As registered."""
    detector: ClassVar[str] = ""
    """The detector that it is used with by default; empty: the domain's."""
    takes_score: ClassVar[bool] = False
    """Whether it judges actions by a score, the paper's Eval."""
    learns_from_others: ClassVar[bool] = False
    """Whether it learns from steps whose actions it did not choose."""
    accepts_stateful_agents: ClassVar[bool] = False
    """Whether it takes scripted agents, which learn by themselves."""
    needs_domain: ClassVar[bool] = False
    """Whether it must know more of a domain than the shapes: bounds, time limit."""
    uses_memory: ClassVar[bool] = False
    """Whether it reads `MethodInfo.memory`."""
    translates: ClassVar[bool] = False
    """Whether `forward` shows the agent other observations than those that came."""
    needs_discrete: ClassVar[bool] = False
    """Whether it refuses agents with continuous actions."""
    is_privileged: ClassVar[bool] = False
    """Whether it is given the domain's oracle and true parameters; such a method only runs in trials."""
    acts_as_agent: ClassVar[bool] = False
    """Whether it acts as the frozen agent, apart from a few probes, until it is certain."""
    acts_on_demand: ClassVar[bool] = False
    """Whether `act` may be left out where its actions are not executed, since it is costly and `learn` needs none."""
    can_be_saved: bool = False
    """Whether `state` holds everything that it learned."""
    needs_alarm: bool = True
    """Whether it acts as the frozen agent until the detector raises an alarm."""
    options: ClassVar[Mapping[str, Option]] = {}
    """The options it takes, by name."""

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        if agent.is_stateful and not self.accepts_stateful_agents:
            allowed = [name for name in methods.names() if methods.get(name).accepts_stateful_agents]
            raise BadAgentError(
                f"agent {agent.name} is scripted and learns by itself; allowed methods for it: {', '.join(allowed)}"
            )
        if self.needs_discrete and agent.action_low is not None:
            others = [name for name in methods.names() if not methods.get(name).needs_discrete]
            raise BadAgentError(
                f"method {type(self).__name__.lower()} needs discrete actions; those of agent {agent.name} are "
                f"continuous; allowed methods for it: {', '.join(others)}"
            )
        self.agent, self.info, self.n = agent.for_trials(n), info, n

    @property
    def score(self) -> Score:
        """The score of a method that takes one."""
        if self.info.score is None:
            raise BadSpecError(f"method {type(self).__name__} needs a score; give one with score=")
        return self.info.score

    def mask(self, observations: Observations) -> NDArray[np.bool_] | None:
        """Which actions are valid, (m, n_actions); None: all are."""
        mask = self.info.domain.action_mask
        return None if mask is None else mask(observations)

    def scores_of(self, rows: Rows, transition: Transition, at: Any = slice(None)) -> Floats:
        """The scores of some of these rows of a transition."""
        t = transition
        if self.info.value is not None:
            return self.info.value.scores(rows[at], take_transition(t, at), self.agent)
        return self.score(
            take(t.observations, at), t.actions[at], take(t.next_observations, at), t.rewards[at], t.terminated[at]
        )

    def start(self, rows: Rows, keys: Keys) -> None:
        """Begin a new trial in `rows`: forget everything. `keys` seed the method's random draws."""
        self.agent.start(rows, keys)

    def compiled(self) -> CompiledMethod | None:
        """`forward`, `act` and `learn` of one trial as kernels; None: they only run in Python."""
        return None

    def reveal(self, rows: Rows, parameters: Floats) -> None:
        """Receive the true parameters (m, p); called for privileged methods only."""

    def reveal_episode(self, rows: Rows, draws: Floats) -> None:
        """Receive the reset draws (m, n_reset_draws) of an episode that begins; called for privileged methods only."""

    def forward(self, rows: Rows, observations: Observations) -> Decision:
        """What the trained agent wants. Methods that train a copy per trial override this."""
        return self.agent.decide(rows, observations)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The actions to execute."""
        return decision.actions

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Learn from one executed step; called on every step, before the novelty too."""
        self.agent.watch(rows, transition, detected)

    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        """The detector now believes `rows` to be in `contexts` (0: as before the novelty); called before `learn`."""

    def end_episode(self, rows: Rows) -> None:
        """An episode ended in `rows`."""

    def option(self, name: str) -> Any:
        """The value of an option: the one that was given, else its default."""
        return self.info.options.get(name, self.options[name].default)

    def notes(self) -> list[str]:
        """What a user should know before reading the results, one line each."""
        return []

    def status(self, row: int) -> str:
        """Why it acts as the frozen agent in a changed context, in words; empty: it does not, or too early to say."""
        return ""

    def acting(self, row: int) -> str:
        """What acts in the episode under way, such as the method's name; empty: the frozen agent."""
        return (self.name or type(self).__name__.lower()) if self.regions(np.array([row]))[0][0] else ""

    def never_failed(self) -> str:
        """The `status` where no action has failed."""
        return f"no action has failed: score '{self.score.name}' was never below {self.score.threshold:g}"

    def signature(self, row: int) -> str:
        """What distinguishes the rule in force from others: `describe`, without numbers that are merely refined."""
        return self.describe(row)

    def is_certain(self, rows: Rows) -> Flags:
        """Where what it does is established by other evidence than returns, so that it may act at once."""
        return np.zeros(len(rows), np.bool_)

    def try_out(self, row: int) -> bool:
        """An episode begins in which little is left to lose: do something unproven in it; False: nothing to try."""
        return False

    def forecast(self, row: int) -> Forecast | None:
        """What it expects to earn in the next episode; None: it cannot tell."""
        return None

    def imagine(self, row: int, observation: Floats, n_steps: int) -> Floats | None:
        """The observations (at most n_steps, d) that its model predicts from here, as it acts; None: no model."""
        return None

    def diverged(self, rows: Rows) -> Flags:
        """Where a learner diverged (its numbers were no longer finite) and stopped learning."""
        return np.zeros(len(rows), np.bool_)

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The principles of one trial as named arrays (`Principles.table`); empty where there are none."""
        return {}

    @property
    def choice_names(self) -> tuple[str, ...]:
        """What the numbers in `table` stand for; empty: the domain's actions."""
        return ()

    def describe(self, row: int) -> str:
        """The policy in force in words; empty where there is none."""
        return ""

    def context_sizes(self, row: int) -> dict[int, int]:
        """Number of principles or policies learned in each context."""
        return {}

    def discard_episode(self, rows: Rows) -> None:
        """Forget the unfinished episode, if there is one: another begins."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything learned, as named arrays, for saving."""
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned."""

    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many principles each row holds, and how many of them are open."""
        zeros = np.zeros(len(rows), np.int64)
        return zeros, zeros


def read_options(method: str, given: Mapping[str, Any], stated: Collection[str] = ()) -> dict[str, Any]:
    """The options of a method, checked; those at their default are left out unless `stated` names them."""
    declared: Mapping[str, Option] = methods.get(method).options
    for name in given:
        if name in declared:
            continue
        others = [other for other in methods.names() if name in methods.get(other).options]
        if others:
            raise BadSpecError(f"method '{method}' takes no {name}; methods that do: {', '.join(others)}")
        if not declared:
            raise BadSpecError(f"option '{name}' was given, but method '{method}' has no options")
    return read_values(f"option of method {method}", declared, given, stated)


def check_saved(method: str, options: Mapping[str, Any]) -> None:
    """Raise if no agent can have been saved with this method and these options."""
    if not methods.get(method).can_be_saved:
        allowed = [name for name in methods.names() if methods.get(name).can_be_saved]
        raise BadSpecError(f"method '{method}' cannot be saved; allowed: {', '.join(allowed)}")
    read_options(method, options)
