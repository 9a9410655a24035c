"""Principles as readable rules: "in this situation, where the agent wants x, now do y"."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

AS_WANTED = "as wanted"
"""Name of the agent's own action if actions are continuous."""
MAX_NAMED_ACTIONS = 6
"""An open principle with more candidates shows only their number."""
Describe = Callable[[NDArray[np.floating[Any]]], str]


@dataclass(frozen=True, slots=True)
class ReadableRule:
    """All principles with the same text."""

    situation: str
    wanted: str
    now: tuple[str, ...]
    """One action if the principles are closed, several if they are open."""
    regions: int
    visits: int
    score: float
    """Best scores, averaged over visits."""

    def __str__(self) -> str:
        if self.now == (self.wanted,):
            now = f"still {self.wanted}"
        elif len(self.now) == 1:
            now = f"now {self.now[0]}"
        elif len(self.now) <= MAX_NAMED_ACTIONS:
            now = f"still trying {' or '.join(self.now)}"
        else:
            now = f"still trying {len(self.now)} actions"
        regions = f" in {self.regions} regions" if self.regions > 1 else ""
        wanted = "" if self.wanted == AS_WANTED else f"wanted {self.wanted}, "
        return f"{self.situation}: {wanted}{now}; {self.visits} visits{regions}, score {self.score:.2g}"


def summarise_principles(
    table: Mapping[str, NDArray[Any]], describe: Describe, action_names: Sequence[str]
) -> list[ReadableRule]:
    """Group the principles of a trial (`Principles.table`) into rules, the most visited first."""
    groups: dict[tuple[str, str, tuple[str, ...]], list[int]] = {}
    for i, situation in enumerate(table["situation"]):
        now = tuple(action_names[a] for a in np.flatnonzero(table["candidates"][i]).tolist())
        groups.setdefault((describe(situation), action_names[table["wanted"][i]], now), []).append(i)
    rules = []
    for (situation, wanted, now), members in groups.items():
        visits = table["visits"][members]
        score = float(np.average(table["best"][members], weights=visits))
        rules.append(ReadableRule(situation, wanted, now, len(members), int(visits.sum()), score))
    return sorted(rules, key=lambda rule: -rule.visits)
