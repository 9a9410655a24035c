"""SB3's PPO for many trials: rollouts of one environment each, GAE, clipped surrogate loss."""

import math

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.base import Trainable
from nappingrl.learners.base import Learner
from nappingrl.learners.hyperparameters import PpoSettings
from nappingrl.learners.network import Flat, Sizes, Spans, adam, backward, flow_width, forward, n_parameters
from nappingrl.rng import draw
from nappingrl.types import Actions, Flags, Floats, Keys, Rows

ADAM_EPSILON = 1e-5


class Ppo(Learner):
    """Trains after every rollout of n_steps; policy and value network have no layer in common."""

    def __init__(self, agent: Trainable, n: int, settings: PpoSettings, is_last_only: bool = False) -> None:
        super().__init__(agent, ["policy", "value"], n, settings.n_steps, settings.gamma, is_last_only)
        self.settings = settings

    def explore(self, rows: Rows, wanted: Actions, preferences: NDArray[np.float32]) -> Actions:
        """Actions drawn with the policy's probabilities."""
        actions = np.empty(len(rows), np.int64)
        _choose(preferences, self.streams.uniform(rows), actions)
        return actions

    def _rewards_to_keep(self, rows: Rows, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.rewards.scaled(rows, rewards)

    def _step(self, rows: Rows) -> Rows:
        due: Rows = rows[self.memory.seen[rows] % self.settings.n_steps == 0]
        return due

    def _update(self, rows: Rows) -> None:
        """All epochs over the rollouts of some rows."""
        _train(
            rows, self.settings, self.parameters, n_parameters(self.sizes[0]), self.first, self.second,
            self.adam_steps, self.sizes[0], self.sizes[1], self.is_tanh, self.spans, self.is_last_only,
            self.memory.records, self.streams.keys, self.streams.draws, self.is_diverged,
        )  # fmt: skip


@kernel()
def _choose(preferences: NDArray[np.float32], uniforms: Floats, actions: Actions) -> None:
    """Actions <- drawn from softmax(preferences); the last one where they are not finite."""
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
    rows: Rows, s: PpoSettings, parameters: NDArray[np.float32], split: int, firsts: NDArray[np.float32],
    seconds: NDArray[np.float32], adam_steps: Rows, policy_sizes: Sizes, value_sizes: Sizes, is_tanh: bool,
    spans: Spans, is_last_only: bool, records: NDArray[np.float32], keys: Keys, draws: Keys, is_diverged: Flags,
) -> None:  # fmt: skip
    batch = min(s.batch_size, s.n_steps)
    lowest_policy = policy_sizes.shape[0] - 2 if is_last_only else 0
    lowest_value = value_sizes.shape[0] - 2 if is_last_only else 0
    room = batch * max(policy_sizes.max(), value_sizes.max())
    deltas, value_deltas, spare = np.empty(room, np.float32), np.empty(room, np.float32), np.empty(room, np.float32)
    flows = np.empty(batch * flow_width(policy_sizes), np.float32)
    value_flows = np.empty(batch * flow_width(value_sizes), np.float32)
    gradient, order = np.empty(parameters.shape[1], np.float32), np.empty(s.n_steps, np.int64)
    for row in rows:
        flat, policy, value = parameters[row], parameters[row, :split], parameters[row, split:]
        x_all, actions, facts = _rollout(policy, value, policy_sizes, value_sizes, is_tanh, records[row], s)
        for _ in range(s.n_epochs):
            draws[row] = shuffle(keys[row], draws[row], order)
            is_over = False
            for low in range(0, s.n_steps, batch):
                chosen = order[low : low + batch]
                x = x_all[chosen]
                forward(policy, policy_sizes, x, is_tanh, flows)
                forward(value, value_sizes, x, is_tanh, value_flows)
                logits = flows[: len(x) * flow_width(policy_sizes)][-len(x) * policy_sizes[-1] :]
                values = value_flows[: len(x) * flow_width(value_sizes)][-len(x) :]
                kl = _loss(logits, values, chosen, actions, facts, s, deltas, value_deltas)
                is_over = kl > 1.5 * s.target_kl
                if is_over:
                    break
                backward(policy, policy_sizes, x, is_tanh, flows, deltas, spare, lowest_policy, gradient[:split])
                backward(
                    value, value_sizes, x, is_tanh, value_flows, value_deltas, spare, lowest_value, gradient[split:]
                )
                steps = adam_steps[row] + 1
                is_over = is_diverged[row] = not adam(
                    flat, gradient, firsts[row], seconds[row], spans, steps, s.learning_rate, ADAM_EPSILON,
                    s.max_grad_norm,
                )  # fmt: skip
                if is_over:
                    break
                adam_steps[row] = steps
            if is_over:
                break


@kernel()
def shuffle(key: np.uint64, counter: np.uint64, order: NDArray[np.int64]) -> np.uint64:
    """Order <- a random permutation of 0..len-1; returns the stream's new counter."""
    for i in range(order.shape[0]):
        j = np.int64(draw(key, counter) % np.uint64(i + 1))
        counter += np.uint64(1)
        order[i] = order[j]
        order[j] = i
    return counter


@kernel()
def _rollout(
    policy: Flat, value: Flat, policy_sizes: Sizes, value_sizes: Sizes, is_tanh: bool, records: NDArray[np.float32],
    s: PpoSettings,
) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:  # fmt: skip
    """Observations, actions and, as the rows of one array, old values, old log-probabilities, advantages, returns.

    All steps of a rollout are taken with the same weights, so their values can be computed at its end, in one pass.
    """
    n, d, n_actions = s.n_steps, policy_sizes[0], policy_sizes[-1]
    x, actions = records[:n, :d].copy(), records[:n, 2 * d].astype(np.int64)
    facts = np.empty((4, n), np.float32)
    flows = np.empty(n * flow_width(policy_sizes), np.float32)
    forward(policy, policy_sizes, x, is_tanh, flows)
    logits = flows[-n * n_actions :].reshape(n, n_actions)
    for t in range(n):
        facts[1, t] = logits[t, actions[t]] - _log_sum_exp(logits[t])
    flows = np.empty((n + 1) * flow_width(value_sizes), np.float32)
    forward(value, value_sizes, x, is_tanh, flows)
    facts[0] = flows[: n * flow_width(value_sizes)][-n:]
    ended = records[:n, 2 * d + 2] + records[:n, 2 * d + 3]
    rewards = records[:n, 2 * d + 1].copy()
    cut = np.flatnonzero(records[:n, 2 * d + 3])
    cut = np.append(cut, n - 1)  # the values of what came after truncation, and after the last step
    forward(value, value_sizes, records[cut, d : 2 * d].copy(), is_tanh, flows)
    next_values = flows[: len(cut) * flow_width(value_sizes)][-len(cut) :]
    for i in range(len(cut) - 1):
        rewards[cut[i]] += np.float32(s.gamma) * next_values[i]
    gae(rewards, facts[0], ended, next_values[-1], s.gamma, s.gae_lambda, facts[2])
    facts[3] = facts[2] + facts[0]
    return x, actions, facts


@kernel()
def gae(
    rewards: Flat, values: Flat, ended: Flat, last_value: float, gamma: float, gae_lambda: float, advantages: Flat
) -> None:
    """Advantages <- generalised advantage estimates of one rollout; `last_value` is that of the state after it."""
    total, next_value = np.float32(0), np.float32(last_value)
    for t in range(rewards.shape[0] - 1, -1, -1):
        alive = np.float32(0) if ended[t] else np.float32(1)
        delta = rewards[t] + np.float32(gamma) * next_value * alive - values[t]
        total = delta + np.float32(gamma * gae_lambda) * alive * total
        advantages[t], next_value = total, values[t]


@kernel()
def _log_sum_exp(values: Flat) -> np.float32:
    highest, total = values.max(), np.float32(0)
    for i in range(values.shape[0]):
        total += math.exp(values[i] - highest)
    return np.float32(highest + math.log(total))


@kernel()
def _loss(
    outputs: Flat, values: Flat, chosen: NDArray[np.int64], actions: NDArray[np.int64], facts: NDArray[np.float32],
    s: PpoSettings, deltas: Flat, value_deltas: Flat,
) -> float:  # fmt: skip
    """Deltas <- the derivatives of the loss by logits and values; returns the approximate KL divergence."""
    m = chosen.shape[0]
    logits, by_logits = outputs.reshape(m, -1), deltas[: outputs.shape[0]].reshape(m, -1)
    shift, scale = _standardisation(facts[2], chosen) if s.normalize_advantage and m > 1 else (0.0, 1.0)
    share, divergence = np.float32(1.0 / m), 0.0
    for i in range(m):
        at = chosen[i]
        advantage = np.float32((facts[2, at] - shift) / scale)
        total, entropy = _log_sum_exp(logits[i]), np.float32(0)
        for a in range(logits.shape[1]):
            log_p = logits[i, a] - total
            entropy -= math.exp(log_p) * max(log_p, np.float32(-1e30))
        log_ratio = logits[i, actions[at]] - total - facts[1, at]
        ratio = np.float32(math.exp(log_ratio))
        divergence += (ratio - 1.0 - log_ratio) / m
        clipped = max(np.float32(1 - s.clip_range), min(np.float32(1 + s.clip_range), ratio))
        # Where the clipped term is the smaller one, the loss does not depend on the policy.
        pull = np.float32(0) if advantage * clipped < advantage * ratio else -advantage * ratio * share
        for a in range(logits.shape[1]):
            log_p = max(logits[i, a] - total, np.float32(-1e30))
            p = math.exp(log_p)
            chance = np.float32(1) - p if a == actions[at] else -p
            by_logits[i, a] = pull * chance + np.float32(s.ent_coef) * share * p * (log_p + entropy)
        error = values[i] - facts[3, at]
        is_free = not abs(values[i] - facts[0, at]) > s.clip_range_vf
        value_deltas[i] = np.float32(2 * s.vf_coef) * error * share if is_free else np.float32(0)
    return divergence


@kernel()
def _standardisation(advantages: Flat, chosen: NDArray[np.int64]) -> tuple[float, float]:
    """Mean, and deviation + 1e-8, of the chosen advantages."""
    m, mean, total = chosen.shape[0], 0.0, 0.0
    for at in chosen:
        mean += advantages[at] / m
    for at in chosen:
        total += (advantages[at] - mean) ** 2
    return mean, math.sqrt(total / (m - 1)) + 1e-8
