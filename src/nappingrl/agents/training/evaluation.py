"""Greedy episodes of an agent, and what a card says about their returns."""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.observations import one_hot
from nappingrl.env_wrappers import with_wrappers
from nappingrl.errors import import_extra

EPISODES = 100
"""Episodes of the evaluation on a card."""
CHECKPOINT_SEED, CARD_SEED = 1_000_003, 2_000_003
"""Seeds of the evaluations that choose the checkpoint, and of the evaluation on the card."""


def evaluate(agent: Agent, recipe: dict[str, Any], episodes: int, seed: int) -> NDArray[np.float64]:
    """Returns of greedy episodes in a recipe's environment, played in parallel."""
    envs = gymnasium.make_vec(with_wrappers(recipe["env"]), num_envs=episodes, **recipe.get("domain_options", {}))
    observations, _ = envs.reset(seed=seed)
    returns, running = np.zeros(episodes), np.ones(episodes, np.bool_)
    while running.any():
        actions = agent.forward(_as_batch(agent, observations)).actions
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        returns[running] += rewards[running]
        running &= ~(terminated | truncated)
    envs.close()
    return returns


def summary(returns: NDArray[np.float64]) -> dict[str, Any]:
    """Mean return with its 95 % interval (Student's t), least and highest return, as entries of a card."""
    mean = float(returns.mean())
    stats = import_extra("scipy.stats", "the interval on a card", "sb3")
    margin = stats.sem(returns) * stats.t.ppf(0.975, len(returns) - 1) if len(returns) > 1 else np.inf
    return {
        "episodes": len(returns),
        "mean": round(mean, 3),
        "interval": [round(mean - float(margin), 3), round(mean + float(margin), 3)],
        "min": float(returns.min()),
        "max": float(returns.max()),
    }


def _as_batch(agent: Agent, observations: Any) -> Any:
    """Observations as agents expect them: floats have 32 bits, states are one-hot, others stay as they are."""
    if isinstance(observations, dict):
        return {key: _as_batch(agent, values) for key, values in observations.items()}
    values = np.asarray(observations)
    if agent.n_states:
        return one_hot(values, agent.n_states)
    return values.astype(np.float32) if np.issubdtype(values.dtype, np.floating) else values
