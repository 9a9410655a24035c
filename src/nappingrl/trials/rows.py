"""The rows of a run while they are filled."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.trials.spec import TrialSpec
from nappingrl.types import Flags, Floats, Rows


class RowColumns:
    """The rows of a chunk while they are being filled: one (trials, episodes) array per column."""

    def __init__(self, n_trials: int, n_episodes: int, parameters: list[str]) -> None:
        shape = (n_trials, n_episodes)
        self.parameters = parameters
        self.returns, self.lengths = np.zeros(shape), np.zeros(shape, np.int64)
        self.won, self.detected = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
        self.detected_step = np.full(shape, -1)
        self.regions, self.n_open = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.diverged = np.zeros(shape, np.bool_)
        self.acted: NDArray[np.object_] = np.full(shape, "", object)
        """What acted at the end of the episode; empty: the frozen agent."""
        self.why_not: NDArray[np.object_] = np.full(shape, "", object)
        """Why the frozen agent acted although there was an alarm; empty: it did not, or too early to say."""
        self.n_dropped = np.zeros(shape, np.int64)
        """Steps dropped since the trial began."""
        self.values = np.zeros((*shape, len(parameters)))
        self.is_played = np.zeros(shape, np.bool_)

    def write(
        self, trials: Rows, episodes: Rows, returns: Floats, lengths: Rows, won: Flags, detected: Flags,
        detected_step: Rows, regions: NDArray[np.int64], n_open: NDArray[np.int64], diverged: Flags, n_dropped: Rows,
        values: Floats,
    ) -> None:  # fmt: skip
        """One ended episode of some of the trials."""
        at = trials, episodes
        self.is_played[at] = True
        self.returns[at], self.lengths[at], self.won[at] = returns, lengths, won
        self.detected[at], self.detected_step[at] = detected, detected_step
        self.regions[at], self.n_open[at], self.diverged[at] = regions, n_open, diverged
        self.n_dropped[at], self.values[at] = n_dropped, values

    def frame(self, trials: list[TrialSpec], phase_names: list[str], first_episode: int) -> pl.DataFrame:
        """The rows as a table."""
        n_trials, n_episodes = self.returns.shape
        steps = pl.Series(self.detected_step.ravel().astype(np.int32))
        table = pl.DataFrame(
            {
                "trial": np.repeat([trial.id for trial in trials], n_episodes),
                "novelty": np.repeat([trial.novelty for trial in trials], n_episodes),
                "number": np.repeat(np.array([trial.number for trial in trials], np.int32), n_episodes),
                "phase": np.tile(phase_names, n_trials),
                "episode": np.tile(np.arange(n_episodes, dtype=np.int32) + first_episode, n_trials),
                "return": self.returns.ravel(),
                "length": self.lengths.ravel().astype(np.int32),
                "won": self.won.ravel(),
                "detected": self.detected.ravel(),
                "detected_step": steps.set(steps < 0, None),
                "regions": self.regions.ravel().astype(np.int32),
                "open_regions": self.n_open.ravel().astype(np.int32),
                "status": self._status().ravel(),
                "acted": pl.Series(self.acted.ravel().tolist(), dtype=pl.String),
                "why_not": pl.Series(self.why_not.ravel().tolist(), dtype=pl.String),
            }
            | {f"param_{name}": self.values[..., i].ravel() for i, name in enumerate(self.parameters)}
        )
        return table if self.is_played.all() else table.filter(pl.Series(self.is_played.ravel()))

    def _status(self) -> NDArray[Any]:
        """What is wrong with each episode: "diverged", "dropped N" (steps), both, or "ok"."""
        status = np.where(self.diverged, "diverged", "ok").astype(object)
        dropped = np.diff(self.n_dropped, axis=1, prepend=0)
        for at in zip(*np.nonzero(dropped), strict=True):
            status[at] = f"{'diverged, ' if self.diverged[at] else ''}dropped {dropped[at]}"
        return status.astype(np.str_)
