"""Episodes for detectors, made by hand: what trials would tell them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl.detectors import Detector
from nappingrl.registry import detectors
from nappingrl.types import Decision, DomainSpec, Floats, Rows, Transition

FACTS = DomainSpec(
    np.full(2, -10, np.float32),
    np.full(2, 10, np.float32),
    n_actions=2,
    horizon=6,
    observation_names=("height", "speed"),
    action_names=("left", "right"),
    return_limits=(80.0, 120.0),
)
needs_river = pytest.mark.skipif(find_spec("river") is None, reason="river is not installed")
NAMES = [pytest.param(name, marks=needs_river) if name == "adwin" else name for name in detectors.names()]


def returns_of(detector: Detector, returns: Floats, first: int = -40) -> NDArray[np.int64]:
    """Show it the returns (trials, episodes); for each trial the episode before which it alarms first, 999: never."""
    rows = np.arange(len(returns))
    detector.start(rows, first)
    found = np.full(len(returns), 999)
    for i, column in enumerate(returns.T):
        detector.end_episode(rows, column, np.full(len(returns), first + i + 1))
        found[(detector.context > 0) & (found == 999)] = first + i + 1
    return found


@dataclass(frozen=True, slots=True)
class Trials:
    """Observations (trials, episodes, steps, features) and returns (trials, episodes)."""

    observations: NDArray[np.float32]
    returns: Floats

    def only(self, rows: Rows) -> "Trials":
        """Some of the trials."""
        return Trials(self.observations[rows], self.returns[rows])

    def part(self, begin: int, end: int) -> "Trials":
        """Some of the episodes."""
        return replace(self, observations=self.observations[:, begin:end], returns=self.returns[:, begin:end])


def make_trials(n: int = 3, episodes: int = 60, steps: int = 6, features: int = 2, seed: int = 0) -> Trials:
    """Random trials whose observations and returns jump at the 41st episode; nothing changes in the last trial."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(n, episodes, steps, features)).astype(np.float32)
    returns = rng.normal(100.0, 5.0, (n, episodes))
    observations[:-1, 40:] += 4.0
    returns[:-1, 40:] -= 60.0
    return Trials(observations, returns)


def play(detector: Detector, trials: Trials, first: int, rows: Rows | None = None) -> list[list[int]]:
    """Show it whole episodes; the worlds of the rows after each."""
    rows = np.arange(len(trials.returns)) if rows is None else rows
    worlds = []
    for episode in range(trials.returns.shape[1]):
        seen = trials.observations[:, episode]
        n_steps = seen.shape[1]
        for step in range(n_steps):
            following = seen[:, min(step + 1, n_steps - 1)]
            detector.step(rows, transition(seen[:, step], following, step + 1 == n_steps))
        detector.end_episode(rows, trials.returns[:, episode], np.full(len(rows), first + episode + 1))
        worlds.append(detector.context[rows].tolist())
    return worlds


def transition(observations: Any, following: Any, is_last: bool = False) -> Transition:
    """One step in which nothing but the observations says anything."""
    n = len(next(iter(observations.values()))) if isinstance(observations, Mapping) else len(observations)
    actions = np.zeros(n, np.int64)
    decision = Decision(actions, np.zeros((n, 1), np.float32), np.zeros((n, 2), np.float32))
    return Transition(
        observations, decision, actions, following, np.ones(n), np.full(n, is_last), np.zeros(n, np.bool_)
    )
