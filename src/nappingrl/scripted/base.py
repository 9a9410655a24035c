"""Scripted agents: one policy per trial, which sees single observations and learns from single steps."""

import copy
import hashlib
import inspect
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError
from nappingrl.types import Decision, Flags, Keys, Observations, Rows, Transition

Observation = NDArray[np.float32]


class ScriptedPolicy(ABC):
    """Plays one trial; draws all its random numbers from `rng`."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    @abstractmethod
    def act(self, observation: Observation) -> int:
        """Choose an action; a number above all actions is a free shot of a domain that knows such."""

    def learn(  # noqa: B027
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """Learn from one step; `detected` says whether the novelty has been detected."""


class ScriptedAgent(Agent):
    """An agent without a network and without embeddings; each trial gets its own policy."""

    is_stateful = True
    embedding_dim = 0
    policy: ClassVar[type[ScriptedPolicy]]

    def __init__(self, n_actions: int, observation_shape: tuple[int, ...]) -> None:
        self.n_actions = n_actions
        self.observation_shape = observation_shape
        source = inspect.getsource(inspect.getmodule(type(self)) or type(self))
        self.sha256 = hashlib.sha256(source.encode()).hexdigest()
        self._policies: list[ScriptedPolicy | None] = []

    @override
    def for_trials(self, n: int) -> "ScriptedAgent":
        twin = copy.copy(self)
        twin._policies = [None] * n
        return twin

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        for row, key in zip(rows.tolist(), keys.tolist(), strict=True):
            self._policies[row] = type(self).policy(np.random.default_rng(key))

    @override
    def forward(self, observations: Observations) -> Decision:
        raise BadAgentError(f"agent {self.name} is stateful and only plays trials: use it with `napping run`")

    @override
    def decide(self, rows: Rows, observations: Observations) -> Decision:
        actions = np.array(
            [self._policy(row).act(observation) for row, observation in zip(rows.tolist(), observations, strict=True)]
        )
        preferences = np.zeros((len(rows), self.n_actions), np.float32)
        known = np.flatnonzero(actions < self.n_actions)
        preferences[known, actions[known]] = 1.0
        return Decision(actions.astype(np.int64), np.zeros((len(rows), 0), np.float32), preferences)

    @override
    def watch(self, rows: Rows, transition: Transition, detected: Flags) -> None:
        t = transition
        for m, row in enumerate(rows.tolist()):
            self._policy(row).learn(
                t.observations[m], int(t.actions[m]), t.next_observations[m], float(t.rewards[m]),
                bool(t.terminated[m] or t.truncated[m]), bool(detected[m]),
            )  # fmt: skip

    def _policy(self, row: int) -> ScriptedPolicy:
        policy = self._policies[row]
        if policy is None:
            raise BadAgentError(f"agent {self.name} must be started before it acts: call start() for its trial first")
        return policy
