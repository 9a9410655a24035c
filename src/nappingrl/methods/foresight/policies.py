"""Rules: what to do, as a function of the observation and of what the agent wants."""

from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Floats

FROZEN, LINEAR, QUADRATIC, REMAP, RESIDUAL = range(5)
KINDS = ("frozen", "linear", "quadratic", "remap", "residual")
"""frozen: as the agent wants. linear, quadratic: the action whose score, linear in z or in z and its products, is the
greatest (for continuous actions the score is the action). remap: where the agent wants x, do y. residual: the agent's
continuous action times a gain, plus something linear in z."""


def n_terms(kind: int, d: int) -> int:
    """How many numbers a score of that kind has."""
    return d + 1 + (d * (d + 1) // 2 if kind == QUADRATIC else 0)


@dataclass(slots=True, eq=False)
class Rule:
    """A rule and what is known of its worth."""

    kind: int
    theta: NDArray[np.float64]
    """(actions, terms): of [z, 1, products]; remap: (1, actions) the actions to do; residual: (k, terms + 1), the last
    column the gain."""
    returns: list[float] = field(default_factory=list)
    """Of the whole episodes that it has played."""
    expected: float = 0.0
    """What the imagined world says now."""
    estimate: float = 0.0
    """What is believed, by both."""

    def rescaled(self, ratio: Floats) -> "Rule":
        """The same rule for a frame whose scale is `ratio` times as large."""
        if self.kind in (FROZEN, REMAP) or np.all(ratio == 1):
            return self
        d = len(ratio)
        theta = self.theta.copy()
        theta[:, :d] *= ratio
        if self.kind == QUADRATIC:
            i, j = np.triu_indices(d)
            theta[:, d + 1 :] *= ratio[i] * ratio[j]
        self.theta = theta
        return self


def remaps(n_actions: int) -> list[NDArray[np.float64]]:
    """Other meanings of the actions: all permutations of up to four, else the reversal and all swaps of two."""
    if n_actions <= 4:
        found = [np.array(order, np.float64) for order in permutations(range(n_actions))][1:]
    else:
        found = [np.arange(n_actions, dtype=np.float64)[::-1].copy()]
        for i in range(n_actions):
            for j in range(i + 1, n_actions):
                swapped = np.arange(n_actions, dtype=np.float64)
                swapped[i], swapped[j] = j, i
                found.append(swapped)
    return [order[None, :] for order in found]


@kernel()
def score(kind: int, theta: Floats, z: Floats) -> float:
    """The score theta . [z, 1] or theta . [z, 1, products]."""
    d = z.shape[0]
    value = theta[d]
    for i in range(d):
        value += theta[i] * z[i]
    if kind == QUADRATIC:
        at = d + 1
        for i in range(d):
            for j in range(i, d):
                value += theta[at] * z[i] * z[j]
                at += 1
    return float(value)


@kernel()
def choose(kind: int, theta: NDArray[np.float64], z: Floats) -> int:
    """The action with the greatest score; the first of equals."""
    best, best_score = 0, -np.inf
    for a in range(theta.shape[0]):
        value = score(kind, theta[a], z)
        if value > best_score:
            best, best_score = a, value
    return best


@kernel()
def act_each(
    kinds: NDArray[np.int64], thetas: NDArray[np.float64], centres: NDArray[np.float64], scales: NDArray[np.float64],
    rows: NDArray[np.int64], observations: NDArray[np.float32], actions: NDArray[np.int64],
) -> None:  # fmt: skip
    """Replace the wanted actions of these rows by those of their rules (discrete actions)."""
    d = observations.shape[1]
    z = np.empty(d)
    for m in range(rows.shape[0]):
        row = rows[m]
        kind = kinds[row]
        if kind == FROZEN:
            continue
        if kind == REMAP:
            actions[m] = int(thetas[row, 0, actions[m]])
            continue
        for i in range(d):
            z[i] = (observations[m, i] - centres[row, i]) / scales[row, i]
        actions[m] = choose(kind, thetas[row], z)


def shares_of(rule: Rule, z: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Continuous actions of m standardised states (m, d) as shares of half the range, cut to -1..1."""
    d = z.shape[1]
    terms = [z, np.ones((len(z), 1))]
    if rule.kind == QUADRATIC:
        i, j = np.triu_indices(d)
        terms.append(z[:, i] * z[:, j])
    shares: NDArray[Any] = np.hstack(terms) @ rule.theta[:, : n_terms(rule.kind, d)].T
    if rule.kind == RESIDUAL:
        shares = shares + rule.theta[:, -1] * wanted
    clipped: NDArray[np.float64] = np.clip(shares, -1.0, 1.0)
    return clipped
