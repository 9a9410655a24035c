"""The gates that a template must pass, before and after its novelty."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.acceptance.measuring import Measured
from nappingrl.domains.angrybirds.actions import N_ACTIONS, N_SLOTS

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the gates."""

    solved: float = 0.95
    triplet: float = 0.45
    three: float = 0.9
    first: float = 0.12
    random: float = 0.15
    objects: int = N_SLOTS
    scripted: tuple[float, float] = (0.2, 0.5)


@dataclass(frozen=True, slots=True)
class Gate:
    """One measured number and whether it is within its limits."""

    name: str
    value: float
    limit: str
    passed: bool


def judge(levels: Sequence[Measured], limits: Limits | None = None) -> list[Gate]:
    """Judge the levels of one template, all before or all after its novelty."""
    limits = limits or Limits()
    is_repeated = _matrix(levels)
    solved = float(np.mean([level.found > 0 for level in levels]))
    triplet, three = float(is_repeated.mean(axis=0).max()), covered_by_three(is_repeated)
    first = float(np.mean([len(level.first) / level.allowed if level.allowed else 0.0 for level in levels]))
    random, objects = float(np.mean([level.random for level in levels])), max(level.objects for level in levels)
    scripted = float(np.mean([level.scripted for level in levels]))
    low, high = limits.scripted
    gates = [
        Gate("search", solved, f">= {limits.solved}", solved >= limits.solved),
        Gate("best triplet", triplet, f"<= {limits.triplet}", triplet <= limits.triplet),
        Gate("best three", three, f"< {limits.three}", three < limits.three),
        Gate("first shots", first, f"<= {limits.first}", first <= limits.first),
        Gate("random", random, f"<= {limits.random}", random <= limits.random),
        Gate("objects", objects, f"<= {limits.objects}", objects <= limits.objects),
    ]
    if levels[0].is_after:
        return [*gates, Gate("datalab", scripted, "", True)]
    return [*gates, Gate("datalab", scripted, f"{low} to {high}", low <= scripted <= high)]


def covered_by_three(is_won: Flags) -> float:
    """The largest share of levels (rows) that three actions (columns) win between them, of all triples."""
    kept = is_won[:, is_won.any(axis=0)].astype(np.float32)
    best = 0.0
    for i in range(kept.shape[1]):
        open_ = (1 - kept[:, i : i + 1]) * (1 - kept[:, i:])
        covered = len(kept) - open_.sum(axis=0)[:, None] + open_.T @ kept[:, i:]
        best = max(best, float(covered.max()))
    return best / len(is_won)


def _matrix(levels: Sequence[Measured]) -> Flags:
    """Which actions, repeated, pass which level, (n_levels, n_actions)."""
    flags = np.zeros((len(levels), N_ACTIONS), np.bool_)
    for row, level in enumerate(levels):
        flags[row, list(level.repeated)] = True
    return flags
