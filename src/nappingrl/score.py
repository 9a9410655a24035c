"""The paper's Eval, thre and sup(Eval) in one record."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from nappingrl._build import kernel
from nappingrl.errors import BadSpecError
from nappingrl.types import Actions, Flags, Floats, Observations

REWARD = "reward"
"""A score that every domain has: the reward of the step."""
Eval = Callable[[Observations, Actions, Observations, Floats, Flags], Floats]


@dataclass(frozen=True, slots=True)
class Score:
    """A score of executed actions, computed from single transitions; higher is better.

    Examples:
        >>> import numpy as np
        >>> survive = Score("survive", lambda o, a, o2, r, end: np.where(end, -1.0, 1.0), supremum=1.0)
        >>> survive(np.zeros((1, 2)), np.array([0]), np.zeros((1, 2)), np.ones(1), np.array([True]))
        array([-1.])
    """

    name: str
    fn: Eval
    """fn(obs, action, next_obs, reward, terminated) -> scores (m,); all arguments are batches."""
    threshold: float = 0.0
    """The paper's thre: a lower score counts as a failure."""
    supremum: float = inf
    """The paper's sup(Eval): the best possible score; an action that reaches it is kept at once."""
    description: str = ""
    supremum_of: Callable[[Observations], Floats] | None = None
    """sup(Eval) per state, if it depends on the state; otherwise it is `supremum`."""
    kernel: Any = None
    """`fn` of a single transition as a kernel (`compiled_score`); None: there is none."""

    def suprema(self, observations: Observations) -> float | Floats:
        """The best possible scores in these states."""
        return self.supremum if self.supremum_of is None else self.supremum_of(observations)

    def __call__(
        self,
        observations: Observations,
        actions: Actions,
        next_observations: Observations,
        rewards: Floats,
        terminated: Flags,
    ) -> Floats:
        """Scores of m transitions, (m,) float64."""
        scores = np.asarray(self.fn(observations, actions, next_observations, rewards, terminated), np.float64)
        if scores.shape != (len(actions),):
            raise BadSpecError(
                f"score '{self.name}' returned shape {scores.shape} for {len(actions)} transitions; "
                "its arguments are batches, and it must return one number for each transition"
            )
        if np.isnan(scores).any():
            raise BadSpecError(f"score '{self.name}' returned NaN; it must return a number for each transition")
        return scores


def compiled_score(
    name: str, score: Any, threshold: float = 0.0, supremum: float = inf, description: str = ""
) -> Score:
    """A score from a kernel(obs (d,), action, next_obs (d,), reward, terminated) of one transition; obs are float32."""

    @kernel(allocates=False)
    def score_each(
        obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags, out: Floats
    ) -> None:
        for m in range(out.shape[0]):
            out[m] = score(obs[m], action[m], obs2[m], reward[m], end[m])

    def fn(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
        out = np.empty(len(action))
        score_each(np.asarray(obs, np.float32), action, np.asarray(obs2, np.float32), reward, end, out)
        return out

    return Score(name, fn, threshold, supremum, description, kernel=score)


def reward_score(threshold: float = 0.0, supremum: float = inf) -> Score:
    """The reward of the environment as a score."""
    return Score(REWARD, lambda obs, act, obs2, reward, end: reward, threshold, supremum, "the reward of the step")


def as_score(score: Score | Eval | str | None) -> Score | None:
    """A Score of the user's; None where a name or nothing was given."""
    if isinstance(score, Score):
        return score
    if callable(score):
        return Score(getattr(score, "__name__", "custom"), score)
    return None
