"""Arrays over trials: what the batched step of foresight needs of each trial."""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from nappingrl.methods.foresight.policies import FROZEN, QUADRATIC, act_each, n_terms
from nappingrl.methods.foresight.trial import ForesightTrial
from nappingrl.snapshot import MAX_EPISODE, Expected
from nappingrl.types import Actions, Flags, Floats, Observations, Rows
from nappingrl.world_model.action_encoding import ActionEncoding


@dataclass(slots=True)
class RunningEpisodes:
    """The episode that each of n trials is in."""

    number: Annotated[NDArray[np.int64], Expected(("n",), low=0, high=MAX_EPISODE)]
    total: Annotated[Floats, Expected(("n",))]
    """Return so far."""
    is_first_step: Annotated[Flags, Expected(("n",))]
    """Whether the next step is the first one."""
    is_mixed: Annotated[Flags, Expected(("n",))]
    """Whether others than the policy in force have acted, too."""
    chosen: Annotated[NDArray[np.float64], Expected(("n", "k"))]
    """The action that the method chose last."""

    @classmethod
    def of(cls, n: int, action_dim: int) -> "RunningEpisodes":
        """The first episodes of n trials."""
        false = np.zeros((2, n), np.bool_)
        return cls(np.zeros(n, np.int64), np.zeros(n), ~false[0], false[1], np.zeros((n, action_dim)))

    def start(self, rows: Rows) -> None:
        """New trials begin."""
        self.number[rows] = -1
        self.begin_next(rows)

    def begin_next(self, rows: Rows) -> None:
        """The next episode begins."""
        self.number[rows] += 1
        self.total[rows], self.is_mixed[rows], self.is_first_step[rows] = 0.0, False, True

    def step(self, rows: Rows, actions: Actions, rewards: Floats) -> None:
        """Add a step; it is mixed if another action was executed than the chosen one."""
        self.total[rows] += rewards
        self.is_mixed[rows] |= (actions.reshape(len(rows), -1) != self.chosen[rows]).any(axis=1)


class TrialTable:
    """A copy of each trial's policy and flags; `update` after every event that may change them."""

    def __init__(self, n: int, dim: int, encoding: ActionEncoding) -> None:
        terms = max(n_terms(QUADRATIC, dim), encoding.n_outputs) + 1
        self.kinds = np.full(n, FROZEN)
        self._weights = np.zeros((n, encoding.n_outputs, terms))
        self._centres, self._scales = np.zeros((n, dim)), np.ones((n, dim))
        self.next_plan = np.zeros(n, np.int64)
        self.has_left = np.zeros(n, np.bool_)
        self.has_probes = np.zeros(n, np.bool_)

    def update(self, row: int, trial: ForesightTrial) -> None:
        """Copy what the batched step needs of a trial."""
        self.next_plan[row] = trial.next_plan
        self.has_left[row] = trial.has_left
        self.has_probes[row] = bool(trial.probes)
        policy = trial.policy
        self.kinds[row] = FROZEN if policy is None else policy.kind
        if policy is not None and trial.planner is not None:
            outputs, terms = policy.weights.shape
            self._weights[row, :outputs, :terms] = policy.weights
            self._centres[row], self._scales[row] = trial.planner.baseline.centre, trial.planner.scale

    def act(self, rows: Rows, observations: Observations, wanted: Actions) -> Actions:
        """The discrete actions of the policies in force."""
        actions = wanted.copy()
        act_each(self.kinds, self._weights, self._centres, self._scales, rows, observations, actions)
        return actions
