"""What a wrapped environment tells of its domain, and whether the agent fits it."""

import sys
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.wrappers import TimeLimit

from nappingrl.agents.base import Agent
from nappingrl.agents.observing import Observer, ObservingWrapper
from nappingrl.agents.observing_vector import ObservingVectorWrapper
from nappingrl.domains.names import find_names
from nappingrl.errors import BadAgentError, BadSpecError, shown
from nappingrl.types import DomainSpec

Env = gymnasium.Env[Any, Any]


@dataclass(frozen=True, slots=True)
class EnvFacts:
    """What an environment, or one copy of a vector environment, tells."""

    name: str
    """Its id, or the name of its class."""
    observation_space: spaces.Space[Any]
    action_space: spaces.Space[Any]
    time_limit: int
    """Steps after which an episode is truncated; 0: unknown."""
    n_envs: int = 0
    """Number of copies; 0: it is no vector environment."""


def read_env(env: Any) -> EnvFacts:
    """The facts of an environment of gymnasium, or of a vector environment of gymnasium or SB3."""
    if isinstance(env, gymnasium.Env):
        return EnvFacts(_name(env.unwrapped), env.observation_space, env.action_space, _time_limit(env))
    if isinstance(env, VectorEnv):
        limit = getattr(env.spec, "max_episode_steps", None) or getattr(env.unwrapped, "max_episode_steps", None)
        if copies := getattr(env.unwrapped, "envs", ()):
            limit = _time_limit(copies[0]) or limit
        name = _name(env.unwrapped)
        return EnvFacts(name, env.single_observation_space, env.single_action_space, limit or 0, env.num_envs)
    if is_sb3_vector(env):
        spec, limit = _ask(env, "spec"), _ask(env, "_max_episode_steps")  # the attribute of gymnasium's TimeLimit
        name = shown(spec.id) if spec is not None else type(env).__name__
        limit = limit or getattr(spec, "max_episode_steps", None)
        return EnvFacts(name, env.observation_space, env.action_space, limit or 0, env.num_envs)
    raise BadSpecError(
        f"wrap takes a gymnasium.Env, a gymnasium.vector.VectorEnv or a VecEnv of SB3, not {type(env).__name__}"
    )


def _ask(env: Any, attribute: str) -> Any:
    """An attribute of the first copy in a VecEnv of SB3; None: it has none."""
    try:
        return env.get_attr(attribute, [0])[0]
    except AttributeError:
        return None


def is_sb3_vector(env: Any) -> bool:
    """Whether this is a VecEnv; SB3 is not imported to find out."""
    if "stable_baselines3" not in sys.modules:
        return False
    from nappingrl.agents.sb3.observing import is_vec_env

    return is_vec_env(env)


def observed(env: Any, agent: Observer, index: int) -> Any:
    """The environment, wrapped so that an agent observes every step."""
    if isinstance(env, gymnasium.Env):
        return ObservingWrapper(env, agent, index)
    if isinstance(env, VectorEnv):
        return ObservingVectorWrapper(env, agent)
    from nappingrl.agents.sb3.observing import ObservingVecEnv

    return ObservingVecEnv(env, agent)


def read_domain(env: EnvFacts, bare: DomainSpec) -> DomainSpec:
    """The domain of an agent of which only the shapes were known, completed: bounds, time limit and names."""
    low, high = bare.observation_low, bare.observation_high
    space = env.observation_space
    if isinstance(space, spaces.Box) and space.shape == low.shape:
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    is_row = low.ndim == 1
    observation_names, action_names = find_names(env.name, len(low) if is_row else 0, bare.n_actions)
    return replace(
        bare,
        name=env.name,
        title=env.name,
        observation_low=low,
        observation_high=high,
        horizon=env.time_limit,
        observation_names=observation_names,
        observation_words=tuple((f"{name} < 0", f"{name} > 0") for name in observation_names),
        action_names=action_names,
    )


def no_time_limit(env: EnvFacts) -> str:
    """What to say of an environment without a time limit."""
    return (
        f"{env.name} has no time limit that gymnasium knows of: plans reach as far as the longest episode so far, and "
        "an episode that never ends is never judged; if it has none, wrap it in gymnasium.wrappers.TimeLimit"
    )


def check_env(agent: Agent, env: EnvFacts) -> None:
    """Raise if the environment's spaces are not those that the agent was trained in; bounds may differ."""
    if not (_fits_observations(agent, env.observation_space) and _fits_actions(agent, env.action_space)):
        observations = agent.observation_shape if agent.observation_shape is not None else dict(agent.key_shapes)
        n_numbers = 0 if agent.action_low is None else len(agent.action_low)
        actions = f"{agent.n_actions} actions" if agent.n_actions else f"actions of {n_numbers} numbers"
        raise BadAgentError(
            f"agent {agent.name} takes observations of shape {observations} and has {actions}; {env.name} has "
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


def _name(env: Any) -> str:
    """The id of an unwrapped environment, or the name of its class."""
    return shown(env.spec.id if env.spec is not None else type(env).__name__)


def _time_limit(env: Env) -> int:
    """Steps after which an episode is truncated, by its spec, its own `max_steps` or a wrapper; 0: unknown."""
    spec = env.unwrapped.spec
    limits = [spec.max_episode_steps if spec is not None else None, getattr(env.unwrapped, "max_steps", None)]
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=0)
