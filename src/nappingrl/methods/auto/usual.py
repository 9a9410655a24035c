"""What episodes usually earned before the change: recorded, or else what the agent's critic expects."""

from typing import NamedTuple

import numpy as np

from nappingrl.agents.base import Agent
from nappingrl.world_model.transitions import Transitions, episode_returns, episode_steps


class Usual(NamedTuple):
    """Returns of the episodes before the change."""

    n: int
    """Episodes that it rests on; 0: nothing is known."""
    mean: float
    deviation: float
    lowest: float
    """The lowest return so far within any of them."""
    range: float
    """What can be lost: the size of the mean return, or more where an episode that lasts too long costs more."""


NOTHING = Usual(0, 0.0, 0.0, 0.0, 0.0)


def usual_returns(before: Transitions, horizon: int) -> Usual:
    """What the episodes of these transitions earned; `horizon`: steps of an episode at most, 0 if unknown."""
    parts = episode_steps(before)
    if not parts:
        return NOTHING
    totals = episode_returns(before)
    lowest = min(float(np.cumsum(before.rewards[part]).min()) for part in parts)
    mean = float(totals.mean())
    longest = horizon * min(float(np.median(before.rewards)), 0.0)
    return Usual(len(totals), mean, float(totals.std()), min(lowest, 0.0), max(abs(mean), mean - longest))


def expected_returns(current: Transitions, agent: Agent, horizon: int) -> Usual:
    """What the critic says that these episodes of a changed world should have earned.

    The critic speaks of discounted returns; the shortfall is scaled to undiscounted ones.
    """
    parts = episode_steps(current)
    values = agent.values(current.states[[part[0] for part in parts]].astype(np.float32)) if parts else None
    if values is None or agent.gamma is None:
        return NOTHING
    totals = episode_returns(current)
    earned = np.array([current.rewards[part] @ agent.gamma ** np.arange(len(part)) for part in parts])
    scale = np.abs(totals).sum() / max(float(np.abs(earned).sum()), 1e-9)
    mean = float((totals + (values - earned) * scale).mean())
    known = usual_returns(current, horizon)
    return Usual(len(parts), mean, known.deviation, known.lowest, max(abs(mean), mean - known.mean + known.range))
