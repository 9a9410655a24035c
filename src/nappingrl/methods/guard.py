"""No harm: a guard that lets a method play only while that pays, for every method.

The episode of the alarm is played by the frozen agent to its end: its return is the reference f (later frozen episodes
make it a mean). Then the method plays. What its episodes fall short of f adds up, what they gain takes it down to no
less than zero; when the sum exceeds the budget b, the frozen agent plays again, for 1, 2, 4, ... episodes, before the
method gets another try with nothing on its account. Within an episode the frozen agent takes over as soon as the return
so far is below f - b, which only rewards below zero can do.

The bound. Let l be the most that a single episode of the method falls short of f. A try ends with the first episode
that takes the sum over b, so its episodes fall short of f by at most b + l together; the k-th try comes after at least
2^(k-1) - 1 frozen episodes, so N episodes hold at most 1 + log2(N + 1) tries. All adapted episodes together thus fall
short of the reference of their time by at most (b + l)(1 + log2(N + 1)), whatever the method does. With rewards below
zero l is at most b plus what the frozen agent loses from there to the end.

b is `budget` times |f|, or times a quarter of the magnitude of the mean return before the novelty where that is more.
The bound holds for each stay in a world: another world, or a way back, begins a new account.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.types import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition, arrays_of

BUDGET = 0.5
LEAST_SHARE = 0.25


class Guard:
    """Decides for n trials who plays: the method or the frozen agent."""

    def __init__(self, n: int, budget: float = BUDGET) -> None:
        self.budget = budget
        self._before, self._n_before = np.zeros(n), np.zeros(n, np.int64)
        self._frozen, self._n_frozen = np.zeros(n), np.zeros(n, np.int64)
        self._short, self._wait, self._pause = np.zeros(n), np.zeros(n, np.int64), np.ones(n, np.int64)
        self._away, self._is_frozen = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
        self.returns = np.zeros(n)
        """Of the episodes under way."""
        self.n_stopped = np.zeros(n, np.int64)
        """How often the method was stopped."""

    def start(self, rows: Rows) -> None:
        """A new trial begins."""
        for array in (self._before, self._n_before, self.returns, self.n_stopped):
            array[rows] = 0
        self.on_context_change(rows, np.zeros(len(rows), np.int64))

    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        """Another world: its reference is not known yet, so the frozen agent plays this episode."""
        self._frozen[rows] = self._n_frozen[rows] = 0
        self._short[rows], self._wait[rows], self._pause[rows] = 0.0, 0, 1
        self._away[rows] = contexts > 0
        self._is_frozen[rows] = True

    def reference(self, rows: Rows) -> Floats:
        """Mean return of the frozen agent's episodes in this world; NaN: none yet."""
        with np.errstate(invalid="ignore"):
            mean: Floats = self._frozen[rows] / np.where(self._n_frozen[rows], self._n_frozen[rows], np.nan)
        return mean

    def allowance(self, rows: Rows) -> Floats:
        """The budget b."""
        before = np.abs(self._before[rows]) / np.maximum(self._n_before[rows], 1)
        b: Floats = self.budget * np.fmax(np.abs(self.reference(rows)), LEAST_SHARE * before)
        return b

    def plays_frozen(self, rows: Rows) -> Flags:
        """Where the frozen agent acts now; the method may act freely where no other world is believed in."""
        return self._away[rows] & self._is_frozen[rows]

    def step(self, rows: Rows, rewards: Floats) -> None:
        """Take over where the return so far is already below what may be lost."""
        self.returns[rows] += rewards
        lost = self.returns[rows] < self.reference(rows) - self.allowance(rows)
        mine = rows[self._away[rows] & ~self._is_frozen[rows] & lost & (rewards < 0)]
        self._is_frozen[mine] = True
        self._wait[mine] = -1  # this episode still counts as the method's

    def end_episode(self, rows: Rows) -> None:
        """Judge the episode, and decide who plays the next."""
        total, self.returns[rows] = self.returns[rows].copy(), 0.0
        home = ~self._away[rows]
        self._before[rows[home]] += total[home]
        self._n_before[rows[home]] += 1
        for row, value in zip(rows[~home].tolist(), total[~home].tolist(), strict=True):
            if self._is_frozen[row] and self._wait[row] >= 0:
                self._frozen[row] += value
                self._n_frozen[row] += 1
                self._wait[row] -= 1
                self._is_frozen[row] = self._wait[row] > 0
                continue
            one = np.array([row])
            self._short[row] = max(0.0, self._short[row] + float(self.reference(one)[0]) - value)
            self._is_frozen[row] = self._short[row] > self.allowance(one)[0]
            self._wait[row] = 0
            if self._is_frozen[row]:
                self.n_stopped[row] += 1
                self._wait[row], self._pause[row] = self._pause[row], 2 * self._pause[row]
                self._short[row] = 0.0


class _Guarding(Method):
    """Put before a method in a class's bases: its episodes are played only while that pays."""

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        self.guard = Guard(n)

    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        self.guard.start(rows)

    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        super().on_context_change(rows, contexts)
        self.guard.on_context_change(rows, contexts)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        actions = super().act(rows, observations, decision)
        frozen = self.guard.plays_frozen(rows)
        if not frozen.any():
            return actions
        mixed: Actions = actions.copy()
        mixed[frozen] = decision.actions[frozen]
        return mixed

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        frozen = self.guard.plays_frozen(rows)
        super().learn(rows, transition, detected if self.learns_from_others else detected & ~frozen)
        self.guard.step(rows, transition.rewards)

    def end_episode(self, rows: Rows) -> None:
        super().end_episode(rows)
        self.guard.end_episode(rows)

    def discard_episode(self, rows: Rows) -> None:
        super().discard_episode(rows)
        self.guard.returns[rows] = 0.0

    def state(self) -> dict[str, NDArray[Any]]:
        return super().state() | {f"guard.{name}": array for name, array in arrays_of(self.guard).items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super().restore(state)
        for name, array in arrays_of(self.guard).items():
            array[:] = state[f"guard.{name}"]


def guarded(kind: type[Method]) -> type[Method]:
    """The same method behind a guard."""
    members: dict[str, Any] = {"__doc__": kind.__doc__, "__module__": kind.__module__}
    return type(f"Guarded{kind.__name__}", (_Guarding, kind), members)
