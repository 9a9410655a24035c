"""Small environments whose every number can be worked out by hand."""

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from numpy.typing import NDArray

Array = NDArray[np.float32]


class Echo(gymnasium.Env[Array, Any]):
    """Shows (step, 10 * executed action, size, area) and pays the action; area is size squared, computed when made."""

    size = 3.0
    gains = (1.0, 10.0)
    is_open = True

    def __init__(self, is_box: bool = False, render_mode: str | None = None) -> None:
        self.observation_space = Box(-100.0, 100.0, (4,), np.float32)
        self.action_space = Box(-2.0, 2.0, (1,), np.float32) if is_box else Discrete(3)
        self.area = self.size * self.size
        self.unused = 7
        self.t = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        self.t, self._offset = 0, float(self.np_random.integers(5))
        return self._show(0.0), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        self.t += 1
        number = float(np.asarray(action).reshape(-1)[0])
        return self._show(number), number, self.t >= 20, False, {}

    def _show(self, action: float) -> Array:
        shown = (self.t + self._offset, self.gains[1] * action, self.size, self.area)
        return np.array(shown, np.float32) if self.is_open else np.zeros(4, np.float32)


class Restless(Echo):
    """Does not follow its seed: no two episodes are the same."""

    _n_episodes = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        super().reset(seed=seed)
        Restless._n_episodes += 1
        self._offset = float(Restless._n_episodes)
        return self._show(0.0), {}


class Pictures(Echo):
    """Observations that are no row of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.observation_space = Box(0, 255, (4, 4, 3), np.uint8)

    def _show(self, action: float) -> Any:
        return np.full((4, 4, 3), self.t, np.uint8)


class Notes(Echo):
    """A dictionary of observations; as MiniGrid's environments, it has its own limit of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.max_steps = 12
        self.observation_space: Any = Dict({"row": self.observation_space, "turn": Discrete(3)})

    def _show(self, action: float) -> Any:
        return {"row": super()._show(action), "turn": int(action)}


class RowOnly(gymnasium.ObservationWrapper[Any, Any, Any]):
    """The row of `Notes` alone; as MiniGrid's wrappers, it does not record its arguments."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.observation_space = env.observation_space["row"]  # type: ignore[index]

    def observation(self, observation: Any) -> Any:
        return observation["row"]


class Windy(Echo):
    """Wind adds to an observation, if it is switched on; its terrain is a ragged list, as BipedalWalker's."""

    has_wind = False
    wind_power = 3.0

    def __init__(self) -> None:
        super().__init__()
        self.terrain: list[Any] = [[1.0, 2.0], [3.0], 4.0]

    def _show(self, action: float) -> Array:
        shown = super()._show(action)
        shown[3] += self.wind_power if self.has_wind else 0.0
        return shown


class Drifting(gymnasium.Wrapper[Any, Any, Any, Any]):
    """As ns_gym shows its environments: a dictionary with the state, and a record with the reward."""

    def __init__(self) -> None:
        super().__init__(Echo())
        self.observation_space = Dict({"state": self.env.observation_space, "relative_time": Box(0, np.inf, ())})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        state, info = self.env.reset(seed=seed)
        return {"state": state, "relative_time": 0}, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        state, reward, terminated, truncated, info = self.env.step(action)
        return {"state": state + 1, "relative_time": 1}, SimpleNamespace(reward=reward), terminated, truncated, info


def make_plain() -> gymnasium.Env[Any, Any]:
    from nappingrl.novelties.ns_gym import Plain

    return Plain(Drifting())


def register() -> None:
    """Make the ids known; twice does no harm."""
    for name, target, kwargs, steps in (
        ("Echo", Echo, {}, 15),
        ("EchoBox", Echo, {"is_box": True}, 15),
        ("Endless", Echo, {}, None),
        ("Restless", Restless, {}, 15),
        ("Pictures", Pictures, {}, 15),
        ("Drifting", make_plain, {}, 15),
        ("Windy", Windy, {}, 15),
        ("Notes", Notes, {}, None),
    ):
        if f"toys/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"toys/{name}-v0", entry_point=target, kwargs=kwargs, max_episode_steps=steps)


register()
