"""Whole episodes in one kernel: domain, forward pass, method and score in compiled code, Python only at their ends.

It plays a few trials at a time, each to the end of its episode, instead of all of them in lock step: what a trial has
learned then stays in the processor's cache. The engine's ticks remain the reference; both give the same bits.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.adaptation import Adaptation
from nappingrl.agents.base import Network
from nappingrl.agents.perceptron import TILE, forward, standardise
from nappingrl.domains.base import Domain
from nappingrl.domains.compiled import CompiledDomain
from nappingrl.methods.compiled import CompiledMethod
from nappingrl.transition_filter import FilterArrays, accept, is_usable
from nappingrl.types import Flags, Floats, Observation, Rows

TERMINATED, TRUNCATED, FULL, DROPPED = 1, 2, 3, 4
"""Why the kernel stopped playing a trial. FULL: its method has no more space. DROPPED: a step was not fit to learn
from, which the engine's ticks know how to handle."""

_RESERVED = 128
"""New regions of a trial for which there is space when the kernel begins; it stops where a trial needs more."""

Space = tuple[Floats, Floats, bool]  # centre and scale of observations, and whether points are such observations


class Lanes(NamedTuple):
    """The trials that are played side by side, and what the kernel computes of them."""

    playing: Rows
    """(TILE,): -1: none."""
    observations: NDArray[np.float32]
    next_observation: Observation
    inputs: NDArray[np.float32]
    raw_point: Observation
    activations: tuple[NDArray[np.float32], ...]
    outputs: NDArray[np.float32]


def _make_lanes(network: Network) -> Lanes:
    n_numbers = len(network.mean)
    tiles = [np.zeros((TILE, n), np.float32) for n in (n_numbers, n_numbers, *map(len, network.biases))]
    outputs = np.zeros((TILE, len(network.output_bias)), np.float32)
    observation, point = np.zeros((2, n_numbers), np.float32)
    return Lanes(np.full(TILE, -1), tiles[0], observation, tiles[1], point, tuple(tiles[2:]), outputs)


class EpisodeKernel:
    """Plays whole episodes of one engine."""

    def __init__(
        self, domain: CompiledDomain, network: Network, method: CompiledMethod, score: Any, adaptation: Adaptation
    ) -> None:
        self._domain, self._network, self._method, self._adaptation = domain, network, method, adaptation
        self._horizon = domain.spec.horizon
        self._lanes = _make_lanes(network)
        is_raw = method.centre is not None
        self._space = (method.centre, method.scale, is_raw) if is_raw else (np.zeros(0), np.zeros(0), is_raw)
        self._play = make_play(*domain.kernels[:2], score or _no_score, method.act, method.learn, method.has_room)

    def play(self, rows: Rows, lengths: Rows) -> NDArray[np.int64]:
        """Play on until the episode ends or a step is dropped in each row; returns TERMINATED, TRUNCATED or DROPPED."""
        adaptation, method = self._adaptation, self._method
        learns: Flags = (adaptation.contexts > 0) & method.learns
        stopped = np.zeros(len(lengths), np.int64)
        waiting = rows
        while len(waiting):
            method.reserve(waiting[learns[waiting]], _RESERVED)
            n_created = self._play(
                self._domain.arrays, self._network, self._space, method.view(), adaptation.filter.arrays, self._lanes,
                waiting, learns, lengths, adaptation.returns, self._horizon, stopped,
            )  # fmt: skip
            method.on_created(n_created)
            waiting = rows[stopped[rows] == FULL]
        return stopped[rows]


def make_episode_kernel(domain: Domain, adaptation: Adaptation) -> EpisodeKernel | None:
    """The kernel of a domain and an adaptation; None where one of their parts only runs in Python."""
    method, score = adaptation.method.compiled(), adaptation.method.info.score
    network = adaptation.method.agent.network()
    if not isinstance(domain, CompiledDomain) or not domain.is_compiled or method is None or network is None:
        return None
    if adaptation.detects_within_episodes or adaptation.memory is not None:
        return None
    if method.learns and (score is None or score.kernel is None):
        return None
    return EpisodeKernel(domain, network, method, score and score.kernel, adaptation)


@kernel(allocates=False)
def _no_score(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    return 0.0


@cache
def make_play(step: Any, observe: Any, score: Any, act: Any, learn: Any, has_room: Any) -> Any:
    """The kernel for these parts; TILE trials are played side by side, as the forward pass takes that many rows."""

    @kernel(allocates=False)
    def play(
        world: tuple[NDArray[Any], Floats], network: Network, space: Space, method: Any, judge: FilterArrays,
        lanes: Lanes, rows: Rows, learns: Flags, lengths: Rows, returns: Floats, horizon: int, stopped: Rows,
    ) -> int:  # fmt: skip
        states, parameters = world
        centre, scale, is_raw = space
        playing, observations, obs2, inputs, raw, activations, outputs = lanes
        embedding = activations[network.embedding_layer]
        n_taken, n_playing, n_created = 0, 0, 0
        while n_taken < rows.shape[0] or n_playing > 0:
            for lane in range(TILE):
                if playing[lane] < 0 and n_taken < rows.shape[0]:
                    row = rows[n_taken]
                    n_taken += 1
                    observe(states[row], parameters[row], observations[lane])
                    stopped[row] = 0 if is_usable(judge, row, observations[lane]) else DROPPED
                    if not stopped[row]:
                        playing[lane] = row
                        n_playing += 1
                standardise(observations[lane], network.mean, network.scale, network.clip, inputs[lane])
            forward(network, inputs, activations, outputs)
            for lane in range(TILE):
                row, obs, point = playing[lane], observations[lane], embedding[lane]
                if row < 0:
                    continue
                if is_raw:
                    standardise(obs, centre, scale, np.inf, raw)
                    point = raw
                wanted = outputs[lane].argmax()
                action, region = act(method, row, point, wanted)
                reward, is_terminated = step(states[row], parameters[row], action)
                observe(states[row], parameters[row], obs2)
                lengths[row] += 1
                is_accepted = accept(judge, row, obs2, reward)
                if is_accepted:
                    returns[row] += reward
                    if learns[row]:
                        value = score(obs, action, obs2, reward, is_terminated)
                        n_created += learn(method, row, point, wanted, action, region, value, obs)
                for k in range(obs2.shape[0]):
                    obs[k] = obs2[k]
                if is_terminated:
                    stopped[row] = TERMINATED
                elif lengths[row] >= horizon:
                    stopped[row] = TRUNCATED
                elif not is_accepted:
                    stopped[row] = DROPPED
                elif learns[row] and not has_room(method, row):
                    stopped[row] = FULL
                if stopped[row]:
                    playing[lane] = -1
                    n_playing -= 1
        return n_created

    return play
