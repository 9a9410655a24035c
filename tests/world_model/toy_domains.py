"""Small worlds with known dynamics, and the predicted step in plain numpy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.types import DomainSpec
from nappingrl.world_model.basis import N_CURVES, make_frame
from nappingrl.world_model.config import ModelConfig
from nappingrl.world_model.fit import BaselineModel
from nappingrl.world_model.model import Model
from nappingrl.world_model.transitions import Transitions

Array = NDArray[np.float64]


def domain_of(low: Any, high: Any, n_actions: int = 2, horizon: int = 20, **more: Any) -> DomainSpec:
    """Of a world with these bounds."""
    return DomainSpec(np.asarray(low, np.float64), np.asarray(high, np.float64), n_actions, horizon, **more)


def unbounded(d: int, n_actions: int = 2, **more: Any) -> DomainSpec:
    """Of a world whose d observations have no bounds."""
    return domain_of(np.full(d, -np.inf), np.full(d, np.inf), n_actions, **more)


BOX = domain_of([-np.inf], [np.inf], 0, action_low=np.array([-2.0, 0.0]), action_high=np.array([2.0, 10.0]))
"""A domain with two continuous actions."""


@dataclass(frozen=True, slots=True)
class LinearWorld:
    """Changes by drift @ state + effects[action] + noise; the reward is linear, too."""

    drift: Array
    effects: Array
    """(actions, d)"""
    reward: Array
    """(d + 1,) of [state, 1]"""
    noise: float = 0.0

    def see(self, n: int, seed: int, size: float = 1.0) -> Transitions:
        """Transitions from random states by random actions, in episodes of ten."""
        rng = np.random.default_rng(seed)
        d, n_actions = len(self.drift), len(self.effects)
        states, actions = rng.uniform(-size, size, (n, d)), rng.integers(n_actions, size=n)
        next_states = states + states @ self.drift.T + self.effects[actions] + self.noise * rng.normal(size=(n, d))
        return transitions_of(
            states, np.eye(n_actions)[actions], next_states, states @ self.reward[:-1] + self.reward[-1]
        )


def transitions_of(
    states: Any, actions: Any, next_states: Any, rewards: Any = None, terminated: Any = None
) -> Transitions:
    """Transitions in episodes of ten; rewards 1 and no endings unless told."""
    n = len(states)
    return Transitions(
        np.asarray(states, np.float64),
        np.asarray(actions, np.float64),
        np.asarray(next_states, np.float64),
        np.ones(n) if rewards is None else np.asarray(rewards, np.float64),
        np.zeros(n, np.bool_) if terminated is None else np.asarray(terminated, np.bool_),
        np.arange(n) // 10,
    )


def baseline_of(transitions: Transitions, domain: DomainSpec, has_products: bool | None = None) -> BaselineModel:
    """A baseline with the default settings."""
    return BaselineModel(transitions, domain, ModelConfig(), has_products)


def make_model(
    rng: np.random.Generator, d: int, action_size: int, has_products: bool = False, size: float = 0.1, **more: Any
) -> Model:
    """A world of random weights; fields can be given."""
    frame = make_frame(rng.normal(size=d), rng.uniform(0.5, 2, d), has_products)
    fields: dict[str, Any] = {
        "frame": frame,
        "shared": size * rng.normal(size=(d + 1, frame.n_shared)),
        "affine": size * rng.normal(size=(d + 1, action_size, d + 1)),
        "depends_on_next": np.full(d, -1),
        "integrated": size * rng.normal(size=(d, d + action_size + 1)),
        "low": np.full(d, -3.0),
        "high": np.full(d, 3.0),
        "noise": rng.uniform(0, 0.1, d),
    }
    return Model(**(fields | more))


def literal_step(model: Model, state: Array, encoded: Array) -> tuple[Array, float]:
    """What `predict_step` must give: T_k(x) = cos(k arccos x), products, and [z, 1] for each entry of the encoded."""
    frame, d = model.frame, len(state)
    z = (state - frame.centre) / frame.scale
    x = np.clip(z, -1, 1)
    shared = [np.cos(k * np.arccos(x[i])) for i in range(d) for k in range(2, 2 + N_CURVES)]
    if frame.has_products:
        shared += [x[i] * x[j] for i in range(d) for j in range(i + 1, d)]
    affine = np.array([model.affine[i] @ np.append(z, 1.0) @ encoded for i in range(d + 1)])
    change = model.shared @ np.array(shared) + affine
    after = np.clip(state + change[:d], model.low, model.high)
    for i in np.flatnonzero(model.depends_on_next >= 0):
        j = model.depends_on_next[i]
        terms = np.concatenate([z, encoded, [(after[j] - frame.centre[j]) / frame.scale[j]]])
        after[i] = np.clip(state[i] + model.integrated[i] @ terms, model.low[i], model.high[i])
    return after, float(change[d])


def roll(step: Callable[[Array, int], Array], starts: Array, actions: NDArray[np.int64]) -> tuple[Array, Array]:
    """States and next states of episodes (actions: (episodes, steps)) that begin in the starts."""
    states, next_states = [], []
    for state, row in zip(starts, actions, strict=True):
        for action in row.tolist():
            states.append(state)
            state = step(state, action)
            next_states.append(state)
    return np.array(states), np.array(next_states)
