"""Experiments: try an exchange of actions where the steps so far do not tell, and see if the world looks usual again.

A deterministic agent shows little of what its actions do: they go with its observations, so that the reference may
explain steps by either. Under the true map, though, the agent sees what it always saw: the first steps of an episode
are no stranger than the first steps ever were. Under any other map they are, after a dozen steps.
"""

from zlib import crc32

import numpy as np

from nappingrl.methods.reground.candidates import action_structures
from nappingrl.methods.reground.judge import Judge
from nappingrl.methods.reground.maps import Grounding
from nappingrl.world_model.reference import MIN_START, N_START, Reference
from nappingrl.world_model.transitions import Transitions

MAX_EXPERIMENTS = 16
"""In one context."""
FIRST_CHECK = 16
"""Steps of an episode after which a wrong map is dropped; one that lasts until N_START is adopted."""
LEAST = 0.1
"""Nats per observation below which no step is strange."""
MARGIN = 1.25
"""First steps are strange if they exceed the strangest of the reference by this factor."""


def next_experiment(judge: Judge, refuted: list[int], passed: list[int]) -> Grounding | None:
    """What has passed before, or the simplest exchange of actions that was not refuted, of equal ones the likeliest.

    None: there is nothing to try, or a changed mass, force or wind explains the steps without an exchange.
    """
    if len(refuted) >= MAX_EXPERIMENTS:
        return None
    if judge.with_nuisance(judge.identity)[0].mean() <= judge.reference.levels.high:
        return None
    left = [g for g in action_structures(judge.identity) if checksum(g) not in refuted]
    if not left:
        return None
    known = [g for g in left if checksum(g) in passed]
    fewest = min(g.actions.n_changes for g in left)
    simplest = known or [g for g in left if g.actions.n_changes == fewest]
    return simplest[int(judge.lengths(simplest).argmin())]


def strangeness_of_start(reference: Reference, steps: Transitions, grounding: Grounding) -> float:
    """How strange the first steps of an episode are under a grounding, as a multiple of the strangest reference.

    NaN: too few of them are judged.
    """
    original = steps._replace(
        states=grounding.sensors.original(steps.states), actions=grounding.actions.original(steps.actions),
        next_states=grounding.sensors.original(steps.next_states),
    )  # fmt: skip
    values = reference.strangeness(original)
    values = values[~np.isnan(values)]
    highest = float(reference.strangest_start[min(steps.n, N_START) - 1])
    return float(values.mean()) / max(highest, LEAST) if len(values) >= MIN_START else np.nan


def checksum(grounding: Grounding) -> int:
    """Identifies a grounding without its numbers."""
    return crc32(grounding.signature.encode())
