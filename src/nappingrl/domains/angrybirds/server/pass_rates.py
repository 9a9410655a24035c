"""How many levels agents passed on a server, before the novelty and after it."""

from collections.abc import Iterable, Sequence
from typing import Any

from nappingrl.domains.angrybirds.server.results import PASS, Episode


def pass_rate(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Levels played and passed, their ratio, and shots."""
    n_passed = sum(episode.status == PASS for episode in episodes)
    return {
        "levels": len(episodes),
        "passed": n_passed,
        "pass_rate": n_passed / len(episodes) if episodes else None,
        "shots": sum(episode.n_shots for episode in episodes),
    }


def pass_rates(episodes: Iterable[Episode]) -> dict[str, dict[str, Any]]:
    """The pass rate of each phase, "before" and "novel"."""
    phases: dict[str, list[Episode]] = {"before": [], "novel": []}
    for episode in episodes:
        phases["novel" if episode.entry.source.is_novel else "before"].append(episode)
    return {phase: pass_rate(chosen) for phase, chosen in phases.items()}
