"""Controls: cheap alternatives that any method must beat.

All of them act as the trained agent wants until the novelty is detected, as NAPPING does.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.methods.napping import Napping
from nappingrl.options import Option
from nappingrl.rng import Streams
from nappingrl.types import Actions, Decision, Flags, Keys, Observations, Rows, Transition


class Control(Method):
    """Remembers where the novelty was detected; `instead` says what to do there."""

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        self._detected = np.zeros(n, np.bool_)
        self.streams = Streams(n)

    def start(self, rows: Rows, keys: Keys) -> None:
        """Nothing is detected yet."""
        self._detected[rows] = False
        self.streams.start(rows, keys)

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The agent's actions before detection, `instead` after it."""
        at = self._detected[rows]
        if not at.any():
            return decision.actions
        actions = decision.actions.copy()
        actions[at] = self.instead(rows[at], observations[at], actions[at])
        return actions

    def instead(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        """What to do where the agent wants `wanted`."""
        raise NotImplementedError

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Hear of the detection: with the first step after it, like NAPPING."""
        self._detected[rows] = detected

    def status(self, row: int) -> str:
        """Whether it has heard of the detection."""
        return "" if self._detected[row] else "no step was observed since the alarm"

    def acting(self, row: int) -> str:
        """The control, from the detection on."""
        return self.name if self._detected[row] else ""


class Random(Control):
    """Any valid action, each with the same probability."""

    def instead(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        """A random action; uniform in their box for continuous actions."""
        low, high = self.agent.action_low, self.agent.action_high
        if low is not None and high is not None:
            shares = np.stack([self.streams.uniform(rows) for _ in low], axis=1)
            return (low + shares * (high - low)).astype(np.float32)
        mask = self.mask(observations)
        if mask is None or not mask.any(axis=1).all():
            return self.streams.integers(rows, self.agent.n_actions)
        places = (self.streams.uniform(rows) * mask.sum(axis=1)).astype(np.int64)
        actions: Actions = (mask.cumsum(axis=1) > places[:, None]).argmax(axis=1)
        return actions


class SwitchOnFailure(Control):
    """Memoryless: any action but the wanted one if the score of the step before was bad, else the wanted one."""

    needs_discrete = True
    takes_score = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        self._was_bad = np.zeros(n, np.bool_)
        self._has_failed = np.zeros(n, np.bool_)

    def start(self, rows: Rows, keys: Keys) -> None:
        """No step before."""
        super().start(rows, keys)
        self._was_bad[rows] = self._has_failed[rows] = False

    def instead(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        """Another action where the last one was bad."""
        other = (wanted + 1 + self.streams.integers(rows, self.agent.n_actions - 1)) % self.agent.n_actions
        return np.where(self._was_bad[rows], other, wanted)

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Judge the step."""
        super().learn(rows, transition, detected)
        self._was_bad[rows] = self.scores_of(rows, transition) < self.score.threshold
        self._has_failed[rows] |= self._was_bad[rows]

    def status(self, row: int) -> str:
        """Whether any step was bad."""
        return super().status(row) or ("" if self._has_failed[row] else self.never_failed())

    def acting(self, row: int) -> str:
        """The control, from the first bad step on."""
        return super().acting(row) if self._has_failed[row] else ""

    def end_episode(self, rows: Rows) -> None:
        """The first step of an episode has none before it."""
        self._was_bad[rows] = False


MAX_REPLAYED = 100_000
"""Steps of an episode that `ReplaySuccess` writes down; a longer success is not repeated."""


class ReplaySuccess(Control):
    """Acts at random now and then until one episode is a success, then repeats that episode's list of actions."""

    needs_discrete = True
    options: ClassVar[Mapping[str, Option]] = {
        "epsilon": Option(0.25, "share of random actions until the first success", high=1.0)
    }

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        if info.domain.won is None:
            raise BadSpecError("method 'replay-success' needs a domain that says which episodes are a success")
        self._is_won = info.domain.won
        self._epsilon = float(self.option("epsilon"))
        self._actions = np.zeros((n, 1), np.int64)
        self._length = np.zeros(n, np.int64)
        """Steps of the stored success; 0: none yet."""
        self._steps, self._returns, self._terminated = np.zeros(n, np.int64), np.zeros(n), np.zeros(n, np.bool_)

    def start(self, rows: Rows, keys: Keys) -> None:
        """No success yet."""
        super().start(rows, keys)
        self._length[rows] = self._steps[rows] = 0
        self._returns[rows] = 0.0

    def instead(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        """The stored action of this step; where there is none, the wanted one or a random one."""
        tried = self.streams.epsilon_greedy(rows, wanted, self.agent.n_actions, self._epsilon)
        step = np.minimum(self._steps[rows], self._actions.shape[1] - 1)
        return np.where(self._steps[rows] < self._length[rows], self._actions[rows, step], tried)

    def learn(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Write the episode down until there is a success."""
        super().learn(rows, transition, detected)
        is_new = (self._length[rows] == 0) & (self._steps[rows] < MAX_REPLAYED)
        new = rows[is_new]
        if self._steps[new].max(initial=0) >= self._actions.shape[1]:
            self._actions = np.hstack([self._actions, np.zeros_like(self._actions)])
        self._actions[new, self._steps[new]] = transition.actions[is_new]
        self._steps[rows] += 1
        self._returns[rows] += transition.rewards
        self._terminated[rows] = transition.terminated

    def end_episode(self, rows: Rows) -> None:
        """Keep the list of the first success after detection."""
        won = self._is_won(self._steps[rows], self._terminated[rows], self._returns[rows])
        is_first = (self._length[rows] == 0) & (self._steps[rows] <= MAX_REPLAYED)
        first = rows[won & self._detected[rows] & is_first]
        self._length[first] = self._steps[first]
        self._steps[rows], self._returns[rows] = 0, 0.0

    def status(self, row: int) -> str:
        """Whether there was a success."""
        share = f"it acts as the agent, with {self._epsilon:.0%} random actions"
        return super().status(row) or ("" if self._length[row] else f"no episode was a success yet: {share}")


class BareController(Control):
    """The hand-made policy behind the score, without any learning: what the score alone already encodes."""

    takes_score = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        controllers = info.domain.controllers
        if self.score.name not in controllers:
            others = f"scores with one: {', '.join(controllers)}" if controllers else "this domain has none"
            raise BadSpecError(f"score '{self.score.name}' has no controller; {others}")
        self._controller = controllers[self.score.name]

    def instead(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        """The controller's actions."""
        return self._controller(observations)


class NappingNoMemory(Napping):
    """NAPPING that forgets all principles after every episode."""

    def status(self, row: int) -> str:
        """As NAPPING's within an episode; between two of them it knows nothing."""
        return super().status(row) if self.principles.n_regions[row] else ""

    def end_episode(self, rows: Rows) -> None:
        """Forget."""
        self.principles.forget(rows)
