"""The contract of a world: a batch of n copies, each with parameters of its own."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors import Detector
from nappingrl.errors import BadSpecError, check_name
from nappingrl.novelties.novelty import Novelty
from nappingrl.registry import detectors
from nappingrl.score import Score
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows

if TYPE_CHECKING:
    from nappingrl.domains.canvas import Canvas


@dataclass(frozen=True, slots=True)
class Solved:
    """When a trial counts as solved: the mean of a column over its last ten episodes is at least `level`."""

    column: str
    level: float


@dataclass(frozen=True, slots=True)
class Defaults:
    """What an experiment in a domain uses unless told otherwise."""

    agent: str
    novelty: str
    score: str
    rule: str
    space: str
    detector: str = "rolling-mean"
    protocol: str = "paper"
    """The paper's protocol in this domain."""


class Domain(ABC):
    """A batch of n worlds.

    Parameters are primitive numbers only: values that follow from them (a total mass) are computed inside `step`, so
    a changed parameter cannot leave a stale one behind. All drawing of random numbers is done by the caller: `reset`
    takes uniform numbers.
    """

    name: ClassVar[str]
    env_id: ClassVar[str]
    title: ClassVar[str]
    parameters: ClassVar[Mapping[str, float]]
    """Name -> value before the novelty."""
    positive: ClassVar[tuple[str, ...]] = ()
    """Parameters that must be greater than 0."""
    observation_names: ClassVar[tuple[str, ...]]
    observation_words: ClassVar[tuple[tuple[str, str], ...]]
    """For each observation how a person calls a negative and a positive value (relative to the centre)."""
    observation_low: ClassVar[NDArray[np.float32]]
    observation_high: ClassVar[NDArray[np.float32]]
    observation_centre: ClassVar[NDArray[np.float64]]
    observation_scale: ClassVar[NDArray[np.float64]]
    action_names: ClassVar[tuple[str, ...]]
    horizon: ClassVar[int]
    """Steps after which an episode is cut."""
    return_range: ClassVar[tuple[float, float] | None]
    """The least and the greatest return of an episode; None: nobody knows."""
    solved: ClassVar[Solved | None]
    """None: nobody knows."""
    n_reset_draws: ClassVar[int]
    """How many uniform numbers `reset` takes per world."""
    frames_per_second: ClassVar[int] = 50
    novelties: ClassVar[Mapping[str, Novelty]]
    scores: ClassVar[Mapping[str, Score]]
    detector_limits: ClassVar[tuple[float, float]]
    """The paper's rolling mean alarms below the first and above the second."""
    order: ClassVar[NDArray[np.int64] | None] = None
    """For each action all others in the order in which a person would try them instead; None: there is none."""
    defaults: ClassVar[Defaults]
    notes: ClassVar[tuple[str, ...]] = ()
    """What a user should know before reading results, one line each."""
    expert_name: ClassVar[str] = ""
    """module:class of a controller that knows the true parameters, for the ceilings; empty: there is none."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._parameters = np.tile(np.array(list(self.parameters.values())), (n, 1))

    @abstractmethod
    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Begin an episode in `rows`; `uniforms` is (m, n_reset_draws) in [0, 1)."""

    @abstractmethod
    def observe(self, rows: Rows) -> Observations:
        """What an agent sees, (m, observations) float32."""

    @abstractmethod
    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """Advance `rows` by one step: rewards and terminations."""

    @abstractmethod
    def draw(self, row: int, canvas: "Canvas") -> None:
        """Draw one world."""

    def apply(self, rows: Rows, changes: Mapping[str, float] | None) -> None:
        """Put a novelty in place: the parameters of these worlds, the defaults where none is named."""
        self._parameters[rows] = list((dict(self.parameters) | check_parameters(self, changes)).values())

    @classmethod
    def mask(cls, observations: Observations) -> NDArray[np.bool_] | None:
        """Which actions make sense, (m, actions); None where all always do."""
        return None

    def parameters_of(self, rows: Rows) -> Floats:
        """The true parameters, (m, p)."""
        return self._parameters[rows]

    @staticmethod
    @abstractmethod
    def won(lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
        """Whether an ended episode was a success."""

    @classmethod
    def describe(cls, observation: NDArray[np.floating[Any]]) -> str:
        """A situation in words, for reading principles: coarse, so that neighbours read alike."""
        signs = np.sign(observation - cls.observation_centre)
        words = [pair[int(s > 0)] for pair, s in zip(cls.observation_words, signs, strict=True) if s]
        return ", ".join(words) or "at the centre"

    @classmethod
    def expert(cls) -> Any:
        """A controller that is told the true parameters (plan, act), or None."""
        if not cls.expert_name:
            return None
        module, name = cls.expert_name.split(":")
        return getattr(import_module(module), name)()

    @classmethod
    def novelty(cls, name: str) -> Novelty:
        """The novelty of that name; a world may also read descriptions of its own, such as "gravity=20"."""
        return cls.novelties[check_name("novelty", name, [*cls.novelties, "all", "none"])]

    @classmethod
    def for_novelties(cls, names: Iterable[str]) -> "type[Domain]":
        """The world as a run with these novelties uses it; one whose parameters depend on them has a class for each."""
        return cls

    @classmethod
    def facts(cls) -> DomainSpec:
        """What detectors and methods may know of this world."""
        return DomainSpec(
            cls.observation_low,
            cls.observation_high,
            len(cls.action_names),
            cls.horizon,
            observation_names=cls.observation_names,
            action_names=cls.action_names,
            return_limits=cls.detector_limits,
        )

    @classmethod
    def make_detector(cls, name: str, n: int) -> Detector:
        """A detector by name, for this world."""
        kind: type[Detector] = detectors.get(name)
        return kind.for_domain(n, cls.facts())


def check_parameters(domain: Domain | type[Domain], changes: Mapping[str, float] | None) -> dict[str, float]:
    """Raise in one line if a parameter is not known or not a finite number."""
    for name, value in (changes or {}).items():
        check_name(f"parameter of {domain.name}", name, domain.parameters)
        if not isinstance(value, Real) or not np.isfinite(value):
            raise BadSpecError(f"parameter {name}={value} of {domain.name} is not a finite number")
        if name in domain.positive and value <= 0:
            raise BadSpecError(f"parameter {name}={value} of {domain.name} must be greater than 0")
    return dict(changes or {})
