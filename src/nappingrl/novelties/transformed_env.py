"""A gymnasium environment whose actions, observations or rewards are changed on their way."""

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from typing_extensions import override

from nappingrl.errors import BadSpecError
from nappingrl.novelties.attributes import Env
from nappingrl.novelties.transforms import Transforms
from nappingrl.types import DomainSpec

_ROW = np.zeros(1, np.int64)


class TransformedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The environment behind `Transforms`, as a batch of one.

    What is random follows from `reset(seed=...)`, as in gymnasium; before the first seeded reset, from `seed`.
    """

    def __init__(self, env: Env, values: Mapping[str, float], domain: DomainSpec, seed: int = 0) -> None:
        super().__init__(env)
        self._transforms = Transforms(1, list(values), domain, seed)
        self._transforms.set(_ROW, np.array([list(values.values())]))
        space = env.action_space
        self._first_action = int(space.start) if isinstance(space, Discrete) else 0
        if self._transforms.changed_observations:
            self.observation_space = self._widened(env.observation_space)

    def _widened(self, space: Any) -> Box:
        """The space without bounds where observations change."""
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise BadSpecError(
                f"changes of observations need one row of numbers, but here they are {space}; "
                "gymnasium.wrappers.FlattenObservation makes one"
            )
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        for at in self._transforms.changed_observations:
            low[at], high[at] = -np.inf, np.inf
        return Box(low, high, dtype=np.float32)

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._transforms.begin(_ROW, None if seed is None else [seed])
        observation, info = super().reset(seed=seed, options=options)
        return self._observed(observation), info

    @override
    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        executed = self._transforms.actions(_ROW, np.asarray(action)[None] - self._first_action)[0]
        observation, reward, terminated, truncated, info = super().step(executed + self._first_action)
        paid = float(self._transforms.rewards(_ROW, np.array([float(reward)]))[0])
        return self._observed(observation), paid, terminated, truncated, info

    def _observed(self, observation: Any) -> Any:
        if not self._transforms.changed_observations:
            return observation
        return self._transforms.observations(_ROW, np.array(observation, np.float32)[None])[0]
