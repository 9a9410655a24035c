"""Sequences of actions: random changes of a sequence, and what they earn by the model.

A sequence is (horizon, k): scaled continuous actions in [-1, 1], or the numbers of discrete ones with k = 1.
"""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.rng import draw, normal
from nappingrl.types import Floats
from nappingrl.world_model.basis import standardise
from nappingrl.world_model.model import Model, predict_step


@kernel()
def write_simple(sequences: NDArray[np.float64], wanted: Floats, n_actions: int) -> None:
    """Write sequences of one action in place of the second, third, ...: the wanted action first.

    Then come all discrete actions, or both extremes of each continuous one.
    """
    n, k = sequences.shape[0], sequences.shape[2]
    if n > 1:
        sequences[1, :] = wanted
    for number in range(n_actions or 2 * k):
        if number + 2 >= n:
            return
        if n_actions:
            sequences[number + 2, :] = float(number)
        else:
            sequences[number + 2, :] = 0.0
            sequences[number + 2, :, number // 2] = 1.0 if number % 2 else -1.0


@kernel()
def write_changed(
    sequences: NDArray[np.float64], base: NDArray[np.float64], n_actions: int, hold: int, size: float, key: np.uint64,
    counter: np.uint64,
) -> np.uint64:  # fmt: skip
    """Write `base` first, then random changes of it that hold for several steps; returns the next counter."""
    n, horizon, k = sequences.shape
    sequences[0] = base
    for number in range(1, n):
        for first in range(0, horizon, hold):
            last = min(first + hold, horizon)
            for j in range(k):
                if n_actions:
                    value = -1.0
                    if (draw(key, counter) >> np.uint64(11)) * 2.0**-53 < size:
                        value = float(draw(key, counter + np.uint64(1)) % np.uint64(n_actions))
                    for t in range(first, last):
                        sequences[number, t, j] = value if value >= 0 else base[t, j]
                else:
                    change = size * normal(key, counter)
                    for t in range(first, last):
                        sequences[number, t, j] = min(max(base[t, j] + change, -1.0), 1.0)
                counter += np.uint64(2)
    return counter


@kernel()
def evaluate(
    model: Model, start: Floats, sequences: NDArray[np.float64], n_actions: int, discount: float,
    rewards: tuple[float, float], penalty: float, totals: Floats, ends: NDArray[np.float64],
) -> None:  # fmt: skip
    """The discounted return of each sequence from `start`, and where it ends; rewards stay within known limits.

    A step costs `penalty` times the distance by which an observation is outside of the range of the data, in multiples
    of half of it: nothing is known of what happens there.
    """
    n, horizon, k = sequences.shape
    d = start.shape[0]
    z, shared, encoded = np.empty(d), np.empty(model.frame.n_shared), np.ones(model.affine.shape[1])
    state = np.empty(d)
    for number in range(n):
        ends[number] = start
        total, factor, action = 0.0, 1.0, -1
        for t in range(horizon):
            if n_actions:
                action = int(sequences[number, t, 0])
            else:
                for j in range(k):
                    encoded[1 + j] = sequences[number, t, j]
                    encoded[1 + k + j] = sequences[number, t, j] ** 2
            state[:] = ends[number]
            standardise(model.frame, state, z)
            reward = predict_step(model, state, encoded, action, z, shared, ends[number])
            outside = 0.0
            for i in range(d):
                outside += max(abs((ends[number, i] - model.frame.centre[i]) / model.frame.scale[i]) - 1.0, 0.0)
            total += factor * (min(max(reward, rewards[0]), rewards[1]) - penalty * outside)
            factor *= discount
        totals[number] = total


@kernel()
def follow(model: Model, start: Floats, sequence: NDArray[np.float64], n_actions: int) -> NDArray[np.float64]:
    """(horizon, d) the states that the model predicts for one sequence."""
    path = np.empty((sequence.shape[0], start.shape[0]))
    total, state = np.empty(1), start
    for t in range(sequence.shape[0]):
        evaluate(model, state, sequence[None, t : t + 1], n_actions, 1.0, (0.0, 0.0), 0.0, total, path[t : t + 1])
        state = path[t]
    return path
