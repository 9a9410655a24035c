"""The detector of method `auto`: one-step prediction where steps can be predicted, otherwise critic and returns.

Until the original world is known, the agent's critic says what episodes should earn. Where it is known, but its steps
are too few to predict the next ones, as in episodes of a few shots, returns are watched.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.detectors.base import Detector, Gauge
from nappingrl.detectors.critic import Critic
from nappingrl.detectors.residual import Residual
from nappingrl.detectors.returns import Cusum
from nappingrl.types import DomainSpec, Floats, Rows, Transition, with_prefix
from nappingrl.world_model.memory import TransitionMemory
from nappingrl.world_model.transitions import episode_returns

RETURN_LIMIT = 15.0
"""Limit of the sum of deviations of returns, in spreads; an episode counts as 6 at most, so three bad ones alarm."""


class AutoDetector(Detector):
    """Residual; until it is calibrated, what the critic expects; where steps cannot be predicted, the returns."""

    needs_domain = True
    uses_memory = True

    def __init__(self, n: int, domain: DomainSpec) -> None:
        super().__init__(n)
        self.residual, self.critic, self.returns = Residual(n, domain), Critic(n), Cusum(n, RETURN_LIMIT, calibration=0)
        self._by_returns = np.zeros(n, np.bool_)
        """Where returns are watched."""
        self._by_critic = np.zeros(n, np.bool_)
        """Where the critic raised the alarm: nothing is known of the world before the change."""
        self._memory: TransitionMemory | None = None

    @override
    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "AutoDetector":
        return cls(n, domain)

    @override
    def connect(self, memory: TransitionMemory, agent: Agent) -> None:
        self._memory = memory
        self.residual.connect(memory, agent)
        self.critic.connect(memory, agent)

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._by_critic[rows] = self._by_returns[rows] = False
        for part in self._parts().values():
            part.start(rows, episode)

    @override
    def step(self, rows: Rows, transition: Transition) -> None:
        self.critic.step(rows, transition)
        self.residual.step(rows, transition)
        self._agree(rows)

    def _agree(self, rows: Rows) -> None:
        is_latched = self._by_critic[rows] | (self._by_returns[rows] & (self.returns.context[rows] > 0))
        self.context[rows] = np.where(is_latched, 1, self.residual.context[rows])

    @override
    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        was_calibrated = self.residual.is_calibrated(rows)
        self.critic.end_episode(rows, returns, next_episodes)
        is_new = (self.critic.context[rows] > 0) & ~was_calibrated & ~self._by_critic[rows]
        for row in rows[is_new].tolist():
            self._by_critic[row] = True
            if self._memory is not None:
                self._memory.disown(row)
        self.residual.end_episode(rows, returns, next_episodes)
        is_watched = self._by_returns[rows]
        if is_watched.any():
            self.returns.end_episode(rows[is_watched], returns[is_watched], next_episodes[is_watched])
        is_due = self.residual.is_calibrated(rows) & ~was_calibrated & ~self._by_critic[rows]
        for row, episode in zip(rows[is_due].tolist(), next_episodes[is_due].tolist(), strict=True):
            self._watch_returns(row, episode)
        self._agree(rows)

    def _watch_returns(self, row: int, episode: int) -> None:
        """Watch returns from an episode on, if steps cannot be predicted."""
        if self._memory is not None and self.residual.why_blind(row):
            self._by_returns[row] = True
            self.returns.calibrate(row, episode_returns(self._memory.before(row)), episode)

    @override
    def discard_episode(self, rows: Rows) -> None:
        for part in self._parts().values():
            part.discard_episode(rows)

    def _judge(self, row: int) -> Detector:
        """The part that decides in a row."""
        if self._by_critic[row]:
            return self.critic
        return self.returns if self._by_returns[row] else self.residual

    @override
    def explain(self, row: int) -> str:
        return self._judge(row).explain(row)

    @override
    def n_leading(self, row: int) -> int:
        judge = self._judge(row)
        return judge.n_leading(row) if judge is self.residual else super().n_leading(row)

    @override
    def gauge(self, row: int) -> Gauge | None:
        is_calibrated = self.residual.is_calibrated(np.array([row]))[0]
        return (self._judge(row) if is_calibrated else self.critic).gauge(row)

    @override
    def status(self, row: int) -> str:
        why = "" if self._by_critic[row] else self._judge(row).status(row)
        if not why or self._by_returns[row]:
            return why
        return f"{why}; until then it watches what the agent's critic expects" if self.critic.can_judge else why

    def _parts(self) -> dict[str, Detector]:
        return {"residual": self.residual, "critic": self.critic, "returns": self.returns}

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        own = super().state()
        parts = self._parts().items()
        return own | {f"{name}.{key}": array for name, part in parts for key, array in part.state().items()}

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super().restore({name: array for name, array in state.items() if "." not in name})
        for name, part in self._parts().items():
            part.restore(with_prefix(f"{name}.", state))
