"""Linear worlds with a stabilising agent, whose actions and sensors can be changed; for tests of the search."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.reground.maps import ContinuousMap, DiscreteMap, Grounding, SensorMap
from nappingrl.methods.reground.trial import RegroundTrial
from nappingrl.types import DomainSpec
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.reference import Reference
from nappingrl.world_model.transitions import Transitions

Matrix = NDArray[np.float64]
DISCRETE = DomainSpec(np.full(4, -9.0), np.full(4, 9.0), 4, 100, observation_names=("x", "y", "v", "w"))
CONTINUOUS = DomainSpec(
    np.full(4, -9.0), np.full(4, 9.0), 0, 100, np.full(2, -1.0), np.full(2, 1.0), DISCRETE.observation_names
)
PUSHES = np.array([[0.0, 0.0], [0.3, 0.0], [0.0, 0.2], [-0.3, -0.1]])
"""What the discrete actions add to the two velocities."""
START = np.array([1.0, -0.5, 0.0, 0.0])


class World:
    """Positions x and y with velocities v and w; damped, so that it stays bounded whatever is done."""

    def __init__(self, domain: DomainSpec, seed: int, drift: Any = 0.0, strength: float = 1.0) -> None:
        self.domain, self.encoding = domain, ActionEncoding(domain)
        self.rng, self.drift, self.strength = np.random.default_rng(seed), drift, strength

    def push(self, action: Any) -> Matrix:
        return PUSHES[int(action)] if self.domain.n_actions else np.array([0.3, 0.2]) * action

    def step(self, state: Matrix, action: Any) -> Matrix:
        positions, velocities = state[:2] + 0.2 * state[2:], 0.9 * state[2:] - 0.02 * state[:2]
        after = np.concatenate([positions, velocities + self.strength * self.push(action)])
        return after + self.drift + self.rng.normal(0.0, [1e-4, 1e-4, 5e-3, 5e-3])

    def action(self) -> Any:
        return self.rng.integers(4) if self.domain.n_actions else self.rng.uniform(-1.0, 1.0, 2)

    def record(
        self,
        n_episodes: int,
        act: Callable[[Any], Any] = lambda action: action,
        show: Callable[[Matrix], Matrix] = lambda state: state,
        delay: int = 0,
    ) -> Transitions:
        """Episodes with random actions: `act` says as what an action acts, `show` what the sensors show."""
        steps = []
        for episode in range(n_episodes):
            state = START + self.rng.normal(0.0, 0.05, 4)
            waiting = [self.action()] * delay
            for _ in range(50):
                action = self.action()
                waiting.append(action)
                after = self.step(state, act(waiting.pop(0)))
                encoded = self.encoding(np.array([action]))[0]
                steps.append((show(state), encoded, show(after), 0.0, False, episode))
                state = after
        states, actions, next_states, rewards, terminated, episodes = zip(*steps, strict=True)
        return Transitions(
            np.array(states), np.array(actions), np.array(next_states), np.array(rewards), np.array(terminated),
            np.array(episodes),
        )  # fmt: skip


def make_reference(domain: DomainSpec) -> Reference:
    """What the unchanged world looked like."""
    world = World(domain, seed=0)
    return Reference(world.record(20), world.encoding)


def reground(reference: Reference, domain: DomainSpec, current: Transitions) -> RegroundTrial:
    """A trial that has searched once, with these steps since the alarm."""
    trial = RegroundTrial(domain, ActionEncoding(domain))
    trial.enter(1)
    for episode in np.unique(current.episodes):
        trial.begin_episode(current.states[current.episodes == episode][0])
    trial.search(reference, current)
    return trial


def identity(domain: DomainSpec) -> Grounding:
    """Nothing is changed."""
    actions = DiscreteMap.identity(4) if domain.n_actions else ContinuousMap.identity(2)
    return Grounding(SensorMap.identity(4), actions)
