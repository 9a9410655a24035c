"""The guard: a method plays only while that pays, for every method.

The frozen agent plays the episode of the alarm to its end: its return is the reference f (later frozen episodes make it
a mean). Then the method plays. Its deficit grows by what an episode falls short of f and shrinks by what it gains, down
to zero; when the deficit exceeds the budget b, the frozen agent plays again, for 1, 2, 4, ... episodes, before the
method is tried again with its deficit reset to zero. Within an episode the frozen agent takes over as soon as the
return so far is below f - b, which only negative rewards can cause.

The bound. Let l be the most that a single episode of the method falls short of f. A try ends with the first episode
that takes the deficit over b, so its episodes fall short of f by at most b + l together; the k-th try comes after at
least 2^(k-1) - 1 frozen episodes, so N episodes hold at most 1 + log2(N + 1) tries. All adapted episodes together thus
fall short of the reference of their time by at most (b + l)(1 + log2(N + 1)), whatever the method does. With negative
rewards l is at most b plus what the frozen agent loses from there to the end.

b is `budget` times |f|, or times a quarter of the magnitude of the mean return before the novelty where that is more.
The bound holds for each stay in a context: another context, or a return, resets the deficit.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.observations import merge_decisions, take
from nappingrl.methods.base import Forecast, Method
from nappingrl.snapshot import Expected, restore_arrays
from nappingrl.types import Actions, Decision, Flags, Floats, Keys, Observations, Rows, Transition, arrays_of

BUDGET = 0.5
LEAST_SHARE = 0.25


class Guard:
    """Decides for n trials whether the method or the frozen agent plays."""

    saved: ClassVar[Mapping[str, Expected]] = {
        "_n_before": Expected(low=0), "_n_frozen": Expected(low=0), "_short": Expected(low=0),
        "_wait": Expected(low=-1, high=2**40), "_pause": Expected(low=1, high=2**40), "n_stopped": Expected(low=0),
    }  # fmt: skip

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
        """Another context: its reference is unknown yet, so the frozen agent plays this episode."""
        self._frozen[rows] = self._n_frozen[rows] = 0
        self._short[rows], self._wait[rows], self._pause[rows] = 0.0, 0, 1
        self._away[rows] = contexts > 0
        self._is_frozen[rows] = True

    def reference(self, rows: Rows) -> Floats:
        """Mean return of the frozen agent's episodes in this context; NaN: none yet."""
        with np.errstate(invalid="ignore"):
            mean: Floats = self._frozen[rows] / np.where(self._n_frozen[rows], self._n_frozen[rows], np.nan)
        return mean

    def allowance(self, rows: Rows) -> Floats:
        """The budget b."""
        before = np.abs(self._before[rows]) / np.maximum(self._n_before[rows], 1)
        b: Floats = self.budget * np.fmax(np.abs(self.reference(rows)), LEAST_SHARE * before)
        return b

    def plays_frozen(self, rows: Rows) -> Flags:
        """Where the frozen agent acts now; before an alarm the method acts freely."""
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


class GuardedMethod(Method):
    """A method whose episodes are played only while that pays; else the frozen agent plays."""

    def __init__(self, method: Method) -> None:
        self.method = method
        self.agent, self.info, self.n, self.name = method.agent, method.info, method.n, method.name
        self.can_be_saved = method.can_be_saved
        self.needs_alarm = method.needs_alarm
        self.guard = Guard(method.n)

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        self.method.start(rows, keys)
        self.guard.start(rows)

    @override
    def compiled(self) -> None:
        """The guard decides in Python."""

    @override
    def reveal(self, rows: Rows, parameters: Floats) -> None:
        self.method.reveal(rows, parameters)

    @override
    def reveal_episode(self, rows: Rows, draws: Floats) -> None:
        self.method.reveal_episode(rows, draws)

    @override
    def forward(self, rows: Rows, observations: Observations) -> Decision:
        frozen = self.guard.plays_frozen(rows)
        if not self.method.translates or not frozen.any():
            return self.method.forward(rows, observations)
        decision = self.method.agent.decide(rows[frozen], take(observations, frozen))
        if frozen.all():
            return decision
        return merge_decisions(~frozen, self.method.forward(rows[~frozen], take(observations, ~frozen)), decision)

    @override
    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        actions = self.method.act(rows, observations, decision)
        frozen = self.guard.plays_frozen(rows)
        if not frozen.any():
            return actions
        mixed: Actions = actions.copy()
        mixed[frozen] = decision.actions[frozen]
        return mixed

    @override
    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        frozen = self.guard.plays_frozen(rows)
        self.method.learn(rows, transition, detected if self.method.learns_from_others else detected & ~frozen)
        self.guard.step(rows, transition.rewards)

    @override
    def on_context_change(self, rows: Rows, contexts: Rows) -> None:
        self.method.on_context_change(rows, contexts)
        self.guard.on_context_change(rows, contexts)

    @override
    def end_episode(self, rows: Rows) -> None:
        self.method.end_episode(rows)
        self.guard.end_episode(rows)

    @override
    def discard_episode(self, rows: Rows) -> None:
        self.method.discard_episode(rows)
        self.guard.returns[rows] = 0.0

    @override
    def notes(self) -> list[str]:
        return self.method.notes()

    @override
    def status(self, row: int) -> str:
        if not self.guard.plays_frozen(np.array([row]))[0]:
            return self.method.status(row)
        n_stopped = int(self.guard.n_stopped[row])
        often = f"the guard has stopped it {n_stopped} times, as it did not pay; it will be tried again"
        return often if n_stopped else ""  # the agent's first episode in a context is the reference

    @override
    def acting(self, row: int) -> str:
        return "" if self.guard.plays_frozen(np.array([row]))[0] else self.method.acting(row)

    @override
    def signature(self, row: int) -> str:
        return self.method.signature(row)

    @override
    def is_certain(self, rows: Rows) -> Flags:
        return self.method.is_certain(rows)

    @override
    def try_out(self, row: int) -> bool:
        return not self.guard.plays_frozen(np.array([row]))[0] and self.method.try_out(row)

    @override
    def forecast(self, row: int) -> Forecast | None:
        return self.method.forecast(row)

    @override
    def imagine(self, row: int, observation: Floats, n_steps: int) -> Floats | None:
        return None if not self.acting(row) else self.method.imagine(row, observation, n_steps)

    @override
    def diverged(self, rows: Rows) -> Flags:
        return self.method.diverged(rows)

    @override
    def table(self, row: int) -> dict[str, NDArray[Any]]:
        return self.method.table(row)

    @property
    @override
    def choice_names(self) -> tuple[str, ...]:
        return self.method.choice_names

    @override
    def describe(self, row: int) -> str:
        return self.method.describe(row)

    @override
    def context_sizes(self, row: int) -> dict[int, int]:
        return self.method.context_sizes(row)

    @override
    def regions(self, rows: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.method.regions(rows)

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        return self.method.state() | {f"guard.{name}": array for name, array in arrays_of(self.guard).items()}

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        self.method.restore(state)
        restore_arrays(self.guard, state, "guard.")
