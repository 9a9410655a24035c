"""A fitted world: what the next observation and the reward will be.

The change of each observation is linear in the features. It is fitted first to what was seen before the novelty; what
was seen after it corrects that fit by a second ridge regression, so that a few steps are enough. A few things that
worlds have in common are looked for: bounds at which observations stop, and observations that follow another's *next*
value (a position moves by the new velocity).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import DomainSpec, Flags, Floats
from nappingrl.world_model.basis import Frame, design, make_frame, shared_features
from nappingrl.world_model.transitions import Seen

RIDGE, RIDGE_SHARED = 1e-3, 1e-2
"""How strongly the weights of the affine part and of the shared features are held at those before the novelty."""
FOLLOWS_BETTER = 0.1
"""An observation follows another if that leaves less than this share of the error."""
FEWEST, LATEST = 2, 400
"""Transitions that are needed to say so, for each weight; and how many of the latest are looked at."""
MOSTLY_FREE = 0.05
"""An observation that lies at a bound in all but this share of the steps is a flag."""
RARELY_FREE = 0.3
"""Where no more than this share of the steps is free, bounds are where this world is played: nothing stops there."""
N_PRIOR = 1000
"""Transitions before the novelty that are fitted."""
NOISE = 0.02
"""Imagined steps err by at least this share of a typical step."""
FARTHEST = 1000.0
"""Imagined observations go no farther from the centre than so many times what was seen: a world that explodes stays
one of numbers."""
PRODUCTS_BETTER = 0.5
"""Products of observations are features if they leave less than this share of the error."""


class Model(NamedTuple):
    """A fitted world, as the kernels take it."""

    frame: Frame
    shared: NDArray[np.float64]
    """(d + 1, shared): weights of the shared features; the last row is the reward's."""
    affine: NDArray[np.float64]
    """(d + 1, b, d + 1): those of [z, 1] for each entry of the push."""
    follows: NDArray[np.int64]
    """(d,) whose next value an observation follows; -1: none."""
    following: NDArray[np.float64]
    """(d, d + b + 1) weights of z, the push, and the other's next value."""
    low: Floats
    high: Floats
    noise: Floats
    """(d,) standard deviation of what is not explained."""


def bounds(domain: DomainSpec) -> tuple[Floats, Floats]:
    """The observation space's bounds as vectors."""
    return (
        np.asarray(domain.observation_low, np.float64).ravel(),
        np.asarray(domain.observation_high, np.float64).ravel(),
    )


def is_free(nexts: NDArray[np.float64], low: Floats, high: Floats) -> NDArray[np.bool_]:
    """(m, d) which observations do not touch their bounds: those that do tell little of the dynamics."""
    with np.errstate(invalid="ignore"):
        span = np.where(np.isfinite(high - low), high - low, 1.0)
    near: NDArray[np.bool_] = (np.abs(nexts - low) < 1e-6 * span) | (np.abs(nexts - high) < 1e-6 * span)
    return ~near


def are_free(nexts: NDArray[np.float64], low: Floats, high: Floats, stops: Flags) -> NDArray[np.bool_]:
    """(m,) whether no observation was stopped by its bounds; `stops`, (d,) or (m, d): which of them stop there."""
    return np.asarray((is_free(nexts, low, high) | ~stops).all(axis=1))


def ridge(x: NDArray[np.float64], y: NDArray[np.float64], penalty: Floats) -> NDArray[np.float64]:
    """Weights (features, outputs) of least squares, each weight held at 0 by its penalty."""
    return np.linalg.solve(x.T @ x + np.diag(penalty), x.T @ y).astype(np.float64)


class Prior:
    """What is known from before the novelty: the frame's centre and the fit that later data correct."""

    def __init__(self, seen: Seen, domain: DomainSpec, has_products: bool | None = None) -> None:
        self.seen, self.domain = seen, domain
        self.low, self.high = bounds(domain)
        self.centre = seen.states.mean(axis=0)
        reach = np.abs(seen.states - self.centre).max(axis=0)
        self.reach = np.where(reach > 1e-9, reach, 1.0)  # what has always been the same has no scale
        self.stops = is_free(seen.nexts, self.low, self.high).mean(axis=0) > MOSTLY_FREE
        """Which observations stop at their bounds now and then; a flag that mostly lies there does not."""
        self.stops &= self.are_free(seen.nexts).mean() > RARELY_FREE
        free = self.are_free(seen.nexts)
        self._free = seen.at(np.flatnonzero(free)[:: max(1, int(free.sum()) // N_PRIOR)])
        self._weights: tuple[Floats, NDArray[np.float64]] | None = None
        self.has_products = self._needs_products() if has_products is None else has_products

    def are_free(self, nexts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(m,) whether no observation was stopped by its bounds."""
        return are_free(nexts, self.low, self.high, self.stops)

    def penalty(self, frame: Frame) -> Floats:
        """Of each weight."""
        n_affine = self.seen.pushes.shape[1] * (len(self.centre) + 1)
        return np.concatenate([np.full(frame.n_shared, RIDGE_SHARED), np.full(n_affine, RIDGE)])

    def frame(self, reach: Floats) -> Frame:
        """The frame whose scale is `reach`."""
        return make_frame(self.centre, reach, self.has_products)

    def weights(self, frame: Frame) -> NDArray[np.float64]:
        """(features, d + 1) the fit to what was seen before the novelty."""
        if self._weights is None or not np.array_equal(self._weights[0], frame.scale):
            x = design(frame, self._free.states, self._free.pushes)
            self._weights = frame.scale.copy(), _fit_all(x, self._free, self.penalty(frame), None)
        return self._weights[1]

    def _needs_products(self) -> bool:
        """Whether the data ask for them: judged on every fourth transition, which is held out."""
        errors = []
        for has_products in (False, True):
            frame = make_frame(self.centre, self.reach, has_products)
            x, y = design(frame, self._free.states, self._free.pushes), self._free.nexts - self._free.states
            held = np.arange(len(y)) % 4 == 3
            if held.sum() < 50:
                return False
            weights = ridge(x[~held], y[~held], self.penalty(frame))
            errors.append(np.sqrt(((y[held] - x[held] @ weights) ** 2).mean(axis=0)) / (y.std(axis=0) + 1e-12))
        return bool((errors[1] < PRODUCTS_BETTER * errors[0])[errors[0] > 0.01].any())


def fit(prior: Prior, seen: Seen | None = None) -> Model:
    """The world as it is now: the prior, corrected by what was seen since (None: nothing)."""
    n_pushes, d = prior.seen.pushes.shape[1], len(prior.centre)
    reach = prior.reach
    if seen is not None and len(seen.rewards):
        reach = np.maximum(reach, np.abs(seen.nexts - prior.centre).max(axis=0))
    frame = prior.frame(reach)
    weights = prior.weights(frame)
    data = prior.seen if seen is None or not len(seen.rewards) else seen
    free = prior.are_free(data.nexts)
    x = design(frame, data.states, data.pushes)
    if seen is not None and len(seen.rewards):
        weights = _fit_all(x[free], data.at(free), prior.penalty(frame), weights)
    change = data.nexts - data.states
    predicted = np.clip(data.states + x @ weights[:, :d], prior.low, prior.high)
    judged = free if free.any() else ~free
    error = np.sqrt(((predicted - data.nexts)[judged] ** 2).mean(axis=0))
    follows, following, error = _find_followers(frame, data, prior, error)
    noise = np.maximum(error, NOISE * np.sqrt((change[judged] ** 2).mean(axis=0)))
    return Model(
        frame,
        np.ascontiguousarray(weights[: frame.n_shared].T),
        np.ascontiguousarray(weights[frame.n_shared :].T.reshape(d + 1, n_pushes, d + 1)),
        follows,
        following,
        np.maximum(prior.low, prior.centre - FARTHEST * reach),
        np.minimum(prior.high, prior.centre + FARTHEST * reach),
        noise,
    )


def _fit_all(
    x: NDArray[np.float64], seen: Seen, penalty: Floats, base: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Weights of the changes of all observations, and of the reward of the steps that ended nothing."""
    y = np.column_stack([seen.nexts - seen.states, seen.rewards])
    if base is None:
        base = np.zeros((x.shape[1], y.shape[1]))
    if not len(x):
        return base
    left = y - x @ base
    weights = base + ridge(x, left, penalty)
    alive = ~seen.ended
    if alive.any() and not alive.all():
        weights[:, -1] = base[:, -1] + ridge(x[alive], left[alive, -1:], penalty)[:, 0]
    return weights


def _find_followers(
    frame: Frame, seen: Seen, prior: Prior, error: Floats
) -> tuple[NDArray[np.int64], NDArray[np.float64], Floats]:
    """Observations that are explained far better by the next value of another than by the features."""
    d, n_pushes = len(frame.centre), seen.pushes.shape[1]
    follows, following, error = np.full(d, -1), np.zeros((d, d + n_pushes + 1)), error.copy()
    seen = seen.at(slice(-LATEST, None))
    fewest = FEWEST * (d + n_pushes + 1)
    if len(seen.rewards) < fewest:
        return follows, following, error
    x = np.column_stack([(seen.states - frame.centre) / frame.scale, seen.pushes, np.zeros(len(seen.rewards))])
    later = (seen.nexts - frame.centre) / frame.scale
    free = is_free(seen.nexts, prior.low, prior.high)
    led: set[int] = set()
    for i in range(d):
        if i in led or error[i] < 1e-9 or free[:, i].sum() < fewest:
            continue
        for j in range(d):
            if j == i or follows[j] >= 0:
                continue
            x[:, -1] = later[:, j]
            some, change = x[free[:, i]], (seen.nexts - seen.states)[free[:, i], i : i + 1]
            weights = ridge(some, change, np.full(x.shape[1], 1e-6))
            left = float(np.sqrt(((some @ weights - change) ** 2).mean()))
            if left < FOLLOWS_BETTER * error[i]:
                follows[i], following[i], error[i] = j, weights[:, 0], left
                led.add(j)
                break
    return follows, following, error


@kernel()
def imagine(
    model: Model, state: Floats, push: Floats, action: int, z: Floats, shared: Floats, following: Floats
) -> float:
    """One imagined step without noise, into `following`; returns the reward. `action` >= 0: the push is one-hot."""
    d, n_shared, n_pushes = state.shape[0], model.frame.n_shared, model.affine.shape[1]
    shared_features(model.frame, state, z, shared)
    reward = 0.0
    for i in range(d + 1):
        if i < d and model.follows[i] >= 0:
            continue
        change = 0.0
        for k in range(n_shared):
            change += model.shared[i, k] * shared[k]
        first, last = (action, action + 1) if action >= 0 else (0, n_pushes)
        for b in range(first, last):
            part = model.affine[i, b, d]
            for k in range(d):
                part += model.affine[i, b, k] * z[k]
            change += part if action >= 0 else part * push[b]
        if i == d:
            reward = change
        else:
            following[i] = min(max(state[i] + change, model.low[i]), model.high[i])
    for i in range(d):
        j = model.follows[i]
        if j >= 0:
            weights = model.following[i]
            change = weights[d + n_pushes] * (following[j] - model.frame.centre[j]) / model.frame.scale[j]
            for k in range(d):
                change += weights[k] * z[k]
            if action >= 0:
                change += weights[d + action]
            else:
                for b in range(n_pushes):
                    change += weights[d + b] * push[b]
            following[i] = min(max(state[i] + change, model.low[i]), model.high[i])
    return reward


@kernel()
def imagine_each(
    model: Model, states: NDArray[np.float64], pushes: NDArray[np.float64], nexts: NDArray[np.float64], rewards: Floats
) -> None:
    """One imagined step of each of m states (m, d), without noise."""
    m, d = states.shape
    z, shared = np.empty(d), np.empty(model.frame.n_shared)
    for row in range(m):
        rewards[row] = imagine(model, states[row], pushes[row], -1, z, shared, nexts[row])


def predict(model: Model, seen: Seen) -> NDArray[np.float64]:
    """(m, d) the observations that the model expects after these steps."""
    nexts, rewards = np.empty_like(seen.nexts), np.empty(len(seen.rewards))
    imagine_each(model, seen.states, seen.pushes, nexts, rewards)
    return nexts
