"""Agents that have adapted to a changed CartPole, and what the tests of NappingAgent do with them."""

from typing import Any

import gymnasium
import pytest

from nappingrl import NappingAgent
from nappingrl.agents.base import Agent

Env = gymnasium.Env[Any, Any]
# Worlds in which the agent of the tests falls within 40 steps, and can learn not to.
HARD = {"length": 3.5, "gravity": 38.0, "masscart": 1.5, "masspole": 0.7, "force": 53.0}
FAILING = {"length": 2.9, "gravity": 32.0, "masscart": 6.0, "masspole": 0.35, "force": 40.0}
waits = pytest.mark.filterwarnings("ignore:.*waits for an alarm:nappingrl.AdaptationWarning")


def cartpole(**params: float) -> Any:
    env = gymnasium.make("nappingrl/CartPole-v0")
    env.reset(seed=0, options={"params": params})
    return env


def play(agent: NappingAgent, env: Env, episodes: int, seed: int | None = None) -> list[float]:
    """Returns of some episodes; the environment is one that attach() gave."""
    returns = []
    for _ in range(episodes):
        observation, _ = env.reset(seed=seed)
        seed, total, over = None, 0.0, False
        while not over:
            action, _ = agent.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


def tables(agent: NappingAgent, env: int = 0) -> dict[str, list[Any]]:
    return {name: array.tolist() for name, array in agent.method.principles.table(env).items()}  # type: ignore[attr-defined]


def adapted(agent: Agent, episodes: int = 8, **options: Any) -> NappingAgent:
    """An agent with some principles."""
    made = NappingAgent(agent, **{"domain": "cartpole", "detector": "given"} | options, method="napping")
    play(made, made.wrap(cartpole(**HARD)), episodes, seed=1)
    return made
