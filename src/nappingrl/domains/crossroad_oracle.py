"""CrossRoad's oracle: a search through space and time that knows where every car will be."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.crossroad import COLUMNS, GOAL, HORIZON, START, STAY, UP, is_hit, moved
from nappingrl.types import Actions, Floats, Observations, OracleController, Rows

_ACTIONS = np.array([UP, STAY, 0, 1, 3])
"""In this order, so that of two equally early crossings the one with fewer detours is found."""


class CrossRoadOracle(OracleController):
    """The earliest crossing there is, found by breadth-first search; where there is none, it stays on the pavement."""

    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """The list of actions of each trial."""
        return np.stack([_search(p) for p in parameters]).astype(np.float64)

    def act(self, plans: NDArray[np.float64], observations: Observations, steps: Rows) -> Actions:
        """The next action of the list."""
        actions: Actions = plans[np.arange(len(plans)), steps].astype(np.int64)
        return actions


@kernel()
def _search(parameters: Floats) -> Actions:
    """Which cells can be reached alive at each step, and by which action; then back from the first crossing."""
    came_by = np.full((HORIZON + 1, COLUMNS, GOAL), -1)
    came_from = np.zeros((HORIZON + 1, COLUMNS, GOAL, 2), np.int64)
    came_by[0, START, 0] = STAY
    plan = np.full(HORIZON, STAY)
    for t in range(HORIZON):
        for y in range(GOAL - 1, -1, -1):
            for x in range(COLUMNS):
                if came_by[t, x, y] < 0:
                    continue
                if y == GOAL - 1:  # one step up crosses
                    plan[t] = UP
                    for back in range(t, 0, -1):
                        plan[back - 1] = came_by[back, x, y]
                        x, y = came_from[back, x, y]
                    return plan
                for action in _ACTIONS:
                    x2, y2 = moved(x, y, action)
                    if came_by[t + 1, x2, y2] < 0 and not is_hit(x2, y2, parameters, t):
                        came_by[t + 1, x2, y2] = action
                        came_from[t + 1, x2, y2, 0], came_from[t + 1, x2, y2, 1] = x, y
    return plan
