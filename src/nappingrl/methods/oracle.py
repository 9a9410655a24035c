"""Oracle: a controller that is told the world's true parameters. It does not adapt; it shows what can be reached."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.arrays import Actions, Decision, Floats, Keys, Observations, Rows
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Info, Method


class Oracle(Method):
    """The domain's expert from the moment the world changes; before that, the trained agent."""

    privileged = True

    def __init__(self, agent: Agent, info: Info, n: int) -> None:
        super().__init__(agent, info, n)
        if info.expert is None:
            raise BadSpecError("this domain has no expert that knows its parameters; method 'oracle' cannot run here")
        self._expert = info.expert
        self._plans: NDArray[np.float64] | None = None
        self._has_plan = np.zeros(n, np.bool_)

    def start(self, rows: Rows, keys: Keys) -> None:
        """No plan yet."""
        self._has_plan[rows] = False

    def reveal(self, rows: Rows, parameters: Floats) -> None:
        """Plan for the true parameters."""
        plans = self._expert.plan(parameters)
        if self._plans is None:
            self._plans = np.zeros((self.n, plans.shape[1]))
        self._plans[rows] = plans
        self._has_plan[rows] = True

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The expert's actions where it has a plan."""
        actions = decision.actions.copy()
        planned = self._has_plan[rows]
        if self._plans is not None and planned.any():
            actions[planned] = self._expert.act(self._plans[rows[planned]], observations[planned])
        return actions
