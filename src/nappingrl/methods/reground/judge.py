"""Judge groundings: what the steps since the alarm cost under each, in nats of the reference's likelihood.

The cost of a step is capped, so that steps which no grounding explains decide nothing. A grounding competes with
nuisances: what a changed mass, wind or gravity can do, fitted to the same steps, and paid for by their parameters.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.reground.maps import MAX_DELAY, ContinuousMap, DiscreteMap, Grounding
from nappingrl.types import Floats, Rows
from nappingrl.world_model.misfits import MAX_MISFIT
from nappingrl.world_model.reference import Reference
from nappingrl.world_model.transitions import Transitions

Matrix = NDArray[np.float64]
START_WEIGHT = 3.0
"""An initial observation counts as this many steps: it is independent of the others, unlike neighbouring steps."""
MAX_REACH = 1.5
"""Where the reference tolerates more than this, it hardly knows its way."""
PRICE_CHANGE = 3.0
"""Nats that a grounding pays per exchanged or reversed entry."""
PRICE_PARAMETER = 6.0
PRICE_LOST_ACTION = 6.0
N_ROUNDS = 4
MIN_STEPS_PER_WEIGHT = 6
MAX_ROWS = 20_000
"""Steps times groundings that are computed at once."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What has happened since the alarm: steps in the home mode, and initial observations."""

    states: Matrix
    next_states: Matrix
    actions: Matrix
    """(1 + MAX_DELAY, m, b) encoded, executed 0, 1, ... steps before."""
    is_known: NDArray[np.bool_]
    """(1 + MAX_DELAY, m) whether that action is known."""
    starts: Matrix

    @property
    def n(self) -> int:
        """How many steps these are."""
        return len(self.states)

    @classmethod
    def of(cls, current: Transitions, which: Rows, starts: Matrix) -> "Evidence":
        """Some of the current transitions, which are in the order of time."""
        actions = np.zeros((1 + MAX_DELAY, len(which), current.actions.shape[1]))
        is_known = np.zeros((1 + MAX_DELAY, len(which)), np.bool_)
        actions[0], is_known[0] = current.actions[which], True
        follows = np.zeros(current.n, np.bool_)
        follows[1:] = (current.states[1:] == current.next_states[:-1]).all(axis=1)
        follows[1:] &= current.episodes[1:] == current.episodes[:-1]
        at, is_reached = which.copy(), np.ones(len(which), np.bool_)
        for delay in range(1, 1 + MAX_DELAY):
            is_reached &= follows[at]
            at = np.maximum(at - 1, 0)
            actions[delay], is_known[delay] = current.actions[at], is_reached
        return cls(current.states[which], current.next_states[which], actions, is_known, starts)

    def some(self, n: int) -> "Evidence":
        """At most n steps, spread evenly."""
        if self.n <= n:
            return self
        at = np.linspace(0, self.n - 1, n).astype(np.int64)
        return Evidence(self.states[at], self.next_states[at], self.actions[:, at], self.is_known[:, at], self.starts)


class Judge:
    """Compares groundings by the same evidence."""

    def __init__(self, reference: Reference, evidence: Evidence, identity: Grounding) -> None:
        self.reference, self.evidence, self.identity = reference, evidence, identity
        self._of_identity = np.zeros(0)
        self._of_identity = self.steps([identity])[0]
        self.usual_start = START_WEIGHT * reference.usual_start_cost

    # ------------------------------------------------------------------------------------------------- costs

    def steps(self, groundings: list[Grounding]) -> Matrix:
        """(groundings, m) the cost of each step."""
        e, out = self.evidence, np.zeros((len(groundings), self.evidence.n))
        size = max(1, MAX_ROWS // max(1, e.n))
        for at in range(0, len(groundings), size):
            some = groundings[at : at + size]
            states = np.concatenate([g.sensors.original(e.states) for g in some])
            actions = np.concatenate([g.actions.original(e.actions[g.delay]) for g in some])
            next_states = np.concatenate([g.sensors.original(e.next_states) for g in some])
            residuals = next_states - self.reference.predict(states, actions)
            for k, g in enumerate(some):
                own = slice(k * e.n, (k + 1) * e.n)
                out[at + k] = self.reference.misfits(residuals[own] * _zoom(g), states[own])
                if g.delay and len(self._of_identity):
                    is_unknown = ~e.is_known[g.delay]
                    out[at + k, is_unknown] = self._of_identity[is_unknown]
        return out

    def residuals(self, grounding: Grounding) -> Matrix:
        """(m, d) what is left of each step."""
        e, sensors = self.evidence, grounding.sensors
        actions = grounding.actions.original(e.actions[grounding.delay])
        return sensors.original(e.next_states) - self.reference.predict(sensors.original(e.states), actions)

    def as_each_action(self, grounding: Grounding) -> Matrix:
        """(m, n_actions) the cost of each step, had its action acted as each original one."""
        n = self.evidence.actions.shape[2]
        every = [
            Grounding(grounding.sensors, DiscreteMap(np.full(n, w), np.arange(n)), grounding.delay) for w in range(n)
        ]
        return self.steps(every).T

    def starts(self, groundings: list[Grounding]) -> Matrix:
        """(groundings, starts) the weighted cost of each initial observation."""
        costs = np.zeros((len(groundings), len(self.evidence.starts)))
        if costs.size:
            modelled = self.reference.is_modelled
            for k, g in enumerate(groundings):
                each = np.minimum(self.reference.starts.cost(g.sensors.original(self.evidence.starts)), MAX_MISFIT)
                costs[k] = START_WEIGHT * each[:, modelled].sum(axis=1)
        return costs

    def lengths(self, groundings: list[Grounding]) -> Floats:
        """(groundings,) description lengths: all costs, and the price of the grounding itself."""
        return np.asarray(
            self.steps(groundings).sum(axis=1) + self.starts(groundings).sum(axis=1) + [price(g) for g in groundings]
        )

    # ------------------------------------------------------------------------------------------------- nuisances

    def with_nuisance(self, grounding: Grounding) -> tuple[Floats, float]:
        """(m,) the cost of each step under the grounding and the best nuisance, and the price of that nuisance."""
        e, reference = self.evidence, self.reference
        states, actions = grounding.sensors.original(e.states), grounding.actions.original(e.actions[grounding.delay])
        residuals = self.residuals(grounding)
        plain = self.steps([grounding])[0]
        best, best_price = plain, 0.0
        effects = reference.predict(states, actions) - self._without_action(states, actions)
        affine = ((states - reference.centre) / reference.scale)[:, reference.is_modelled]
        for slopes in (None, np.clip(affine, -5.0, 5.0)):
            n_weights = 2 + (0 if slopes is None else slopes.shape[1])
            if e.n < MIN_STEPS_PER_WEIGHT * n_weights and slopes is not None:
                continue
            left = self._left_over(residuals, effects, slopes, e.n >= MIN_STEPS_PER_WEIGHT * n_weights)
            costs = np.minimum(self.reference.misfits(left * _zoom(grounding), states), plain)
            its_price = 0.5 * np.log(max(e.n, 2)) * n_weights * int(reference.is_modelled.sum())
            if costs.sum() + its_price < best.sum() + best_price:
                best, best_price = costs, its_price
        return best, best_price

    def _without_action(self, states: Matrix, actions: Matrix) -> Matrix:
        """(m, d) predictions whatever the action was: the mean over discrete ones, or at the mean continuous one."""
        if isinstance(self.identity.actions, ContinuousMap):
            mean = np.tile(actions.mean(axis=0), (len(states), 1))
            return self.reference.predict(states, mean)
        eye = np.eye(actions.shape[1])
        return np.asarray(
            np.mean([self.reference.predict(states, np.tile(one, (len(states), 1))) for one in eye], axis=0)
        )

    def _left_over(self, residuals: Matrix, effects: Matrix, slopes: Matrix | None, has_effects: bool) -> Matrix:
        """Residuals (m, d) without a drift, weaker or stronger (never reversed) actions and, if given, other slopes."""
        left = residuals.copy()
        ones = np.ones(len(residuals))
        for i in np.flatnonzero(self.reference.is_modelled):
            columns = [ones] if slopes is None else [ones, *slopes.T]
            y = residuals[:, i]
            if not has_effects:
                left[:, i] = y - np.median(y)
                continue
            x = np.column_stack([*columns, effects[:, i]])
            weights = _robust_fit(x, y, self.reference.tolerance[i])
            if weights[-1] < -1.0:  # a reversed action is no nuisance
                weights = np.append(_robust_fit(x[:, :-1], y + effects[:, i], self.reference.tolerance[i]), -1.0)
            left[:, i] = y - x @ weights
        return left


def _zoom(grounding: Grounding) -> Floats:
    """(d,) what multiplies residuals, so that shrinking a magnified sensor does not hide them."""
    return np.maximum(np.abs(grounding.sensors.gain), 1.0)


def price(grounding: Grounding) -> float:
    """Nats that a grounding pays for itself."""
    total = PRICE_CHANGE * (grounding.sensors.n_changes + grounding.actions.n_changes + bool(grounding.delay))
    total += PRICE_PARAMETER * grounding.sensors.n_parameters
    if isinstance(grounding.actions, DiscreteMap):
        return total + PRICE_LOST_ACTION * (not grounding.actions.is_permutation)
    return total + PRICE_PARAMETER * grounding.actions.n_parameters


def t_statistic(differences: Floats) -> float:
    """Student's t of paired differences in the order of time, with the variance of autocorrelated numbers."""
    n = len(differences)
    if n < 4:
        return 0.0
    centred = differences - differences.mean()
    variance = float(centred @ centred) / n
    for lag in range(1, min(10, n // 4) + 1):
        share = 1 - lag / (min(10, n // 4) + 1)
        variance += max(0.0, 2 * share * float(centred[lag:] @ centred[:-lag]) / n)
    return float(differences.mean() / ((np.sqrt(variance) + 0.05) / np.sqrt(n)))


def _robust_fit(x: Matrix, y: Floats, usual: float) -> Floats:
    """Weights of a regression that is reweighted so that outliers count little."""
    penalty = 1e-6 * np.eye(x.shape[1]) * (x**2).sum(axis=0).max()
    weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
    for _ in range(N_ROUNDS):
        errors = y - x @ weights
        scale = max(1.48 * float(np.median(np.abs(errors))), float(usual))
        weighted = x / (1 + (errors / (2 * scale)) ** 2)[:, None]
        weights = np.linalg.solve(weighted.T @ x + penalty, weighted.T @ y)
    return np.asarray(weights)
