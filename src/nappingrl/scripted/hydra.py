"""What HYDRA does in every world: beliefs about the constants of its model, and a search for the change that fits best.

A repair is a vector of whole multiples of the constants' steps. How badly a model fits what was seen is its
inconsistency, which each world measures in its own way.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import Floats

PREFIX, DISCOUNT, NOTICEABLE = 100, 0.9, 0.01
"""Only so many states count, each less than the one before it, and only errors above the last."""

Multiples = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Constant:
    """One number of a model that a repair may change."""

    name: str
    value: float
    step: float
    above: float = -inf
    """A repair never goes down to this."""


@dataclass(frozen=True, slots=True)
class Repair:
    """The best change that a search found."""

    multiples: Multiples
    inconsistency: float
    """Of the repaired model."""
    before: float
    """Of the model as it was."""
    n_expanded: int

    @property
    def is_better(self) -> bool:
        """Whether it is worth making."""
        return self.inconsistency < self.before


def discounted(errors: NDArray[np.float64]) -> float:
    """The inconsistency of a sequence of errors: the greatest of the noticeable ones, later ones counting less."""
    first = errors[:PREFIX]
    weighted = np.where(first > NOTICEABLE, first * DISCOUNT ** np.arange(len(first)), 0.0)
    return float(weighted.max(initial=0.0))


def search(
    inconsistency: Callable[[Multiples], float], n_constants: int, enough: float, most_expansions: int
) -> Repair:
    """Best-first search from no change: the least inconsistency plus number of steps is looked at first.

    Each child takes one constant one step farther from 0. The search ends at the first change that is below `enough`,
    or when `most_expansions` nodes have had their children looked at.
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
    """The constants of a model as they are believed to be; repairs add up."""

    def __init__(self, constants: Sequence[Constant]) -> None:
        self.constants = tuple(constants)
        self.multiples: Multiples = (0,) * len(self.constants)
        self._values = np.array([constant.value for constant in constants])
        self._steps = np.array([constant.step for constant in constants])
        self._above = np.array([constant.above for constant in constants])

    def values(self, more: Multiples | None = None) -> Floats:
        """The constants, with some more steps where a repair is being tried."""
        steps = np.array(self.multiples) + (0 if more is None else np.array(more))
        values: Floats = self._values + self._steps * steps
        return values

    def changes(self) -> dict[str, float]:
        """By how much each repaired constant differs from its first value: HYDRA's account of the novelty."""
        pairs = zip(self.constants, self.multiples, strict=True)
        return {constant.name: constant.step * multiple for constant, multiple in pairs if multiple}

    def repair(self, inconsistency: Callable[[Floats], float], enough: float, most_expansions: int) -> Repair:
        """Search for a better model, and believe in it if there is one."""

        def tried(multiples: Multiples) -> float:
            values = self.values(multiples)
            return inconsistency(values) if (values > self._above).all() else inf

        found = search(tried, len(self.constants), enough, most_expansions)
        if found.is_better:
            self.multiples = tuple(a + b for a, b in zip(self.multiples, found.multiples, strict=True))
        return found
