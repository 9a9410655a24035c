"""Any domain whose novelty goes on changing: parameters that follow a schedule."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from typing_extensions import override

from nappingrl.domains.base import DomainWrapper
from nappingrl.novelties.schedule import STEPS, Schedule
from nappingrl.types import Actions, DomainSpec, Flags, Floats, Observations, Rows

LEAST_SHARE = 1e-3
"""A walk of a number that must be positive stops at this share of its first value."""


class ScheduledDomain(DomainWrapper):
    """The copies of a domain, in each of which some parameters follow a schedule while the novelty holds.

    A novelty gives a scheduled parameter its peak: how far that is from the usual value says how strong the novelty is.
    """

    def __init__(self, inner: DomainSpec, schedules: Mapping[str, Schedule], n: int, spec: DomainSpec) -> None:
        super().__init__(inner, n, spec)
        self._schedules = schedules
        self._columns = [list(spec.parameters).index(name) for name in schedules]
        self._changes: list[dict[str, float] | None] = [None] * n  # None: no novelty holds
        self._episode, self._step = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._seeds = np.zeros(n, np.int64)
        self._moves_in_episodes = any(schedule.unit == STEPS for schedule in schedules.values())

    @override
    def apply(self, rows: Rows, changes: Mapping[str, float] | None) -> None:
        super().apply(rows, changes)
        self._inner.apply(rows, changes)
        is_novel = changes is not None and set(self._schedules) <= set(changes)
        self._episode[rows] = -1
        for row in rows.tolist():
            self._changes[row] = dict(changes or {}) if is_novel else None
            self._set(row)

    @override
    def reset(self, rows: Rows, uniforms: Floats) -> None:
        self._episode[rows] += 1
        self._step[rows] = 0
        for i, row in enumerate(rows.tolist()):
            if self._episode[row] == 0:
                self._seeds[row] = int(uniforms[i, 0] * 2**31)
            self._set(row)
        self._inner.reset(rows, uniforms)

    @override
    def observe(self, rows: Rows) -> Observations:
        return self._inner.observe(rows)

    @override
    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        if self._moves_in_episodes:
            for row in rows.tolist():
                self._set(row)
        self._step[rows] += 1
        return self._inner.step(rows, actions)

    def _set(self, row: int) -> None:
        """Give the scheduled parameters of a copy the values of now."""
        changes = self._changes[row]
        if changes is None:
            return
        values = {name: self._value(name, row, changes[name]) for name in self._schedules}
        if self._parameters[row, self._columns].tolist() != list(values.values()):
            self._parameters[row, self._columns] = list(values.values())
            self._inner.apply(np.array([row]), changes | values)

    def _value(self, name: str, row: int, drawn: float) -> float:
        schedule, usual = self._schedules[name], float(self.spec.parameters[name])
        time = self._step[row] if schedule.unit == STEPS else max(self._episode[row], 0)
        peak = schedule.peak(usual)
        strength = (drawn - usual) / (peak - usual) if peak != usual else 1.0
        value = usual + strength * (schedule.value(int(time), usual, int(self._seeds[row])) - usual)
        return max(value, LEAST_SHARE * schedule.numbers[0]) if name in self.spec.positive else value


def with_schedules(domain: DomainSpec, schedules: Mapping[str, Schedule]) -> DomainSpec:
    """The domain with these schedules of its parameters. It has no oracle: oracles are told the parameters once."""
    if not schedules:
        return domain
    return replace(
        domain,
        oracle="",
        n_reset_draws=max(domain.n_reset_draws, 1),  # the seed of walks
        simulator=partial(ScheduledDomain, domain, dict(schedules)),
    )
