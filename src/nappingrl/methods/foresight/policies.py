"""Simple policies: the action as a function of the observation and of the action the agent wants."""

from dataclasses import dataclass, field
from itertools import permutations
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import Floats

FROZEN, LINEAR, QUADRATIC, REMAP, RESIDUAL = range(5)
"""FROZEN: the wanted action. LINEAR, QUADRATIC: the action with the highest score, linear in z, or in z and its
products (for continuous actions the score is the action). REMAP: a permutation of the wanted action. RESIDUAL: the
wanted continuous action times a gain, plus a term that is linear in z."""
MAX_PERMUTED = 4
"""Actions up to which all permutations are tried."""


def n_terms(kind: int, d: int) -> int:
    """Number of weights of one score."""
    return d + 1 + (d * (d + 1) // 2 if kind == QUADRATIC else 0)


@dataclass(slots=True, eq=False)
class SimplePolicy:
    """A policy and what it earns."""

    kind: Annotated[int, Expected(low=FROZEN, high=RESIDUAL)]
    weights: Annotated[NDArray[np.float64], Expected(("outputs", "terms"))]
    """(outputs, terms) of [z, 1, products]; remap: (1, actions) the actions to execute; residual: (k, terms + 1) with
    the gain in the last column."""
    returns: list[float] = field(default_factory=list)
    """Returns of the latest full episodes it has played."""
    expected: float = 0.0
    """Mean return of its rollouts."""
    estimate: float = 0.0
    """What it is believed to earn, from both."""

    def check(self, sizes: Sizes) -> None:
        """Raise if a saved policy does not fit the domain."""
        n_actions, n_outputs, d = sizes["n_actions"], sizes["n_outputs"], sizes["d"]
        shapes = {FROZEN: (1, 1)} | {kind: (n_outputs, n_terms(kind, d)) for kind in (LINEAR, QUADRATIC)}
        shapes |= {REMAP: (1, n_actions)} if n_actions else {RESIDUAL: (n_outputs, d + 2)}
        if self.weights.shape != shapes.get(self.kind):
            raise ValueError(f"a policy of kind {self.kind} has weights of shape {self.weights.shape}")
        if self.kind == REMAP and not np.isin(self.weights, np.arange(n_actions)).all():
            raise ValueError(f"a policy executes actions {self.weights[0].tolist()[:5]}; there are {n_actions}")

    def rescale(self, ratio: Floats) -> None:
        """Keep the policy the same in a frame whose scale is `ratio` times as large."""
        if self.kind in (FROZEN, REMAP) or np.all(ratio == 1):
            return
        d = len(ratio)
        weights = self.weights.copy()
        weights[:, :d] *= ratio
        if self.kind == QUADRATIC:
            i, j = np.triu_indices(d)
            weights[:, d + 1 :] *= ratio[i] * ratio[j]
        self.weights = weights


def frozen_policy() -> SimplePolicy:
    """The agent's own policy."""
    return SimplePolicy(FROZEN, np.zeros((1, 1)))


def remaps(n_actions: int) -> list[NDArray[np.float64]]:
    """Other meanings of the actions: all permutations of a few, else the reversal and all swaps of two."""
    if n_actions <= MAX_PERMUTED:
        orders = [np.array(order, np.float64) for order in permutations(range(n_actions))][1:]
    else:
        orders = [np.arange(n_actions, dtype=np.float64)[::-1].copy()]
        for i in range(n_actions):
            for j in range(i + 1, n_actions):
                swapped = np.arange(n_actions, dtype=np.float64)
                swapped[i], swapped[j] = j, i
                orders.append(swapped)
    return [order[None, :] for order in orders]


@kernel(allocates=False)
def score(kind: int, weights: Floats, z: Floats) -> float:
    """The score weights . [z, 1] or weights . [z, 1, products]."""
    d = z.shape[0]
    value = weights[d]
    for i in range(d):
        value += weights[i] * z[i]
    if kind == QUADRATIC:
        at = d + 1
        for i in range(d):
            for j in range(i, d):
                value += weights[at] * z[i] * z[j]
                at += 1
    return float(value)


@kernel(allocates=False)
def choose(kind: int, weights: NDArray[np.float64], z: Floats) -> int:
    """The action with the highest score; the first of equals."""
    best, best_score = 0, -np.inf
    for a in range(weights.shape[0]):
        value = score(kind, weights[a], z)
        if value > best_score:
            best, best_score = a, value
    return best


@kernel()
def act_each(
    kinds: NDArray[np.int64], weights: NDArray[np.float64], centres: NDArray[np.float64], scales: NDArray[np.float64],
    rows: NDArray[np.int64], observations: NDArray[np.float32], actions: NDArray[np.int64],
) -> None:  # fmt: skip
    """Replace the wanted actions of these rows by those of their policies (discrete actions)."""
    d = observations.shape[1]
    z = np.empty(d)
    for m in range(rows.shape[0]):
        row = rows[m]
        kind = kinds[row]
        if kind == FROZEN:
            continue
        if kind == REMAP:
            actions[m] = int(weights[row, 0, actions[m]])
            continue
        for i in range(d):
            z[i] = (observations[m, i] - centres[row, i]) / scales[row, i]
        actions[m] = choose(kind, weights[row], z)


def scaled_actions(policy: SimplePolicy, z: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Continuous actions in m standardised states (m, d), scaled and clipped to [-1, 1]; so are the wanted ones."""
    d = z.shape[1]
    terms = [z, np.ones((len(z), 1))]
    if policy.kind == QUADRATIC:
        i, j = np.triu_indices(d)
        terms.append(z[:, i] * z[:, j])
    scaled: NDArray[Any] = np.hstack(terms) @ policy.weights[:, : n_terms(policy.kind, d)].T
    if policy.kind == RESIDUAL:
        scaled = scaled + policy.weights[:, -1] * wanted
    clipped: NDArray[np.float64] = np.clip(scaled, -1.0, 1.0)
    return clipped
