"""Find the map under which the reference explains what has happened since the alarm."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, minimize_scalar

from nappingrl.methods.reground.evidence import LEAST_DEVIATION, MIN_GAIN, MIN_SHARE, MIN_STEPS, MIN_T, Costs, is_better, t_statistic
from nappingrl.methods.reground.maps import PROBE, ActionMap, ContinuousMap, DiscreteMap, SensorMap
from nappingrl.types import Floats, Rows
from nappingrl.world_model.reference import Reference

Matrix = NDArray[np.float64]
MAX_CHANGES = 3
DOUBT = 2.0
"""Standard errors by which an executed action must fit better as another one than as itself."""
MAX_ACTION_WEIGHT = 50
"""Steps that count of each action when actions are assigned."""
N_SHIFTS = 17
MAX_SHIFT = 4.0
"""Shifts that are tried, and the largest one in standard deviations of the observation."""
SCALES = (0.5, 2.0, 0.25, 4.0)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What has happened since the alarm: steps in the home mode, and initial observations."""

    states: Matrix
    actions: Matrix
    """Encoded."""
    next_states: Matrix
    starts: Matrix


@dataclass(frozen=True, slots=True)
class Grounding:
    """How the changed world relates to the original one."""

    sensors: SensorMap
    actions: ActionMap

    @property
    def is_identity(self) -> bool:
        """Whether nothing has to be translated."""
        return self.sensors.is_identity and self.actions.is_identity


def costs_of(reference: Reference, grounding: Grounding, evidence: Evidence, drift: Floats | float = 0.0) -> Costs:
    """What the evidence costs under a grounding."""
    sensors = grounding.sensors
    steps, misfit = reference.costs(
        sensors.original(evidence.states),
        grounding.actions.original(evidence.actions),
        sensors.original(evidence.next_states),
        drift,
    )
    starts = reference.start_costs(sensors.original(evidence.starts))
    return Costs(steps + sensors.log_gain, misfit, starts + sensors.log_gain)


class Search:
    """Improves a grounding, one change at a time."""

    def __init__(self, reference: Reference, evidence: Evidence, identity: Grounding) -> None:
        self._reference, self._evidence, self._identity = reference, evidence, identity
        self.needs_probes = False
        """Whether an action that was hardly executed would decide between two explanations."""

    def improve(self, grounding: Grounding) -> Grounding:
        """The grounding that the evidence speaks for; the given one where it does not speak clearly."""
        costs = self._costs(grounding)
        for start in (self._identity, grounding):
            found, found_costs = self._search_from(start)
            is_same = found.sensors.is_like(grounding.sensors) and found.actions.is_like(grounding.actions)
            if is_same and found_costs.total < costs.total or is_better(found_costs, costs):
                grounding, costs = found, found_costs
        return self._with_instead(grounding)

    def _search_from(self, grounding: Grounding) -> tuple[Grounding, Costs]:
        costs = self._costs(grounding)
        for _ in range(MAX_CHANGES):
            unusual = costs.unusual(self._reference.usual_cost, self._reference.usual_start_cost)
            if unusual < MIN_GAIN:
                break
            neighbours = [(self._costs(other), other) for other in self._neighbours(grounding)]
            best, other = min(neighbours, key=lambda pair: pair[0].total)
            is_explained = costs.total - best.total > MIN_SHARE * unusual
            if not is_explained or not is_better(best, costs) or not self._beats_drift(other, best, grounding):
                break
            grounding, costs = other, best
        return grounding, costs

    def _costs(self, grounding: Grounding, drift: Floats | float = 0.0) -> Costs:
        return costs_of(self._reference, grounding, self._evidence, drift)

    def _neighbours(self, grounding: Grounding) -> Iterator[Grounding]:
        yield from (replace(grounding, actions=actions) for actions in self._action_maps(grounding))
        yield from (replace(grounding, sensors=sensors) for sensors in self._sensor_maps(grounding))

    # -------------------------------------------------------------------------------------------------- actions

    def _action_maps(self, grounding: Grounding) -> Iterator[ActionMap]:
        current = grounding.actions
        if isinstance(current, ContinuousMap):
            yield from current.neighbours()
            return
        means, counts, doubts = self._means(grounding)
        n = len(counts)
        weighted = (means + DOUBT * doubts) * np.minimum(counts, MAX_ACTION_WEIGHT)[:, None] + 1e-6 * (1 - np.eye(n))
        yield replace(current, acts_as=np.asarray(linear_sum_assignment(weighted)[1], np.int64))
        for b in np.flatnonzero(counts >= MIN_STEPS):
            merged = current.acts_as.copy()
            merged[b] = means[b].argmin()
            yield replace(current, acts_as=merged)

    def _means(self, grounding: Grounding) -> tuple[Matrix, Rows, Matrix]:
        """Executed actions (rows) as each original one: their mean cost, how often they were executed, and doubts.

        The doubt is the standard error of the mean difference from acting as itself.
        """
        executed = self._evidence.actions.argmax(axis=1)
        n = self._evidence.actions.shape[1]
        means, doubts = np.zeros((2, n, n))
        every = [replace(grounding, actions=DiscreteMap(np.full(n, w), np.arange(n))) for w in range(n)]
        steps = np.array([self._costs(as_w).steps for as_w in every])
        for b in np.unique(executed):
            own = steps[:, executed == b]
            means[b] = own.mean(axis=1)
            doubts[b] = ((own - own[b]).std(axis=1) + LEAST_DEVIATION) / np.sqrt(own.shape[1])
            doubts[b, b] = 0.0
        return means, np.bincount(executed, minlength=n), doubts

    def _beats_drift(self, other: Grounding, best: Costs, grounding: Grounding) -> bool:
        """Whether changed actions explain more than a drift that all actions share, such as wind, would."""
        if not grounding.actions.is_identity:
            return True
        evidence, sensors = self._evidence, grounding.sensors
        states, actions = sensors.original(evidence.states), evidence.actions
        residuals = sensors.original(evidence.next_states) - self._reference.predict(states, actions)
        drift = np.median(residuals, axis=0)
        is_undecided = False
        if isinstance(grounding.actions, DiscreteMap):
            executed = actions.argmax(axis=1)
            counts = np.bincount(executed, minlength=actions.shape[1])
            tried = np.flatnonzero(counts >= MIN_STEPS)
            if len(tried):
                drift = np.mean([np.median(residuals[executed == b], axis=0) for b in tried], axis=0)
            is_undecided = bool((counts < MIN_STEPS).any())
        drifting = np.minimum(self._costs(grounding, drift).steps, self._costs(grounding).steps)
        is_decided = t_statistic(drifting - best.steps) > MIN_T
        self.needs_probes = not is_decided and is_undecided
        return is_decided

    def _with_instead(self, grounding: Grounding) -> Grounding:
        """With what to execute instead of each wanted action, for discrete actions."""
        current = grounding.actions
        if isinstance(current, ContinuousMap):
            return grounding
        n = len(current.acts_as)
        means, counts, _ = self._means(grounding)
        instead = np.arange(n)
        for wanted in range(n):
            if self.needs_probes and counts[wanted] >= MIN_STEPS and means[wanted].argmin() != wanted:
                instead[wanted] = PROBE
            elif current.acts_as[wanted] != wanted:
                same = np.flatnonzero(current.acts_as == wanted)
                among = same if len(same) else np.flatnonzero(counts >= MIN_STEPS)
                ranked = sorted(among.tolist(), key=lambda b: (counts[b] < MIN_STEPS, means[b, wanted]))
                instead[wanted] = ranked[0] if ranked else wanted
        return replace(grounding, actions=replace(current, instead=instead))

    # -------------------------------------------------------------------------------------------------- sensors

    def _sensor_maps(self, grounding: Grounding) -> Iterator[SensorMap]:
        sensors = grounding.sensors
        modelled = np.flatnonzero(self._reference.is_modelled).tolist()
        for i in modelled:
            yield sensors.negated(i)
            yield self._best_shift(grounding, i)
            yield from (sensors.scaled(i, factor) for factor in SCALES)
        yield from (sensors.swapped(i, j) for i, j in combinations(modelled, 2))

    def _best_shift(self, grounding: Grounding, i: int) -> SensorMap:
        sensors, reference = grounding.sensors, self._reference

        def total(shift: float) -> float:
            return self._costs(replace(grounding, sensors=sensors.with_shift(i, shift))).total

        largest = MAX_SHIFT * reference.scale[i]
        shifts = np.linspace(-largest, largest, N_SHIFTS).tolist()
        if len(self._evidence.starts):
            usual = reference.starts.centre[i] * sensors.gain[i]
            shifts.append(float(np.median(self._evidence.starts[:, sensors.source[i]]) - usual))
        best = min(shifts, key=total)
        step = 2 * largest / (N_SHIFTS - 1)
        found = minimize_scalar(total, bounds=(best - step, best + step), method="bounded", options={"maxiter": 20})
        return sensors.with_shift(i, float(found.x) if found.fun < total(best) else best)
