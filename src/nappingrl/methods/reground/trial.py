"""One trial of re-grounding: the reference, the evidence since the alarm, and the grounding in force."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.reground.maps import PROBE, ContinuousMap, DiscreteMap, SensorMap
from nappingrl.methods.reground.search import Evidence, Grounding, Search
from nappingrl.types import DomainSpec
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.modes import first_steps
from nappingrl.world_model.reference import Reference
from nappingrl.world_model.transitions import Transitions

Matrix = NDArray[np.float64]
FIRST_SEARCHES = (6, 8, 12, 16, 24, 32, 48, 64, 100, 150, 200, 300, 400)
"""Steps since the alarm after which it searches; later every 400."""
SEARCH_INTERVAL = 400
MAX_STEPS = 300
"""Latest steps that are evidence."""
MAX_STARTS = 20


@dataclass(slots=True)
class RegroundTrial:
    """Re-grounds one trial."""

    domain: DomainSpec
    encoding: ActionEncoding
    reference: Reference | None = None
    """None: before the alarm, or too few steps came before it."""
    grounding: Grounding | None = None
    n_steps: int = 0
    """Since the alarm."""
    next_search: int = FIRST_SEARCHES[0]

    @property
    def identity(self) -> Grounding:
        """Nothing is translated."""
        d, k = len(self.domain.observation_low), len(self.encoding.low)
        n = self.encoding.n_actions
        return Grounding(SensorMap.identity(d), DiscreteMap.identity(n) if n else ContinuousMap.identity(k))

    def meet(self, reference: Transitions) -> None:
        """An alarm: what came before it is the reference."""
        self.reference = None
        if Reference.can_be_fitted(reference, self.encoding):
            self.reference = Reference(reference, self.encoding)
        self.grounding, self.n_steps, self.next_search = self.identity, 0, FIRST_SEARCHES[0]

    def leave(self) -> None:
        """The original world is back."""
        self.reference = self.grounding = None

    def step_is_due(self, is_end: bool) -> bool:
        """Count a step since the alarm; returns whether to search."""
        self.n_steps += 1
        is_due = self.n_steps >= self.next_search or (is_end and self.n_steps <= FIRST_SEARCHES[-1])
        while self.next_search <= self.n_steps:
            later = [n for n in FIRST_SEARCHES if n > self.n_steps]
            self.next_search = later[0] if later else self.next_search + SEARCH_INTERVAL
        return is_due and self.reference is not None

    def search(self, current: Transitions) -> None:
        """Improve the grounding by the transitions since the alarm."""
        if self.reference is None or self.grounding is None:
            return
        kept = current.at(np.flatnonzero(self.reference.home.keeps(current))[-MAX_STEPS:])
        if kept.n < FIRST_SEARCHES[0] // 2:
            return
        starts = current.states[first_steps(current)][-MAX_STARTS:]
        evidence = Evidence(kept.states, kept.actions, kept.next_states, starts)
        self.grounding = Search(self.reference, evidence, self.identity).improve(self.grounding)


def describe(grounding: Grounding, domain: DomainSpec) -> str:
    """The grounding in words; empty: nothing is translated."""
    words = [*_describe_sensors(grounding.sensors, domain)]
    if isinstance(grounding.actions, DiscreteMap):
        for wanted, executed in enumerate(grounding.actions.instead.tolist()):
            if executed == PROBE:
                words.append(f"probes instead of {_action(wanted, domain)}")
            elif executed != wanted:
                words.append(f"{_action(executed, domain)} instead of {_action(wanted, domain)}")
    else:
        for j, (source, gain, offset) in enumerate(
            zip(grounding.actions.source, grounding.actions.gain, grounding.actions.offset, strict=True)
        ):
            if (source, gain, offset) != (j, 1.0, 0.0):
                shift = f" {offset:+.2g}" if offset else ""
                words.append(f"action dimension {j} is {gain:.2g} times dimension {source}{shift}")
    return "; ".join(words)


def _describe_sensors(sensors: SensorMap, domain: DomainSpec) -> list[str]:
    words = []
    for i, (source, gain, shift) in enumerate(zip(sensors.source, sensors.gain, sensors.shift, strict=True)):
        name = domain.names[i]
        if source != i:
            words.append(f"{name} is read from {domain.names[source]}")
        if gain == -1.0:
            words.append(f"{name} is negated")
        elif gain != 1.0:
            words.append(f"{name} is scaled by {gain:.3g}")
        if shift:
            words.append(f"{name} is shifted by {shift:.3g}")
    return words


def _action(action: int, domain: DomainSpec) -> str:
    return domain.action_names[action] if domain.action_names else f"action {action}"
