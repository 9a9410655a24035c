"""A player: one policy per trial, which sees single observations and hears what came of its actions."""

import copy
import hashlib
import inspect
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError
from nappingrl.types import Decision, Flags, Keys, Observations, Rows, Transition

Observation = NDArray[np.float32]


class ScriptedPolicy(ABC):
    """What plays one trial; all its random numbers come from `rng`."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    @abstractmethod
    def act(self, observation: Observation) -> int:
        """The action to take now."""

    def learn(  # noqa: B027
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """What came of an action; `detected`: whether the novelty is known of."""


class ScriptedAgent(Agent):
    """An agent without a network: nothing to embed, a policy of its own for every trial."""

    is_stateful = True
    embedding_dim = 0
    policy: ClassVar[type[ScriptedPolicy]]

    def __init__(self, n_actions: int, observation_shape: tuple[int, ...]) -> None:
        self.n_actions, self.observation_shape = n_actions, observation_shape
        source = inspect.getsource(inspect.getmodule(type(self)) or type(self))
        self.sha256 = hashlib.sha256(source.encode()).hexdigest()
        self._policies: list[ScriptedPolicy | None] = []

    def for_trials(self, n: int) -> "ScriptedAgent":
        """A copy with room for n policies."""
        twin = copy.copy(self)
        twin._policies = [None] * n
        return twin

    def start(self, rows: Rows, keys: Keys) -> None:
        """New policies."""
        for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
            self._policies[row] = type(self).policy(np.random.default_rng(key))

    def forward(self, observations: Observations) -> Decision:
        """A player decides for a trial, never for an observation alone."""
        raise BadAgentError(f"agent {self.name} has a memory and plays trials only: use it with `napping run`")

    def decide(self, rows: Rows, observations: Observations) -> Decision:
        """Each policy decides for itself."""
        actions = np.array([self._policy(row).act(seen) for row, seen in zip(rows.tolist(), observations, strict=True)])
        preferences = np.zeros((len(rows), self.n_actions), np.float32)
        preferences[np.arange(len(rows)), actions] = 1.0
        return Decision(actions.astype(np.int64), np.zeros((len(rows), 0), np.float32), preferences)

    def watch(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        """Each policy hears of its own step."""
        t = transition
        for m, row in enumerate(rows.tolist()):
            self._policy(row).learn(
                t.observations[m], int(t.actions[m]), t.next_observations[m], float(t.rewards[m]),
                bool(t.terminated[m] or t.truncated[m]), bool(detected[m]),
            )  # fmt: skip

    def _policy(self, row: int) -> ScriptedPolicy:
        policy = self._policies[row]
        if policy is None:
            raise BadAgentError(f"agent {self.name} was asked to act before its trial began")
        return policy
