"""Fit the model: ridge regression on the original world, corrected by a second one on the changed world.

The change of each observation is linear in the features. The baseline is fitted to transitions before the novelty;
transitions after it correct that fit, so that a few steps are enough. The fit also looks for two common properties:
bounds that clip observations, and observations that integrate another's next value (x' = x + v').
"""

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import DomainSpec, Floats
from nappingrl.world_model.basis import Frame, design, make_frame
from nappingrl.world_model.bounds import bounds, is_unclipped, rows_unclipped
from nappingrl.world_model.config import ModelConfig
from nappingrl.world_model.model import Model
from nappingrl.world_model.transitions import Transitions


def ridge(x: NDArray[np.float64], y: NDArray[np.float64], penalty: Floats) -> NDArray[np.float64]:
    """Least-squares weights (features, outputs) with a penalty per feature."""
    return solve(x.T @ x + np.diag(penalty), x.T @ y)


def solve(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The solution of a x = b; the shortest one where several are equally good."""
    try:
        return np.linalg.solve(a, b).astype(np.float64)
    except np.linalg.LinAlgError:  # features so large that the ridge penalty is lost in rounding
        return np.linalg.lstsq(a, b)[0].astype(np.float64)


class BaselineModel:
    """The model before the novelty: the frame's centre, and the fit that later transitions correct."""

    def __init__(
        self, transitions: Transitions, domain: DomainSpec, config: ModelConfig, has_products: bool | None = None
    ) -> None:
        self.transitions, self.domain, self.config = transitions, domain, config
        self.low, self.high = bounds(domain)
        self.centre = transitions.states.mean(axis=0)
        deviation = np.abs(transitions.states - self.centre).max(axis=0)
        self.half_range = np.where(deviation > 1e-9, deviation, 1.0)  # a constant observation has no scale
        unclipped = is_unclipped(transitions.next_states, self.low, self.high)
        self.clips_at_bounds = unclipped.mean(axis=0) > config.min_unclipped_share
        """Which observations are clipped now and then; a flag, which mostly lies at a bound, is not."""
        self.clips_at_bounds &= self.rows_unclipped(transitions.next_states).mean() > config.min_unclipped_rows
        rows = np.flatnonzero(self.rows_unclipped(transitions.next_states))
        self._fitted = transitions.at(rows[:: max(1, len(rows) // config.max_baseline_transitions)])
        self._weights: tuple[Floats, NDArray[np.float64]] | None = None
        self.has_products = self._needs_products() if has_products is None else has_products

    def rows_unclipped(self, observations: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(m,) which rows have no clipped observation."""
        return rows_unclipped(observations, self.low, self.high, self.clips_at_bounds)

    def penalty(self, frame: Frame) -> Floats:
        """The ridge penalty of each feature."""
        n_affine = self.transitions.actions.shape[1] * (len(self.centre) + 1)
        shared = np.full(frame.n_shared, self.config.ridge_shared)
        return np.concatenate([shared, np.full(n_affine, self.config.ridge_affine)])

    def frame(self, half_range: Floats) -> Frame:
        """The frame with this scale."""
        return make_frame(self.centre, half_range, self.has_products)

    def weights(self, frame: Frame) -> NDArray[np.float64]:
        """(features, d + 1) the fit to the transitions before the novelty."""
        if self._weights is None or not np.array_equal(self._weights[0], frame.scale):
            x = design(frame, self._fitted.states, self._fitted.actions)
            self._weights = frame.scale.copy(), _fit_outputs(x, self._fitted, self.penalty(frame), None)
        return self._weights[1]

    def _needs_products(self) -> bool:
        """Whether products reduce the error on every fourth transition, which is held out."""
        errors = []
        y = self._fitted.next_states - self._fitted.states
        held_out = np.arange(len(y)) % 4 == 3
        if held_out.sum() < self.config.min_held_out:
            return False
        for has_products in (False, True):
            frame = make_frame(self.centre, self.half_range, has_products)
            x = design(frame, self._fitted.states, self._fitted.actions)
            weights = ridge(x[~held_out], y[~held_out], self.penalty(frame))
            squares = (y[held_out] - x[held_out] @ weights) ** 2
            errors.append(np.sqrt(squares.mean(axis=0)) / (y.std(axis=0) + 1e-12))
        return bool((errors[1] < self.config.max_product_error * errors[0])[errors[0] > 0.01].any())


def fit(baseline: BaselineModel, transitions: Transitions | None = None) -> Model:
    """The current world: the baseline, corrected by the transitions since the novelty (None: no correction)."""
    config, d = baseline.config, len(baseline.centre)
    half_range = baseline.half_range
    is_corrected = transitions is not None and transitions.n > 0
    data = transitions if transitions is not None and is_corrected else baseline.transitions
    if is_corrected:
        half_range = np.maximum(half_range, np.abs(data.next_states - baseline.centre).max(axis=0))
    frame = baseline.frame(half_range)
    weights = baseline.weights(frame)
    unclipped = baseline.rows_unclipped(data.next_states)
    x = design(frame, data.states, data.actions)
    if is_corrected:
        weights = _fit_outputs(x[unclipped], data.at(unclipped), baseline.penalty(frame), weights)
    predicted = np.clip(data.states + x @ weights[:, :d], baseline.low, baseline.high)
    judged = unclipped if unclipped.any() else ~unclipped
    error = np.sqrt(((predicted - data.next_states)[judged] ** 2).mean(axis=0))
    depends_on_next, integrated, error = _find_integrated(frame, data, baseline, error)
    change = (data.next_states - data.states)[judged]
    return Model(
        frame,
        np.ascontiguousarray(weights[: frame.n_shared].T),
        np.ascontiguousarray(weights[frame.n_shared :].T.reshape(d + 1, data.actions.shape[1], d + 1)),
        depends_on_next,
        integrated,
        np.maximum(baseline.low, baseline.centre - config.max_extrapolation * half_range),
        np.minimum(baseline.high, baseline.centre + config.max_extrapolation * half_range),
        np.maximum(error, config.min_relative_noise * np.sqrt((change**2).mean(axis=0))),
    )


def _fit_outputs(
    x: NDArray[np.float64], transitions: Transitions, penalty: Floats, base: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Weights for the change of every observation, and for the reward of steps that do not terminate."""
    y = np.column_stack([transitions.next_states - transitions.states, transitions.rewards])
    if base is None:
        base = np.zeros((x.shape[1], y.shape[1]))
    if not len(x):
        return base
    residual = y - x @ base
    weights = base + ridge(x, residual, penalty)
    alive = ~transitions.terminated
    if alive.any() and not alive.all():
        weights[:, -1] = base[:, -1] + ridge(x[alive], residual[alive, -1:], penalty)[:, 0]
    return weights


def _find_integrated(
    frame: Frame, transitions: Transitions, baseline: BaselineModel, error: Floats
) -> tuple[NDArray[np.int64], NDArray[np.float64], Floats]:
    """Observations that another's next value explains far better than the features do."""
    config = baseline.config
    d, action_size = len(frame.centre), transitions.actions.shape[1]
    depends_on_next = np.full(d, -1)
    integrated = np.zeros((d, d + action_size + 1))
    error = error.copy()
    latest = transitions.at(slice(-config.integration_window, None))
    min_transitions = config.min_transitions_per_weight * (d + action_size + 1)
    if latest.n < min_transitions:
        return depends_on_next, integrated, error
    x = np.column_stack([(latest.states - frame.centre) / frame.scale, latest.actions, np.zeros(latest.n)])
    next_z = (latest.next_states - frame.centre) / frame.scale
    unclipped = is_unclipped(latest.next_states, baseline.low, baseline.high)
    sources: set[int] = set()
    for i in range(d):
        rows = unclipped[:, i]
        if i in sources or error[i] < 1e-9 or rows.sum() < min_transitions:
            continue
        change = (latest.next_states - latest.states)[rows, i : i + 1]
        for j in range(d):
            if j == i or depends_on_next[j] >= 0:
                continue
            x[:, -1] = next_z[:, j]
            weights = ridge(x[rows], change, np.full(x.shape[1], 1e-6))
            remaining = float(np.sqrt(((x[rows] @ weights - change) ** 2).mean()))
            if remaining < config.max_integrated_error * error[i]:
                depends_on_next[i], integrated[i], error[i] = j, weights[:, 0], remaining
                sources.add(j)
                break
    return depends_on_next, integrated, error
