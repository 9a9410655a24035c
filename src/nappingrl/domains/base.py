"""The contract of a domain's simulator: n copies side by side, each with its own parameters."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
from typing_extensions import override

from nappingrl.errors import BadSpecError, check_name
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows

if TYPE_CHECKING:
    from nappingrl.domains.canvas import Canvas


class Domain(ABC):
    """N copies of a domain; a subclass states its `spec`.

    Parameters are primitive numbers only: values that follow from them (a total mass) are computed inside `step`, so
    a changed parameter cannot leave a stale one behind. The caller draws all random numbers: `reset` takes uniform
    numbers.
    """

    spec: DomainSpec
    reel_every: int = 0
    """Ticks of a simulator between two drawings of `reel`; 0: none are kept."""

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "spec"):
            cls.spec = replace(cls.spec, simulator=cls)

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        self.n = n
        if spec is not None:
            self.spec = spec
        self._parameters = np.tile(np.array(list(self.spec.parameters.values())), (n, 1))

    @abstractmethod
    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Begin an episode in `rows`; `uniforms` is (m, n_reset_draws) in [0, 1)."""

    @abstractmethod
    def observe(self, rows: Rows) -> Observations:
        """The observations of `rows`, (m, *shape) float32."""

    @abstractmethod
    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """Advance `rows` by one step: rewards and terminations."""

    def draw(self, row: int, canvas: "Canvas") -> None:
        """Draw one copy."""
        raise BadSpecError(f"domain '{self.spec.name}' cannot be drawn: its class {type(self).__name__} has no draw()")

    def draw_predicted(self, row: int, observation: Floats, canvas: "Canvas") -> bool:
        """Draw what moves as it would be at an observation; False: observations of this domain do not say enough."""
        return False

    def reel(self, row: int) -> "list[Callable[[Canvas], None]]":
        """Drawings of what happened within the latest step, where a step takes long; empty: a step is one picture."""
        return []

    def apply(self, rows: Rows, changes: Mapping[str, float] | None) -> None:
        """Set the parameters of these copies; those that `changes` does not name return to their defaults."""
        values = dict(self.spec.parameters) | check_parameters(self.spec, changes)
        self._parameters[rows] = list(values.values())

    def parameters_of(self, rows: Rows) -> Floats:
        """The true parameters, (m, p)."""
        return self._parameters[rows]


def check_parameters(spec: DomainSpec, changes: Mapping[str, float] | None) -> dict[str, float]:
    """Raise in one line if a parameter is unknown or not a finite number."""
    for name, value in (changes or {}).items():
        check_name(f"parameter of {spec.name}", name, spec.parameters)
        if not isinstance(value, Real) or not np.isfinite(value):
            raise BadSpecError(f"parameter {name}={value} of {spec.name} is not a finite number")
        if name in spec.positive and value <= 0:
            raise BadSpecError(f"parameter {name}={value} of {spec.name} must be greater than 0")
    return dict(changes or {})


class DomainWrapper(Domain):
    """The copies of a domain with something in between; pictures are those of the wrapped copies."""

    def __init__(self, inner: DomainSpec, n: int, spec: DomainSpec) -> None:
        super().__init__(n, spec)
        self._inner = inner.make(n)

    @property
    def reel_every(self) -> int:
        """As of the wrapped copies, which keep the drawings."""
        return self._inner.reel_every

    @reel_every.setter
    def reel_every(self, ticks: int) -> None:
        self._inner.reel_every = ticks

    @override
    def reel(self, row: int) -> "list[Callable[[Canvas], None]]":
        return self._inner.reel(row)

    @override
    def draw(self, row: int, canvas: "Canvas") -> None:
        self._inner.draw(row, canvas)

    @override
    def draw_predicted(self, row: int, observation: Floats, canvas: "Canvas") -> bool:
        return self._inner.draw_predicted(row, observation, canvas)
