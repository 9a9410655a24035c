"""Let an agent play levels in real time."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import hypot
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.aiming import Shot, release_point
from nappingrl.domains.angrybirds.observer import Observer
from nappingrl.domains.angrybirds.physics.scene import Scene
from nappingrl.domains.angrybirds.play.play import Play

LOOK_FRAMES, PULL_FRAMES, END_FRAMES = 12, 15, 38
"""Frames for which an agent waits before a shot, draws the bird, and shows the result."""

Observation = NDArray[np.float32]


class Policy(Protocol):
    """Chooses actions and learns from their outcomes."""

    def act(self, observation: Observation, /) -> int:
        """Choose an action."""

    def learn(
        self,
        observation: Observation,
        action: int,
        following: Observation,
        reward: float,
        ended: bool,
        detected: bool,
        /,
    ) -> None:
        """Learn from one shot."""


@dataclass(frozen=True, slots=True)
class Autoplay:
    """An agent that plays."""

    policy: Policy
    detected: bool = False
    """Whether the agent is told that there is a novelty."""
    observation: str = "label"
    """What the agent observes, the option of the domain."""

    def play_level(self, play: Play) -> Iterator[None]:
        """Play the level until it is decided; yields after each frame."""
        observer = Observer(self.observation)
        while play.world.status == "playing":
            for _ in range(LOOK_FRAMES):
                play.advance()
                yield
            if not play.world.is_ready:
                continue
            observation = observer.look(play.world.scene())
            action = self.policy.act(observation)
            scene = play.world.scene()
            yield from _shoot(play, scene, observer.targets.aim(action))
            while play.world.is_under_way:
                play.advance()
                yield
            status = play.world.status
            following = observer.look(play.world.scene())
            self.policy.learn(
                observation, action, following, float(status == "won"), status != "playing", self.detected
            )
        for _ in range(END_FRAMES):
            play.advance()
            yield


def _shoot(play: Play, scene: Scene, shot: Shot | None) -> Iterator[None]:
    """Draw the bird over some frames and let go."""
    release = release_point(shot, scene)
    x, y = scene.sling.origin
    distance = max(1.0, hypot(release[0] - x, release[1] - y))
    for i in range(1, PULL_FRAMES + 1):
        share = i / PULL_FRAMES / distance
        play.pull = x + share * (release[0] - x), y + share * (release[1] - y)
        yield
    play.pull = release
    play.let_go(shot.tap_ms if shot is not None else 0)
