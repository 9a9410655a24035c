"""A value of model states, learned per trial from the returns of its own episodes: the score `learned`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.types import Floats, ModelStates, Rows, Transition


@dataclass(frozen=True, slots=True)
class ValueConfig:
    """Constants of the fit."""

    max_features: int = 64
    """Wider embeddings are projected to this many features, at random but always in the same way."""
    kept: float = 0.9
    """Weight that an episode keeps when the next one ends: the world may have changed."""
    ridge: float = 1e-3
    """Strength of the regularisation, in units of the mean square of the features."""
    seed: int = 20231218


CONFIG = ValueConfig()


class ValueEstimate:
    """Linear values of n trials, fitted again at the end of every episode."""

    def __init__(self, n: int, dim: int) -> None:
        size = min(dim, CONFIG.max_features)
        rng = np.random.default_rng(CONFIG.seed)
        self._projection = np.eye(dim) if dim == size else rng.normal(size=(dim, size)) / np.sqrt(dim)
        n_features = size + 1  # and a constant
        self._gram, self._episode_gram = np.zeros((2, n, n_features, n_features))
        self._moment, self._weights, self._sum, self._weighted_sum = np.zeros((4, n, n_features))
        self._earned = np.zeros(n)
        self._has_fit = np.zeros(n, np.bool_)

    def start(self, rows: Rows) -> None:
        """Begin new trials: forget everything."""
        self._gram[rows], self._moment[rows], self._weights[rows] = 0.0, 0.0, 0.0
        self._has_fit[rows] = False
        self.discard_episode(rows)

    def scores(self, rows: Rows, transition: Transition, agent: Agent) -> Floats:
        """R + V(s') - V(s) of one step, (m,); 0 until the first episode has ended."""
        t = transition
        later = self._values(rows, agent.forward(t.next_observations).model_states)
        gain = t.rewards + np.where(t.terminated, 0.0, later) - self._values(rows, t.decision.model_states)
        return np.where(self._has_fit[rows], gain, 0.0)

    def record(self, rows: Rows, transition: Transition) -> None:
        """Take a step into the fit.

        The return from a step on is the episode's return minus what was earned before the step, so sums are enough.
        """
        features = self._features(transition.decision.model_states)
        self._episode_gram[rows] += features[:, :, None] * features[:, None, :]
        self._sum[rows] += features
        self._weighted_sum[rows] += features * self._earned[rows, None]
        self._earned[rows] += transition.rewards

    def end_episode(self, rows: Rows) -> None:
        """Fit the value with the episode that ended."""
        kept = CONFIG.kept
        self._gram[rows] = kept * self._gram[rows] + self._episode_gram[rows]
        targets = self._earned[rows, None] * self._sum[rows] - self._weighted_sum[rows]
        self._moment[rows] = kept * self._moment[rows] + targets
        size = self._gram.shape[1]
        mean_square = np.trace(self._gram[rows], axis1=1, axis2=2) / size
        ridge = (CONFIG.ridge * mean_square + 1e-12)[:, None, None] * np.eye(size)
        self._weights[rows] = np.linalg.solve(self._gram[rows] + ridge, self._moment[rows][..., None])[..., 0]
        self._has_fit[rows] = True
        self.discard_episode(rows)

    def discard_episode(self, rows: Rows) -> None:
        """Forget the unfinished episode."""
        self._episode_gram[rows], self._sum[rows], self._weighted_sum[rows], self._earned[rows] = 0.0, 0.0, 0.0, 0.0

    def _features(self, model_states: ModelStates) -> NDArray[np.float64]:
        projected = model_states.astype(np.float64) @ self._projection
        return np.hstack([np.ones((len(projected), 1)), projected])

    def _values(self, rows: Rows, model_states: ModelStates) -> Floats:
        values: Floats = np.einsum("md,md->m", self._features(model_states), self._weights[rows])
        return values
