"""Small worlds whose outcomes can be worked out by hand."""

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.mlp import MlpAgent
from nappingrl.methods.facts.records import Places, Recorder
from nappingrl.methods.facts.trial import FactsTrial
from nappingrl.types import DomainSpec
from nappingrl.world_model.transitions import Transitions

Cell = tuple[int, ...]

LAKE, SLIPPERY, OPEN = "toys/Lake-v0", "toys/SlipperyLake-v0", "toys/OpenLake-v0"
MAPS = {
    LAKE: ("SFFF", "FHFH", "FFFH", "HFFG"),
    SLIPPERY: ("SFFF", "FHFH", "FFFH", "HFFG"),
    OPEN: ("SFFF", "FFFF", "FFFF", "FFFG"),
}
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
"""FrozenLake's actions: left, down, right, up."""
HORIZON = 40


def register_lakes() -> None:
    """Make the ids known; twice does no harm."""
    for name, rows in MAPS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="gymnasium.envs.toy_text.frozen_lake:FrozenLakeEnv",
                kwargs={"desc": list(rows), "is_slippery": name == SLIPPERY},
                max_episode_steps=HORIZON,
            )


def lake_agent(name: str) -> MlpAgent:
    """Walks the shortest way, by a table over one-hot observations."""
    rows = MAPS[name]
    best = shortest(rows)
    table = np.zeros((16, 4), np.float32)
    table[np.arange(16), [best.get(divmod(place, 4), 0) for place in range(16)]] = 1.0
    identity: tuple[NDArray[np.float32], NDArray[np.float32]] = np.eye(16, dtype=np.float32), np.zeros(16, np.float32)
    agent = MlpAgent("walker", [identity, (table, np.zeros(4, np.float32))], "relu")
    agent.n_states = 16
    return agent


def shortest(rows: tuple[str, ...]) -> dict[tuple[int, int], int]:
    """By cell, the first action of a shortest way to the goal."""
    found: dict[tuple[int, int], int] = {}
    goal = len(rows) - 1, len(rows[0]) - 1
    queue = deque([goal])
    while queue:
        end = queue.popleft()
        for action, (down, right) in enumerate(MOVES):
            cell = end[0] - down, end[1] - right
            is_inside = 0 <= cell[0] < len(rows) and 0 <= cell[1] < len(rows[0])
            if is_inside and rows[cell[0]][cell[1]] in "SF" and cell not in found:
                found[cell] = action
                queue.append(cell)
    return found


def seen(*numbers: float) -> NDArray[np.float32]:
    """An observation."""
    return np.array(numbers, np.float32)


def record(places: Places, steps: list[tuple[int, Any, int, Any, float, bool]]) -> Recorder:
    """The record of (time, observation, action, next observation, reward, terminated)."""
    recorder = Recorder(places)
    for time, before, action, after, reward, is_over in steps:
        recorder.add(time, seen(*before), action, seen(*after), reward, is_over)
    return recorder


class World(Protocol):
    """Deterministic, by the cell and the step of the episode."""

    start: Cell
    spec: DomainSpec

    def step(self, cell: Cell, action: int, time: int) -> tuple[Cell, float, bool]:
        """The next cell, the reward, and whether the episode terminates."""
        ...


def play(world: World, choose: Callable[[int, Cell], int], learn: Callable[..., None] | None = None) -> float:
    """The return of one episode; `learn` is called with each step."""
    cell, total = world.start, 0.0
    for time in range(world.spec.horizon or HORIZON):
        action = choose(time, cell)
        end, reward, is_over = world.step(cell, action, time)
        total += reward
        if learn is not None:
            learn(time, seen(*cell), action, seen(*end), reward, is_over)
        cell = end
        if is_over:
            break
    return total


def original_steps(world: World, policy: Callable[[int, Cell], int], episodes: int = 10) -> Transitions:
    """What a memory holds after these episodes of a policy."""
    rows: list[Any] = []
    for episode in range(episodes):

        def add(
            time: int, before: Any, action: int, after: Any, reward: float, is_over: bool, episode: int = episode
        ) -> None:
            rows.append((before, np.eye(world.spec.n_actions)[action], after, reward, is_over, episode))

        play(world, policy, add)
    return Transitions(*(np.array(column) for column in zip(*rows, strict=True)))


def adapt(trial: FactsTrial, world: World, policy: Callable[[int, Cell], int], episodes: int) -> list[float]:
    """The returns of a trial that has entered a changed world."""
    returns = []
    for _ in range(episodes):
        trial.begin_episode()
        total = play(world, lambda time, cell: trial.act(time, seen(*cell), policy(time, cell)), trial.learn)
        trial.end_episode(total, False)
        returns.append(total)
    return returns
