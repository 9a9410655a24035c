"""Small worlds whose outcomes can be worked out by hand."""

from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.mlp import MlpAgent
from nappingrl.methods.facts.records import Facts, Places, Recorder

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
    return MlpAgent("walker", [identity, (table, np.zeros(4, np.float32))], "relu")


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


Step = Callable[[Any, int], tuple[Any, float, bool]]


def seen(*numbers: float) -> NDArray[np.float32]:
    """An observation."""
    return np.array(numbers, np.float32)


def record(places: Places, steps: list[tuple[int, Any, int, Any, float, bool]]) -> Facts:
    """Facts of (time, observation, action, next observation, reward, terminated)."""
    recorder = Recorder(places)
    for time, before, action, after, reward, is_over in steps:
        recorder.add(time, seen(*before), action, seen(*after), reward, is_over)
    return recorder.facts()
