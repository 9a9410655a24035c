"""Rollouts in the fitted world: of simple policies (compiled), and of policies that ask the agent."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.base import Agent
from nappingrl.methods.foresight.policies import LINEAR, QUADRATIC, REMAP, RESIDUAL, SimplePolicy, choose, score
from nappingrl.methods.foresight.terminations import Terminations, terminal_reward, termination_at, terminations_at
from nappingrl.types import Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.model import Model, predict_step, predict_steps

RETURN, COVERAGE = 0, 1
"""What a rollout is judged by: its return, or (where no termination is known yet) the range of states it covers."""
NEGLIGIBLE = 1e-3
"""Share of the highest possible return that is not worth a longer search."""


class Rollouts(NamedTuple):
    """The rollouts by which policies are compared: all start in the same states and meet the same noise."""

    model: Model
    terminations: Terminations
    starts: NDArray[np.float64]
    """(n, d)"""
    noise: NDArray[np.float64]
    """(n, horizon, d) standard normal numbers."""
    goal: int
    """RETURN or COVERAGE."""
    max_reward: float
    """Upper bound of the reward of a step."""
    max_terminal_reward: float
    """Upper bound of the reward of the last step."""
    is_discrete: bool


@kernel(allocates=False)
def max_return(max_reward: float, max_terminal_reward: float, n_steps: int) -> float:
    """The most that `n_steps` steps can earn, the last of which may terminate."""
    if n_steps <= 0:
        return 0.0
    return max(max_reward, 0.0) * (n_steps - 1) + max(max_reward, max_terminal_reward, 0.0)


@kernel()
def enough_return(rollouts: Rollouts) -> float:
    """A mean return that it is not worth searching beyond; infinite where policies are judged by coverage."""
    if rollouts.goal != RETURN:
        return np.inf
    most = max_return(rollouts.max_reward, rollouts.max_terminal_reward, rollouts.noise.shape[1])
    return most - NEGLIGIBLE * abs(most)


class Scratch(NamedTuple):
    """Arrays that a rollout writes to."""

    state: Floats
    next_state: Floats
    lowest: Floats
    highest: Floats
    z: Floats
    shared: Floats
    """Features."""
    encoded: Floats
    """Action."""


@kernel()
def make_scratch(rollouts: Rollouts) -> Scratch:
    """For rollouts in this world."""
    d, model = rollouts.starts.shape[1], rollouts.model
    return Scratch(
        np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(model.frame.n_shared),
        np.empty(model.affine.shape[1]),
    )  # fmt: skip


@kernel(allocates=False)
def rollout(
    rollouts: Rollouts, number: int, kind: int, weights: NDArray[np.float64], least: float, path: NDArray[np.float64],
    scratch: Scratch,
) -> float:  # fmt: skip
    """The return (or coverage) of one rollout; -inf as soon as the return cannot reach `least` any more.

    `path` (m, d) receives the first m states after the start.
    """
    model, terminations, goal = rollouts.model, rollouts.terminations, rollouts.goal
    max_reward, max_terminal_reward = rollouts.max_reward, rollouts.max_terminal_reward
    start, noise = rollouts.starts[number], rollouts.noise[number]
    d, horizon = start.shape[0], noise.shape[0]
    state, next_state, lowest, highest, z, shared, encoded = scratch
    for i in range(d):
        state[i] = lowest[i] = highest[i] = start[i]
    total, action = 0.0, -1
    for t in range(horizon):
        for i in range(d):
            z[i] = (state[i] - model.frame.centre[i]) / model.frame.scale[i]
        if rollouts.is_discrete:
            action = choose(kind, weights, z)
        else:
            encoded[0] = 1.0
            k = weights.shape[0]
            for j in range(k):
                encoded[1 + j] = min(max(score(kind, weights[j], z), -1.0), 1.0)
                encoded[1 + k + j] = encoded[1 + j] ** 2
        reward = min(predict_step(model, state, encoded, action, z, shared, next_state), max_reward)
        for i in range(d):
            value = next_state[i] + model.noise[i] * noise[t, i]
            state[i] = min(max(value, model.low[i]), model.high[i])
            lowest[i], highest[i] = min(lowest[i], state[i]), max(highest[i], state[i])
        if t < path.shape[0]:
            for i in range(d):
                path[t, i] = state[i]
        termination = termination_at(terminations, state)
        if termination >= 0:
            total += terminal_reward(terminations, termination)
            break
        total += reward
        if goal == RETURN and total + max_return(max_reward, max_terminal_reward, horizon - 1 - t) < least:
            return -np.inf
    if goal == COVERAGE:
        total = 0.0
        for i in range(d):
            total += (highest[i] - lowest[i]) / model.frame.scale[i]
    return float(total)


@kernel()
def evaluate(rollouts: Rollouts, kind: int, weights: NDArray[np.float64], least: float) -> float:
    """The mean over the rollouts; stops as soon as it cannot reach `least`, and returns a number below it."""
    n, total = rollouts.starts.shape[0], 0.0
    no_path, scratch = np.empty((0, 0)), make_scratch(rollouts)
    best = max_return(rollouts.max_reward, rollouts.max_terminal_reward, rollouts.noise.shape[1])
    for i in range(n):
        need = least * n - total - best * (n - 1 - i) if rollouts.goal == RETURN else -np.inf
        value = rollout(rollouts, i, kind, weights, need, no_path, scratch)
        total += value
        if rollouts.goal == RETURN and value < need:
            return least - 1e-9 - abs(least) * 1e-9
    return float(total / n)


def evaluate_with_agent(
    rollouts: Rollouts, agent: Agent, encoding: ActionEncoding, policies: list[SimplePolicy], least: Floats,
    path: NDArray[np.float64] | None = None,
) -> list[float]:  # fmt: skip
    """The mean return of each policy that asks the agent (frozen, remap, residual), all rollouts side by side.

    If no step can earn anything, a policy stops as soon as its mean return is below its `least`; then the number
    returned is more than it would earn. `path` (m, d) receives the first m states of the first rollout.
    """
    model, (n, d) = rollouts.model, rollouts.starts.shape
    is_loss_only = max(rollouts.max_reward, rollouts.max_terminal_reward) <= 0
    states = np.tile(rollouts.starts, (len(policies), 1))
    totals = np.zeros(len(states))
    running = np.arange(len(states))
    shape = (-1, *(agent.observation_shape or (d,)))
    changes = _Changes(encoding, policies, d)
    for t in range(rollouts.noise.shape[1]):
        wanted = agent.forward(states[running].astype(np.float32).reshape(shape)).actions
        z = (states[running] - model.frame.centre) / model.frame.scale
        actions = encoding(changes(running // n, z, wanted))
        next_states, rewards = np.empty((len(running), d)), np.empty(len(running))
        predict_steps(model, states[running], actions, next_states, rewards)
        next_states = np.clip(next_states + model.noise * rollouts.noise[running % n, t], model.low, model.high)
        states[running] = next_states
        if path is not None and t < len(path) and running[0] == 0:
            path[t] = next_states[0]
        termination = np.empty(len(running), np.int64)
        terminations_at(rollouts.terminations, next_states, termination, rewards)
        totals[running] += rewards
        running = running[termination < 0]
        if is_loss_only:
            is_hopeless = totals.reshape(-1, n).mean(axis=1) < least
            running = running[~is_hopeless[running // n]]
        if not len(running):
            break
    means: list[float] = totals.reshape(-1, n).mean(axis=1).tolist()
    return means


def imagine(
    rollouts: Rollouts, agent: Agent, encoding: ActionEncoding, policy: SimplePolicy, start: Floats, n_steps: int
) -> NDArray[np.float64]:
    """The states (m, d) that the fitted world predicts from `start` under a policy, without noise, until it ends."""
    path = np.full((n_steps, len(start)), np.nan)
    single = rollouts._replace(starts=start[None].astype(np.float64), noise=np.zeros((1, *path.shape)))
    if policy.kind in (LINEAR, QUADRATIC):
        rollout(single, 0, policy.kind, policy.weights, -np.inf, path, make_scratch(single))
    else:
        evaluate_with_agent(single, agent, encoding, [policy], np.array([-np.inf]), path)
    return np.asarray(path[~np.isnan(path[:, 0])])


class _Changes:
    """What policies that ask the agent make of the action it wants, for many policies at once."""

    def __init__(self, encoding: ActionEncoding, policies: list[SimplePolicy], d: int) -> None:
        self._encoding = encoding
        self._is_residual = np.array([policy.kind == RESIDUAL for policy in policies])
        self._remaps = np.tile(np.arange(encoding.n_actions), (len(policies), 1))
        self._weights = np.zeros((len(policies), len(encoding.low), d + 2))
        for number, policy in enumerate(policies):
            if policy.kind == REMAP:
                self._remaps[number] = policy.weights[0]
            elif policy.kind == RESIDUAL:
                self._weights[number] = policy.weights

    def __call__(
        self, numbers: NDArray[np.int64], z: NDArray[np.float64], wanted: NDArray[np.generic]
    ) -> NDArray[np.generic]:
        """The actions (m, ...) of the policies with these numbers (m,) in standardised states (m, d)."""
        if not self._encoding.is_continuous:
            return np.asarray(self._remaps[numbers, wanted])
        at = self._is_residual[numbers]
        if not at.any():
            return wanted
        terms = np.hstack([z[at], np.ones((int(at.sum()), 1))])
        weights, actions = self._weights[numbers[at]], wanted.copy()
        scaled = np.einsum("mkt,mt->mk", weights[:, :, :-1], terms)
        scaled += weights[:, :, -1] * self._encoding.scale(wanted[at])
        actions[at] = self._encoding.unscale(np.clip(scaled, -1.0, 1.0))
        return actions
