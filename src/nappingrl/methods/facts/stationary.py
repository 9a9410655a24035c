"""A world whose outcomes follow from observation and action: plan over facts, optimistic about what was never tried."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.facts.ends import Stakes
from nappingrl.methods.facts.meanings import Meanings
from nappingrl.methods.facts.records import Facts, Places

GUESS_RISK = 0.03
"""How likely what an action did in the original world is believed not to hold."""
N_SWEEPS = 500


class StationaryWorld:
    """Values of all actions in all places met so far."""

    def __init__(self, places: Places, original: Facts, now: Facts, stakes: Stakes, n_actions: int) -> None:
        self._places = places
        before, after = _moves(original), _moves(now)
        self.meanings = Meanings(after, before, n_actions)
        n = len(places)
        ends, rewards = np.full((n, n_actions), -1), np.full((n, n_actions), stakes.unknown)
        """ends: the next place; -1: terminated, or unknown."""
        trust = np.ones((n, n_actions))
        self.is_known = np.zeros((n, n_actions), np.bool_)
        for action in range(n_actions):
            at = np.flatnonzero(self._may_mean(action)[original.actions])
            where = original.places[at], action
            ends[where] = np.where(original.terminated[at], -1, original.next_places[at])
            rewards[where], trust[where] = original.rewards[at], 1 - GUESS_RISK
        ends[now.places, now.actions] = np.where(now.terminated, -1, now.next_places)
        rewards[now.places, now.actions], trust[now.places, now.actions] = now.rewards, 1.0
        self.is_known[now.places, now.actions] = True
        self.values = np.zeros((n, n_actions))
        _solve(ends, rewards, trust, stakes.discount, stakes.worst, self.values, N_SWEEPS)

    def _may_mean(self, action: int) -> NDArray[np.bool_]:
        """(n_actions,) the original actions whose outcomes this one may have."""
        meant = self.meanings.acts_as
        if meant[action] < 0:
            return np.asarray(self.meanings.is_possible[action])
        return np.asarray(np.arange(len(meant)) == meant[action])

    def scores(self, time: int, observation: NDArray[np.float32]) -> NDArray[np.float64] | None:
        """What each action is worth here; None: this place is new."""
        place = self._places.find(observation)
        return self.values[place] if 0 <= place < len(self.values) else None


def _moves(facts: Facts) -> dict[tuple[int, int], int]:
    columns = facts.places, facts.actions, facts.next_places
    return {(p, a): q for p, a, q in zip(*(column.tolist() for column in columns), strict=True)}


@kernel()
def _solve(
    ends: NDArray[np.int64], rewards: NDArray[np.float64], trust: NDArray[np.float64], discount: float, worst: float,
    values: NDArray[np.float64], n_sweeps: int,
) -> None:  # fmt: skip
    """Value iteration."""
    n, n_actions = ends.shape
    best = np.zeros(n)
    for _ in range(n_sweeps):
        change = 0.0
        for s in range(n):
            top = -np.inf
            for a in range(n_actions):
                value = rewards[s, a] + (discount * best[ends[s, a]] if ends[s, a] >= 0 else 0.0)
                value = trust[s, a] * value + (1.0 - trust[s, a]) * worst
                values[s, a] = value
                top = max(top, value)
            change = max(change, abs(top - best[s]))
            best[s] = top
        if change < 1e-9:
            break
