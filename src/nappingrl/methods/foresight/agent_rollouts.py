"""Rollouts of policies that ask the agent: all side by side, in one kernel where agent and policies have one."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.base import Agent, Network
from nappingrl.agents.perceptron import TILE, forward, standardise
from nappingrl.methods.foresight.policies import LINEAR, QUADRATIC, REMAP, RESIDUAL, SimplePolicy
from nappingrl.methods.foresight.rollout import Rollouts, Scratch, make_scratch, rollout
from nappingrl.methods.foresight.terminations import terminal_reward, termination_at, terminations_at
from nappingrl.types import Floats
from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.basis import standardise as standardise_state
from nappingrl.world_model.model import predict_step, predict_steps


def evaluate_with_agent(
    rollouts: Rollouts, agent: Agent, encoding: ActionEncoding, policies: list[SimplePolicy], least: Floats
) -> list[float]:
    """The mean return of each policy that asks the agent (frozen, remap, residual), all rollouts side by side.

    If no step can earn anything, a policy stops as soon as its mean return is below its `least`; then the number
    returned is more than it would earn.
    """
    network = None if encoding.is_continuous else agent.network()
    if network is None:
        totals = _play(rollouts, agent, encoding, policies, least)
    else:
        totals = np.zeros(len(policies) * len(rollouts.starts))
        inputs = np.zeros((TILE, len(network.mean)), np.float32)
        activations = tuple(np.zeros((TILE, len(bias)), np.float32) for bias in network.biases)
        outputs = np.zeros((TILE, len(network.output_bias)), np.float32)
        tile = np.zeros_like(inputs), inputs, activations, outputs
        _play_remaps(rollouts, network, tile, make_scratch(rollouts), _remaps(encoding, policies), least, totals)
    means: list[float] = totals.reshape(len(policies), -1).mean(axis=1).tolist()
    return means


@kernel(allocates=False)
def _is_loss_only(rollouts: Rollouts) -> bool:
    """Whether no step can earn anything."""
    return max(rollouts.max_reward, rollouts.max_terminal_reward) <= 0


Tile = tuple[NDArray[np.float32], NDArray[np.float32], tuple[NDArray[np.float32], ...], NDArray[np.float32]]
# Observations, inputs, activations and outputs of the rows of one forward pass.


@kernel()
def _play_remaps(
    rollouts: Rollouts, network: Network, tile: Tile, scratch: Scratch, remaps: NDArray[np.int64], least: Floats,
    totals: Floats,
) -> None:  # fmt: skip
    """`_play` for discrete actions: policy p executes remaps[p, w] where the agent wants w."""
    model, terminations, (n, d) = rollouts.model, rollouts.terminations, rollouts.starts.shape
    observations, inputs, activations, outputs = tile
    _, next_state, _, _, z, shared, encoded = scratch
    states = np.empty((len(totals), d))
    for r in range(len(totals)):
        states[r] = rollouts.starts[r % n]
    running, n_running = np.arange(len(totals)), len(totals)
    for t in range(rollouts.noise.shape[1]):
        n_left = 0
        for first in range(0, n_running, TILE):
            n_rows = min(TILE, n_running - first)
            for lane in range(n_rows):
                for i in range(d):
                    observations[lane, i] = states[running[first + lane], i]
                standardise(observations[lane], network.mean, network.scale, network.clip, inputs[lane])
            forward(network, inputs, activations, outputs)
            for lane in range(n_rows):
                r = running[first + lane]
                action = remaps[r // n, outputs[lane].argmax()]
                standardise_state(model.frame, states[r], z)
                reward = predict_step(model, states[r], encoded, action, z, shared, next_state)
                for i in range(d):
                    value = next_state[i] + model.noise[i] * rollouts.noise[r % n, t, i]
                    states[r, i] = min(max(value, model.low[i]), model.high[i])
                termination = termination_at(terminations, states[r])
                totals[r] += reward if termination < 0 else terminal_reward(terminations, termination)
                if termination < 0:
                    running[n_left] = r
                    n_left += 1
        n_running = _hopeful(running, n_left, totals, n, least) if _is_loss_only(rollouts) else n_left
        if n_running == 0:
            break


@kernel()
def _hopeful(running: NDArray[np.int64], n_running: int, totals: Floats, n: int, least: Floats) -> int:
    """Keep the rollouts whose policies can still reach their `least`; returns how many they are."""
    n_left = 0
    for k in range(n_running):
        p = running[k] // n
        if totals[p * n : (p + 1) * n].sum() / n >= least[p]:
            running[n_left] = running[k]
            n_left += 1
    return n_left


def _play(
    rollouts: Rollouts, agent: Agent, encoding: ActionEncoding, policies: list[SimplePolicy], least: Floats,
    path: NDArray[np.float64] | None = None,
) -> Floats:  # fmt: skip
    """The return of each rollout of each policy; `path` (m, d) receives the first m states of the first rollout."""
    model, (n, d) = rollouts.model, rollouts.starts.shape
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
        if _is_loss_only(rollouts):
            is_hopeless = totals.reshape(-1, n).mean(axis=1) < least
            running = running[~is_hopeless[running // n]]
        if not len(running):
            break
    return totals


def imagine(
    rollouts: Rollouts, agent: Agent, encoding: ActionEncoding, policy: SimplePolicy, start: Floats, n_steps: int
) -> NDArray[np.float64]:
    """The states (m, d) that the fitted world predicts from `start` under a policy, without noise, until it ends."""
    path = np.full((n_steps, len(start)), np.nan)
    single = rollouts._replace(starts=start[None].astype(np.float64), noise=np.zeros((1, *path.shape)))
    if policy.kind in (LINEAR, QUADRATIC):
        rollout(single, 0, policy.kind, policy.weights, -np.inf, path, make_scratch(single))
    else:
        _play(single, agent, encoding, [policy], np.array([-np.inf]), path)
    return np.asarray(path[~np.isnan(path[:, 0])])


def _remaps(encoding: ActionEncoding, policies: list[SimplePolicy]) -> NDArray[np.int64]:
    """(policies, actions) which discrete action each policy executes where the agent wants an action."""
    remaps = np.tile(np.arange(encoding.n_actions), (len(policies), 1))
    for number, policy in enumerate(policies):
        if policy.kind == REMAP:
            remaps[number] = policy.weights[0]
    return remaps


class _Changes:
    """What policies that ask the agent make of the action it wants, for many policies at once."""

    def __init__(self, encoding: ActionEncoding, policies: list[SimplePolicy], d: int) -> None:
        self._encoding = encoding
        self._is_residual = np.array([policy.kind == RESIDUAL for policy in policies])
        self._remaps = _remaps(encoding, policies)
        self._weights = np.zeros((len(policies), len(encoding.low), d + 2))
        for number, policy in enumerate(policies):
            if policy.kind == RESIDUAL:
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
