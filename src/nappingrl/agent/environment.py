"""What a wrapped environment tells of its domain, and whether the agent fits it."""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from nappingrl.agents.base import Agent
from nappingrl.domains.names import find_names
from nappingrl.errors import BadAgentError, shown
from nappingrl.types import DomainSpec

Env = gymnasium.Env[Any, Any]


def read_domain(env: Env, bare: DomainSpec) -> DomainSpec:
    """The domain of an agent of which only the shapes were known, completed: bounds, time limit and names."""
    low, high = bare.observation_low, bare.observation_high
    space = env.observation_space
    if isinstance(space, spaces.Box) and space.shape == low.shape:
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    is_row = low.ndim == 1
    observation_names, action_names = find_names(_name(env), len(low) if is_row else 0, bare.n_actions)
    return replace(
        bare,
        name=_name(env),
        title=_name(env),
        observation_low=low,
        observation_high=high,
        horizon=_time_limit(env),
        observation_names=observation_names,
        observation_words=tuple((f"{name} < 0", f"{name} > 0") for name in observation_names),
        action_names=action_names,
    )


def check_env(agent: Agent, env: Env) -> None:
    """Raise if the environment's spaces are not those that the agent was trained in; bounds may differ."""
    if not (_fits_observations(agent, env.observation_space) and _fits_actions(agent, env.action_space)):
        observations = agent.observation_shape if agent.observation_shape is not None else dict(agent.key_shapes)
        n_numbers = 0 if agent.action_low is None else len(agent.action_low)
        actions = f"{agent.n_actions} actions" if agent.n_actions else f"actions of {n_numbers} numbers"
        raise BadAgentError(
            f"agent {agent.name} takes observations of shape {observations} and has {actions}; {_name(env)} has "
            f"observations {shown(str(env.observation_space), 200)} and actions {shown(str(env.action_space), 200)}: "
            "wrap an environment with the spaces that the agent was trained in"
        )


def _fits_observations(agent: Agent, space: spaces.Space[Any]) -> bool:
    if isinstance(space, spaces.Dict):
        return agent.observation_shape is None and set(space.spaces) >= set(agent.key_shapes)
    shape = agent.observation_shape
    if shape is None or not isinstance(space, spaces.Box):
        return not agent.key_shapes
    return space.shape == shape or (len(shape) == 3 and sorted(space.shape) == sorted(shape))  # channels first or last


def _fits_actions(agent: Agent, space: spaces.Space[Any]) -> bool:
    if isinstance(space, spaces.Discrete):
        return int(space.n) == agent.n_actions
    return isinstance(space, spaces.Box) and agent.action_low is not None and space.shape == agent.action_low.shape


def _name(env: Env) -> str:
    """The id of the environment, or the name of its class."""
    spec = env.unwrapped.spec
    return shown(spec.id if spec is not None else type(env.unwrapped).__name__)


def _time_limit(env: Env) -> int:
    """Steps after which an episode is truncated; 0: unknown."""
    spec = env.unwrapped.spec
    limits = [spec.max_episode_steps] if spec is not None else []
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min((int(limit) for limit in limits if limit and limit > 0), default=0)
