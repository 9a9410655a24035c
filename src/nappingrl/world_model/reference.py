"""The reference: how the world moved before the change, fitted so that outliers and contacts do not bend it.

The change of each observation is affine in the observations, separately for each discrete action, or with hinges of
each continuous one; products of two observations join where they lower the held-out error. `cost` says how badly a step
fits: the negative logarithm of a Cauchy density, up to a constant, summed over the observations.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.local_noise import find_local_noise
from nappingrl.world_model.modes import HomeMode, find_home_mode, first_steps
from nappingrl.world_model.transitions import Transitions

Matrix = NDArray[np.float64]
RIDGE = 1e-2
N_ROUNDS = 5
"""Rounds of reweighting; Cauchy weights settle quickly."""
N_BLOCKS = 8
"""Every second block of this many is held out."""
MAX_STEPS = 4000
"""Steps that the reference is fitted to; more hardly change it."""
MAX_FEATURES = 400
KNOTS = (0.0, 0.5, -0.5)
"""Of the hinges of a continuous action in [-1, 1]; engines have dead zones."""
SPREAD_SHARE = 0.1
"""Differences between actions below this share do not matter."""
POOLING = 0.005
"""Scale of the slopes of single actions: rarely executed ones keep the slopes that all share."""
TOLERATED_SHARE = 0.02
"""Residuals below this share of the usual change do not matter."""
CHUNK = 32
MAX_MISFIT = 4.0
"""The most that one observation adds to a step's misfit, about seven times the tolerance: outliers decide nothing."""
USUAL_LEVERAGE = 3.0
LEVERAGE_TOLERANCE = 0.02
"""How much larger residuals may be per multiple of the mean leverage, beyond the usual one."""


class Starts(NamedTuple):
    """Where episodes began."""

    centre: Floats
    scale: Floats

    def cost(self, observations: Matrix) -> Matrix:
        """(m, d) how unusual initial observations are."""
        return np.log1p(((observations - self.centre) / self.scale) ** 2)


class Reference:
    """A model of the world before the change."""

    def __init__(self, transitions: Transitions, encoding: ActionEncoding) -> None:
        self._encoding = encoding
        self.home: HomeMode = find_home_mode(transitions)
        self.is_modelled = ~self.home.is_flag
        kept = transitions.at(np.flatnonzero(self.home.keeps(transitions)))
        kept = kept.at(slice(None, None, max(1, kept.n // MAX_STEPS)))
        self.n_steps = kept.n
        self.centre = kept.states.mean(axis=0)
        self.scale = kept.states.std(axis=0) + 1e-9
        self._limits = np.quantile(self._standardised(kept.states), [0.0, 1.0], axis=0)
        change = kept.next_states - kept.states
        held_out = np.arange(kept.n) * N_BLOCKS // kept.n % 2 == 1
        self._has_products = False
        errors = self._held_out_errors(kept, change, held_out)
        self._has_products = True
        with_products = self._held_out_errors(kept, change, held_out)
        if _median_log(with_products, self.is_modelled) < _median_log(errors, self.is_modelled) - 0.05:
            errors = with_products
        else:
            self._has_products = False
        self._weights = _robust_fit(self._features(kept.states, kept.actions), change)
        self.spread = self._spread(kept)
        self.usual = 1.48 * np.median(np.abs(errors), axis=0) + 1e-3 * change.std(axis=0) + 1e-9
        self.usual += SPREAD_SHARE * self.spread
        self._local_noise = find_local_noise(self._standardised(kept.states[held_out]), errors)
        self._least = TOLERATED_SHARE * change.std(axis=0) + SPREAD_SHARE * self.spread + 1e-9
        self.tolerance = np.exp(np.log(self.tolerances(kept.states[held_out])).mean(axis=0))
        """(d,) on average."""
        misfits = self.misfits(errors, kept.states[held_out])
        self.usual_misfit = float(misfits.mean())
        """Mean misfit of a held-out step."""
        n_chunks = max(1, len(misfits) // CHUNK)
        means = [chunk.mean() for chunk in np.array_split(misfits, n_chunks)]
        self.high_misfit = float(np.quantile(means, 0.98))
        """Mean misfit that few stretches of the reference exceed."""
        affine = self._affine(kept.states)
        self._n_affine = affine.shape[1]
        self._inverse_gram = np.linalg.inv(affine.T @ affine + RIDGE * np.eye(self._n_affine))
        self.usual_cost = float(self._misfit(errors, self.reach(kept.states[held_out])).mean())
        """Mean cost of a held-out step, without the part of its reach."""
        starts = transitions.states[first_steps(transitions)]
        centre = np.median(starts, axis=0)
        scale = 1.48 * np.median(np.abs(starts - centre), axis=0) + 0.02 * self.scale + 1e-9
        self.starts = Starts(centre, 2 * scale)
        self.usual_start_cost = float(self.start_costs(starts).mean())

    @classmethod
    def why_not(cls, transitions: Transitions, encoding: ActionEncoding) -> str:
        """Why these transitions are too few to fit a model, in words; empty: they are enough."""
        if transitions.n < 1:
            return "no step was recorded before the change"
        home = find_home_mode(transitions)
        d = int((~home.is_flag).sum())
        if d == 0:
            return "no observation takes more than a few values"
        width = (
            (d + 1) * encoding.n_actions if encoding.n_actions else d + 1 + len(encoding.low) * (1 + 2 * len(KNOTS) + d)
        )
        n_steps, n_needed = int(home.keeps(transitions).sum()), 3 * width
        if width > MAX_FEATURES:
            return f"a model would have {width} weights per observation; at most {MAX_FEATURES} are fitted"
        return "" if n_steps >= n_needed else f"{n_steps} usable steps were recorded before the change, of {n_needed}"

    @classmethod
    def can_be_fitted(cls, transitions: Transitions, encoding: ActionEncoding) -> bool:
        """Whether there are enough steps in the home mode."""
        return not cls.why_not(transitions, encoding)

    def _held_out_errors(self, kept: Transitions, change: Matrix, held_out: NDArray[np.bool_]) -> Matrix:
        x = self._features(kept.states, kept.actions)
        if 2 * x.shape[1] > (~held_out).sum() or x.shape[1] > MAX_FEATURES:
            return np.full((int(held_out.sum()), change.shape[1]), np.inf)
        return np.asarray(change[held_out] - x[held_out] @ _robust_fit(x[~held_out], change[~held_out]))

    # ------------------------------------------------------------------------------------------------- features

    def _standardised(self, states: Matrix) -> Matrix:
        return np.asarray(((states - self.centre) / self.scale)[:, self.is_modelled])

    def _affine(self, states: Matrix) -> Matrix:
        z = self._standardised(states)
        return np.column_stack([z, np.ones(len(z))])

    def _features(self, states: Matrix, actions: Matrix) -> Matrix:
        affine = self._affine(states)
        if not self._encoding.is_continuous:
            z = affine[:, :-1]
            parts = [z, actions, POOLING * (actions[:, :, None] * z[:, None, :]).reshape(len(states), -1)]
        else:
            u = actions[:, 1 : 1 + len(self._encoding.low)]
            z = affine[:, :-1]
            hinges = [np.maximum(u - knot, 0.0) for knot in KNOTS] + [(u > knot).astype(np.float64) for knot in KNOTS]
            parts = [affine, u, *hinges, POOLING * (u[:, :, None] * z[:, None, :]).reshape(len(states), -1)]
        if self._has_products:
            z = np.clip(affine[:, :-1], *self._limits)
            i, j = np.triu_indices(z.shape[1])
            parts.append(z[:, i] * z[:, j])
        return np.hstack(parts)

    def _spread(self, kept: Transitions) -> Floats:
        """(d,) how far apart the predictions for different actions are."""
        states = kept.states[:: max(1, kept.n // 300)]
        actions = kept.actions[:: max(1, kept.n // 300)]
        if not self._encoding.is_continuous:
            every = [np.tile(one_hot, (len(states), 1)) for one_hot in np.eye(self._encoding.size)]
            return np.asarray(np.std([self.predict(states, action) for action in every], axis=0).mean(axis=0))
        spreads = []
        for j in range(1, 1 + len(self._encoding.low)):
            ends = []
            for quantile in (0.1, 0.9):
                moved = actions.copy()
                moved[:, j] = np.quantile(kept.actions[:, j], quantile)
                ends.append(self.predict(states, moved))
            spreads.append(np.abs(ends[1] - ends[0]).mean(axis=0) / 2)
        return np.asarray(np.max(spreads, axis=0))

    # ------------------------------------------------------------------------------------------------- judging

    def predict(self, states: Matrix, actions: Matrix) -> Matrix:
        """(m, d) where steps with encoded actions would have led."""
        return np.asarray(states + self._features(states, actions) @ self._weights)

    def reach(self, states: Matrix) -> Floats:
        """(m,) tolerance of residuals: 1 where the reference knows its way, more in states far from it."""
        affine = self._affine(states)
        leverage = ((affine @ self._inverse_gram) * affine).sum(axis=1) * self.n_steps / self._n_affine
        return np.asarray(1 + LEVERAGE_TOLERANCE * np.maximum(leverage - USUAL_LEVERAGE, 0.0))

    def _misfit(self, residuals: Matrix, reach: Floats) -> Floats:
        costs = np.log1p((residuals / (self.usual * reach[:, None])) ** 2)
        return np.asarray(costs[:, self.is_modelled].sum(axis=1))

    def costs(
        self, states: Matrix, actions: Matrix, next_states: Matrix, drift: Floats | float = 0.0
    ) -> tuple[Floats, Floats]:
        """(m,) the cost of each step, and the part of it that is misfit; `drift` adds to every predicted change."""
        reach = self.reach(states)
        misfit = self._misfit(next_states - self.predict(states, actions) - drift, reach)
        return misfit + self.is_modelled.sum() * np.log(reach), misfit

    def tolerances(self, states: Matrix) -> Matrix:
        """(m, d) residuals that are usual in these states, or too small to matter."""
        return np.asarray(self._least + self._local_noise.at(self._standardised(states)))

    def misfits(self, residuals: Matrix, states: Matrix) -> Floats:
        """(m,) how badly residuals (m, d) fit in these states, in nats."""
        tolerances = self.tolerances(states)
        each = np.minimum(np.log1p((residuals / tolerances) ** 2), MAX_MISFIT)
        each += np.log(tolerances / self.tolerance)
        return np.asarray(each[:, self.is_modelled].sum(axis=1))

    def start_costs(self, observations: Matrix) -> Floats:
        """(m,) how unusual initial observations are."""
        return np.asarray(self.starts.cost(observations)[:, self.is_modelled].sum(axis=1))


def _median_log(errors: Matrix, which: NDArray[np.bool_]) -> float:
    return float(np.log(np.median(np.abs(errors[:, which]), axis=0) + 1e-9).mean())


def _robust_fit(x: Matrix, y: Matrix) -> Matrix:
    """Weights (features, outputs) by ridge regression, reweighted so that outliers count little."""
    penalty = RIDGE * np.eye(x.shape[1])
    weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
    for _ in range(N_ROUNDS):
        errors = y - x @ weights
        middle, outer = np.quantile(np.abs(errors), [0.5, 0.9], axis=0)
        scale = np.maximum(1.48 * middle, outer / 1.645) + 1e-9
        for i in range(y.shape[1]):
            weighted = x / (1 + (errors[:, i] / (2 * scale[i])) ** 2)[:, None]
            weights[:, i] = np.linalg.solve(weighted.T @ x + penalty, weighted.T @ y[:, i])
    return np.asarray(weights, np.float64)
