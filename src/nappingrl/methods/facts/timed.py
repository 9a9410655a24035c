"""A world in which time matters: plan where actions take the entries that they control, and when it is safe there."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.facts.ends import UNKNOWN_RISK, Stakes
from nappingrl.methods.facts.meanings import Meanings
from nappingrl.methods.facts.records import Facts
from nappingrl.methods.facts.signs import Signs

MAX_CELLS = 2000
MAX_TIME = 400
MAX_VALUES = 1_000_000
"""Times, cells and actions that are planned over, multiplied."""
RESOLUTION = 1e-4
"""Values of an entry that differ by less than this share of its range are the same."""
MAX_NUMBER = 2.0**53
"""Of a value, in multiples of the resolution; larger ones are the same."""
MAX_SMOOTHED = 4
"""Entries whose neighbouring values may tell of each other; more are compared exactly."""
WINDOW = 2
"""Steps before and after that tell of a moment."""
PRIOR_WEIGHT = 1.0
MAX_RISK = 0.98
Cell = tuple[int, ...]


class TimedWorld:
    """Values of all actions at all times in all cells that can be reached."""

    def __init__(
        self, observations: NDArray[np.float32], entries: NDArray[np.int64], original: Facts, now: Facts,
        stakes: Stakes, n_actions: int, horizon: int, bounds: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> None:  # fmt: skip
        self._entries, self._n_actions = entries, n_actions
        kept = observations[:, entries].astype(np.float64)
        span = kept.max(axis=0) - kept.min(axis=0)
        self._resolution = RESOLUTION * np.where(span > 0, span, 1.0)
        cells = [tuple(cell) for cell in self._cells(observations).tolist()]
        with np.errstate(over="ignore", invalid="ignore"):
            low, high = (np.rint(bound[entries] / self._resolution) for bound in bounds)
        self._low, self._high = low, high
        self._now, self._original = _entry_moves(cells, now), _entry_moves(cells, original)
        self.meanings = Meanings(self._now, self._original, n_actions)
        self._steps_now, self._steps_before = _usual_steps(self._now), _usual_steps(self._original)
        self.numbers: dict[Cell, int] = {}
        n_times = min(MAX_TIME, horizon)
        self._max_cells = min(MAX_CELLS, MAX_VALUES // (n_times * n_actions))
        moves = self._reach([cells[place] for place in now.places[now.times == 0]] or cells[:1])
        goals = _goal_values(cells, original, now, stakes)
        is_goal = np.array([any(value in goals[i] for i, value in enumerate(cell)) for cell in self.numbers])
        facts = np.full((n_times, len(self.numbers)), -1)
        """By time and cell of arrival: 1 ended badly, 0 did not, -1 unknown."""
        is_bad = now.terminated & ~stakes.is_good(now.rewards)
        for time, place, bad in zip(now.times.tolist(), now.next_places.tolist(), is_bad.tolist(), strict=True):
            if time < n_times and cells[place] in self.numbers:
                facts[time, self.numbers[cells[place]]] = bad
        values = np.array(list(self.numbers), np.int64)
        is_varying = (values != values[0]).any(axis=0)
        self.varying: NDArray[np.int64] = entries[is_varying]
        """The controlled entries that take several values."""
        risk = _risks(facts, _ranks(values[:, is_varying]))
        risk[:, is_goal & (facts < 1).all(axis=0)] = 0.0
        self._bare_risk: NDArray[np.float64] = risk[:, moves]
        """(times, cells, actions) without signs"""
        self._risk = self._bare_risk.copy()
        self._is_open: NDArray[np.bool_] = (facts < 0)[:, moves] & ~is_goal[moves]
        """The same: whether nothing is known of the arrival."""
        self._count_signs(observations, original, now, stakes, n_times)
        self._heed_signs(observations, now, cells)
        self._moves, self._is_goal, self._stakes = moves, is_goal, stakes
        self.values = np.zeros((n_times + 1, len(self.numbers), n_actions))
        _solve(moves, self._risk, is_goal, stakes.best, stakes.worst, stakes.step_reward, stakes.discount, self.values)

    def _count_signs(
        self, observations: NDArray[np.float32], original: Facts, now: Facts, stakes: Stakes, n_times: int
    ) -> None:
        """Learn from both worlds which signs warn of an action."""
        is_told = np.zeros(observations.shape[1], np.bool_)
        is_told[self._entries] = True
        self._signs = Signs(observations, is_told, self._n_actions)
        shown = self._signs.shown(observations)
        for facts, meanings in ((now, np.arange(self._n_actions)), (original, self.meanings.acts_as)):
            is_bad = facts.terminated & ~stakes.is_good(facts.rewards) & (facts.times < n_times - 1)
            for action, meant in enumerate(meanings.tolist()):
                self._signs.count(shown, facts, is_bad, action, meant)

    def _heed_signs(self, observations: NDArray[np.float32], now: Facts, cells: list[Cell]) -> None:
        """Correct the risk of what was never tried, at all moments and cells that were met."""
        numbers = np.array([self.numbers.get(cells[place], -1) for place in now.places], np.int64)
        at = np.flatnonzero((numbers >= 0) & (now.times < len(self._risk)))
        times, found = now.times[at], numbers[at]
        warned = self._signs.risks(self._signs.shown(observations[now.places[at]]), self._bare_risk[times, found])
        self._risk[times, found] = np.where(self._is_open[times, found], warned, self._risk[times, found])

    def _cells(self, observations: NDArray[np.float32]) -> NDArray[np.int64]:
        numbers = np.rint(observations[:, self._entries].astype(np.float64) / self._resolution)
        return np.clip(numbers, -MAX_NUMBER, MAX_NUMBER).astype(np.int64)

    def _after(self, i: int, value: int) -> list[int]:
        """Where each action takes an entry: as seen now, else as in the original world, else by its usual step."""
        ends, key = [], (i, value)
        for action, meant in enumerate(self.meanings.acts_as.tolist()):
            end = self._now.get((key, action))
            if end is None and meant >= 0:
                end = self._original.get((key, meant))
            if end is None:
                step = self._steps_now.get((i, action), self._steps_before.get((i, meant), 0))
                end = int(min(max(value + step, self._low[i]), self._high[i]))
            ends.append(end)
        return ends

    def _reach(self, starts: list[Cell]) -> NDArray[np.int64]:
        """Number the cells that can be reached from these; returns where each action leads (cells, actions)."""
        self.numbers = {cell: number for number, cell in enumerate(dict.fromkeys(starts))}
        after = cache(self._after)
        queue, moves = list(self.numbers), []
        for cell in queue:
            ends = []
            for end in zip(*(after(i, value) for i, value in enumerate(cell)), strict=True):
                if end not in self.numbers and len(queue) < self._max_cells:
                    self.numbers[end] = len(queue)
                    queue.append(end)
                ends.append(self.numbers.get(end, self.numbers[cell]))
            moves.append(ends)
        return np.array(moves, np.int64)

    def scores(self, time: int, observation: NDArray[np.float32]) -> NDArray[np.float64] | None:
        """What each action is worth now; None: nothing is known of this cell."""
        number = self.numbers.get(tuple(self._cells(observation[None])[0].tolist()), -1)
        if number < 0 or time >= len(self.values) - 1:
            return None
        before, what, ends = self._bare_risk[time, number], self._stakes, self._moves[number]
        warned = self._signs.risks(self._signs.shown(observation[None]), before[None])[0]
        risk = np.where(self._is_open[time, number], warned, before)
        later = self.values[time + 1, ends].max(axis=1) if time + 2 < len(self.values) else what.worst
        reached = np.where(self._is_goal[ends], what.best, what.step_reward + what.discount * later)
        return np.asarray((1.0 - risk) * reached + risk * what.worst)


def _entry_moves(cells: list[Cell], facts: Facts) -> dict[tuple[tuple[int, int], int], int]:
    """By ((entry, value), action): its next value."""
    found = {}
    columns = facts.places, facts.actions, facts.next_places
    for place, action, end in zip(*(column.tolist() for column in columns), strict=True):
        for i, (value, after) in enumerate(zip(cells[place], cells[end], strict=True)):
            found[(i, value), action] = after
    return found


def _usual_steps(moves: dict[tuple[tuple[int, int], int], int]) -> dict[tuple[int, int], int]:
    """By (entry, action): by how much it usually changes the entry."""
    counts: dict[tuple[int, int], Counter[int]] = {}
    for ((i, value), action), after in moves.items():
        counts.setdefault((i, action), Counter())[after - value] += 1
    return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}


def _goal_values(cells: list[Cell], original: Facts, now: Facts, stakes: Stakes) -> list[set[int]]:
    """By entry, the values that only good endings have."""
    good: set[Cell] = set()
    other: set[Cell] = set()
    for facts in (original, now):
        is_good = facts.terminated & stakes.is_good(facts.rewards)
        good |= {cells[place] for place in facts.next_places[is_good]}
        other |= {cells[place] for place in facts.next_places[~is_good]}
        other |= {cells[place] for place in facts.places}
    n_entries = len(cells[0])
    return [{cell[i] for cell in good} - {cell[i] for cell in other} for i in range(n_entries)]


def _ranks(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """(cells, entries) the rank of each value among those of its entry."""
    ranks = np.empty_like(values)
    for i, column in enumerate(values.T):
        ranks[:, i] = np.unique(column, return_inverse=True)[1].reshape(-1)
    return ranks


def _risks(facts: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """The risk of each arrival, from known ones near it; what "near" means is what predicts the known ones best."""
    risk, n_smoothed = np.empty(facts.shape), min(ranks.shape[1], MAX_SMOOTHED)
    best, best_loss = np.zeros(ranks.shape[1], np.bool_), np.inf
    for choice in product((True, False), repeat=n_smoothed):
        is_smooth = np.zeros(ranks.shape[1], np.bool_)
        is_smooth[:n_smoothed] = choice
        loss = _smooth(facts, ranks, is_smooth, True, UNKNOWN_RISK, risk)
        if loss < best_loss - 1e-9:
            best, best_loss = is_smooth, loss
    _smooth(facts, ranks, best, False, UNKNOWN_RISK, risk)
    return risk


@kernel()
def _smooth(
    facts: NDArray[np.int64], ranks: NDArray[np.int64], is_smooth: NDArray[np.bool_], leaves_out: bool,
    prior: float, risk: NDArray[np.float64],
) -> float:  # fmt: skip
    """Fill `risk`; returns the negative log-likelihood of known arrivals, each left out, if `leaves_out`."""
    n_times, n = facts.shape
    known = np.empty(facts.size, np.int64)
    starts = np.zeros(n_times + 1, np.int64)
    count = 0
    for t in range(n_times):
        for s in range(n):
            if facts[t, s] >= 0:
                known[count] = s
                count += 1
        starts[t + 1] = count
    loss = 0.0
    for t in range(n_times):
        for s in range(n):
            if not leaves_out and facts[t, s] >= 0:
                risk[t, s] = float(facts[t, s])
                continue
            if leaves_out and facts[t, s] < 0:
                continue
            bad, total = PRIOR_WEIGHT * prior, PRIOR_WEIGHT
            for u in range(max(0, t - WINDOW), min(n_times, t + WINDOW + 1)):
                for j in range(starts[u], starts[u + 1]):
                    other = known[j]
                    if u == t and other == s:
                        continue
                    distance = float((u - t) ** 2)
                    for i in range(ranks.shape[1]):
                        gap = abs(ranks[s, i] - ranks[other, i])
                        if gap and not is_smooth[i]:
                            distance = np.inf
                            break
                        distance += gap * gap
                    if distance < 18.0:
                        weight = np.exp(-0.5 * distance)
                        total += weight
                        bad += weight * facts[u, other]
            value = min(bad / total, MAX_RISK)
            if leaves_out:
                loss -= np.log(value) if facts[t, s] == 1 else np.log(1.0 - value)
            else:
                risk[t, s] = value
    return loss


@kernel()
def _solve(
    moves: NDArray[np.int64], risk: NDArray[np.float64], is_goal: NDArray[np.bool_], best: float, worst: float,
    step_reward: float, discount: float, values: NDArray[np.float64],
) -> None:  # fmt: skip
    """Dynamic programming from the last moment to the first."""
    n_times, n, _ = risk.shape
    later = np.full(n, worst)
    for t in range(n_times - 1, -1, -1):
        top = np.full(n, -np.inf)
        for s in range(n):
            for a in range(moves.shape[1]):
                end = moves[s, a]
                reached = best if is_goal[end] else step_reward + discount * later[end]
                value = (1.0 - risk[t, s, a]) * reached + risk[t, s, a] * worst
                values[t, s, a] = value
                top[s] = max(top[s], value)
        later = top
