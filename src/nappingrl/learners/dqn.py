"""SB3's DQN for many trials: replay buffer, target network, smooth L1 loss, epsilon-greedy exploration."""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl._build import kernel
from nappingrl.agents.base import Trainable
from nappingrl.learners.base import Learner
from nappingrl.learners.hyperparameters import DqnHyperparameters
from nappingrl.learners.network import (
    Flat,
    Network,
    Optimiser,
    TrainState,
    backward,
    flatten,
    forward,
    n_activations,
    outputs_of,
    polyak,
    update,
)
from nappingrl.rng import draw
from nappingrl.types import Actions, Floats, Keys, Rows

_BLOCK = 128
"""Steps whose targets are computed in one pass: one product of many rows is faster than many of few."""


class Replay(NamedTuple):
    """The replay buffers of all trials, with the scaling of rewards."""

    records: NDArray[np.float32]
    n_added: Rows
    reward_deviation: Floats
    reward_clip: float


class Dqn(Learner):
    """Trains like SB3 when learn() is called again: no warm-up, and epsilon at its final value."""

    adam_epsilon: ClassVar[float] = 1e-8

    def __init__(
        self, agent: Trainable, n: int, hyperparameters: DqnHyperparameters, is_last_only: bool = False
    ) -> None:
        super().__init__(agent, ["q"], n, hyperparameters.buffer_size, hyperparameters.gamma, is_last_only)
        self.hyperparameters = hyperparameters
        self._initial_target = flatten(agent.networks["target"])
        self.targets = np.zeros_like(self.state.parameters)
        self.steps = np.zeros(n, np.int64)
        """Steps since learning began."""

    @override
    def start(self, rows: Rows, keys: Keys) -> None:
        super().start(rows, keys)
        self.targets[rows] = self._initial_target
        self.steps[rows] = 0

    @override
    def explore(self, rows: Rows, wanted: Actions, preferences: NDArray[np.float32]) -> Actions:
        epsilon = self.hyperparameters.exploration_final_eps
        return self.streams.epsilon_greedy(rows, wanted, preferences.shape[1], epsilon)

    @override
    def _stored_rewards(self, rows: Rows, rewards: NDArray[np.float64]) -> NDArray[np.float64]:
        return rewards  # as in SB3's replay buffer, rewards are scaled when they are sampled

    @override
    def _count_step(self, rows: Rows) -> Rows:
        hyperparameters = self.hyperparameters
        self.steps[rows] += 1
        steps = self.steps[rows]
        renewed = rows[steps % hyperparameters.target_update_interval == 0]
        polyak(self.state.parameters, self.targets, renewed, hyperparameters.tau)
        due: Rows = rows[steps % hyperparameters.train_freq == 0]
        return due

    @override
    def _train(self, rows: Rows) -> None:
        hyperparameters = self.hyperparameters
        if hyperparameters.gradient_steps < 0:  # SB3: as many as there were steps
            hyperparameters = hyperparameters._replace(gradient_steps=hyperparameters.train_freq)
        optimiser = self._optimiser(hyperparameters.learning_rate, hyperparameters.max_grad_norm)
        scale = self.reward_scale
        replay = Replay(self.replay.records, self.replay.n_added, scale.deviation, scale.clip)
        _train(rows, hyperparameters, self.networks[0], self.state, self.targets, optimiser, replay)


@kernel()
def _train(
    rows: Rows, hp: DqnHyperparameters, network: Network, state: TrainState, targets: NDArray[np.float32],
    optimiser: Optimiser, replay: Replay,
) -> None:  # fmt: skip
    """Take the gradient steps of some trials."""
    sizes, batch = network.sizes, hp.batch_size
    d, widest = sizes[0], sizes.max()
    at_once = max(1, min(_BLOCK // batch, hp.gradient_steps))  # updates whose samples are drawn together
    block = max(at_once * batch, _BLOCK)
    samples = np.empty((at_once * batch, replay.records.shape[2]), np.float32)
    x, indices = np.empty((at_once * batch, d), np.float32), np.empty(at_once * batch, np.int64)
    best, best_of_all = np.empty(at_once * batch, np.float32), np.empty(hp.gradient_steps * batch, np.float32)
    activations = np.empty(block * n_activations(network), np.float32)
    deltas, scratch = np.empty(batch * widest, np.float32), np.empty(batch * widest, np.float32)
    gradient = np.empty(state.parameters.shape[1], np.float32)
    for row in rows:
        flat, records = state.parameters[row], replay.records[row]
        size, done = min(replay.n_added[row], hp.buffer_size), 0
        # A small buffer is sampled often: compute the target of each of its steps once, not once per sample.
        is_small = size <= hp.gradient_steps * batch
        if is_small:
            _best_values(targets[row], network, records[:size], block, activations, best_of_all)
        while done < hp.gradient_steps and not state.is_diverged[row]:
            count = min(at_once, hp.gradient_steps - done)
            m = count * batch
            state.draws[row] = _sample(size, state.keys[row], state.draws[row], indices[:m])
            for i in range(m):
                samples[i], best[i] = records[indices[i]], best_of_all[indices[i]] if is_small else 0
            x[:m] = samples[:m, :d]
            if not is_small:
                _best_values(targets[row], network, samples[:m], block, activations, best)
            for i in range(count):
                low, high = i * batch, (i + 1) * batch
                forward(flat, network, x[low:high], activations)
                values = outputs_of(activations, network, batch)
                deviation, clip = replay.reward_deviation[row], replay.reward_clip
                _loss(samples[low:high], best[low:high], hp.gamma, deviation, clip, values, deltas)
                backward(flat, network, x[low:high], activations, deltas, scratch, gradient)
                if not update(state, row, gradient, optimiser):
                    break
            done += count


@kernel()
def _sample(size: int, key: np.uint64, counter: np.uint64, indices: NDArray[np.int64]) -> np.uint64:
    """Write indices drawn with replacement to `indices`; returns the stream's new counter."""
    for i in range(indices.shape[0]):
        indices[i] = np.int64(draw(key, counter) % np.uint64(size))
        counter += np.uint64(1)
    return counter


@kernel()
def _best_values(
    target: Flat, network: Network, steps: NDArray[np.float32], block: int, activations: Flat, best: Flat
) -> None:
    """Write the highest output of the target network for the next observation of each step to `best`."""
    d, n_actions = network.sizes[0], network.sizes[-1]
    for low in range(0, steps.shape[0], block):
        x = steps[low : low + block, d : 2 * d].copy()
        forward(target, network, x, activations)
        values = outputs_of(activations, network, len(x))
        for i in range(len(x)):
            best[low + i] = values[i * n_actions : (i + 1) * n_actions].max()


@kernel()
def _loss(
    samples: NDArray[np.float32], best: Flat, gamma: float, deviation: float, reward_clip: float, values: Flat,
    deltas: Flat,
) -> None:  # fmt: skip
    """Write the derivative of the mean smooth L1 loss by the network's outputs `values` to `deltas`."""
    m = samples.shape[0]
    d, n_actions = (samples.shape[1] - 4) // 2, values.shape[0] // m
    deltas[: m * n_actions] = 0
    for i in range(m):
        reward = np.float32(max(-reward_clip, min(reward_clip, samples[i, 2 * d + 1] / deviation)))
        goal = reward + (np.float32(1) - samples[i, 2 * d + 2]) * np.float32(gamma) * best[i]
        at = i * n_actions + np.int64(samples[i, 2 * d])
        error = values[at] - goal
        if abs(error) >= 1:  # NaN stays NaN
            error = np.float32(1) if error > 0 else np.float32(-1)
        deltas[at] = error / np.float32(m)
