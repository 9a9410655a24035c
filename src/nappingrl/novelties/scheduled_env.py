"""A gymnasium environment with attributes that follow a schedule."""

from collections.abc import Mapping
from typing import Any, SupportsFloat

import gymnasium
from typing_extensions import override

from nappingrl.novelties.attributes import Env, set_attributes
from nappingrl.novelties.schedule import STEPS, Schedule


class ScheduledEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Sets the attributes before every episode, and before every step where a schedule counts steps."""

    def __init__(self, env: Env, schedules: Mapping[str, Schedule], usual: Mapping[str, float], seed: int) -> None:
        super().__init__(env)
        self._schedules, self._usual, self._seed = dict(schedules), dict(usual), seed
        self._episode, self._step = -1, 0
        self._moves_in_episodes = any(schedule.unit == STEPS for schedule in self._schedules.values())

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._episode, self._step = self._episode + 1, 0
        self._set()
        return super().reset(seed=seed, options=options)

    @override
    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        if self._moves_in_episodes:
            self._set()
        self._step += 1
        return super().step(action)

    def _set(self) -> None:
        values = {
            name: schedule.value(self._step if schedule.unit == STEPS else self._episode, self._usual[name], self._seed)
            for name, schedule in self._schedules.items()
        }
        set_attributes(self.env, values)
