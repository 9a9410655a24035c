"""A quadric that separates terminal from survived states where no single observation does."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.foresight.config import ForesightConfig
from nappingrl.types import Floats
from nappingrl.world_model.fit import solve


class Quadric(NamedTuple):
    """The region weights . [z, products of z] > limit; no weights: an empty region."""

    centre: Floats
    scale: Floats
    weights: Floats
    limit: float
    reward: float
    """The reward of the step that terminates there."""


def no_quadric() -> Quadric:
    """An empty region."""
    return Quadric(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, 0.0)


def fit_quadric(
    survived: NDArray[np.float64],
    terminal: NDArray[np.float64],
    reward: float,
    centre: Floats,
    scale: Floats,
    config: ForesightConfig,
) -> Quadric:
    """Logistic regression on z and its products; terminal and survived states have the same total weight."""
    if len(terminal) < config.min_quadric_terminations:
        return no_quadric()
    survived = survived[:: max(1, len(survived) // config.max_quadric_states)]
    x = np.vstack([_features(survived, centre, scale), _features(terminal, centre, scale)])
    x = np.column_stack([x, np.ones(len(x))])
    y = np.concatenate([np.zeros(len(survived)), np.ones(len(terminal))])
    share = np.where(y > 0, 0.5 / len(terminal), 0.5 / len(survived))
    ridge = config.quadric_ridge / len(x)
    weights = np.zeros(x.shape[1])
    for _ in range(config.n_quadric_rounds):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        curvature = share * np.maximum(p * (1 - p), 1e-6)
        gradient = x.T @ (share * (y - p)) - ridge * weights
        hessian = (x * curvature[:, None]).T @ x + np.eye(x.shape[1]) * ridge
        weights = weights + solve(hessian, gradient)
    heights = x[:, :-1] @ weights[:-1]
    alive, ended = heights[: len(survived)], heights[len(survived) :]
    if alive.max() < ended.min():
        limit = float((alive.max() + ended.min()) / 2)
    else:
        limit = float(np.quantile(alive, 1 - config.max_quadric_error))
    if (ended > limit).mean() < config.min_quadric_recall:
        return no_quadric()
    return Quadric(centre, scale, weights[:-1], limit, reward)


def _features(states: NDArray[np.float64], centre: Floats, scale: Floats) -> NDArray[np.float64]:
    z = (states - centre) / scale
    i, j = np.triu_indices(z.shape[1])
    return np.hstack([z, z[:, i] * z[:, j]])


@kernel(allocates=False)
def outside(quadric: Quadric, state: Floats) -> bool:
    """Whether a state lies beyond the border, in the region where episodes terminate."""
    d = state.shape[0]
    height, at = 0.0, d
    for i in range(d):
        z = (state[i] - quadric.centre[i]) / quadric.scale[i]
        height += quadric.weights[i] * z
        for j in range(i, d):
            height += quadric.weights[at] * z * (state[j] - quadric.centre[j]) / quadric.scale[j]
            at += 1
    return bool(height > quadric.limit)
