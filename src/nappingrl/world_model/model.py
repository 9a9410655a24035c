"""A fitted one-step model: the next observation and the reward of a step."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats
from nappingrl.world_model.basis import Frame, shared_features, standardise
from nappingrl.world_model.transitions import Transitions


class Model(NamedTuple):
    """A fitted model, as the kernels take it."""

    frame: Frame
    shared: NDArray[np.float64]
    """(d + 1, shared): weights of the shared features; the last row predicts the reward."""
    affine: NDArray[np.float64]
    """(d + 1, b, d + 1): weights of [z, 1] for each entry of the encoded action."""
    depends_on_next: NDArray[np.int64]
    """(d,) the observation whose next value an observation integrates (x' = x + v'); -1: none."""
    integrated: NDArray[np.float64]
    """(d, d + b + 1) weights of z, the encoded action, and the other observation's next value."""
    low: Floats
    high: Floats
    noise: Floats
    """(d,) standard deviation of the prediction error."""


@kernel(allocates=False, forceinline=True)
def _next_direct(model: Model, i: int) -> int:
    """The first output from this one on that integrates no other: an observation, or d for the reward, or d + 1."""
    while i < len(model.depends_on_next) and model.depends_on_next[i] >= 0:
        i += 1
    return i


@kernel(allocates=False, forceinline=True)
def _write_output(model: Model, state: Floats, n: int, change: float, reward: float, next_state: Floats) -> float:
    """Write an observation; returns the reward, which is `change` if the output is the reward."""
    if n < len(state):
        next_state[n] = min(max(state[n] + change, model.low[n]), model.high[n])
    return change if n == len(state) else reward


@kernel(allocates=False, forceinline=True)
def predict_step(
    model: Model, state: Floats, encoded: Floats, action: int, z: Floats, shared: Floats, next_state: Floats
) -> float:
    """Predict one step without noise into `next_state`; returns the reward. `action` >= 0: `encoded` is one-hot.

    `z` is the standardised state.
    """
    d, n_shared, action_size = state.shape[0], model.frame.n_shared, model.affine.shape[1]
    shared_features(model.frame, z, shared)
    reward = 0.0
    first, last = (action, action + 1) if action >= 0 else (0, action_size)
    n1 = _next_direct(model, 0)
    while n1 <= d:
        # Four sums side by side, because each addition waits for the one before it.
        n2 = _next_direct(model, n1 + 1)
        n3 = _next_direct(model, n2 + 1)
        n4 = _next_direct(model, n3 + 1)
        o2, o3, o4 = min(n2, d), min(n3, d), min(n4, d)
        sum1, sum2, sum3, sum4 = 0.0, 0.0, 0.0, 0.0
        for k in range(n_shared):
            sum1 += model.shared[n1, k] * shared[k]
            sum2 += model.shared[o2, k] * shared[k]
            sum3 += model.shared[o3, k] * shared[k]
            sum4 += model.shared[o4, k] * shared[k]
        for b in range(first, last):
            part1, part2 = model.affine[n1, b, d], model.affine[o2, b, d]
            part3, part4 = model.affine[o3, b, d], model.affine[o4, b, d]
            for k in range(d):
                part1 += model.affine[n1, b, k] * z[k]
                part2 += model.affine[o2, b, k] * z[k]
                part3 += model.affine[o3, b, k] * z[k]
                part4 += model.affine[o4, b, k] * z[k]
            weight = 1.0 if action >= 0 else encoded[b]
            sum1 += part1 * weight
            sum2 += part2 * weight
            sum3 += part3 * weight
            sum4 += part4 * weight
        reward = _write_output(model, state, n1, sum1, reward, next_state)
        reward = _write_output(model, state, n2, sum2, reward, next_state)
        reward = _write_output(model, state, n3, sum3, reward, next_state)
        reward = _write_output(model, state, n4, sum4, reward, next_state)
        n1 = _next_direct(model, n4 + 1)
    for i in range(d):
        j = model.depends_on_next[i]
        if j >= 0:
            weights = model.integrated[i]
            change = weights[d + action_size] * (next_state[j] - model.frame.centre[j]) / model.frame.scale[j]
            for k in range(d):
                change += weights[k] * z[k]
            if action >= 0:
                change += weights[d + action]
            else:
                for b in range(action_size):
                    change += weights[d + b] * encoded[b]
            next_state[i] = min(max(state[i] + change, model.low[i]), model.high[i])
    return reward


@kernel()
def predict_steps(
    model: Model,
    states: NDArray[np.float64],
    actions: NDArray[np.float64],
    next_states: NDArray[np.float64],
    rewards: Floats,
) -> None:
    """Predict one step from each of m states (m, d), without noise."""
    m, d = states.shape
    z, shared = np.empty(d), np.empty(model.frame.n_shared)
    for row in range(m):
        standardise(model.frame, states[row], z)
        rewards[row] = predict_step(model, states[row], actions[row], -1, z, shared, next_states[row])


def predict(model: Model, transitions: Transitions) -> NDArray[np.float64]:
    """(m, d) the next states that the model predicts for these transitions."""
    next_states, rewards = np.empty_like(transitions.next_states), np.empty(transitions.n)
    predict_steps(model, transitions.states, transitions.actions, next_states, rewards)
    return next_states
