"""One level played in many ways. Worlds repeat exactly, so every sequence of releases is simulated once."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.actions import N_ACTIONS
from nappingrl.domains.angrybirds.aiming import Shot, Targets, release_point
from nappingrl.domains.angrybirds.free_shots import shot_of
from nappingrl.domains.angrybirds.ground_truth.state import ground_truth
from nappingrl.domains.angrybirds.novelties import make_change
from nappingrl.domains.angrybirds.physics.scene import Level
from nappingrl.domains.angrybirds.physics.world import World

Policy = Callable[[NDArray[np.float32]], int]
"""From an observation to an action."""
Shots = tuple[Shot, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """A level after some shots."""

    status: str
    state: tuple[tuple[float, ...], ...]
    """Id, place, angle and life of all objects but birds."""
    shots: tuple[Shot | None, ...] = ()
    """The shot of each action; None if the action is masked. Empty if the level is over."""
    observation: NDArray[np.float32] | None = None

    @property
    def actions(self) -> list[int]:
        """The actions that the mask allows."""
        return [action for action, shot in enumerate(self.shots) if shot is not None]

    def shot(self, action: int) -> Shot | None:
        """The shot of an action or of a free shot; None if the action is masked."""
        free = shot_of(action)
        return Shot(*free) if free is not None else self.shots[action]


class Playground:
    """A level with or without a novelty, and every position that was reached in it."""

    _at: Shots
    """The shots that were played in the current world."""

    def __init__(self, level: Level, novelty: str = "") -> None:
        self._level = level
        self._change = {novelty: 1.0} if novelty else {}
        self._positions: dict[Shots, Position] = {}
        self._begin()
        self.start = self._positions[()] = self._position()

    def after(self, shots: Shots) -> Position:
        """The position after some shots."""
        if shots not in self._positions:
            self._positions[shots] = self._without_effect(shots) or self._simulate(shots)
        return self._positions[shots]

    def play(self, choose: Callable[[Position], int | None]) -> bool:
        """Play to the end; whether the level was passed. No action, or a masked one, loses."""
        shots: Shots = ()
        position = self.start
        while position.status == "playing":
            action = choose(position)
            shot = None if action is None else position.shot(action)
            if shot is None:
                return False
            shots = (*shots, shot)
            position = self.after(shots)
        return position.status == "won"

    def load(self) -> World:
        """The level in a new world."""
        return World(self._level, change=make_change(self._change))

    def _without_effect(self, shots: Shots) -> Position | None:
        """The position after the last bird, if the shots before changed nothing and the last one alone fails."""
        is_last = len(shots) == len(self._level.birds) > 1
        if is_last and self.after(shots[:-1]).state == self.start.state:
            alone = self.after(shots[-1:])
            return alone if alone.status == "won" else Position("lost", alone.state)
        return None

    def _simulate(self, shots: Shots) -> Position:
        if self._at != shots[:-1]:
            self._begin()
            for shot in shots[:-1]:
                self._shoot(shot)
        self._shoot(shots[-1])
        return self._position()

    def _begin(self) -> None:
        self._world, self._targets, self._at = self.load(), Targets(), ()
        self._targets.update(ground_truth(self._world.scene()))

    def _shoot(self, shot: Shot) -> None:
        self._world.shoot(release_point(shot, self._world.scene()), shot.tap_ms, until_won=True)
        self._at = (*self._at, shot)
        if self._world.status == "playing":
            self._targets.update(ground_truth(self._world.scene()))

    def _position(self) -> Position:
        world = self._world
        things = (thing for thing in world.scene().things if thing.kind not in ("bird", "egg"))
        state = tuple((one.id, one.x, one.y, one.angle, one.life) for one in things)
        if world.status != "playing":
            return Position(world.status, state)
        shots = tuple(self._targets.aim(action) for action in range(N_ACTIONS))
        return Position(world.status, state, shots, self._targets.observe())


def winners(playground: Playground, once: bool) -> list[int]:
    """The actions that pass a level at the first shot, or else when repeated for every bird."""
    start = playground.start

    def wins(action: int) -> bool:
        if once:
            shot = start.shots[action]
            assert shot is not None
            return playground.after((shot,)).status == "won"
        return playground.play(lambda position: action)

    return [action for action in start.actions if wins(action)]


def draw_action(position: Position, rng: np.random.Generator) -> int | None:
    """A random action that the mask allows."""
    return int(rng.choice(position.actions)) if position.actions else None
