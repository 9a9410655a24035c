"""An agent in one trial, one observation at a time, for callers that do not run batches."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.types import Transition

ROW = np.zeros(1, np.int64)


class SingleTrial:
    """Acts as the agent wants; a scripted agent also learns."""

    def __init__(self, agent: Agent, seed: int = 0) -> None:
        self._agent = agent.for_trials(1)
        self._agent.start(ROW, np.array([seed], np.uint64))

    def act(self, observation: NDArray[np.float32]) -> int:
        """The action that the agent wants."""
        self._decision = self._agent.decide(ROW, observation[None])
        return int(self._decision.actions[0])

    def learn(
        self,
        observation: NDArray[np.float32],
        action: int,
        following: NDArray[np.float32],
        reward: float,
        ended: bool,
        detected: bool,
    ) -> None:
        """Tell the agent the outcome of its latest action; `detected`: whether it hears of a novelty."""
        transition = Transition(
            observation[None], self._decision, np.array([action]), following[None], np.array([reward]),
            np.array([ended]), np.zeros(1, np.bool_),
        )  # fmt: skip
        self._agent.watch(ROW, transition, np.array([detected]))
