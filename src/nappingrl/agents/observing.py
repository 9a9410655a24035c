"""An environment whose every step is observed by an agent."""

from copy import deepcopy
from typing import Any, Protocol, SupportsFloat

import gymnasium
from typing_extensions import override


class Observer(Protocol):
    """What observes: a `NappingAgent`."""

    def begin_episode(self, env: int) -> None:
        """An environment was reset."""

    def observe(
        self,
        observation: Any,
        action: Any,
        next_observation: Any,
        reward: Any,
        terminated: Any,
        truncated: Any,
        env: int | None,
    ) -> None:
        """A step was taken."""


class ObservingWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The same environment; an agent observes every step. It copies observations: some environments reuse an array."""

    def __init__(self, env: gymnasium.Env[Any, Any], agent: Observer, index: int) -> None:
        super().__init__(env)
        self._agent, self._index = agent, index
        self._observation: Any = None

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._observation = deepcopy(observation)
        self._agent.begin_episode(self._index)
        return observation, info

    @override
    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        following, reward, terminated, truncated, info = self.env.step(action)
        self._agent.observe(self._observation, action, following, reward, terminated, truncated, self._index)
        self._observation = deepcopy(following)
        return following, reward, terminated, truncated, info
