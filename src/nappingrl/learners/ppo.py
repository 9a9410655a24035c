"""SB3's PPO for many trials: rollouts of one environment each, GAE, clipped surrogate loss."""

import math
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl._build import kernel
from nappingrl.agents.base import Trainable
from nappingrl.learners.base import Learner
from nappingrl.learners.hyperparameters import PpoHyperparameters
from nappingrl.learners.network import (
    Flat,
    Network,
    Optimiser,
    TrainState,
    backward,
    forward,
    n_activations,
    outputs_of,
    update,
)
from nappingrl.rng import draw
from nappingrl.types import Actions, Floats, Rows


class Rollout(NamedTuple):
    """n_steps steps of one trial, with the values and probabilities of the networks that took them."""

    observations: NDArray[np.float32]
    actions: NDArray[np.int64]
    values: Flat
    log_probabilities: Flat
    advantages: Flat
    returns: Flat


class Scratch(NamedTuple):
    """Work arrays of a gradient update."""

    policy_activations: Flat
    value_activations: Flat
    policy_deltas: Flat
    value_deltas: Flat
    spare: Flat
    gradient: Flat


class Ppo(Learner):
    """Trains after every rollout of n_steps; policy and value network share no layers."""

    adam_epsilon: ClassVar[float] = 1e-5

    def __init__(
        self, agent: Trainable, n: int, hyperparameters: PpoHyperparameters, is_last_only: bool = False
    ) -> None:
        super().__init__(agent, ["policy", "value"], n, hyperparameters.n_steps, hyperparameters.gamma, is_last_only)
        self.hyperparameters = hyperparameters

    @override
    def explore(self, rows: Rows, wanted: Actions, preferences: NDArray[np.float32]) -> Actions:
        actions = np.empty(len(rows), np.int64)
        _sample_actions(preferences, self.streams.uniform(rows), actions)
        return actions

    @override
    def _stored_rewards(self, rows: Rows, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.reward_scale.scaled(rows, rewards)

    @override
    def _count_step(self, rows: Rows) -> Rows:
        due: Rows = rows[self.replay.n_added[rows] % self.hyperparameters.n_steps == 0]
        return due

    @override
    def _train(self, rows: Rows) -> None:
        policy, value = self.networks
        optimiser = self._optimiser(self.hyperparameters.learning_rate, self.hyperparameters.max_grad_norm)
        _train(rows, self.hyperparameters, policy, value, self.state, optimiser, self.replay.records)


@kernel()
def _sample_actions(preferences: NDArray[np.float32], uniforms: Floats, actions: Actions) -> None:
    """Write actions drawn from softmax(preferences) to `actions`; the last action if they are not finite."""
    for i in range(preferences.shape[0]):
        highest, total = preferences[i].max(), 0.0
        for a in range(preferences.shape[1]):
            total += math.exp(preferences[i, a] - highest)
        actions[i] = preferences.shape[1] - 1
        passed = 0.0
        for a in range(preferences.shape[1]):
            passed += math.exp(preferences[i, a] - highest)
            if uniforms[i] * total < passed:
                actions[i] = a
                break


@kernel()
def _train(
    rows: Rows, hp: PpoHyperparameters, policy: Network, value: Network, state: TrainState, optimiser: Optimiser,
    records: NDArray[np.float32],
) -> None:  # fmt: skip
    """Take all epochs over the rollouts of some trials."""
    batch = min(hp.batch_size, hp.n_steps)
    widest = batch * max(policy.sizes.max(), value.sizes.max())
    scratch = Scratch(
        np.empty(batch * n_activations(policy), np.float32),
        np.empty(batch * n_activations(value), np.float32),
        np.empty(widest, np.float32),
        np.empty(widest, np.float32),
        np.empty(widest, np.float32),
        np.empty(state.parameters.shape[1], np.float32),
    )
    order = np.empty(hp.n_steps, np.int64)
    for row in rows:
        rollout = _rollout(state.parameters[row], policy, value, records[row], hp)
        for _ in range(hp.n_epochs):
            state.draws[row] = shuffle(state.keys[row], state.draws[row], order)
            if not _epoch(row, hp, policy, value, state, optimiser, rollout, order, scratch):
                break


@kernel()
def _epoch(
    row: int, hp: PpoHyperparameters, policy: Network, value: Network, state: TrainState, optimiser: Optimiser,
    rollout: Rollout, order: NDArray[np.int64], scratch: Scratch,
) -> bool:  # fmt: skip
    """Update one trial with all minibatches of a rollout; False to stop: KL divergence too large, or diverged."""
    batch, split = min(hp.batch_size, hp.n_steps), policy.n_parameters
    flat, gradient = state.parameters[row], scratch.gradient
    for low in range(0, hp.n_steps, batch):
        chosen = order[low : low + batch]
        x = rollout.observations[chosen]
        forward(flat[:split], policy, x, scratch.policy_activations)
        forward(flat[split:], value, x, scratch.value_activations)
        logits = outputs_of(scratch.policy_activations, policy, len(x))
        values = outputs_of(scratch.value_activations, value, len(x))
        kl = _loss(logits, values, chosen, rollout, hp, scratch.policy_deltas, scratch.value_deltas)
        if kl > 1.5 * hp.target_kl:
            return False
        backward(
            flat[:split], policy, x, scratch.policy_activations, scratch.policy_deltas, scratch.spare, gradient[:split]
        )
        backward(
            flat[split:], value, x, scratch.value_activations, scratch.value_deltas, scratch.spare, gradient[split:]
        )
        if not update(state, row, gradient, optimiser):
            return False
    return True


@kernel()
def shuffle(key: np.uint64, counter: np.uint64, order: NDArray[np.int64]) -> np.uint64:
    """Write a random permutation of 0..len-1 to `order`; returns the stream's new counter."""
    for i in range(order.shape[0]):
        j = np.int64(draw(key, counter) % np.uint64(i + 1))
        counter += np.uint64(1)
        order[i] = order[j]
        order[j] = i
    return counter


@kernel()
def _rollout(
    flat: Flat, policy: Network, value: Network, records: NDArray[np.float32], hp: PpoHyperparameters
) -> Rollout:
    """The rollout in a trial's replay buffer.

    All its steps were taken with the same weights, so their values can be computed at its end, in one pass.
    """
    n, d, n_actions = hp.n_steps, policy.sizes[0], policy.sizes[-1]
    split = policy.n_parameters
    x, actions = records[:n, :d].copy(), records[:n, 2 * d].astype(np.int64)
    activations = np.empty(n * n_activations(policy), np.float32)
    forward(flat[:split], policy, x, activations)
    logits = outputs_of(activations, policy, n).reshape(n, n_actions)
    log_probabilities = np.empty(n, np.float32)
    for t in range(n):
        log_probabilities[t] = logits[t, actions[t]] - _log_sum_exp(logits[t])
    activations = np.empty((n + 1) * n_activations(value), np.float32)
    forward(flat[split:], value, x, activations)
    values = outputs_of(activations, value, n).copy()
    ended = records[:n, 2 * d + 2] + records[:n, 2 * d + 3]
    rewards = records[:n, 2 * d + 1].copy()
    truncated = np.flatnonzero(records[:n, 2 * d + 3])
    cut = np.append(truncated, n - 1)  # the steps whose next observation needs a value
    forward(flat[split:], value, records[cut, d : 2 * d].copy(), activations)
    next_values = outputs_of(activations, value, len(cut))
    for i in range(len(truncated)):
        rewards[cut[i]] += np.float32(hp.gamma) * next_values[i]
    advantages = np.empty(n, np.float32)
    gae(rewards, values, ended, next_values[-1], hp.gamma, hp.gae_lambda, advantages)
    return Rollout(x, actions, values, log_probabilities, advantages, advantages + values)


@kernel()
def gae(
    rewards: Flat, values: Flat, ended: Flat, last_value: float, gamma: float, gae_lambda: float, advantages: Flat
) -> None:
    """Write generalised advantage estimates of a rollout to `advantages`; `last_value` is the value of its end."""
    total, next_value = np.float32(0), np.float32(last_value)
    for t in range(rewards.shape[0] - 1, -1, -1):
        is_alive = np.float32(0) if ended[t] else np.float32(1)
        delta = rewards[t] + np.float32(gamma) * next_value * is_alive - values[t]
        total = delta + np.float32(gamma * gae_lambda) * is_alive * total
        advantages[t], next_value = total, values[t]


@kernel()
def _log_sum_exp(values: Flat) -> np.float32:
    highest, total = values.max(), np.float32(0)
    for i in range(values.shape[0]):
        total += math.exp(values[i] - highest)
    return np.float32(highest + math.log(total))


@kernel()
def _loss(
    outputs: Flat, values: Flat, chosen: NDArray[np.int64], rollout: Rollout, hp: PpoHyperparameters, deltas: Flat,
    value_deltas: Flat,
) -> float:  # fmt: skip
    """Write the derivatives of the loss by logits and values; returns the approximate KL divergence."""
    m = chosen.shape[0]
    logits, by_logits = outputs.reshape(m, -1), deltas[: outputs.shape[0]].reshape(m, -1)
    shift, scale = 0.0, 1.0
    if hp.normalize_advantage and m > 1:
        shift, scale = _standardisation(rollout.advantages, chosen)
    weight, divergence = np.float32(1.0 / m), 0.0
    for i in range(m):
        at = chosen[i]
        advantage = np.float32((rollout.advantages[at] - shift) / scale)
        total, entropy = _log_sum_exp(logits[i]), np.float32(0)
        for a in range(logits.shape[1]):
            log_p = logits[i, a] - total
            entropy -= math.exp(log_p) * max(log_p, np.float32(-1e30))
        log_ratio = logits[i, rollout.actions[at]] - total - rollout.log_probabilities[at]
        ratio = np.float32(math.exp(log_ratio))
        divergence += (ratio - 1.0 - log_ratio) / m
        clipped = max(np.float32(1 - hp.clip_range), min(np.float32(1 + hp.clip_range), ratio))
        # The clipped term does not depend on the policy.
        by_ratio = np.float32(0) if advantage * clipped < advantage * ratio else -advantage * ratio * weight
        for a in range(logits.shape[1]):
            log_p = max(logits[i, a] - total, np.float32(-1e30))
            p = math.exp(log_p)
            by_logit = np.float32(1) - p if a == rollout.actions[at] else -p
            by_logits[i, a] = by_ratio * by_logit + np.float32(hp.ent_coef) * weight * p * (log_p + entropy)
        error = values[i] - rollout.returns[at]
        is_unclipped = not abs(values[i] - rollout.values[at]) > hp.clip_range_vf
        value_deltas[i] = np.float32(2 * hp.vf_coef) * error * weight if is_unclipped else np.float32(0)
    return divergence


@kernel()
def _standardisation(advantages: Flat, chosen: NDArray[np.int64]) -> tuple[float, float]:
    """Mean, and standard deviation + 1e-8, of the chosen advantages."""
    m, mean, total = chosen.shape[0], 0.0, 0.0
    for at in chosen:
        mean += advantages[at] / m
    for at in chosen:
        total += (advantages[at] - mean) ** 2
    return mean, math.sqrt(total / (m - 1)) + 1e-8
