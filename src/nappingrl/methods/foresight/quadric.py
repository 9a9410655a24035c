"""A border that no single observation draws: a quadric between the states in which episodes ended and all others."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats

FEWEST = 8
"""Endings that are needed to draw one."""
ROUNDS = 12
RIDGE = 1e-2
SHARE_INSIDE, SHARE_OUTSIDE = 0.9, 0.005
"""It must hold at least so many of the endings and at most so many of the survived states."""


class Surface(NamedTuple):
    """weights . [z, products of z] > limit; no weights: none is known."""

    centre: Floats
    scale: Floats
    weights: Floats
    limit: float
    reward: float


def no_surface() -> Surface:
    """No border."""
    return Surface(np.zeros(0), np.zeros(0), np.zeros(0), 0.0, 0.0)


def find_surface(
    survived: NDArray[np.float64], last: NDArray[np.float64], reward: float, centre: Floats, scale: Floats
) -> Surface:
    """Logistic regression on z and its products, ended against survived, both classes with the same weight."""
    if len(last) < FEWEST:
        return no_surface()
    survived = survived[:: max(1, len(survived) // 3000)]
    x = np.vstack([_quadric(survived, centre, scale), _quadric(last, centre, scale)])
    x = np.column_stack([x, np.ones(len(x))])
    y = np.concatenate([np.zeros(len(survived)), np.ones(len(last))])
    share = np.where(y > 0, 0.5 / len(last), 0.5 / len(survived))
    weights = np.zeros(x.shape[1])
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        curvature = share * np.maximum(p * (1 - p), 1e-6)
        gradient = x.T @ (share * (y - p)) - RIDGE / len(x) * weights
        hessian = (x * curvature[:, None]).T @ x + np.eye(x.shape[1]) * RIDGE / len(x)
        weights = weights + np.linalg.solve(hessian, gradient)
    heights = x[:, :-1] @ weights[:-1]
    alive, ended = heights[: len(survived)], heights[len(survived) :]
    apart = alive.max() < ended.min()
    limit = float((alive.max() + ended.min()) / 2 if apart else np.quantile(alive, 1 - SHARE_OUTSIDE))
    if (ended > limit).mean() < SHARE_INSIDE:
        return no_surface()
    return Surface(centre, scale, weights[:-1], limit, reward)


def _quadric(states: NDArray[np.float64], centre: Floats, scale: Floats) -> NDArray[np.float64]:
    z = (states - centre) / scale
    i, j = np.triu_indices(z.shape[1])
    return np.hstack([z, z[:, i] * z[:, j]])


@kernel()
def is_beyond(surface: Surface, state: Floats) -> bool:
    """Whether a state lies beyond the border."""
    d = state.shape[0]
    height, at = 0.0, d
    for i in range(d):
        z = (state[i] - surface.centre[i]) / surface.scale[i]
        height += surface.weights[i] * z
        for j in range(i, d):
            height += surface.weights[at] * z * (state[j] - surface.centre[j]) / surface.scale[j]
            at += 1
    return bool(height > surface.limit)
