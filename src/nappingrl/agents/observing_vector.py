"""Vector environments whose every step is observed by an agent, one row of the agent per copy."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.observing import Observer
from nappingrl.types import Flags

Array = NDArray[Any]


class ObservingVectorWrapper(VectorWrapper[Any, Any, Any, Any, Any]):
    """The same vector environment of gymnasium; an agent observes every step, with the last observation of an episode.

    Whichever way copies are reset after an episode, no transition leads from one episode into the next.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], agent: Observer) -> None:
        super().__init__(env)
        self._agent = agent
        self._mode = AutoresetMode((env.metadata or {}).get("autoreset_mode", AutoresetMode.NEXT_STEP))
        self._observations: Any = None
        self._has_ended = np.zeros(env.num_envs, np.bool_)

    @override
    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observations, infos = self.env.reset(seed=seed, options=options)
        self._observations = deepcopy(observations)
        mask = (options or {}).get("reset_mask")
        for row in range(self.env.num_envs) if mask is None else np.flatnonzero(mask).tolist():
            self._agent.begin_episode(row)
            self._has_ended[row] = False
        return observations, infos

    @override
    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        following, rewards, terminated, truncated, infos = self.env.step(actions)
        ended = np.asarray(terminated | truncated, np.bool_)
        last = following
        if self._mode == AutoresetMode.SAME_STEP and ended.any():
            last = replaced(following, {row: _final(infos["final_obs"], row) for row in np.flatnonzero(ended).tolist()})
        is_reset = self._has_ended if self._mode == AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        observe_rows(self._agent, self._observations, actions, last, rewards, terminated, truncated, ~is_reset)
        self._has_ended = ended
        self._observations = deepcopy(following)
        return following, rewards, terminated, truncated, infos


def observe_rows(
    agent: Observer,
    observations: Any,
    actions: Any,
    following: Any,
    rewards: Any,
    terminated: Any,
    truncated: Any,
    chosen: Flags,
) -> None:
    """Let an agent observe a step of the chosen copies: at once if they are all, else one by one."""
    if chosen.all():
        agent.observe(observations, actions, following, rewards, terminated, truncated, None)
        return
    for row in np.flatnonzero(chosen).tolist():
        agent.observe(
            _row(observations, row),
            actions[row],
            _row(following, row),
            rewards[row],
            terminated[row],
            truncated[row],
            row,
        )


def replaced(batch: Any, rows: Mapping[int, Any]) -> Any:
    """A copy of a batch of observations with some of its rows replaced."""
    batch = deepcopy(batch)
    for row, observation in rows.items():
        if isinstance(batch, dict):
            for key in batch:
                batch[key][row] = observation[key]
        else:
            batch[row] = observation
    return batch


def _row(batch: Any, row: int) -> Any:
    return {key: array[row] for key, array in batch.items()} if isinstance(batch, dict) else batch[row]


def _final(finals: Any, row: int) -> Any:
    """The last observation of a copy's episode, as gymnasium tells it in `final_obs`."""
    return {key: values[row] for key, values in finals.items()} if isinstance(finals, dict) else finals[row]
