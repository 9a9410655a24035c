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
    i = 0
    while i <= d:
        # Two sums side by side, because each addition waits for the one before it.
        while i < d and model.depends_on_next[i] >= 0:
            i += 1
        j = i + 1
        while j < d and model.depends_on_next[j] >= 0:
            j += 1
        other = min(j, d)
        change, change2 = 0.0, 0.0
        for k in range(n_shared):
            change += model.shared[i, k] * shared[k]
            change2 += model.shared[other, k] * shared[k]
        for b in range(first, last):
            part, part2 = model.affine[i, b, d], model.affine[other, b, d]
            for k in range(d):
                part += model.affine[i, b, k] * z[k]
                part2 += model.affine[other, b, k] * z[k]
            change += part if action >= 0 else part * encoded[b]
            change2 += part2 if action >= 0 else part2 * encoded[b]
        if i < d:
            next_state[i] = min(max(state[i] + change, model.low[i]), model.high[i])
        else:
            reward = change
        if j < d:
            next_state[j] = min(max(state[j] + change2, model.low[j]), model.high[j])
        else:
            reward = change2
        i = j + 1
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
