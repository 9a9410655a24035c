"""SB3's vector environments, with every step observed by an agent."""

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
from typing_extensions import override

from nappingrl.agents.observing import Observer
from nappingrl.agents.observing_vector import replaced


def is_vec_env(env: Any) -> bool:
    """Whether this is a vector environment of SB3."""
    return isinstance(env, VecEnv)


class ObservingVecEnv(VecEnvWrapper):
    """The same VecEnv; an agent observes every step, with the last observation of an episode."""

    def __init__(self, venv: VecEnv, agent: Observer) -> None:
        super().__init__(venv)
        self._agent = agent
        self._observations: Any = None
        self._actions: Any = None

    @override
    def reset(self) -> Any:
        observations = self.venv.reset()
        self._observations = deepcopy(observations)
        for row in range(self.num_envs):
            self._agent.begin_episode(row)
        return observations

    @override
    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = deepcopy(actions)
        self.venv.step_async(actions)

    @override
    def step_wait(self) -> Any:
        following, rewards, dones, infos = self.venv.step_wait()
        truncated = dones & np.array([bool(info.get("TimeLimit.truncated", False)) for info in infos])
        last = replaced(following, {row: infos[row]["terminal_observation"] for row in np.flatnonzero(dones).tolist()})
        self._agent.observe(self._observations, self._actions, last, rewards, dones & ~truncated, truncated, None)
        self._observations = deepcopy(following)
        return following, rewards, dones, infos
