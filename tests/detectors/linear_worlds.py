"""Linear worlds with noise, and trials in them by hand."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.residual import Residual, ResidualConfig
from nappingrl.types import Decision, DomainSpec, Rows, Transition

FACTS = DomainSpec(
    np.full(3, -np.inf), np.full(3, np.inf), n_actions=2, horizon=10, observation_names=("height", "speed", "heat")
)
STEPS, BEFORE = 10, 40


@dataclass(frozen=True, slots=True)
class World:
    """Linear, with noise: three observations that two actions push."""

    decay: float = 0.5
    gains: tuple[float, float, float] = (0.1, 0.2, 0.0)
    """What an action adds; the other one subtracts it."""
    noise: float = 0.005
    tail: float = np.inf
    """Degrees of freedom of the noise's t distribution."""

    def step(self, rng: np.random.Generator, states: NDArray[Any], actions: NDArray[np.int64]) -> NDArray[Any]:
        sign = 2.0 * actions[:, None] - 1
        noise = rng.normal(size=states.shape) if np.isinf(self.tail) else rng.standard_t(self.tail, states.shape)
        pushed = self.decay * states + 0.1 * states[:, [1, 2, 0]] + sign * self.gains
        return np.asarray(pushed + self.noise * noise, np.float32)


CALM = World()
SHIFTED = replace(CALM, gains=(0.1, -0.4, 0.0))
"""The states stay in the range that they have in the old world: starts are uniform in [-1, 1]."""
OTHER = replace(CALM, gains=(-0.5, 0.2, 0.4))


class Trials:
    """Plays episodes of n trials for a detector, each with a separate stream."""

    def __init__(
        self, n: int, seed: int = 0, first: int = -BEFORE, keys: list[int] | None = None, **options: Any
    ) -> None:
        self.detector = Residual(n, FACTS, ResidualConfig(**options))
        self.rows = np.arange(n)
        self.rngs = [np.random.default_rng([seed, key]) for key in (range(n) if keys is None else keys)]
        self.episode = first
        self.detector.start(self.rows, first)

    def play(
        self, world: World, episodes: int = 1, rows: Rows | None = None, steps: int = STEPS, then: World | None = None
    ) -> NDArray[np.int64]:
        """The worlds that it believes in, (rows, episodes * steps); `then`: the world in the second half."""
        rows = self.rows if rows is None else rows
        believed = []
        for _ in range(episodes):
            states = np.array([self.rngs[row].uniform(-1, 1, 3) for row in rows], np.float32)
            for t in range(steps):
                now = world if then is None or t < steps // 2 else then
                actions = np.array([self.rngs[row].integers(2) for row in rows])
                nexts = np.concatenate(
                    [
                        now.step(self.rngs[row], states[i : i + 1], actions[i : i + 1])
                        for i, row in enumerate(rows.tolist())
                    ]
                )
                self.detector.step(rows, transition(states, actions, nexts, t == steps - 1))
                states = nexts
                believed.append(self.detector.context[rows].copy())
            self.episode += 1
            self.detector.end_episode(rows, np.full(len(rows), float(STEPS)), np.full(len(rows), self.episode))
        return np.array(believed).T


def transition(states: Any, actions: NDArray[Any], nexts: Any, is_last: bool) -> Transition:
    n = len(states)
    decision = Decision(actions, np.zeros((n, 1), np.float32), np.zeros((n, 2), np.float32))
    return Transition(states, decision, actions, nexts, np.ones(n), np.zeros(n, np.bool_), np.full(n, is_last))
