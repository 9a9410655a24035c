"""SB3's DQN for many trials: replay, a target network, smooth L1 loss, epsilon-greedy exploration."""

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.agents.base import Trainable
from nappingrl.learners.base import Learner
from nappingrl.learners.hyperparameters import DqnSettings
from nappingrl.learners.network import Flat, Sizes, Spans, adam, backward, flatten, flow_width, forward, polyak
from nappingrl.rng import draw
from nappingrl.types import Actions, Flags, Floats, Keys, Rows

ADAM_EPSILON = 1e-8
_BLOCK = 128
"""Steps whose targets are computed in one pass: a product of many rows is faster than many of few."""


class Dqn(Learner):
    """Trains as SB3 does when learn() is called again: no warm-up, and epsilon at its final value."""

    def __init__(self, agent: Trainable, n: int, settings: DqnSettings, is_last_only: bool = False) -> None:
        super().__init__(agent, ["q"], n, settings.buffer_size, settings.gamma, is_last_only)
        self.settings = settings
        self._initial_target = flatten(agent.networks["target"])
        self.targets = np.zeros_like(self.parameters)
        self.steps = np.zeros(n, np.int64)
        """Steps since learning began."""

    def start(self, rows: Rows, keys: Keys) -> None:
        """A new trial begins in `rows`."""
        super().start(rows, keys)
        self.targets[rows], self.steps[rows] = self._initial_target, 0

    def explore(self, rows: Rows, wanted: Actions, preferences: NDArray[np.float32]) -> Actions:
        """Epsilon-greedy."""
        return self.streams.epsilon_greedy(rows, wanted, preferences.shape[1], self.settings.exploration_final_eps)

    def _rewards_to_keep(self, rows: Rows, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        """As they are: like SB3's replay buffer, by the statistics of the moment at which they are sampled."""
        return rewards

    def _step(self, rows: Rows) -> Rows:
        s = self.settings
        self.steps[rows] += 1
        steps = self.steps[rows]
        polyak(self.parameters, self.targets, rows[steps % s.target_update_interval == 0], s.tau)
        due: Rows = rows[steps % s.train_freq == 0]
        return due

    def _update(self, rows: Rows) -> None:
        """All gradient steps that are due."""
        s = self.settings
        _train(
            rows, s.train_freq if s.gradient_steps < 0 else s.gradient_steps, s, self.parameters, self.targets,
            self.first, self.second, self.adam_steps, self.sizes[0], self.is_tanh, self.spans, self.is_last_only,
            self.memory.records, self.memory.seen, self.rewards.deviation, self.rewards.clip, self.streams.keys,
            self.streams.draws, self.is_diverged,
        )  # fmt: skip


@kernel()
def _train(
    rows: Rows, gradient_steps: int, s: DqnSettings, parameters: NDArray[np.float32], targets: NDArray[np.float32],
    firsts: NDArray[np.float32], seconds: NDArray[np.float32], adam_steps: Rows, sizes: Sizes, is_tanh: bool,
    spans: Spans, is_last_only: bool, records: NDArray[np.float32], seen: Rows, deviations: Floats, reward_clip: float,
    keys: Keys, draws: Keys, is_diverged: Flags,
) -> None:  # fmt: skip
    d, batch = sizes[0], s.batch_size
    at_once = max(1, min(_BLOCK // batch, gradient_steps))  # updates whose samples are drawn together
    block = max(at_once * batch, _BLOCK)
    samples = np.empty((at_once * batch, records.shape[2]), np.float32)
    x, indices = np.empty((at_once * batch, d), np.float32), np.empty(at_once * batch, np.int64)
    best, best_of_all = np.empty(at_once * batch, np.float32), np.empty(gradient_steps * batch, np.float32)
    flows = np.empty(block * flow_width(sizes), np.float32)
    deltas, spare = np.empty(batch * sizes.max(), np.float32), np.empty(batch * sizes.max(), np.float32)
    gradient = np.empty(parameters.shape[1], np.float32)
    lowest = sizes.shape[0] - 2 if is_last_only else 0
    for row in rows:
        flat, first, second, ring = parameters[row], firsts[row], seconds[row], records[row]
        size, done = min(seen[row], s.buffer_size), 0
        knows_all = size <= gradient_steps * batch  # then each step's target is computed once, else once a sample
        if knows_all:
            _best_values(targets[row], sizes, is_tanh, ring[:size], block, flows, best_of_all)
        while done < gradient_steps and not is_diverged[row]:
            count = min(at_once, gradient_steps - done)
            m = count * batch
            draws[row] = _sample(size, keys[row], draws[row], indices[:m])
            for i in range(m):
                samples[i], best[i] = ring[indices[i]], best_of_all[indices[i]] if knows_all else 0
            x[:m] = samples[:m, :d]
            if not knows_all:
                _best_values(targets[row], sizes, is_tanh, samples[:m], block, flows, best)
            for i in range(count):
                low, high = i * batch, (i + 1) * batch
                forward(flat, sizes, x[low:high], is_tanh, flows)
                _loss(samples[low:high], best[low:high], s.gamma, deviations[row], reward_clip, flows, sizes, deltas)
                backward(flat, sizes, x[low:high], is_tanh, flows, deltas, spare, lowest, gradient)
                steps = adam_steps[row] + 1
                is_diverged[row] = not adam(
                    flat, gradient, first, second, spans, steps, s.learning_rate, ADAM_EPSILON, s.max_grad_norm
                )
                if is_diverged[row]:
                    break
                adam_steps[row] = steps
            done += count


@kernel()
def _sample(size: int, key: np.uint64, counter: np.uint64, indices: NDArray[np.int64]) -> np.uint64:
    """Indices <- drawn with replacement; returns the stream's new counter."""
    for i in range(indices.shape[0]):
        indices[i] = np.int64(draw(key, counter) % np.uint64(size))
        counter += np.uint64(1)
    return counter


@kernel()
def _best_values(
    target: Flat, sizes: Sizes, is_tanh: bool, steps: NDArray[np.float32], block: int, flows: Flat, best: Flat
) -> None:
    """Best <- the highest output of the target network for the next observation of each step."""
    d, n_actions = sizes[0], sizes[-1]
    for low in range(0, steps.shape[0], block):
        x = steps[low : low + block, d : 2 * d].copy()
        forward(target, sizes, x, is_tanh, flows)
        first = len(x) * (flow_width(sizes) - n_actions)
        for i in range(len(x)):
            best[low + i] = flows[first + i * n_actions : first + (i + 1) * n_actions].max()


@kernel()
def _loss(
    samples: NDArray[np.float32], best: Flat, gamma: float, deviation: float, reward_clip: float, flows: Flat,
    sizes: Sizes, deltas: Flat,
) -> None:  # fmt: skip
    """Deltas <- the derivative of the mean smooth L1 loss by the outputs in `flows`."""
    m, d, n_actions = samples.shape[0], sizes[0], sizes[-1]
    first = m * (flow_width(sizes) - n_actions)
    deltas[: m * n_actions] = 0
    for i in range(m):
        reward = np.float32(max(-reward_clip, min(reward_clip, samples[i, 2 * d + 1] / deviation)))
        wanted = reward + (np.float32(1) - samples[i, 2 * d + 2]) * np.float32(gamma) * best[i]
        at = i * n_actions + np.int64(samples[i, 2 * d])
        error = flows[first + at] - wanted
        if abs(error) >= 1:  # what is not a number stays so
            error = np.float32(1) if error > 0 else np.float32(-1)
        deltas[at] = error / np.float32(m)
