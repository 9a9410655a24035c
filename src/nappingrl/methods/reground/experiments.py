"""Experiments: try an exchange of actions where the steps so far do not tell, and see if the world looks usual under it.

A deterministic agent shows little of what its actions do: they go with its observations, so that the reference may
explain steps by either. Under the true map, though, the agent sees what it always saw, and within tens of steps of a
new episode everything fits again; under any other map hardly anything does.
"""

from zlib import crc32

import numpy as np

from nappingrl.methods.reground.candidates import action_structures
from nappingrl.methods.reground.judge import Judge
from nappingrl.methods.reground.maps import Grounding
from nappingrl.types import Floats
from nappingrl.world_model.reference import Reference
from nappingrl.world_model.transitions import Transitions

MAX_EXPERIMENTS = 16
"""In one context."""
N_STEPS = 60
"""Steps of an episode by which a map is judged."""
MIN_JUDGED = 10
MAX_SHARE = 0.5
"""The most of what is strange without the map that may be left with it."""


def next_experiment(judge: Judge, refuted: list[int]) -> Grounding | None:
    """The simplest exchange of actions that was not refuted, of equal ones the likeliest; None: nothing to try.

    There is none where a changed mass, force or wind explains the steps, because then no exchange is needed.
    """
    if len(refuted) >= MAX_EXPERIMENTS:
        return None
    if judge.with_nuisance(judge.identity)[0].mean() <= judge.reference.high_misfit:
        return None
    left = [g for g in action_structures(judge.identity) if checksum(g) not in refuted]
    if not left:
        return None
    fewest = min(g.actions.n_changes for g in left)
    simplest = [g for g in left if g.actions.n_changes == fewest]
    return simplest[int(judge.lengths(simplest).argmin())]


def excess(reference: Reference, steps: Transitions, grounding: Grounding) -> float:
    """By how many nats per observation steps are stranger than usual under a grounding; infinite: too few to tell."""
    original = steps._replace(
        states=grounding.sensors.original(steps.states), actions=grounding.actions.original(steps.actions),
        next_states=grounding.sensors.original(steps.next_states),
    )  # fmt: skip
    values: Floats = reference.strangeness(original)
    is_judged = ~np.isnan(values)
    return float(values[is_judged].mean()) - reference.usual_strangeness if is_judged.sum() >= MIN_JUDGED else np.inf


def is_strange(reference: Reference, amount: float) -> bool:
    """Whether steps in excess of the usual strangeness by this amount are rare in the original world."""
    return amount > reference.high_strangeness - reference.usual_strangeness


def checksum(grounding: Grounding) -> int:
    """Identifies a grounding without its numbers."""
    return crc32(grounding.signature.encode())
