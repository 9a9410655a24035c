"""Environments of ns_gym: their observations and rewards as plain numbers.

Register one with gymnasium, wrapped in `Plain`, and it can replace the environment that the agent knows:
`--env CartPole-v1 --novelty other-env=my_module:Drifting-v0`. Nothing here imports ns_gym.
"""

from typing import Any, SupportsFloat

import gymnasium
from gymnasium.spaces import Dict


class Plain(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows the state of an ns_gym environment without its notes on change, and its reward as a number."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        self.observation_space = space["state"] if isinstance(space, Dict) else space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        return _state(observation), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return _state(observation), float(getattr(reward, "reward", reward)), terminated, truncated, info


def _state(observation: Any) -> Any:
    return observation["state"] if isinstance(observation, dict) else observation
