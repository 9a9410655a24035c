"""Novelties as gymnasium wrappers: what an agent does, sees or earns is changed on its way.

Each works alone around any environment. What is random in a wrapper follows from `reset(seed=...)`, as in gymnasium;
before the first seeded reset it follows from the wrapper's own `seed`.
"""

from collections import deque
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError
from nappingrl.novelties.attributes import Env

Array = NDArray[Any]


class _Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Draws from its own generator, so that the environment's random numbers stay the same."""

    def __init__(self, env: Env, seed: int = 0) -> None:
        super().__init__(env)
        self._seed = seed
        self._rng = np.random.default_rng(seed)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; a seed decides the random numbers of this wrapper too."""
        if seed is not None:
            self._rng = np.random.default_rng([self._seed, seed])
        return super().reset(seed=seed, options=options)


# ------------------------------------------------------------------------------------------------------------- actions


class RemapActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """Action i does what table[i] did."""

    def __init__(self, env: Env, table: tuple[int, ...]) -> None:
        super().__init__(env)
        n = discrete(env, "action-remap").n
        if len(table) != n or not all(0 <= entry < n for entry in table):
            raise BadSpecError(
                f"action-remap={','.join(map(str, table))} does not fit {n} actions; give {n} numbers from 0 to {n - 1}"
            )
        self._table, self._start = tuple(table), int(discrete(env, "action-remap").start)

    def action(self, action: Any) -> Any:
        """The action that is executed instead."""
        return np.int64(self._table[int(action) - self._start] + self._start)


class DelayActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Actions take effect `steps` steps late; until the first one does, it is executed all the same."""

    def __init__(self, env: Env, steps: int) -> None:
        super().__init__(env)
        self._steps = steps
        self._waiting: deque[Any] = deque()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: nothing waits."""
        self._waiting.clear()
        return super().reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Execute the action of some steps ago."""
        if not self._waiting:
            self._waiting.extend([action] * self._steps)
        self._waiting.append(action)
        return super().step(self._waiting.popleft())


class NoisyActions(_Seeded):
    """Discrete: a random action instead, with probability `amount`. Continuous: Gaussian, as a share of the range."""

    def __init__(self, env: Env, amount: float, seed: int = 0) -> None:
        super().__init__(env, seed)
        self._amount, self._box = amount, None
        if isinstance(env.action_space, Box):
            self._box = bounded(env, "action-noise")
        else:
            discrete(env, "action-noise")

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step with what became of the action."""
        if self._box is not None:
            low, high = self._box
            noise = self._amount * (high - low) * self._rng.standard_normal(low.shape)
            return super().step(np.clip(action + noise, low, high).astype(low.dtype))
        space = discrete(self.env, "action-noise")
        is_random, other = self._rng.random() < self._amount, self._rng.integers(space.n)
        return super().step(np.int64(other + space.start) if is_random else action)


class AffineActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """A continuous action a becomes scale * a + shift, cut to the range."""

    def __init__(self, env: Env, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(env)
        self._low, self._high = bounded(env, "action-scale and action-shift")
        self._scale, self._shift = scale, shift

    def action(self, action: Any) -> Any:
        """The action that is executed instead."""
        return np.clip(self._scale * action + self._shift, self._low, self._high).astype(self._low.dtype)


def discrete(env: Env, term: str) -> Discrete:
    """Its action space, or one line that says that it must be discrete."""
    if not isinstance(env.action_space, Discrete):
        kind = type(env.action_space).__name__
        raise BadSpecError(
            f"{term} needs discrete actions, but those here are {kind}; use action-scale or action-shift"
        )
    return env.action_space


def bounded(env: Env, term: str) -> tuple[Array, Array]:
    """The ends of its continuous actions, or one line that says what is missing."""
    space = env.action_space
    if not isinstance(space, Box):
        raise BadSpecError(f"{term} needs continuous actions, but those here are {space}; use action-remap")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise BadSpecError(f"{term} needs actions with bounds, but those here are {space}")
    return space.low, space.high


# -------------------------------------------------------------------------------------------------------- observations


class _Sight(_Seeded):
    """Changes all entries of an observation, or one."""

    def __init__(self, env: Env, amount: float, entry: int | None = None, seed: int = 0) -> None:
        super().__init__(env, seed)
        space = env.observation_space
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise BadSpecError(f"observation novelties need observations that are one row of numbers; here: {space}")
        if entry is not None and not 0 <= entry < space.shape[0]:
            raise BadSpecError(f"observation entry {entry} is asked for; allowed: 0 to {space.shape[0] - 1}")
        self._amount, self._at = amount, slice(None) if entry is None else slice(entry, entry + 1)
        low, high = space.low.astype(np.float32), space.high.astype(np.float32)
        low[self._at], high[self._at] = -np.inf, np.inf
        self.observation_space = Box(low, high, dtype=np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = super().reset(seed=seed, options=options)
        return self._changed(observation), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """One step; the observation is changed."""
        observation, reward, terminated, truncated, info = super().step(action)
        return self._changed(observation), reward, terminated, truncated, info

    def _changed(self, observation: Any) -> Array:
        values = np.array(observation, np.float32)
        values[self._at] = self._change(values[self._at])
        return values

    def _change(self, values: Array) -> Any:
        raise NotImplementedError


class ShiftObservation(_Sight):
    """Reads too much by `amount`."""

    def _change(self, values: Array) -> Any:
        return values + self._amount


class ScaleObservation(_Sight):
    """Reads `amount` times as much."""

    def _change(self, values: Array) -> Any:
        return values * self._amount


class NoisyObservation(_Sight):
    """Gaussian noise of standard deviation `amount`."""

    def _change(self, values: Array) -> Any:
        return values + self._amount * self._rng.standard_normal(values.shape)


class QuantiseObservation(_Sight):
    """Reads multiples of `amount` only, the nearest one."""

    def _change(self, values: Array) -> Any:
        return np.round(values / self._amount) * self._amount


class DropObservation(_Sight):
    """Reads 0."""

    def _change(self, values: Array) -> Any:
        return np.zeros_like(values)


# ------------------------------------------------------------------------------------------------------------- rewards


class AffineReward(gymnasium.RewardWrapper[Any, Any]):
    """A reward r becomes scale * r + shift."""

    def __init__(self, env: Env, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(env)
        self._scale, self._shift = scale, shift

    def reward(self, reward: SupportsFloat) -> float:
        """The reward that is paid instead."""
        return self._scale * float(reward) + self._shift
