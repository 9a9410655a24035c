"""The oracle of Angry Birds: a search for shots that pass a level, in copies of the level with its novelty.

A world is deterministic, so shots that pass a copy pass the level itself. Release points are whole pixels: about a
quarter of the actions release the bird where another one does, and each point is tried once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.angrybirds.actions import N_ACTIONS, split
from nappingrl.domains.angrybirds.aiming import Shot, Targets, release_point
from nappingrl.domains.angrybirds.domain import AngryBirds, LevelChoice, choose_level
from nappingrl.domains.angrybirds.layout import possible_actions
from nappingrl.domains.angrybirds.observer import OBSERVATION, Observer
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.types import Actions, Floats, Observations, OracleController, Rows

MOST_SHOTS = 400
"""Shots of a search; those that repeat the beginning of a sequence count, too."""
_PER_GOAL = 30
"""A state with one goal fewer left is preferred until this many more actions have been tried there."""
_NO_PROGRESS = 60
"""The same for a state whose last shot destroyed a goal."""
_NO_ACTION = -1


@dataclass(slots=True)
class State:
    """A level after some shots."""

    actions: tuple[int, ...]
    world: World
    observer: Observer
    goals_before: int
    """Goals before the last shot."""
    is_used: bool = False
    """Whether another shot has been played in its world."""
    n_tried: int = 0
    shots: tuple[tuple[int, ...], ...] = ()
    """The actions that are possible next, those with the same release point together; the likeliest first."""
    status: str = ""
    goals_left: int = 0
    seen: bytes = b""
    """The observation."""

    def __post_init__(self) -> None:
        self.seen = self.observer.look(self.world.scene()).tobytes()
        self.status, self.goals_left = self.world.status, self.world.goals_left
        if self.status == "playing":
            self.shots = _distinct_shots(self.observer.targets)

    @property
    def cost(self) -> int:
        """The search continues at the state with the least."""
        return _PER_GOAL * self.goals_left + _NO_PROGRESS * (self.goals_left == self.goals_before) + self.n_tried


def _distinct_shots(targets: Targets) -> tuple[tuple[int, ...], ...]:
    """The possible actions by release point: small offsets first, then by slot, so that pigs and TNT lead."""
    alike: dict[Shot, list[int]] = {}
    possible = np.flatnonzero(targets.mask()).tolist()
    for action in sorted(possible, key=lambda action: (abs(split(action)[2]), *split(action))):
        shot = targets.aim(action)
        if shot is not None:
            alike.setdefault(shot, []).append(action)
    return tuple(map(tuple, alike.values()))


class Search:
    """A search among the shots at one level.

    Attributes:
        start: The level before the first shot.
        n_shots: Shots that were played so far.
    """

    def __init__(
        self, make_world: Callable[[], World], most_shots: int = MOST_SHOTS, observation: str = "label"
    ) -> None:
        self._make_world, self._most_shots, self._observation = make_world, most_shots, observation
        self.n_shots = 0
        self.start = self._begin()

    def _begin(self) -> State:
        world = self._make_world()
        return State((), world, Observer(self._observation), world.goals_left + 1)

    def play(self, actions: Sequence[int]) -> State:
        """The level after these actions."""
        state = self._begin()
        for action in actions:
            state = self.shoot(state, action)
        return state

    def shoot(self, state: State, action: int) -> State:
        """The level after one more action; `state` stays as it is, but for its world."""
        if state.is_used:
            return self.shoot(self.play(state.actions), action)
        state.is_used = True
        self.n_shots += 1
        world, goals = state.world, state.goals_left
        shot = state.observer.targets.aim(action)
        world.shoot(release_point(shot, world.scene()), shot.tap_ms if shot is not None else 0, until_won=True)
        return State((*state.actions, action), world, state.observer, goals)

    def first_shots(self) -> NDArray[np.bool_]:
        """Which actions pass the level with the first bird, (n_actions,)."""
        wins = np.zeros(N_ACTIONS, np.bool_)
        for actions in self.start.shots:
            wins[list(actions)] = self.shoot(self.start, actions[0]).status == "won"
        return wins

    def solve(self) -> State:
        """The level after actions that pass it; if none were found, after those that destroyed the most goals."""
        best, waiting, known = self.start, [self.start], set[bytes]()
        while waiting and best.status != "won":
            state = min(waiting, key=lambda state: state.cost)
            n_needed = len(state.actions) * state.is_used + 1
            if state.n_tried == len(state.shots) or self.n_shots + n_needed > self._most_shots:
                waiting.remove(state)
                continue
            state.n_tried += 1
            following = self.shoot(state, state.shots[state.n_tried - 1][0])
            best = min(best, following, key=lambda state: (state.status != "won", state.goals_left))
            if following.shots and following.seen not in known:
                known.add(following.seen)
                waiting.append(following)
        return best


@lru_cache(maxsize=4096)
def solve_level(choice: LevelChoice, observation: str) -> tuple[int, ...]:
    """The actions that `Search` finds for a level."""
    return Search(choice.make_world, observation=observation).solve().actions


class AngryBirdsOracle(OracleController):
    """Plays what a search of at most 400 shots found; where it found nothing, the shots that destroyed the most."""

    plans_episodes: ClassVar[bool] = True

    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """Parameters, followed by space for the actions of an episode."""
        no_actions = np.full((len(parameters), AngryBirds.spec.horizon), float(_NO_ACTION))
        return np.concatenate([parameters, no_actions], axis=1)

    def plan_episode(self, plans: NDArray[np.float64], draws: Floats) -> NDArray[np.float64]:
        """Search for the actions of an episode, whose level follows from the draws."""
        n = len(AngryBirds.spec.parameters)
        observation = str(self.domain.chosen.get("observation", OBSERVATION.default))
        planned = plans.copy()
        planned[:, n:] = _NO_ACTION
        for row, draw in zip(planned, draws, strict=True):
            actions = solve_level(choose_level(row[:n], draw), observation)
            row[n : n + len(actions)] = actions
        return planned

    def act(self, plans: NDArray[np.float64], observations: Observations, steps: Rows) -> Actions:
        """The next action of the plan; after its end, the first that is possible."""
        n = len(AngryBirds.spec.parameters)
        actions: Actions = plans[np.arange(len(plans)), n + steps].astype(np.int64)
        return np.where(actions == _NO_ACTION, possible_actions(observations).argmax(axis=1), actions)
