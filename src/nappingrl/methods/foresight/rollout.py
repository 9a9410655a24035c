"""Imagined episodes in which the trained agent is asked at every step, many side by side."""

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.methods.foresight.policies import REMAP, RESIDUAL, Rule, shares_of
from nappingrl.methods.foresight.search import endings_of
from nappingrl.methods.foresight.terminations import Endings
from nappingrl.types import Floats
from nappingrl.world_model.action_encoding import Pushes
from nappingrl.world_model.model import Model, imagine_each


def imagine_with_agent(
    model: Model, endings: Endings, agent: Agent, pushes: Pushes, rules: list[Rule],
    starts: NDArray[np.float64], noise: NDArray[np.float64], per_step: float, least: Floats,
) -> list[float]:  # fmt: skip
    """The mean return of each rule (frozen, remap or residual) over the starts.

    Where no step earns anything (`per_step` <= 0) a rule is given up when it has lost so much that its mean is below
    its `least`: then the number returned is more than it would earn.
    """
    n_rules, n_starts, d = len(rules), *starts.shape
    states = np.tile(starts, (n_rules, 1))
    totals = np.zeros(n_rules * n_starts)
    running = np.arange(n_rules * n_starts)
    shape = (-1, *(agent.observation_shape or (d,)))
    for t in range(noise.shape[1]):
        actions = agent.forward(states[running].astype(np.float32).reshape(shape)).actions
        moves = _pushes(model, pushes, rules, running // n_starts, states[running], actions)
        nexts, rewards = np.empty((len(running), d)), np.empty(len(running))
        imagine_each(model, states[running], moves, nexts, rewards)
        nexts = np.clip(nexts + model.noise * noise[running % n_starts, t], model.low, model.high)
        states[running] = nexts
        ended = np.empty(len(running), np.int64)
        endings_of(endings, nexts, ended, rewards)
        totals[running] += rewards
        running = running[ended < 0]
        if per_step <= 0:
            is_hopeless = totals.reshape(n_rules, n_starts).mean(axis=1) < least
            running = running[~is_hopeless[running // n_starts]]
        if not len(running):
            break
    means: list[float] = totals.reshape(n_rules, n_starts).mean(axis=1).tolist()
    return means


def _pushes(
    model: Model, pushes: Pushes, rules: list[Rule], numbers: NDArray[np.int64], states: NDArray[np.float64],
    wanted: NDArray[np.generic],
) -> NDArray[np.float64]:  # fmt: skip
    """What the rules of these numbers make of the wanted actions."""
    actions = wanted.copy()
    z = (states - model.frame.centre) / model.frame.scale
    for number, rule in enumerate(rules):
        at = numbers == number
        if rule.kind == REMAP:
            actions[at] = rule.theta[0].astype(np.int64)[wanted[at]]
        elif rule.kind == RESIDUAL:
            actions[at] = pushes.to_actions(shares_of(rule, z[at], pushes.to_shares(wanted[at])))
    return pushes(actions)
