"""MountainCar's oracle: it is given the true parameters and pumps energy."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.domains.mountaincar import POSITION_MIN, MountainCar
from nappingrl.domains.rehearsal import mean_lengths
from nappingrl.types import Actions, Floats, Observations, OracleController, Rows

_EPISODES = 6


class MountainCarOracle(OracleController):
    """Energy pumping: push the way the car rolls. A plan is the push from rest, LEFT or RIGHT, whichever is faster."""

    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """Try both first pushes."""
        return np.stack([self._plan_one(p) for p in parameters])

    def act(self, plans: NDArray[np.float64], observations: Observations, steps: Rows) -> Actions:
        """Push with the velocity; away from the left wall."""
        direction = np.sign(observations[:, 1].astype(np.float64))
        direction = np.where(direction == 0, plans[:, 0], direction)
        direction = np.where(observations[:, 0] <= np.float32(POSITION_MIN), 1.0, direction)
        return direction.astype(np.int64) + 1

    def _plan_one(self, parameters: Floats) -> Floats:
        plans = np.array([[1.0], [-1.0]])
        starts = (np.arange(_EPISODES) + 0.5)[:, None] / _EPISODES
        best: Floats = plans[mean_lengths(MountainCar.spec, self, plans, parameters, starts).argmin()]
        return best
