"""A world whose outcomes follow from observation and action: plan over facts, optimistic about what was never tried."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.facts.ends import Stakes
from nappingrl.methods.facts.meanings import Meanings
from nappingrl.methods.facts.records import Facts, Recorder

GUESS_RISK = 0.03
"""How likely what an action did in the original world is believed not to hold."""
N_SWEEPS = 500


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Where each (place, action) may lead; pair k has the rows first[k] to first[k + 1]."""

    first: NDArray[np.int64]
    ends: NDArray[np.int64]
    """The next place; -1: terminated."""
    rewards: NDArray[np.float64]
    weights: NDArray[np.float64]
    """Sum up to 1 for each pair."""

    @classmethod
    def of(
        cls, pairs: NDArray[np.int64], steps: NDArray[np.int64], now: Facts, original: Facts, n_pairs: int
    ) -> "_Outcomes":
        """Of steps of both worlds, `now` first: which pair each tells of."""
        next_places = np.concatenate([now.next_places, original.next_places])[steps]
        terminated = np.concatenate([now.terminated, original.terminated])[steps]
        rewards = np.concatenate([now.rewards, original.rewards])[steps]
        ends = np.where(terminated, -1, next_places)
        width = int(ends.max(initial=0)) + 2
        keys, rows, counts = np.unique(pairs * width + ends + 1, return_inverse=True, return_counts=True)
        pairs = keys // width
        return cls(
            np.searchsorted(pairs, np.arange(n_pairs + 1)),
            keys % width - 1,
            np.bincount(rows, rewards, len(keys)) / counts,
            counts / np.bincount(pairs, counts, n_pairs)[pairs],
        )


class StationaryWorld:
    """Values of all actions in all places met so far."""

    def __init__(self, before: Recorder, after: Recorder, stakes: Stakes, n_actions: int) -> None:
        self._places = places = after.places
        original, now = before.facts(), after.facts()
        self.meanings = Meanings(after.moves, before.moves, n_actions)
        self.is_relabelled = self._is_relabelled(before, after)
        """Whether everything so far happened as in the original world, with other numbers of actions."""
        self._ends_badly = np.zeros((len(places), n_actions), np.bool_)
        is_bad = now.terminated & ~stakes.is_good(now.rewards)
        self._ends_badly[now.places[is_bad], now.actions[is_bad]] = True
        n_pairs = len(places) * n_actions
        told = [(now.places * n_actions + now.actions, np.arange(now.n))]
        self.is_known = np.zeros((len(places), n_actions), np.bool_)
        self.is_known[now.places, now.actions] = True
        for action in range(n_actions):
            at = np.flatnonzero(self._may_mean(action)[original.actions])
            at = at[~self.is_known[original.places[at], action]]
            told.append((original.places[at] * n_actions + action, now.n + at))
        pairs, steps = (np.concatenate([part[i] for part in told]) for i in (0, 1))
        outcomes = _Outcomes.of(pairs, steps, now, original, n_pairs)
        trust = np.where(self.is_known, 1.0, 1 - GUESS_RISK)
        trust[np.diff(outcomes.first).reshape(trust.shape) == 0] = 1.0
        self.values = np.zeros((len(places), n_actions))
        _solve(
            outcomes.first, outcomes.ends, outcomes.rewards, outcomes.weights, trust, stakes.unknown, stakes.discount,
            stakes.worst, self.values, N_SWEEPS,
        )  # fmt: skip

    def _is_relabelled(self, original: Recorder, now: Recorder) -> bool:
        """Whether each outcome, with its reward, is known from the action that its action is taken for."""
        if not self.meanings.is_possible.any(axis=1).all():
            return False
        meant = self.meanings.acts_as.tolist()
        compared = [
            (found, before)
            for (place, action), found in now.outcomes.items()
            if (before := original.outcomes.get((place, meant[action])))
        ]
        return bool(compared) and all(found <= before for found, before in compared)

    def _may_mean(self, action: int) -> NDArray[np.bool_]:
        """(n_actions,) the original actions whose outcomes this one may have."""
        meant = self.meanings.acts_as
        if meant[action] < 0:
            return np.asarray(self.meanings.is_possible[action])
        return np.asarray(np.arange(len(meant)) == meant[action])

    def may_follow(self, place: int, action: int) -> bool:
        """Whether a translated action of the agent, which was trained in this world, is as good as any plan here."""
        is_known = 0 <= place < len(self.values)
        return self.is_relabelled and not (is_known and self._ends_badly[place, action])

    def scores(self, time: int, observation: NDArray[np.float32]) -> NDArray[np.float64] | None:
        """What each action is worth here; None: this place is new."""
        place = self._places.find(observation)
        return self.values[place] if 0 <= place < len(self.values) else None


@kernel()
def _solve(
    first: NDArray[np.int64], ends: NDArray[np.int64], rewards: NDArray[np.float64], weights: NDArray[np.float64],
    trust: NDArray[np.float64], unknown: float, discount: float, worst: float, values: NDArray[np.float64],
    n_sweeps: int,
) -> None:  # fmt: skip
    """Value iteration."""
    n, n_actions = values.shape
    best = np.zeros(n)
    for _ in range(n_sweeps):
        change = 0.0
        for s in range(n):
            top = -np.inf
            for a in range(n_actions):
                pair = s * n_actions + a
                value = unknown if first[pair] == first[pair + 1] else 0.0
                for k in range(first[pair], first[pair + 1]):
                    value += weights[k] * (rewards[k] + (discount * best[ends[k]] if ends[k] >= 0 else 0.0))
                value = trust[s, a] * value + (1.0 - trust[s, a]) * worst
                values[s, a] = value
                top = max(top, value)
            change = max(change, abs(top - best[s]))
            best[s] = top
        if change < 1e-9:
            break
