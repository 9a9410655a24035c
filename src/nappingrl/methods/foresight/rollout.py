"""Rollouts of simple policies in the fitted world."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.foresight.policies import choose, score
from nappingrl.methods.foresight.terminations import Terminations, terminal_reward, termination_at
from nappingrl.types import Floats
from nappingrl.world_model.basis import standardise
from nappingrl.world_model.model import Model, predict_step

RETURN, COVERAGE = 0, 1
"""What a rollout is judged by: its return, or (where no termination is known yet) the range of states it covers."""
NEGLIGIBLE = 1e-3
"""Share of the highest possible return that is not worth a longer search."""


class Rollouts(NamedTuple):
    """The rollouts by which policies are compared: all start in the same states and meet the same noise."""

    model: Model
    terminations: Terminations
    starts: NDArray[np.float64]
    """(n, d)"""
    noise: NDArray[np.float64]
    """(n, horizon, d) standard normal numbers."""
    goal: int
    """RETURN or COVERAGE."""
    max_reward: float
    """Upper bound of the reward of a step."""
    max_terminal_reward: float
    """Upper bound of the reward of the last step."""
    is_discrete: bool


@kernel(allocates=False)
def max_return(max_reward: float, max_terminal_reward: float, n_steps: int) -> float:
    """The most that `n_steps` steps can earn, the last of which may terminate."""
    if n_steps <= 0:
        return 0.0
    return max(max_reward, 0.0) * (n_steps - 1) + max(max_reward, max_terminal_reward, 0.0)


@kernel()
def enough_return(rollouts: Rollouts) -> float:
    """A mean return that it is not worth searching beyond; infinite where policies are judged by coverage."""
    if rollouts.goal != RETURN:
        return np.inf
    most = max_return(rollouts.max_reward, rollouts.max_terminal_reward, rollouts.noise.shape[1])
    return most - NEGLIGIBLE * abs(most)


class Scratch(NamedTuple):
    """Arrays that a rollout writes to."""

    state: Floats
    next_state: Floats
    lowest: Floats
    highest: Floats
    z: Floats
    shared: Floats
    """Features."""
    encoded: Floats
    """Action."""


@kernel()
def make_scratch(rollouts: Rollouts) -> Scratch:
    """For rollouts in this world."""
    d, model = rollouts.starts.shape[1], rollouts.model
    return Scratch(
        np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(model.frame.n_shared),
        np.empty(model.affine.shape[1]),
    )  # fmt: skip


@kernel(allocates=False)
def rollout(
    rollouts: Rollouts, number: int, kind: int, weights: NDArray[np.float64], least: float, path: NDArray[np.float64],
    scratch: Scratch,
) -> float:  # fmt: skip
    """The return (or coverage) of one rollout; -inf as soon as the return cannot reach `least` any more.

    `path` (m, d) receives the first m states after the start.
    """
    model, terminations, goal = rollouts.model, rollouts.terminations, rollouts.goal
    max_reward, max_terminal_reward = rollouts.max_reward, rollouts.max_terminal_reward
    start, noise = rollouts.starts[number], rollouts.noise[number]
    d, horizon = start.shape[0], noise.shape[0]
    state, next_state, lowest, highest, z, shared, encoded = scratch
    for i in range(d):
        state[i] = lowest[i] = highest[i] = start[i]
    total, action = 0.0, -1
    for t in range(horizon):
        standardise(model.frame, state, z)
        if rollouts.is_discrete:
            action = choose(kind, weights, z)
        else:
            encoded[0] = 1.0
            k = weights.shape[0]
            for j in range(k):
                encoded[1 + j] = min(max(score(kind, weights[j], z), -1.0), 1.0)
                encoded[1 + k + j] = encoded[1 + j] ** 2
        reward = min(predict_step(model, state, encoded, action, z, shared, next_state), max_reward)
        for i in range(d):
            value = next_state[i] + model.noise[i] * noise[t, i]
            state[i] = min(max(value, model.low[i]), model.high[i])
            lowest[i], highest[i] = min(lowest[i], state[i]), max(highest[i], state[i])
        if t < path.shape[0]:
            for i in range(d):
                path[t, i] = state[i]
        termination = termination_at(terminations, state)
        if termination >= 0:
            total += terminal_reward(terminations, termination)
            break
        total += reward
        if goal == RETURN and total + max_return(max_reward, max_terminal_reward, horizon - 1 - t) < least:
            return -np.inf
    if goal == COVERAGE:
        total = 0.0
        for i in range(d):
            total += (highest[i] - lowest[i]) / model.frame.scale[i]
    return float(total)


@kernel()
def evaluate(rollouts: Rollouts, kind: int, weights: NDArray[np.float64], least: float) -> float:
    """The mean over the rollouts; stops as soon as it cannot reach `least`, and returns a number below it."""
    n, total = rollouts.starts.shape[0], 0.0
    no_path, scratch = np.empty((0, 0)), make_scratch(rollouts)
    best = max_return(rollouts.max_reward, rollouts.max_terminal_reward, rollouts.noise.shape[1])
    for i in range(n):
        need = least * n - total - best * (n - 1 - i) if rollouts.goal == RETURN else -np.inf
        value = rollout(rollouts, i, kind, weights, need, no_path, scratch)
        total += value
        if rollouts.goal == RETURN and value < need:
            return least - 1e-9 - abs(least) * 1e-9
    return float(total / n)
