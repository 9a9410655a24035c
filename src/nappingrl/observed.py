"""An environment that tells an agent about every step."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any, SupportsFloat

import gymnasium

if TYPE_CHECKING:
    from nappingrl.agent import NappingAgent


class ObservingWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The environment itself; its observations are copied, for some environments write into one array."""

    def __init__(self, env: gymnasium.Env[Any, Any], agent: "NappingAgent", index: int) -> None:
        super().__init__(env)
        self._agent, self._index = agent, index
        self._observation: Any = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the agent forgets what an unfinished one had earned."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._observation = deepcopy(observation)
        self._agent.begin_episode(self._index)
        return observation, info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step, then tell the agent."""
        following, reward, terminated, truncated, info = self.env.step(action)
        self._agent.observe(self._observation, action, following, reward, terminated, truncated, self._index)
        self._observation = deepcopy(following)
        return following, reward, terminated, truncated, info
