"""The domain-independent part of HYDRA: beliefs about a model's constants, and the search for a repair.

A repair changes each constant by an integer multiple of its step. The inconsistency of a model measures how badly it
fits the observations; each domain defines its own.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Floats

PREFIX, DISCOUNT, NOTICEABLE = 100, 0.9, 0.01
"""States that count, the discount from one state to the next, and the least error that counts."""

Multiples = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of the model that a repair may change."""

    name: str
    value: float
    step: float
    above: float = -inf
    """Exclusive lower bound."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a search."""

    multiples: Multiples
    inconsistency: float
    """Inconsistency of the repaired model."""
    before: float
    """Inconsistency of the model before."""
    n_expanded: int

    @property
    def is_better(self) -> bool:
        """Whether the repair reduces the inconsistency."""
        return self.inconsistency < self.before


def discounted(errors: NDArray[np.float64]) -> float:
    """The inconsistency of a sequence of errors: the largest noticeable one, after discounting."""
    first = errors[:PREFIX]
    weighted = np.where(first > NOTICEABLE, first * DISCOUNT ** np.arange(len(first)), 0.0)
    return float(weighted.max(initial=0.0))


def search(
    inconsistency: Callable[[Multiples], float], n_constants: int, enough: float, most_expansions: int
) -> Repair:
    """Best-first search for a repair, ordered by inconsistency plus number of steps, starting from no change.

    Each child moves one constant one step farther from 0. The search ends when a repair is below `enough`, or after
    `most_expansions` expanded nodes.
    """
    nothing = (0,) * n_constants
    before = best = inconsistency(nothing)
    incumbent, seen = nothing, {nothing}
    queue = [(before, 0, nothing)]
    n_expanded = 0
    while queue and n_expanded < most_expansions and not (best < enough and any(incumbent)):
        _, _, node = heapq.heappop(queue)
        n_expanded += 1
        for child in _children(node):
            if child in seen:
                continue
            seen.add(child)
            value = inconsistency(child)
            if value < best:
                best, incumbent = value, child
            if value < inf:
                heapq.heappush(queue, (value + sum(map(abs, child)), len(seen), child))
    return Repair(incumbent, best, before, n_expanded)


def _children(node: Multiples) -> list[Multiples]:
    children = []
    for i, multiple in enumerate(node):
        signs = (1, -1) if multiple == 0 else (1,) if multiple > 0 else (-1,)
        children += [(*node[:i], multiple + sign, *node[i + 1 :]) for sign in signs]
    return children


class Beliefs:
    """The believed constants of a model; repairs accumulate."""

    def __init__(self, constants: Sequence[Constant]) -> None:
        self.constants = tuple(constants)
        self.multiples: Multiples = (0,) * len(self.constants)
        self._values = np.array([constant.value for constant in constants])
        self._steps = np.array([constant.step for constant in constants])
        self._above = np.array([constant.above for constant in constants])

    def values(self, more: Multiples | None = None) -> Floats:
        """The constants, changed by further steps while a repair is tried."""
        steps = np.array(self.multiples) + (0 if more is None else np.array(more))
        values: Floats = self._values + self._steps * steps
        return values

    def changes(self) -> dict[str, float]:
        """The change of each repaired constant: HYDRA's explanation of the novelty."""
        pairs = zip(self.constants, self.multiples, strict=True)
        return {constant.name: constant.step * multiple for constant, multiple in pairs if multiple}

    def repair(self, inconsistency: Callable[[Floats], float], enough: float, most_expansions: int) -> Repair:
        """Search for a better model, and adopt it if there is one."""

        def tried(multiples: Multiples) -> float:
            values = self.values(multiples)
            return inconsistency(values) if (values > self._above).all() else inf

        best = search(tried, len(self.constants), enough, most_expansions)
        if best.is_better:
            self.multiples = tuple(a + b for a, b in zip(self.multiples, best.multiples, strict=True))
        return best
