"""Names for the arrays that travel between modules, and the records that everybody uses."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError, check_name
from nappingrl.options import Option, read_values

if TYPE_CHECKING:
    from nappingrl.domains.base import Domain
    from nappingrl.novelties.novelty import Novelty
    from nappingrl.score import Score

Rows = NDArray[np.int64]  # (m,) indices of the trials in a batch
Observations = NDArray[np.float32]  # (m, *shape)
Observation = NDArray[np.float32]  # (d,)
Actions = NDArray[Any]  # int64 (m,); float32 (m, k) for continuous actions
ModelStates = NDArray[np.float32]  # (m, embedding_dim)
Floats = NDArray[np.float64]  # (m,) unless stated otherwise
Flags = NDArray[np.bool_]  # (m,)
Keys = NDArray[np.uint64]  # (m,) keys of counter-based random streams
Point = tuple[float, float]  # x, y
OnProgress = Callable[[int, int], None]  # called with what is done and what there is to do


@dataclass(frozen=True, slots=True)
class Decision:
    """What a frozen agent wants for m observations, from one forward pass."""

    actions: Actions
    model_states: ModelStates
    preferences: NDArray[np.float32]
    """(m, n_actions): logits or Q values, higher is better; (m, 0) for continuous actions."""


@dataclass(frozen=True, slots=True)
class Transition:
    """One step of m trials."""

    observations: Observations
    decision: Decision
    actions: Actions
    """The executed actions, which need not be those that the agent wanted."""
    next_observations: Observations
    rewards: Floats
    terminated: Flags
    truncated: Flags


class OracleController(ABC):
    """A controller that is given the true parameters."""

    plans_episodes: ClassVar[bool] = False
    """Whether it plans every episode for itself, which takes long."""

    def __init__(self, domain: "DomainSpec") -> None:
        self.domain = domain

    @abstractmethod
    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """Plans (m, k) for domains with parameters (m, p)."""

    def plan_episode(self, plans: NDArray[np.float64], draws: Floats) -> NDArray[np.float64]:
        """The plans (m, k) of single episodes, whose reset draws are known, (m, n_reset_draws)."""
        return plans

    @abstractmethod
    def act(self, plans: NDArray[np.float64], observations: Observations, steps: Rows) -> Actions:
        """Actions of m plans, `steps` after the beginning of their episodes."""


@dataclass(frozen=True, slots=True)
class Solved:
    """When a trial counts as solved: the mean of a column over its last ten episodes is at least `level`."""

    column: str
    level: float


@dataclass(frozen=True, slots=True)
class Defaults:
    """What an experiment in a domain uses unless told otherwise."""

    agent: str = ""
    method: str = "napping"
    novelty: str = ""
    score: str = ""
    detector: str = "given"
    protocol: str = "40+40"
    """The paper's protocol in this domain."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of methods, such as NAPPING's `rule`; a method takes those that it declares."""


def _no_bounds() -> NDArray[np.float64]:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, eq=False)
class DomainSpec:
    """Everything that agents, methods, detectors and reports may know of a domain."""

    observation_low: NDArray[np.floating[Any]]
    """Its shape is that of an observation."""
    observation_high: NDArray[np.floating[Any]]
    n_actions: int
    """Number of discrete actions; 0: actions are continuous, between `action_low` and `action_high`."""
    horizon: int
    """Steps after which an episode is truncated; 0: unknown."""
    action_low: NDArray[np.floating[Any]] = field(default_factory=_no_bounds)
    action_high: NDArray[np.floating[Any]] = field(default_factory=_no_bounds)
    observation_names: tuple[str, ...] = ()
    action_names: tuple[str, ...] = ()
    return_limits: tuple[float, float] = (-inf, inf)
    """The paper's rolling mean alarms below the first and above the second."""

    name: str = ""
    """As on the command line; empty: nothing but the shapes is known."""
    title: str = ""
    env_id: str = ""
    """Its id with gymnasium."""
    observation_centre: NDArray[np.float64] = field(default_factory=_no_bounds)
    """Subtracted from an observation to standardise it; empty: zeros."""
    observation_scale: NDArray[np.float64] = field(default_factory=_no_bounds)
    """Divides a centred observation to standardise it; empty: ones."""
    observation_words: tuple[tuple[str, str], ...] = ()
    """For each observation, words for a value below and above the centre."""
    observation_units: tuple[str, ...] = ()
    """For each observation, its unit; empty: it has none."""
    split_words: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """Words for the two sides of an observation that is a yes or no, by its index; two empty ones: it is redundant."""
    describe_state: Callable[[NDArray[np.floating[Any]]], str] | None = None
    """An observation in words, where `observation_words` are not enough."""
    name_action: Callable[[NDArray[np.floating[Any]], int], str] | None = None
    """What an action does in an observation, in words; None: `action_names` say it."""
    action_order: NDArray[np.int64] | None = None
    """For each action, all actions in the order in which to try them instead; None: any order."""
    action_mask: Callable[[Observations], NDArray[np.bool_]] | None = None
    """Which actions are valid in m observations, (m, n_actions); None: all always are."""
    won: Callable[[Rows, Flags, Floats], Flags] | None = None
    """Which ended episodes (lengths, terminated, returns) are a success; None: unknown."""
    return_range: tuple[float, float] | None = None
    """The least and the greatest return of an episode; None: unknown."""
    solved: Solved | None = None

    parameters: Mapping[str, float] = field(default_factory=dict)
    """Name -> value before the novelty."""
    positive: tuple[str, ...] = ()
    """Parameters that must be greater than 0."""
    novelties: "Mapping[str, Novelty]" = field(default_factory=dict)
    read_novelty: "Callable[[str], Novelty] | None" = None
    """Reads a novelty's description, such as "gravity=20"; None: only `novelties` exist."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Numbers of a gymnasium environment that a description may change, entries of sequences as NAME[i]."""
    applied: tuple[Any, ...] = ()
    """Descriptions of the novelties that `narrow` was given."""
    narrow: "Callable[[tuple[str, ...]], DomainSpec] | None" = None
    """The domain as a run with these novelties uses it; None: always the same."""
    scores: "Mapping[str, Score]" = field(default_factory=dict)
    controllers: Mapping[str, Callable[[Observations], Actions]] = field(default_factory=dict)
    """Score -> the one-line policy that its author had in mind (method `controller`)."""
    oracle: str = ""
    """module:class of a controller that is given the true parameters; empty: there is none."""
    defaults: Defaults = field(default_factory=Defaults)
    options: Mapping[str, Option] = field(default_factory=dict)
    """Options of the domain itself, such as what an observation holds, by name."""
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """The options that are not at their defaults."""
    configure: "Callable[[DomainSpec], DomainSpec] | None" = None
    """What else changes with `chosen`, such as the bounds of observations; None: nothing."""
    notes: tuple[str, ...] = ()
    """What a user should know before reading results, one line each."""
    n_reset_draws: int = 0
    """How many uniform numbers `Domain.reset` takes per copy."""
    frames_per_second: int = 50
    simulator: "Callable[[int, DomainSpec], Domain] | None" = None
    """Runs n copies side by side (`make`)."""

    def make(self, n: int) -> "Domain":
        """N copies of the domain."""
        if self.simulator is None:
            raise BadSpecError(f"domain '{self.name}' cannot be simulated: only its spaces are known")
        return self.simulator(n, self)

    @property
    def observation_labels(self) -> tuple[str, ...]:
        """`observation_names`, or indices where there are none."""
        return self.observation_names or tuple(f"obs[{i}]" for i in range(self.observation_low.size))

    @property
    def action_labels(self) -> tuple[str, ...]:
        """`action_names`, or numbers where there are none; empty: actions are continuous."""
        return self.action_names or tuple(f"action {a}" for a in range(self.n_actions))

    @property
    def is_continuous(self) -> bool:
        """Whether actions are continuous."""
        return self.n_actions == 0

    @property
    def centre(self) -> NDArray[np.float64]:
        """`observation_centre`, or zeros."""
        return self.observation_centre if self.observation_centre.size else np.zeros(self.observation_low.shape)

    @property
    def scale(self) -> NDArray[np.float64]:
        """`observation_scale`, or ones."""
        return self.observation_scale if self.observation_scale.size else np.ones(self.observation_low.shape)

    def describe(self, observation: NDArray[np.floating[Any]]) -> str:
        """An observation in words, for reading principles: coarse, so that neighbours read alike."""
        if self.describe_state is not None:
            return self.describe_state(observation)
        if not self.observation_words:
            return describe_signs(observation)
        signs = np.sign(observation - self.centre)
        words = [pair[int(s > 0)] for pair, s in zip(self.observation_words, signs, strict=True) if s]
        return ", ".join(words) or "at the centre"

    def novelty(self, name: str) -> "Novelty":
        """The novelty of that name or, where the domain reads them, of that description."""
        if self.read_novelty is not None:
            return self.read_novelty(name)
        return self.novelties[check_name("novelty", name, [*self.novelties, "all", "none"])]

    def for_novelties(self, names: Iterable[str]) -> "DomainSpec":
        """The domain as a run with these novelties uses it."""
        return self if self.narrow is None else self.narrow(tuple(names))

    def with_options(self, given: Mapping[str, Any]) -> "DomainSpec":
        """The domain with these options."""
        if given and not self.options:
            raise BadSpecError(f"option '{next(iter(given))}' was given, but domain '{self.name}' has no options")
        chosen = read_values(f"option of domain {self.name}", self.options, given)
        if not chosen:
            return self
        domain = replace(self, chosen=chosen)
        return domain if self.configure is None else self.configure(domain)

    def make_oracle(self) -> OracleController | None:
        """The controller that is given the true parameters, or None."""
        if not self.oracle:
            return None
        module, _, attribute = self.oracle.partition(":")
        oracle: OracleController = getattr(import_module(module), attribute)(self)
        return oracle

    def renamed(self, name: str, title: str, env_id: str) -> "DomainSpec":
        """The same domain as the registry lists it."""
        return replace(self, name=name, title=title, env_id=env_id)


def describe_signs(observation: NDArray[np.floating[Any]]) -> str:
    """Words for observations without names."""
    if not len(observation):
        return "anywhere"
    return ", ".join(f"obs[{i}] {'>' if value > 0 else '<='} 0" for i, value in enumerate(observation[:8]))


def arrays_of(thing: object) -> dict[str, NDArray[Any]]:
    """The arrays among an object's attributes, by name."""
    return {name: value for name, value in vars(thing).items() if isinstance(value, np.ndarray)}


def with_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
