"""A cart that is to stay in the middle, and agents that keep it there unless something pushes it."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.agents.mlp import MlpAgent

CART, SWITCHED_CART, BLIND_CART = "toys/Cart-v0", "toys/SwitchedCart-v0", "toys/BlindCart-v0"
STEPS = 60


class Cart(gymnasium.Env[NDArray[np.float32], Any]):
    """Position and velocity; the reward is minus the squared position. `push` accelerates the cart all the time."""

    observation_space: ClassVar[gymnasium.Space[Any]] = gymnasium.spaces.Box(-10, 10, (2,), np.float32)

    def __init__(self, kind: str = "") -> None:
        self.push, self.noise = 0.0, 5.0 if kind == "blind" else 0.0
        self.is_switched = kind == "switched"
        box = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3) if self.is_switched else box
        self.state = np.zeros(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-1, 1, 2)
        return self.state.astype(np.float32), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        force = float(action) - 1 if self.is_switched else float(np.clip(np.ravel(action)[0], -1, 1))
        velocity = 0.9 * self.state[1] + 0.2 * (force + self.push)
        self.state = np.clip([self.state[0] + 0.2 * velocity, velocity], -10, 10)
        shown = np.clip(self.state + self.noise * self.np_random.normal(size=2), -10, 10)
        return shown.astype(np.float32), -float(self.state[0] ** 2), False, False, {}


def register_carts() -> None:
    """Make the ids known; twice does no harm."""
    for name, kind in ((CART, ""), (SWITCHED_CART, "switched"), (BLIND_CART, "blind")):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=Cart, kwargs={"kind": kind}, max_episode_steps=STEPS)


def cart_agent(name: str) -> Agent:
    """Pushes weakly against position and velocity; it has no critic."""
    identity = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
    if name == SWITCHED_CART:
        scores = np.array([[0.5, 0, -0.5], [1, 0, -1]], np.float32), np.array([0, 0.1, 0], np.float32)
        return MlpAgent("switch", [identity, scores], "tanh")
    force = np.array([[-0.5], [-1]], np.float32), np.zeros(1, np.float32)
    box = ActionBox(np.full(1, -1, np.float32), np.full(1, 1, np.float32), False)
    return BoxMlpAgent("push", [identity, force], "tanh", box)
