"""The imagined episodes, and the search among rules that do not ask the agent."""

import math

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.foresight.policies import choose, score
from nappingrl.methods.foresight.terminations import Endings, ending_of, last_reward
from nappingrl.rng import draw
from nappingrl.types import Floats
from nappingrl.world_model.model import Model, imagine

N_BEST = 8
"""Rules that mutate."""
RETURN, REACH = 0, 1
"""What an imagined episode is judged by: its return, or (where no ending is known yet) how far about it gets."""


@kernel()
def greatest(per_step: float, at_end: float, n_steps: int) -> float:
    """The most that so many steps can earn, if no step earns more than `per_step`, and the last one `at_end`."""
    if n_steps <= 0:
        return 0.0
    return max(per_step, 0.0) * (n_steps - 1) + max(per_step, at_end, 0.0)


@kernel()
def play(
    model: Model, endings: Endings, kind: int, theta: NDArray[np.float64], is_discrete: bool, start: Floats,
    noise: NDArray[np.float64], goal: int, per_step: float, at_end: float, least: float,
) -> float:  # fmt: skip
    """One imagined episode by a rule; given up (-inf) as soon as it cannot earn `least` any more.

    `per_step` and `at_end` bound what a step and the last step can give: the greatest that were seen.
    """
    d, horizon = start.shape[0], noise.shape[0]
    state, following = start.copy(), np.empty(d)
    z, shared, push = np.empty(d), np.empty(model.frame.n_shared), np.empty(model.affine.shape[1])
    lowest, highest = start.copy(), start.copy()
    total, action = 0.0, -1
    for t in range(horizon):
        for i in range(d):
            z[i] = (state[i] - model.frame.centre[i]) / model.frame.scale[i]
        if is_discrete:
            action = choose(kind, theta, z)
        else:
            push[0] = 1.0
            k = theta.shape[0]
            for j in range(k):
                push[1 + j] = min(max(score(kind, theta[j], z), -1.0), 1.0)
                push[1 + k + j] = push[1 + j] ** 2
        reward = min(imagine(model, state, push, action, z, shared, following), per_step)
        for i in range(d):
            value = following[i] + model.noise[i] * noise[t, i]
            state[i] = min(max(value, model.low[i]), model.high[i])
            lowest[i], highest[i] = min(lowest[i], state[i]), max(highest[i], state[i])
        ending = ending_of(endings, state)
        if ending >= 0:
            total += last_reward(endings, ending)
            break
        total += reward
        if goal == RETURN and total + greatest(per_step, at_end, horizon - 1 - t) < least:
            return -np.inf
    if goal == REACH:
        total = 0.0
        for i in range(d):
            total += (highest[i] - lowest[i]) / model.frame.scale[i]
    return float(total)


@kernel()
def worth(
    model: Model, endings: Endings, kind: int, theta: NDArray[np.float64], is_discrete: bool,
    starts: NDArray[np.float64], noise: NDArray[np.float64], goal: int, per_step: float, at_end: float, least: float,
) -> float:  # fmt: skip
    """The mean over the starts; given up as soon as it cannot reach `least` (then some number below it)."""
    n, total = starts.shape[0], 0.0
    best = greatest(per_step, at_end, noise.shape[1])
    for i in range(n):
        need = least * n - total - best * (n - 1 - i) if goal == RETURN else -np.inf
        got = play(model, endings, kind, theta, is_discrete, starts[i], noise[i], goal, per_step, at_end, need)
        total += got
        if goal == RETURN and got < need:
            return least - 1e-9 - abs(least) * 1e-9
    return float(total / n)


@kernel()
def normal(key: np.uint64, counter: np.uint64) -> float:
    """The counter-th normal number of a stream."""
    a = (draw(key, np.uint64(2) * counter) >> np.uint64(11)) * 2.0**-53
    b = (draw(key, np.uint64(2) * counter + np.uint64(1)) >> np.uint64(11)) * 2.0**-53
    return math.sqrt(-2 * math.log(1.0 - a)) * math.cos(2 * math.pi * b)


@kernel()
def search(
    model: Model, endings: Endings, kind: int, is_discrete: bool, starts: NDArray[np.float64],
    noise: NDArray[np.float64], goal: int, per_step: float, at_end: float, known: NDArray[np.float64],
    n_first: int, n_rounds: int, n_mutants: int, key: np.uint64, best: NDArray[np.float64],
) -> float:  # fmt: skip
    """Random rules, then mutations of the best; the best one goes into `best`, its worth is returned."""
    n_outputs, terms = best.shape
    first = 1 if is_discrete else 0  # the score of the first action is 0: only differences matter
    d = starts.shape[1]
    thetas, worths = np.zeros((N_BEST, n_outputs, terms)), np.full(N_BEST, -np.inf)
    theta, counter = np.zeros((n_outputs, terms)), np.uint64(0)
    ceiling = greatest(per_step, at_end, noise.shape[1]) if goal == RETURN else np.inf
    for k in range(known.shape[0]):
        value = worth(model, endings, kind, known[k], is_discrete, starts, noise, goal, per_step, at_end, -np.inf)
        worst = np.argmin(worths)
        if value > worths[worst]:
            worths[worst], thetas[worst] = value, known[k]
    for turn in range(n_rounds + 1):
        step = 0.5 * 0.6 ** (turn - 1)
        for _ in range(n_first if turn == 0 else n_mutants):
            parent = np.int64(0)
            if turn > 0:
                parent = np.int64(draw(key ^ np.uint64(0x5DEECE66D), counter) % np.uint64(N_BEST))
                if worths[parent] == -np.inf:
                    parent = np.argmax(worths)
                size = 0.0
                for a in range(first, n_outputs):
                    for i in range(terms):
                        size += thetas[parent, a, i] ** 2
                size = math.sqrt(size / max((n_outputs - first) * terms, 1)) + 1e-9
            for a in range(first, n_outputs):
                for i in range(terms):
                    number = normal(key, counter)
                    counter += np.uint64(1)
                    if turn == 0:
                        theta[a, i] = number * (1.0 if i < d else 0.3)
                    else:
                        theta[a, i] = thetas[parent, a, i] + number * size * step
            worst = np.argmin(worths)
            value = worth(
                model, endings, kind, theta, is_discrete, starts, noise, goal, per_step, at_end, worths[worst]
            )
            if value > worths[worst]:
                worths[worst], thetas[worst] = value, theta
        if goal == RETURN and turn > 0 and (worths >= ceiling - 1e-9).sum() > 2:
            break
    winner = np.argmax(worths)
    best[:] = thetas[winner]
    return float(worths[winner])


@kernel()
def endings_of(endings: Endings, states: NDArray[np.float64], out: NDArray[np.int64], rewards: Floats) -> None:
    """The endings that hold in m states (-1: none), and the reward of each."""
    for m in range(states.shape[0]):
        out[m] = ending_of(endings, states[m])
        if out[m] >= 0:
            rewards[m] = last_reward(endings, out[m])
