"""Domains whose dynamics are kernels: one copy advances in compiled code, alone or within a larger kernel."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.base import Domain
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows


class DomainKernels(NamedTuple):
    """The dynamics of one copy, whose `state` and `parameters` are rows of numbers."""

    step: Any
    """step(state, parameters, action) -> (reward, terminated); changes `state`."""
    observe: Any
    """observe(state, parameters, out): writes the observation, float32."""
    step_each: Any
    observe_each: Any


def make_kernels(step: Any, observe: Any) -> DomainKernels:
    """The kernels of a domain, and the same over a batch."""

    @kernel(allocates=False)
    def step_each(
        states: NDArray[Any], parameters: Floats, rows: Rows, actions: Actions, rewards: Floats, terminated: Flags
    ) -> None:
        for m in range(rows.shape[0]):
            rewards[m], terminated[m] = step(states[rows[m]], parameters[rows[m]], actions[m])

    @kernel(allocates=False)
    def observe_each(states: NDArray[Any], parameters: Floats, rows: Rows, out: Observations) -> None:
        for m in range(rows.shape[0]):
            observe(states[rows[m]], parameters[rows[m]], out[m])

    return DomainKernels(step, observe, step_each, observe_each)


class CompiledDomain(Domain):
    """A domain made of `DomainKernels`; observations are one row of numbers."""

    kernels: ClassVar[DomainKernels]
    state_dtype: ClassVar[type] = np.float64

    def __init__(self, n: int, n_state: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, spec)
        self._state: NDArray[Any] = np.zeros((n, n_state), self.state_dtype)

    @property
    def is_compiled(self) -> bool:
        """Whether the kernels are all that happens: a subclass may override `step` or `observe` in Python."""
        return type(self).step is CompiledDomain.step and type(self).observe is CompiledDomain.observe

    @property
    def arrays(self) -> tuple[NDArray[Any], Floats]:
        """States (n, s) and parameters (n, p), as the kernels take their rows."""
        return self._state, self._parameters

    def observe(self, rows: Rows) -> Observations:
        """The observations of `rows`, (m, d) float32."""
        observations = np.empty((len(rows), *self.spec.observation_low.shape), np.float32)
        self.kernels.observe_each(*self.arrays, rows, observations)
        return observations

    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """Advance `rows` by one step: rewards and terminations."""
        rewards, terminated = np.empty(len(rows)), np.empty(len(rows), np.bool_)
        self.kernels.step_each(*self.arrays, rows, actions, rewards, terminated)
        return rewards, terminated


@kernel(allocates=False)
def observe_state(state: Floats, parameters: Floats, out: NDArray[np.float32]) -> None:
    """For domains whose state is what is observed."""
    for k in range(out.shape[0]):
        out[k] = state[k]
