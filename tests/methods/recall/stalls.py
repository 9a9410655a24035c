"""Stalls at a fair: one throw each, and agents that know where to throw until the stalls are rebuilt."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.mlp import MlpAgent

STALLS, LONG_STALLS = "toys/Stalls-v0", "toys/LongStalls-v0"
N_KINDS, N_ACTIONS = 3, 6


class Stalls(gymnasium.Env[NDArray[np.float32], Any]):
    """A stall of one of three kinds; throw k wins at kind k. `shift` moves the winning throw on."""

    observation_space: ClassVar[gymnasium.Space[Any]] = gymnasium.spaces.Box(-1, 2, (N_KINDS,), np.float32)
    action_space: ClassVar[gymnasium.Space[Any]] = gymnasium.spaces.Discrete(N_ACTIONS)

    def __init__(self, n_steps: int = 1) -> None:
        self.shift, self.n_steps = 0.0, n_steps
        self.kind = self.n_left = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.kind, self.n_left = int(self.np_random.integers(N_KINDS)), self.n_steps
        return self._look(), {}

    def _look(self) -> NDArray[np.float32]:
        noise = self.np_random.uniform(-0.1, 0.1, N_KINDS)
        return (np.eye(N_KINDS)[self.kind] + noise).astype(np.float32)

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        self.n_left -= 1
        has_won = int(action) == (self.kind + int(self.shift)) % N_ACTIONS
        return self._look(), float(has_won), self.n_left <= 0, False, {}


def register_stalls() -> None:
    """Make the ids known; twice does no harm."""
    for name, n_steps in ((STALLS, 1), (LONG_STALLS, 30)):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=Stalls, kwargs={"n_steps": n_steps}, max_episode_steps=n_steps)


def thrower() -> MlpAgent:
    """Throws as every stall wanted originally; the next throw in the list is its second choice."""
    identity = np.eye(N_KINDS, dtype=np.float32), np.zeros(N_KINDS, np.float32)
    distances = (np.arange(N_ACTIONS)[None] - np.arange(N_KINDS)[:, None]) % N_ACTIONS
    return MlpAgent(
        "thrower", [identity, ((1 - distances / 5).astype(np.float32), np.zeros(N_ACTIONS, np.float32))], "tanh"
    )
