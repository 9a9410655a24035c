"""Search for a simple policy: random ones, then mutations of the best."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.foresight.rollout import Rollouts, enough_return, evaluate
from nappingrl.rng import draw, normal
from nappingrl.types import Floats


class Effort(NamedTuple):
    """How long and how widely to search."""

    n_initial: int
    """Random policies."""
    n_rounds: int
    n_mutants: int
    """Mutations per round."""
    n_parents: int
    """Best policies that are kept and mutated."""
    mutation_size: float
    """Relative to the size of the parent's weights, in the first round."""
    mutation_decay: float
    """Factor of the size from round to round."""
    initial_bias: float
    """Standard deviation of random biases and products; that of slopes is 1."""


@kernel()
def _seed(key: np.uint64, counter: np.uint64, first: int, n_slopes: int, bias: float, out: NDArray[np.float64]) -> None:
    """A random policy into `out`."""
    for a in range(first, out.shape[0]):
        for i in range(out.shape[1]):
            out[a, i] = normal(key, counter) * (1.0 if i < n_slopes else bias)
            counter += np.uint64(1)


@kernel()
def _mutate(
    key: np.uint64, counter: np.uint64, first: int, parent: NDArray[np.float64], step: float, out: NDArray[np.float64]
) -> None:
    """A mutation of a policy into `out`."""
    n_outputs, terms = parent.shape
    size = 0.0
    for a in range(first, n_outputs):
        for i in range(terms):
            size += parent[a, i] ** 2
    size = math.sqrt(size / max((n_outputs - first) * terms, 1)) + 1e-9
    for a in range(first, n_outputs):
        for i in range(terms):
            out[a, i] = parent[a, i] + normal(key, counter) * size * step
            counter += np.uint64(1)


@kernel()
def _pick_parent(key: np.uint64, counter: np.uint64, values: Floats) -> int:
    """A random one of the best policies."""
    parent = np.int64(draw(key ^ np.uint64(0x5DEECE66D), counter) % np.uint64(values.shape[0]))
    if values[parent] == -np.inf:
        parent = np.int64(np.argmax(values))
    return int(parent)


@kernel()
def _insert(policies: NDArray[np.float64], values: Floats, policy: NDArray[np.float64], value: float) -> None:
    """Replace the worst of the best policies, if this one is better."""
    worst = np.argmin(values)
    if value > values[worst]:
        values[worst], policies[worst] = value, policy


@kernel()
def search(
    rollouts: Rollouts, kind: int, known: NDArray[np.float64], effort: Effort, key: np.uint64, best: NDArray[np.float64]
) -> float:
    """Search from the known policies on; writes the weights of the best one into `best` and returns its value.

    It is over as soon as a policy earns about all that there is.
    """
    n_outputs, terms = best.shape
    first = 1 if rollouts.is_discrete else 0  # the score of the first action is 0: only differences matter
    n_drawn = np.uint64((n_outputs - first) * terms)
    policies = np.zeros((effort.n_parents, n_outputs, terms))
    values = np.full(effort.n_parents, -np.inf)
    policy, counter = np.zeros((n_outputs, terms)), np.uint64(0)
    enough = enough_return(rollouts)
    for k in range(known.shape[0]):
        _insert(policies, values, known[k], evaluate(rollouts, kind, known[k], values.min()))
    is_over = values.max() >= enough
    for turn in range(effort.n_rounds + 1):
        if is_over:
            break
        step = effort.mutation_size * effort.mutation_decay ** (turn - 1)
        for _ in range(effort.n_initial if turn == 0 else effort.n_mutants):
            if turn == 0:
                _seed(key, counter, first, rollouts.starts.shape[1], effort.initial_bias, policy)
            else:
                _mutate(key, counter, first, policies[_pick_parent(key, counter, values)], step, policy)
            counter += n_drawn
            value = evaluate(rollouts, kind, policy, values.min())
            _insert(policies, values, policy, value)
            is_over = value >= enough
            if is_over:
                break
    winner = np.argmax(values)
    best[:] = policies[winner]
    return float(values[winner])
