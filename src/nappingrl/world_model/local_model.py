"""The one-step model of one mode: its features, and how a step is judged by it.

The change of each observation is linear in the features: the standardised observations and the action (one-hot, or
with hinges of each continuous one), and, where they lower the held-out error, their products, Chebyshev polynomials of
each observation, products of two observations, and random cosines of all. Beyond the range of the reference only the
affine part extrapolates.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats

Matrix = NDArray[np.float64]
N_CURVES = 5
"""Chebyshev polynomials T2..T6 of each observation."""
KNOTS = (-0.5, 0.0, 0.5)
"""Of the hinges of a continuous action in [-1, 1]; engines have dead zones."""
POOLING = 0.005
"""Scale of products of actions and observations: rarely executed actions keep the slopes that all share."""
N_WAVES = 150
"""Random cosines of all observations."""
MAX_TOLERANCE = 30.0
"""Residuals may be larger by at most this factor where a state is unusual."""
USUAL_LEVERAGE = 3.0
"""Up to this multiple of the mean leverage a state counts as well known."""


class Features(NamedTuple):
    """Which features are computed, and how observations are scaled."""

    entries: NDArray[np.int64]
    """(q,) the observations that are modelled."""
    centre: Floats
    scale: Floats
    low: Floats
    high: Floats
    """(q,) the range of the standardised observations."""
    n_actions: int
    """0: actions are continuous."""
    action_size: int
    """Length of an encoded action."""
    is_per_action: bool
    """Whether the affine part is separate for each action, or has products with each continuous one."""
    has_curves: bool
    has_products: bool
    waves: Matrix
    """(n, q + 1) directions and phases of random cosines of all observations; n may be 0."""


class LocalModel(NamedTuple):
    """A fitted model, as the kernels take it."""

    features: Features
    weights: Matrix
    """(features, q)"""
    noise: Matrix
    """(actions, q) usual size of a residual, by discrete action, or (1, q)."""
    bend: Floats
    """(q,) by how much residuals grow with the leverage of the state."""
    outside: Matrix
    """(actions, q) by how much they grow with the distance from the range of the reference, for curved features."""
    inverse_gram: Matrix
    """(q + 1, q + 1) of [z, 1], so that the mean leverage is 1."""


@kernel(allocates=False)
def n_features(features: Features) -> int:
    """How many features there are."""
    q, size = len(features.entries), features.action_size
    if features.n_actions:
        n = q + size * (q + 1) if features.is_per_action else q + size
    else:
        k = (size - 1) // 2
        n = q + 1 + k * (1 + 2 * len(KNOTS)) + (k * q if features.is_per_action else 0)
    if features.has_curves:
        n += q * N_CURVES
    if features.has_products:
        n += q * (q - 1) // 2
    return n + len(features.waves)


@kernel(allocates=False)
def write_action_features(features: Features, action: Floats, z: Floats, out: Floats) -> int:
    """Write the features of a standardised state `z` that depend on an encoded action, and z; returns how many."""
    q, size = len(features.entries), features.action_size
    at = 0
    if features.n_actions:
        for i in range(q):
            out[at] = z[i]
            at += 1
        for b in range(size):
            out[at] = action[b]
            at += 1
        if features.is_per_action:
            for b in range(size):
                for i in range(q):
                    out[at] = POOLING * action[b] * z[i]
                    at += 1
    else:
        for i in range(q + 1):
            out[at] = z[i]
            at += 1
        for j in range(1, 1 + (size - 1) // 2):
            u = action[j]
            out[at] = u
            at += 1
            for knot in KNOTS:
                out[at] = max(u - knot, 0.0)
                out[at + 1] = 1.0 if u > knot else 0.0
                at += 2
        if features.is_per_action:
            for j in range(1, 1 + (size - 1) // 2):
                for i in range(q):
                    out[at] = POOLING * action[j] * z[i]
                    at += 1
    return at


@kernel(allocates=False)
def write_features(features: Features, state: Floats, action: Floats, z: Floats, out: Floats) -> None:
    """Standardise a state into `z` (q + 1, the last one is 1), and write its features with an encoded action."""
    q = len(features.entries)
    for i in range(q):
        z[i] = (state[features.entries[i]] - features.centre[i]) / features.scale[i]
    z[q] = 1.0
    at = write_action_features(features, action, z, out)
    if features.has_curves:
        for i in range(q):
            middle, half = (features.high[i] + features.low[i]) / 2, (features.high[i] - features.low[i]) / 2
            x = min(max((z[i] - middle) / (half + 1e-12), -1.0), 1.0)
            before, now = 1.0, x
            for _ in range(N_CURVES):
                before, now = now, 2 * x * now - before
                out[at] = now
                at += 1
    if features.has_products:
        for i in range(q):
            x = min(max(z[i], features.low[i]), features.high[i])
            for j in range(i + 1, q):
                out[at] = x * min(max(z[j], features.low[j]), features.high[j])
                at += 1
    n_waves = len(features.waves)
    if n_waves:
        for k in range(n_waves):
            out[at + k] = features.waves[k, q]
        for i in range(q):  # one clipped observation at a time: the sums are the same as one by one
            x = min(max(z[i], features.low[i]), features.high[i])
            for k in range(n_waves):
                out[at + k] += features.waves[k, i] * x
        for k in range(n_waves):
            out[at + k] = np.cos(out[at + k])


@kernel()
def design(features: Features, states: Matrix, actions: Matrix) -> Matrix:
    """(m, features) of m states with encoded actions."""
    z = np.empty(len(features.entries) + 1)
    out = np.empty((len(states), n_features(features)))
    for m in range(len(states)):
        write_features(features, states[m], actions[m], z, out[m])
    return out


@kernel()
def n_affine(features: Features) -> int:
    """How many of the features are affine in the observations; they come first."""
    n = n_features(features) - len(features.waves)
    q = len(features.entries)
    if features.has_curves:
        n -= q * N_CURVES
    if features.has_products:
        n -= q * (q - 1) // 2
    return n


@kernel()
def leverages(features: Features, inverse_gram: Matrix, states: Matrix) -> Floats:
    """(m,) how unusual states are, relative to the mean of the reference."""
    q = len(features.entries)
    z, out = np.ones(q + 1), np.zeros(len(states))
    for m in range(len(states)):
        for i in range(q):
            z[i] = (states[m, features.entries[i]] - features.centre[i]) / features.scale[i]
        for i in range(q + 1):
            part = 0.0
            for j in range(q + 1):
                part += inverse_gram[i, j] * z[j]
            out[m] += part * z[i]
    return out


@kernel()
def write_residuals(
    model: LocalModel, weights: Matrix, states: Matrix, actions: Matrix, next_states: Matrix, out: Matrix
) -> None:
    """(m, q) residuals of steps in usual ones, less where the state is unusual."""
    q = len(model.features.entries)
    n = weights.shape[0]
    z, x = np.empty(q + 1), np.empty(n)
    for m in range(len(states)):
        write_features(model.features, states[m], actions[m], z, x)
        leverage = 0.0
        for i in range(q + 1):
            part = 0.0
            for j in range(q + 1):
                part += model.inverse_gram[i, j] * z[j]
            leverage += part * z[i]
        excess = max(leverage - USUAL_LEVERAGE, 0.0)
        distance = 0.0
        for i in range(q):
            distance = max(distance, z[i] - model.features.high[i], model.features.low[i] - z[i])
        row = np.argmax(actions[m]) if model.features.n_actions else 0
        for i in range(q):
            entry = model.features.entries[i]
            change = next_states[m, entry] - states[m, entry]
            for f in range(n):
                change -= weights[f, i] * x[f]
            tolerance = 1.0 + model.bend[i] * excess + model.outside[row, i] * distance
            out[m, i] = change / (model.noise[row, i] * min(tolerance, MAX_TOLERANCE))


@kernel(allocates=False)
def find_mode(
    flags: NDArray[np.int64], values: Matrix, low: Floats, high: Floats, state: Floats, next_state: Floats
) -> int:
    """The mode that a step stays in; -1: it leaves all known ones, or touches a bound."""
    for i in range(len(next_state)):
        if next_state[i] <= low[i] or next_state[i] >= high[i]:
            return -1
    for mode in range(len(values)):
        is_in = True
        for k in range(len(flags)):
            value = values[mode, k]
            if abs(state[flags[k]] - value) > 1e-6 or abs(next_state[flags[k]] - value) > 1e-6:
                is_in = False
                break
        if is_in:
            return mode
    return -1
