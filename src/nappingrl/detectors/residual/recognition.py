"""Recognition: is a changed world one that was met before, and is the original one back?"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from nappingrl.detectors.residual.model import ORIGINAL, ResidualModels
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Rows
from nappingrl.world_model.transitions import TransitionBuffer, Transitions


class Recognition:
    """Identifies contexts by their models, and the way back by a run of calm steps."""

    saved: ClassVar[Mapping[str, Expected]] = {
        "n_known": Expected(low=0), "level": Expected(low=0), "n_steps": Expected(low=0), "calm": Expected(low=0),
        "rate": Expected(low=0, high=1),
    }  # fmt: skip

    def __init__(self, n: int, models: ResidualModels, action_size: int) -> None:
        self.config, self._models = models.config, models
        capacity = 2 * self.config.n_recognition_steps
        self.recent = TransitionBuffer(n, models.dim, action_size, capacity, size=capacity)
        """The latest steps of this episode."""
        self.n_known = np.zeros(n, np.int64)
        """Contexts met so far."""
        self.level = np.zeros((n, self.config.max_contexts + 1))
        """The usual surprise of each context's own steps."""
        self.n_steps = np.zeros(n, np.int64)
        """Informative steps since the alarm."""
        self.calm = np.zeros(n, np.int64)
        """How many of the latest informative steps were not surprising."""
        self.rate = np.zeros(n)
        """The share of surprising steps in the changed world."""

    def start(self, rows: Rows) -> None:
        """No context is known."""
        self.n_known[rows] = self.n_steps[rows] = self.calm[rows] = 0
        self.recent.clear(rows)

    def slot(self, context: int) -> int:
        """Where the model of a context is kept; one too many replaces the oldest."""
        return ORIGINAL if context == 0 else 1 + (context - 1) % self.config.max_contexts

    def count(self, rows: Rows, is_beyond: Flags, is_informative: Flags) -> None:
        """Count a step."""
        self.calm[rows] = np.where(is_beyond, 0, self.calm[rows] + is_informative)
        self.n_steps[rows] += is_informative

    def identify(self, row: int) -> int:
        """The context after an alarm: the known one that explains the latest steps, or a new one."""
        config, n_known = self.config, int(self.n_known[row])
        steps = self.recent.read(row).at(slice(-config.n_recognition_steps, None))
        original = self._models.surprise(row, ORIGINAL, steps)
        explained: dict[int, float] = {}
        for context in range(max(1, n_known - config.max_contexts + 1), n_known + 1):
            slot = self.slot(context)
            surprise = self._models.surprise(row, slot, steps)
            limit = max(config.max_relative_surprise * original, config.max_own_surprise * self.level[row, slot])
            if surprise < min(limit, original):
                explained[context] = surprise
        self.rate[row], self.n_steps[row], self.calm[row] = 0.5, 0, 0
        if explained:
            return min(explained, key=lambda context: explained[context])
        self.n_known[row] = n_known + 1
        self._models.weights[row, self.slot(n_known + 1)] = self._models.weights[row, ORIGINAL]
        return n_known + 1

    def is_back(self, rows: Rows, is_away: Flags, is_beyond: Flags) -> Flags:
        """Whether the changed world would hardly have stayed calm for so long; updates its rate of surprises."""
        share = 1 / np.minimum(self.n_steps[rows] + 1, self.config.rate_window)
        counts = is_away & (is_beyond | (self.calm[rows] < 2))
        self.rate[rows] = np.where(counts, self.rate[rows] * (1 - share) + share * is_beyond, self.rate[rows])
        log_probability = self.calm[rows] * np.log1p(-np.clip(self.rate[rows], 1e-3, 0.95))
        return np.asarray(is_away & (log_probability < np.log(self.config.max_calm_probability)))

    def learn(self, row: int, context: int, transitions: Transitions) -> None:
        """Model a context that is left, so that it can be recognised."""
        transitions = self._models.unclipped(row, transitions)
        if transitions.n >= self.config.n_recognition_steps:
            slot = self.slot(context)
            self._models.correct(row, slot, transitions)
            self.level[row, slot] = self._models.surprise(row, slot, transitions)
