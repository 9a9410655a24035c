"""Oracle: a controller that is given the true parameters. It does not adapt; it is an upper bound."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.errors import BadSpecError
from nappingrl.methods.base import Method, MethodInfo
from nappingrl.types import Actions, Decision, Floats, Keys, Observations, Rows


class Oracle(Method):
    """The domain's oracle from the novelty on; before it, the trained agent."""

    is_privileged = True

    def __init__(self, agent: Agent, info: MethodInfo, n: int) -> None:
        super().__init__(agent, info, n)
        if info.oracle is None:
            raise BadSpecError("this domain has no oracle; method 'oracle' cannot run here")
        self._oracle = info.oracle
        self._plans: NDArray[np.float64] | None = None
        self._has_plan = np.zeros(n, np.bool_)
        self._steps = np.zeros(n, np.int64)

    def start(self, rows: Rows, keys: Keys) -> None:
        """No plan yet."""
        self._has_plan[rows] = False
        self._steps[rows] = 0

    def reveal(self, rows: Rows, parameters: Floats) -> None:
        """Plan for the true parameters."""
        plans = self._oracle.plan(parameters)
        if self._plans is None:
            self._plans = np.zeros((self.n, plans.shape[1]))
        self._plans[rows] = plans
        self._has_plan[rows] = True

    def reveal_episode(self, rows: Rows, draws: Floats) -> None:
        """Plan the episode, where the oracle does that."""
        planned = self._has_plan[rows]
        if self._plans is not None and planned.any() and self._oracle.plans_episodes:
            at = rows[planned]
            self._plans[at] = self._oracle.plan_episode(self._plans[at], draws[planned])

    def act(self, rows: Rows, observations: Observations, decision: Decision) -> Actions:
        """The oracle's actions where it has a plan."""
        actions = decision.actions.copy()
        planned = self._has_plan[rows]
        if self._plans is not None and planned.any():
            at = rows[planned]
            actions[planned] = self._oracle.act(self._plans[at], observations[planned], self._steps[at])
        self._steps[rows] += 1
        return actions

    def acting(self, row: int) -> str:
        """The oracle, from the novelty on."""
        return self.name if self._has_plan[row] else ""

    def end_episode(self, rows: Rows) -> None:
        """The next step is the first of an episode."""
        self._steps[rows] = 0
