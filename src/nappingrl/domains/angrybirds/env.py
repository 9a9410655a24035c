"""Angry Birds as a gymnasium environment: one step is one shot."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.levels.templates import LEVELS
from nappingrl.domains.angrybirds.pictures.picture import draw
from nappingrl.domains.as_env import Array, DomainEnv
from nappingrl.errors import check_name

REWARDS = ("pigs", "win", "score")


class AngryBirdsEnv(DomainEnv):
    """One level per episode; `info["action_mask"]` tells which actions aim at an existing object.

    `reward` selects the reward of a step: pigs destroyed by the shot ("pigs"), 1 for the shot that wins the level
    ("win"), or the points of the game in thousands ("score"). `levels` is the range of level numbers. Further
    arguments are options of the domain.
    """

    domain: AngryBirds

    def __init__(
        self, domain: str = "angrybirds", reward: str = "pigs", levels: tuple[int, int] = (0, LEVELS),
        render_mode: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(domain, render_mode, **options)
        self.domain.levels = (levels[0], levels[1])
        self._reward = check_name("reward", reward, REWARDS)
        self.domain.plays_out = reward == "score"

    def step(self, action: np.int64) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One shot."""
        world = self.domain.world(0)
        pigs, points = world.pigs_left, world.score
        observation, win, terminated, truncated, info = super().step(action)
        rewards = {"pigs": float(pigs - world.pigs_left), "win": win, "score": (world.score - points) / 1000}
        return observation, rewards[self._reward], terminated, truncated, info

    def _info(self, observation: Array) -> dict[str, Any]:
        world = self.domain.world(0)
        level_info = {"status": world.status, "score": world.score, "level": world.level.name}
        return super()._info(observation) | level_info

    def render(self) -> NDArray[np.uint8] | None:
        """The screen as an array of 480 x 640, or in a window."""
        return draw(self.domain.world(0).scene()) if self.render_mode == "rgb_array" else super().render()
