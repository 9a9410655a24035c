"""The one-step models of the residual detector: of the original world, and of each context met since."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.snapshot import Expected
from nappingrl.types import DomainSpec, Flags, Rows
from nappingrl.world_model.basis import design, make_frame
from nappingrl.world_model.bounds import bounds, rows_unclipped
from nappingrl.world_model.fit import BaselineModel, ridge, solve
from nappingrl.world_model.transitions import Transitions

ORIGINAL = 0
"""The model of the world before the novelty."""


class HeldOut(NamedTuple):
    """Calibration steps as a model sees them that was not fitted to their episode."""

    residuals: NDArray[np.float64]
    """(m, d) in units of the usual residual."""
    actions: NDArray[np.float64]
    episodes: NDArray[np.int64]

    def by_episode(self) -> list["HeldOut"]:
        """The steps of each episode."""
        masks = [self.episodes == episode for episode in np.unique(self.episodes)]
        return [HeldOut(*(array[mask] for array in self)) for mask in masks]


class ResidualModels:
    """Models of n trials, all in the frame of the trial's original world."""

    saved: ClassVar[Mapping[str, Expected]] = {"scale": Expected(low=1e-12), "usual": Expected(low=1e-12)}

    def __init__(self, n: int, domain: DomainSpec, action_size: int, config: ResidualConfig) -> None:
        self.domain, self.config = domain, config
        self._bounds = bounds(domain)
        self.dim = d = len(self._bounds[0])
        n_features = make_frame(np.zeros(d), np.ones(d), True).n_shared + action_size * (d + 1)
        self.weights = np.zeros((n, config.max_contexts + 1, n_features, d))
        """Of the original world, and of the contexts met since."""
        self.centre, self.scale = np.zeros((n, d)), np.ones((n, d))
        self.has_products = np.zeros(n, np.bool_)
        self.clips_at_bounds = np.ones((n, d), np.bool_)
        self.usual = np.ones((n, d))
        """Usual size of a residual."""

    def calibrate(self, row: int, transitions: Transitions) -> HeldOut | None:
        """Fit the original world; returns its residuals by cross-validation, or None if there are too few steps."""
        config = self.config
        if transitions.n < config.min_transitions:
            return None
        baseline = BaselineModel(transitions, self.domain, config)
        self.clips_at_bounds[row] = baseline.clips_at_bounds
        transitions = transitions.at(baseline.rows_unclipped(transitions.next_states))
        if transitions.n < config.min_transitions:
            return None
        self.centre[row], self.scale[row] = baseline.centre, config.range_margin * baseline.half_range
        self.has_products[row] = baseline.has_products
        frame = baseline.frame(self.scale[row])
        x, y = design(frame, transitions.states, transitions.actions), transitions.next_states - transitions.states
        episodes = np.unique(transitions.episodes)
        fold = np.searchsorted(episodes, transitions.episodes) % config.n_folds
        errors = np.zeros_like(y)
        gram, moment = x.T @ x + np.diag(baseline.penalty(frame)), x.T @ y
        for k in range(min(config.n_folds, len(episodes))):
            held = fold == k
            weights = solve(gram - x[held].T @ x[held], moment - x[held].T @ y[held])
            errors[held] = y[held] - x[held] @ weights
        self.usual[row] = np.sqrt((errors**2).mean(axis=0)) + 1e-3 * y.std(axis=0) + 1e-9
        self.weights[row, ORIGINAL, : x.shape[1]] = solve(gram, moment)
        return HeldOut(errors / self.usual[row], transitions.actions, transitions.episodes)

    def residuals(self, rows: Rows, slot: int, steps: Transitions) -> NDArray[np.float64]:
        """(m, d) residuals of one step of each row, in usual ones; 0 where an observation was clipped."""
        config = self.config
        states, next_states = steps.states.astype(np.float64), steps.next_states.astype(np.float64)
        out = np.empty_like(states)
        _write_residuals(
            self.weights, self.centre, self.scale, self.has_products, self.usual, rows, slot, states, steps.actions,
            next_states, config.range_margin, config.outside_tolerance, config.max_outside_tolerance, out,
        )  # fmt: skip
        out[~self._unclipped(rows, steps)] = 0.0
        return out

    def is_in_range(self, rows: Rows, states: NDArray[np.float64]) -> Flags:
        """Which states lie in the range of the calibration."""
        z = self.config.range_margin * np.abs(states - self.centre[rows]) / self.scale[rows]
        return np.asarray((z <= 1).all(axis=1))

    def surprise(self, row: int, slot: int, transitions: Transitions) -> float:
        """The median surprise of the unclipped transitions of one trial."""
        transitions = self.unclipped(row, transitions)
        if not transitions.n:
            return 0.0
        residuals = self.residuals(np.full(transitions.n, row), slot, transitions)
        return float(np.median(np.abs(residuals).max(axis=1)))

    def unclipped(self, row: int, transitions: Transitions) -> Transitions:
        """The transitions of one trial that touch no bound."""
        return transitions.at(self._unclipped(np.full(transitions.n, row), transitions))

    def correct(self, row: int, slot: int, transitions: Transitions) -> None:
        """Correct the model of a context by its transitions."""
        frame = make_frame(self.centre[row], self.scale[row], bool(self.has_products[row]))
        x, y = design(frame, transitions.states, transitions.actions), transitions.next_states - transitions.states
        weights = self.weights[row, slot, : x.shape[1]]
        weights += ridge(x, y - x @ weights, np.full(x.shape[1], self.config.context_ridge))

    def _unclipped(self, rows: Rows, steps: Transitions) -> Flags:
        return rows_unclipped(steps.next_states, *self._bounds, self.clips_at_bounds[rows])


@kernel()
def _write_residuals(
    weights: NDArray[np.float64], centre: NDArray[np.float64], scale: NDArray[np.float64],
    has_products: NDArray[np.bool_], usual: NDArray[np.float64], rows: Rows, slot: int, states: NDArray[np.float64],
    actions: NDArray[np.float64], next_states: NDArray[np.float64], range_margin: float, outside_tolerance: float,
    max_outside_tolerance: float, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Residuals in usual ones; less of those in states outside the range of the calibration."""
    m, d = states.shape
    for k in range(m):
        row = rows[k]
        frame = make_frame(centre[row], scale[row], has_products[row])
        x = design(frame, states[k : k + 1], actions[k : k + 1])[0]
        outside = 0.0
        for i in range(d):
            outside = max(outside, range_margin * abs(states[k, i] - centre[row, i]) / scale[row, i] - 1.0)
        tolerance = min(1 + outside_tolerance * outside, max_outside_tolerance)
        for i in range(d):
            change = 0.0
            for f in range(x.shape[0]):
                change += weights[row, slot, f, i] * x[f]
            out[k, i] = (next_states[k, i] - states[k, i] - change) / usual[row, i] / tolerance
