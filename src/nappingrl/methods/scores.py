"""Scores that every domain has beside its own: the reward, the trained critic, and a value that is learned on the way.

The last two are temporal differences, r + V(s') - V(s) with V = 0 after the end: whether the step went better than the
value promised. Their threshold is 0.
"""

import numpy as np

from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError
from nappingrl.score import REWARD, Score, reward_score
from nappingrl.types import Actions, Flags, Floats, Observations

CRITIC, LEARNED = "q-value", "learned"
GENERAL_SCORES = {
    REWARD: "the reward of the step",
    CRITIC: "r + gamma V(s') - V(s) by the agent's own critic, as it was trained",
    LEARNED: "r + V(s') - V(s) by a value of model states, fitted on the returns of the trial's own episodes",
}


def make_score(name: str, agent: Agent) -> Score:
    """One of GENERAL_SCORES, for an agent."""
    if name == CRITIC:
        return critic_score(agent)
    return reward_score() if name == REWARD else Score(LEARNED, _needs_trials, description=GENERAL_SCORES[LEARNED])


def critic_score(agent: Agent) -> Score:
    """Whether a step went better than the agent's own critic expected."""
    gamma = agent.gamma
    if agent.no_critic or gamma is None:
        why = agent.no_critic or "its discount factor is unknown"
        raise BadAgentError(f"score '{CRITIC}' needs the critic of agent {agent.name}: {why}; use another score")

    def values(observations: Observations) -> Floats:
        return np.asarray(agent.values(observations), np.float64)

    def fn(
        observations: Observations, actions: Actions, next_observations: Observations, rewards: Floats, ended: Flags
    ) -> Floats:
        later = np.where(ended, 0.0, values(next_observations))
        difference: Floats = rewards + gamma * later - values(observations)
        return difference

    return Score(CRITIC, fn, description=GENERAL_SCORES[CRITIC])


def _needs_trials(*_: object) -> Floats:
    raise BadAgentError(f"score '{LEARNED}' is computed per trial, by the method that uses it")
