"""Novelty by broken promises: episodes earn far less than the agent's own critic expected at their start.

It needs no episodes before the change, so it also works in a world that changed before the agent was attached. The
critic's expectation is compared with the discounted return; a truncated episode adds what the critic expects from its
last state.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.agents.observations import take
from nappingrl.detectors.base import Detector, Gauge
from nappingrl.snapshot import Expected
from nappingrl.types import Floats, Observations, Rows, Transition
from nappingrl.world_model.memory import TransitionMemory

MIN_SHORTFALL = 0.3
"""Share of its expectation by which an episode must fall short."""
N_EPISODES = 3
"""Episodes in a row that must fall short."""


class Critic(Detector):
    """Alarms when three episodes in a row earn far less than the agent's critic expected; needs no reference."""

    uses_memory = True
    saved: ClassVar[Mapping[str, Expected]] = {**Detector.saved, "_n_short": Expected(low=0, high=2**40)}

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self._agent: Agent | None = None
        self._expected, self._earned, self._factor = np.zeros(n), np.zeros(n), np.ones(n)
        self._has_begun, self._is_declared = np.zeros((2, n), np.bool_)
        """_is_declared: whether the protocol declares the first episodes unchanged, whatever they earn."""
        self._n_short = np.zeros(n, np.int64)
        """Latest episodes in a row that fell short."""

    @override
    def connect(self, memory: TransitionMemory, agent: Agent) -> None:
        self._agent = agent

    @property
    def can_judge(self) -> bool:
        """Whether the agent has a critic."""
        return self._agent is not None and not self._agent.no_critic and self._agent.gamma is not None

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._is_declared[rows] = episode < 0
        self._n_short[rows] = 0
        self.discard_episode(rows)

    @override
    def discard_episode(self, rows: Rows) -> None:
        self._has_begun[rows] = False
        self._earned[rows], self._factor[rows] = 0.0, 1.0

    @override
    def step(self, rows: Rows, transition: Transition) -> None:
        if not self.can_judge or self._agent is None:
            return
        is_first = ~self._has_begun[rows]
        if is_first.any():
            self._expected[rows[is_first]] = self._values(take(transition.observations, is_first))
            self._has_begun[rows] = True
        self._earned[rows] += self._factor[rows] * transition.rewards
        self._factor[rows] *= float(self._agent.gamma or 1.0)
        is_cut = transition.truncated & ~transition.terminated
        if is_cut.any():
            rest = self._values(take(transition.next_observations, is_cut))
            self._earned[rows[is_cut]] += self._factor[rows[is_cut]] * rest

    def _values(self, observations: Observations) -> Floats:
        values = self._agent.values(observations) if self._agent is not None else None
        return np.zeros(0) if values is None else np.asarray(values, np.float64)

    @override
    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        if self.can_judge:
            expected = self._expected[rows]
            is_short = self._earned[rows] < expected - MIN_SHORTFALL * np.abs(expected)
            self._n_short[rows] = np.where(is_short & self._has_begun[rows], self._n_short[rows] + 1, 0)
            is_open = ~self._is_declared[rows] | (next_episodes > 0)
            self.context[rows[is_open & (self._n_short[rows] >= N_EPISODES)]] = 1
        self.discard_episode(rows)

    @override
    def explain(self, row: int) -> str:
        if not self.context[row]:
            return ""
        return f"{N_EPISODES} episodes in a row earned far less than the agent's critic expected"

    @override
    def gauge(self, row: int) -> Gauge | None:
        return Gauge("disappointing episodes in a row", float(self._n_short[row]), high=N_EPISODES - 0.5)

    @override
    def status(self, row: int) -> str:
        if self.can_judge:
            return ""
        return "cannot alarm: " + (self._agent.no_critic if self._agent is not None else "it knows no agent")
