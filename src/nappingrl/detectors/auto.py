"""The detector of method `auto`: one-step prediction where there is a reference, the agent's critic until then."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.detectors.base import Detector, Gauge
from nappingrl.detectors.critic import Critic
from nappingrl.detectors.residual import Residual
from nappingrl.types import DomainSpec, Floats, Rows, Transition, with_prefix
from nappingrl.world_model.memory import TransitionMemory


class AutoDetector(Detector):
    """Residual, and until it is calibrated: whether episodes earn what the agent's critic expects."""

    needs_domain = True
    uses_memory = True

    def __init__(self, n: int, domain: DomainSpec) -> None:
        super().__init__(n)
        self.residual, self.critic = Residual(n, domain), Critic(n)
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
        self._by_critic[rows] = False
        self.residual.start(rows, episode)
        self.critic.start(rows, episode)

    @override
    def step(self, rows: Rows, transition: Transition) -> None:
        self.critic.step(rows, transition)
        self.residual.step(rows, transition)
        self._agree(rows)

    def _agree(self, rows: Rows) -> None:
        self.context[rows] = np.where(self._by_critic[rows], 1, self.residual.context[rows])

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
        self._agree(rows)

    @override
    def discard_episode(self, rows: Rows) -> None:
        self.residual.discard_episode(rows)
        self.critic.discard_episode(rows)

    @override
    def explain(self, row: int) -> str:
        return (self.critic if self._by_critic[row] else self.residual).explain(row)

    @override
    def n_leading(self, row: int) -> int:
        return super().n_leading(row) if self._by_critic[row] else self.residual.n_leading(row)

    @override
    def gauge(self, row: int) -> Gauge | None:
        is_calibrated = self.residual.is_calibrated(np.array([row]))[0]
        return (self.residual if is_calibrated and not self._by_critic[row] else self.critic).gauge(row)

    @override
    def status(self, row: int) -> str:
        why = self.residual.status(row)
        if not why or self._by_critic[row]:
            return ""
        return f"{why}; until then it watches what the agent's critic expects" if self.critic.can_judge else why

    @override
    def state(self) -> dict[str, NDArray[Any]]:
        parts = {"residual": self.residual, "critic": self.critic}
        own = super().state()
        return own | {f"{name}.{key}": array for name, part in parts.items() for key, array in part.state().items()}

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        super().restore({name: array for name, array in state.items() if "." not in name})
        self.residual.restore(with_prefix("residual.", state))
        self.critic.restore(with_prefix("critic.", state))
