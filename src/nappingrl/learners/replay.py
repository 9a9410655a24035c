"""Replay buffers, and the scaling of rewards."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Flags, Floats, Rows

REWARD_EPSILON, REWARD_CLIP = 1e-8, 10.0
"""VecNormalize's defaults."""
_FIRST_CAPACITY = 256


class ReplayBuffer:
    """The last `limit` steps of each of n trials, one record per step.

    A record holds the observation, the next observation, the action, the reward, and whether the step terminated or
    truncated the episode, all in float32. The buffer grows by doubling, since few trials fill it.
    """

    def __init__(self, n: int, limit: int, observation_dim: int) -> None:
        self.limit = limit
        self.observation_dim = observation_dim
        self.records = np.zeros((n, min(limit, _FIRST_CAPACITY), 2 * observation_dim + 4), np.float32)
        self.n_added = np.zeros(n, np.int64)
        """Steps that each trial has added; the oldest are overwritten."""

    def clear(self, rows: Rows) -> None:
        """Empty the buffers of some trials."""
        self.n_added[rows] = 0

    def add(
        self, rows: Rows, observations: NDArray[np.float32], actions: NDArray[np.int64], rewards: Floats,
        next_observations: NDArray[np.float32], terminated: Flags, truncated: Flags,
    ) -> None:  # fmt: skip
        """Add a step of some trials; observations are flat and normalised."""
        n, capacity, width = self.records.shape
        if capacity < self.limit and self.n_added[rows].max() >= capacity:
            larger = np.zeros((n, min(2 * capacity, self.limit), width), np.float32)
            larger[:, :capacity] = self.records
            self.records = larger
        _write(
            self.records, self.n_added, self.limit, rows, observations, actions, rewards, next_observations, terminated,
            truncated,
        )  # fmt: skip


@kernel()
def _write(
    records: NDArray[np.float32], n_added: Rows, limit: int, rows: Rows, observations: NDArray[np.float32],
    actions: NDArray[np.int64], rewards: Floats, next_observations: NDArray[np.float32], terminated: Flags,
    truncated: Flags,
) -> None:  # fmt: skip
    d = observations.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i]
        record = records[row, n_added[row] % limit]
        record[:d] = observations[i]
        record[d : 2 * d] = next_observations[i]
        record[2 * d] = actions[i]
        record[2 * d + 1] = rewards[i]
        record[2 * d + 2] = terminated[i]
        record[2 * d + 3] = truncated[i]
        n_added[row] += 1


class RewardScale:
    """Divides rewards by the running standard deviation of the discounted return, as VecNormalize does."""

    def __init__(self, n: int, gamma: float, is_active: bool) -> None:
        self._gamma = gamma
        self.is_active = is_active
        self._returns = np.zeros(n)
        self._mean = np.zeros(n)
        self._var = np.ones(n)
        self._count = np.zeros(n)
        self.deviation = np.ones(n)
        """The divisor of rewards; 1 if they are not scaled."""
        self.clip = REWARD_CLIP if is_active else np.inf

    def start(self, rows: Rows) -> None:
        """Reset the statistics of some trials."""
        self._returns[rows] = 0.0
        self._mean[rows] = 0.0
        self._var[rows] = 1.0
        self._count[rows] = 1e-4
        self.deviation[rows] = 1.0

    def update(self, rows: Rows, rewards: Floats, ended: Flags) -> None:
        """Update the statistics with a step of some trials."""
        if not self.is_active:
            return
        returns = self._returns[rows] * self._gamma + rewards.astype(np.float32)  # the precision of a VecEnv
        count = self._count[rows]
        delta = returns - self._mean[rows]
        self._mean[rows] += delta / (count + 1)
        self._var[rows] = (self._var[rows] * count + delta**2 * count / (count + 1)) / (count + 1)
        self._count[rows] = count + 1
        self._returns[rows] = np.where(ended, 0.0, returns)
        self.deviation[rows] = np.sqrt(self._var[rows] + REWARD_EPSILON)

    def scaled(self, rows: Rows, rewards: Floats) -> Floats:
        """Rewards divided by the current deviation, and clipped."""
        if not self.is_active:
            return rewards
        return np.clip(rewards / self.deviation[rows], -self.clip, self.clip)
