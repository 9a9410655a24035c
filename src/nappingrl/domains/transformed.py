"""Any domain behind changes of its actions, observations and rewards."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from typing_extensions import override

from nappingrl.domains.base import DomainWrapper
from nappingrl.novelties.transforms import Transforms
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows


class TransformedDomain(DomainWrapper):
    """The copies of a domain, each behind its own `Transforms`; their numbers are parameters beside the domain's."""

    def __init__(self, inner: DomainSpec, n: int, spec: DomainSpec) -> None:
        super().__init__(inner, n, spec)
        self._transforms = Transforms(n, [name for name in spec.parameters if name not in inner.parameters], spec)
        self._observations = np.zeros((n, *spec.observation_low.shape), np.float32)

    @override
    def apply(self, rows: Rows, changes: Mapping[str, float] | None) -> None:
        super().apply(rows, changes)
        inner = self._inner.spec.parameters
        self._inner.apply(rows, {name: value for name, value in (changes or {}).items() if name in inner})
        self._transforms.set(rows, self._parameters[rows, len(inner) :])

    @override
    def reset(self, rows: Rows, uniforms: Floats) -> None:
        self._inner.reset(rows, uniforms[:, : self._inner.spec.n_reset_draws])
        self._transforms.begin(rows, (uniforms[:, 0] * 2**31).astype(np.int64).tolist())
        self._update(rows)

    @override
    def observe(self, rows: Rows) -> Observations:
        return self._observations[rows]

    @override
    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        rewards, terminated = self._inner.step(rows, self._transforms.actions(rows, actions))
        self._update(rows)
        return self._transforms.rewards(rows, rewards), terminated

    def _update(self, rows: Rows) -> None:
        """Observations are changed once a step: noise must not differ when they are asked for again."""
        self._observations[rows] = self._transforms.observations(rows, self._inner.observe(rows))


def with_transforms(domain: DomainSpec, neutral: Mapping[str, float]) -> DomainSpec:
    """The domain with these numbers of changes, given by their neutral values, as further parameters.

    It has no oracle: oracles know the parameters of their domain only.
    """
    if not neutral:
        return domain
    return replace(
        domain,
        parameters={**domain.parameters, **neutral},
        oracle="",
        n_reset_draws=max(domain.n_reset_draws, 1),  # the seed of what is random
        simulator=partial(TransformedDomain, domain),
    )
