"""Propose groundings that differ from a given one in one respect: its actions, one or two sensors, or the delay."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np

from nappingrl.methods.reground.assignment import cheapest_assignment
from nappingrl.methods.reground.judge import PRICE_CHANGE, Judge, Matrix
from nappingrl.methods.reground.maps import MAX_DELAY, ContinuousMap, DiscreteMap, Grounding
from nappingrl.types import Floats, Rows

N_SCREENED = 60
"""Steps by which the many are screened; the best few are judged by all."""
N_KEPT = 6
MAX_LISTED = 6
"""Discrete actions up to which all permutations are compared."""
MAX_EXCHANGED = 32
"""Discrete actions up to which exchanges of two are listed."""
N_ESTIMATES = 3
"""Entries by whose residuals a shift or a scale is estimated."""
MIN_STRENGTH = 1.0
"""Usual residuals that a shift by a standard deviation, or a scale of 1.25, must change."""
MAX_SCALE = 10.0
MIN_SHIFT = 0.1
"""Standard deviations that a shift must have, to matter."""
MIN_SCALE = 0.1
"""Share by which a scale must differ from 1."""
MAX_ENTRIES = 24
"""Observations that are suspected of being exchanged, shifted or scaled."""
GAINS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
GAIN_LIMITS = (0.2, 4.0)
OFFSETS = (-0.5, -0.25, 0.0, 0.25, 0.5)


class Candidates:
    """Proposes groundings, the most promising ones of each kind."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._screen = Judge(judge.reference, judge.evidence.some(N_SCREENED), judge.identity)
        self._modelled: list[int] = self._most_unusual(judge)

    def _most_unusual(self, judge: Judge) -> list[int]:
        """The modelled observations; of many, those that fit worst."""
        modelled = np.flatnonzero(judge.reference.is_modelled)
        if len(modelled) <= MAX_ENTRIES:
            return list(modelled.tolist())
        misfits = np.abs(judge.residuals(judge.identity)).mean(axis=0) / judge.reference.tolerance
        return sorted(modelled[np.argsort(-misfits[modelled], kind="stable")[:MAX_ENTRIES]].tolist())

    def near(self, grounding: Grounding, with_numbers: bool) -> list[Grounding]:
        """The best candidates that differ from this grounding in one respect, the best first.

        `with_numbers`: also those with estimated shifts, scales, gains and offsets.
        """
        found = [*self._actions(grounding), *self._delays(grounding)]
        found += self._best(list(self._sensor_structures(grounding)))
        if with_numbers:
            found += self._numbers_of_actions(grounding) + self._best(list(self._sensor_numbers(grounding)))
        found = [g for g in found if not g.is_same(grounding)]
        lengths = self._judge.lengths(found) if found else np.zeros(0)
        return [found[k] for k in np.argsort(lengths, kind="stable")]

    def _best(self, groundings: list[Grounding], n: int = N_KEPT) -> list[Grounding]:
        if len(groundings) <= n:
            return groundings
        lengths = self._screen.lengths(groundings)
        return [groundings[k] for k in np.argsort(lengths, kind="stable")[:n]]

    # ------------------------------------------------------------------------------------------------- actions

    def _actions(self, grounding: Grounding) -> list[Grounding]:
        if isinstance(grounding.actions, DiscreteMap):
            return [replace(grounding, actions=actions) for actions in self._assignments(grounding)]
        return self._best([replace(grounding, actions=each) for each in _structures(grounding.actions)], 2)

    def _numbers_of_actions(self, grounding: Grounding) -> list[Grounding]:
        if isinstance(grounding.actions, DiscreteMap):
            return []
        bases = [grounding.actions, *(g.actions for g in self._actions(grounding)[:1])]
        return [
            self._refined_dimension(grounding, base, j)
            for base in bases
            if isinstance(base, ContinuousMap)
            for j in range(len(base.gain))
        ]

    def _assignments(self, grounding: Grounding) -> Iterator[DiscreteMap]:
        """The cheapest permutations of discrete actions, and the cheapest map that may lose some."""
        costs = self._judge.as_each_action(grounding)
        n = costs.shape[1]
        executed = self._judge.evidence.actions[grounding.delay].argmax(axis=1)
        sums = np.array([costs[executed == b].sum(axis=0) for b in range(n)]) + PRICE_CHANGE * (1 - np.eye(n))
        if n <= MAX_LISTED:
            every = np.array(list(permutations(range(n))))
            order = np.argsort(sums[np.arange(n), every].sum(axis=1), kind="stable")
            yield from (DiscreteMap.of(every[k]) for k in order[:3])
        else:
            yield DiscreteMap.of(cheapest_assignment(sums))
        yield DiscreteMap.of(sums.argmin(axis=1))

    def _refined_dimension(self, grounding: Grounding, base: ContinuousMap, j: int) -> Grounding:
        """With the gain and offset of a continuous action's dimension that cost least."""
        sign = 1.0 if base.gain[j] > 0 else -1.0

        def make(gain: float, offset: float) -> Grounding:
            gain, offset = float(np.clip(gain, *GAIN_LIMITS)), float(np.clip(offset, -1.0, 1.0))
            return replace(grounding, actions=base.with_dimension(j, sign * gain, offset))

        points = list(product(GAINS, OFFSETS))
        lengths = self._screen.lengths([make(*point) for point in points])
        (gain, offset), length = points[lengths.argmin()], float(lengths.min())
        for width in (0.4, 0.2, 0.1, 0.05):
            moves = [(gain * (1 + x * width), offset) for x in (-1, -0.5, 0.5, 1) if gain != 1.0]
            moves += [(gain, offset + x * width) for x in (-1, -0.5, 0.5, 1) if offset]
            if moves:
                lengths = self._screen.lengths([make(*move) for move in moves])
                if lengths.min() < length:
                    (gain, offset), length = moves[lengths.argmin()], float(lengths.min())
        return make(gain, offset)

    # ------------------------------------------------------------------------------------------------- sensors

    def _sensor_structures(self, grounding: Grounding) -> Iterator[Grounding]:
        sensors = grounding.sensors
        for i in self._modelled:
            yield replace(grounding, sensors=sensors.negated(i))
        for i, j in combinations(self._modelled, 2):
            yield replace(grounding, sensors=sensors.swapped(i, j))

    def _sensor_numbers(self, grounding: Grounding) -> Iterator[Grounding]:
        """One observation shifted or scaled, by what the residuals and the initial observations suggest."""
        residuals, sensors = self._judge.residuals(grounding), grounding.sensors
        reference, starts = self._judge.reference, self._judge.evidence.starts
        for i in self._modelled:
            gain, shift = float(sensors.gain[i]), float(sensors.shift[i])

            def shifted(by: float, i: int = i, gain: float = gain, shift: float = shift) -> Grounding:
                return replace(grounding, sensors=sensors.with_entry(i, gain, shift + by))

            def scaled(by: float, i: int = i, gain: float = gain, shift: float = shift) -> Grounding:
                scale = float(np.clip(1 / (1 + by), 1 / MAX_SCALE, MAX_SCALE)) if by > -1 else MAX_SCALE
                return replace(grounding, sensors=sensors.with_entry(i, gain * scale, shift))

            for make, unit in ((shifted, float(reference.scale[i])), (scaled, 0.25)):
                least = MIN_SHIFT * unit if make is shifted else MIN_SCALE
                found = [make(by) for by in self._estimates(residuals, make(unit), unit) if abs(by) > least]
                if make is shifted and len(starts):
                    usual = reference.starts.centre[i] * gain + shift
                    found.append(shifted(float(np.median(starts[:, sensors.source[i]]) - usual)))
                yield from found

    def _estimates(self, residuals: Matrix, moved: Grounding, unit: float) -> list[float]:
        """Values of a parameter that would make one entry's residuals vanish, from their change by `unit` of it."""
        usual = self._judge.reference.tolerance
        slopes = (self._judge.residuals(moved) - residuals) / unit
        strengths = (np.abs(slopes).mean(axis=0) / usual)[self._modelled]
        found = []
        for k in np.argsort(-strengths, kind="stable")[:N_ESTIMATES]:
            slope, residual = slopes[:, self._modelled[k]], residuals[:, self._modelled[k]]
            if strengths[k] * unit < MIN_STRENGTH:
                break
            found.append(_weighted_median(-residual / np.where(slope == 0, np.inf, slope), np.abs(slope)))
        return found

    def _delays(self, grounding: Grounding) -> list[Grounding]:
        return [replace(grounding, delay=delay) for delay in range(1 + MAX_DELAY) if delay != grounding.delay]


def action_structures(grounding: Grounding) -> list[Grounding]:
    """All groundings with other signs and places of action dimensions, or other permutations of discrete actions.

    Of more than a few actions, those that differ little from the given one.
    """
    actions = grounding.actions
    if isinstance(actions, ContinuousMap):
        found: list[Grounding] = [replace(grounding, actions=each) for each in _structures(actions)]
    else:
        found = [replace(grounding, actions=DiscreteMap.of(each)) for each in _permutations(actions.acts_as)]
    return [each for each in found if not each.is_same(grounding)]


def _permutations(current: Rows) -> list[Rows]:
    """Permutations of discrete actions: all of a few actions, else two actions exchanged; none of very many."""
    n, found = len(current), []
    if n <= MAX_LISTED:
        return [np.array(each) for each in permutations(range(n))]
    if n > MAX_EXCHANGED:
        return []
    for i, j in combinations(range(n), 2):
        found.append(current.copy())
        found[-1][[i, j]] = current[[j, i]]
    return found


def _structures(current: ContinuousMap) -> list[ContinuousMap]:
    """Signs and places of action dimensions: all of them for two dimensions, else those that differ little."""
    k = len(current.gain)
    if k <= 2:
        orders = list(permutations(range(k)))
        return [
            ContinuousMap(np.array(order), np.array(signs), current.offset)
            for order in orders
            for signs in product((1.0, -1.0), repeat=k)
        ]
    found = []
    for flipped in [*combinations(range(k), 1), *combinations(range(k), 2), tuple(range(k))]:
        gain = current.gain.copy()
        gain[list(flipped)] *= -1
        found.append(replace(current, gain=gain))
    for i, j in combinations(range(k), 2):
        source = current.source.copy()
        source[[i, j]] = source[[j, i]]
        for signs in product((1.0, -1.0), repeat=2):
            gain = current.gain.copy()
            gain[[i, j]] = gain[[j, i]] * signs
            found.append(replace(current, source=source, gain=gain))
    return found


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, 0.5 * cumulative[-1])])
