"""What learners remember: the steps of each trial in a ring, and the statistics by which rewards are scaled."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Flags, Floats, Rows

REWARD_EPSILON, REWARD_CLIP = 1e-8, 10.0
"""VecNormalize's defaults."""
_FIRST_CAPACITY = 256


class Memory:
    """The last `limit` steps of each of n trials, as records that a kernel gathers with one access.

    A record holds the observation, the next observation, the action, the reward, and whether the episode was
    terminated or truncated there, all in float32. Room grows by doubling: few trials ever fill a replay buffer.
    """

    def __init__(self, n: int, limit: int, observation_dim: int) -> None:
        self.limit, self.observation_dim = limit, observation_dim
        self.records = np.zeros((n, min(limit, _FIRST_CAPACITY), 2 * observation_dim + 4), np.float32)
        self.seen = np.zeros(n, np.int64)
        """How many steps each trial has put in; its ring holds the last ones."""

    def forget(self, rows: Rows) -> None:
        """Empty the rings of some trials."""
        self.seen[rows] = 0

    def add(
        self, rows: Rows, observations: NDArray[np.float32], actions: NDArray[np.int64], rewards: Floats,
        next_observations: NDArray[np.float32], terminated: Flags, truncated: Flags,
    ) -> None:  # fmt: skip
        """One step of some trials; observations are flat and standardised."""
        n, capacity, width = self.records.shape
        if capacity < self.limit and self.seen[rows].max() >= capacity:
            grown = np.zeros((n, min(2 * capacity, self.limit), width), np.float32)
            grown[:, :capacity] = self.records
            self.records = grown
        _write(
            self.records, rows, self.seen, self.limit, observations, actions, rewards, next_observations, terminated,
            truncated,
        )  # fmt: skip


@kernel()
def _write(
    records: NDArray[np.float32], rows: Rows, seen: Rows, limit: int, observations: NDArray[np.float32],
    actions: NDArray[np.int64], rewards: Floats, next_observations: NDArray[np.float32], terminated: Flags,
    truncated: Flags,
) -> None:  # fmt: skip
    d = observations.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i]
        record = records[row, seen[row] % limit]
        record[:d] = observations[i]
        record[d : 2 * d] = next_observations[i]
        record[2 * d], record[2 * d + 1] = actions[i], rewards[i]
        record[2 * d + 2], record[2 * d + 3] = terminated[i], truncated[i]
        seen[row] += 1


class RewardScale:
    """Divides rewards by the running deviation of the discounted return, as VecNormalize does, for n trials."""

    def __init__(self, n: int, gamma: float, is_active: bool) -> None:
        self._gamma, self.is_active = gamma, is_active
        self._returns, self._mean, self._var, self._count = np.zeros(n), np.zeros(n), np.ones(n), np.zeros(n)
        self.deviation = np.ones(n)
        """What rewards are divided by; 1 where they are left as they are."""
        self.clip = REWARD_CLIP if is_active else np.inf

    def start(self, rows: Rows) -> None:
        """Fresh statistics."""
        self._returns[rows] = self._mean[rows] = 0.0
        self._var[rows], self._count[rows], self.deviation[rows] = 1.0, 1e-4, 1.0

    def update(self, rows: Rows, rewards: Floats, ended: Flags) -> None:
        """One step of some trials."""
        if not self.is_active:
            return
        returns = self._returns[rows] * self._gamma + rewards.astype(np.float32)  # as a VecEnv gives them
        count, delta = self._count[rows], returns - self._mean[rows]
        self._mean[rows] += delta / (count + 1)
        self._var[rows] = (self._var[rows] * count + delta**2 * count / (count + 1)) / (count + 1)
        self._count[rows] = count + 1
        self._returns[rows] = np.where(ended, 0.0, returns)
        self.deviation[rows] = np.sqrt(self._var[rows] + REWARD_EPSILON)

    def scaled(self, rows: Rows, rewards: Floats) -> Floats:
        """The rewards by the statistics of now."""
        if not self.is_active:
            return rewards
        return np.clip(rewards / self.deviation[rows], -self.clip, self.clip)
