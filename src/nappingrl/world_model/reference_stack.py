"""The references of many trials in two arrays, so that one kernel judges a step of each trial."""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Flags, Floats
from nappingrl.world_model.local_model import Features, LocalModel, Matrix, find_mode, n_features, write_residuals
from nappingrl.world_model.local_noise import LocalNoise
from nappingrl.world_model.misfits import Levels, Usual

Number = TypeVar("Number", np.int64, np.float64)
_HEAD = 9
"""Numbers that describe a reference: its modes, modelled observations, flags, actions, length of an encoded action,
actions with their own noise, main mode, where its usual residuals begin in the values, and at how many places."""
_MODE = 5
"""Numbers that describe a mode: where its model begins in the values (0: it has none), whether it is per action, has
curves and products, and how many waves it has."""


class Stack(NamedTuple):
    """What the kernel takes: for each trial a row of whole numbers and a row of values."""

    sizes: NDArray[np.int64]
    values: Matrix


class JudgedModes(NamedTuple):
    """The part of a reference that judges single steps in all modes."""

    flags: NDArray[np.int64]
    """(k,) the observations that tell modes apart."""
    mode_values: Matrix
    """(modes, k)"""
    low: Floats
    high: Floats
    """(d,) bounds that clip observations."""
    models: list[LocalModel | None]
    """By mode."""
    entries: NDArray[np.int64]
    """(q,) the observations that are modelled."""
    main: int
    """The mode with the most steps."""
    usual: Usual
    """Residuals in the home mode."""
    levels: Levels


class ReferenceStack:
    """Rows without a reference judge nothing."""

    def __init__(self, n: int) -> None:
        self.stack = Stack(np.zeros((n, 1), np.int64), np.zeros((n, 1)))

    def clear(self, row: int) -> None:
        """There is no reference."""
        self.stack.sizes[row, 0] = 0

    def put(self, row: int, judged: JudgedModes) -> None:
        """Take the models of a reference."""
        sizes, values = _flatten(judged)
        self.stack = Stack(_widened(self.stack.sizes, len(sizes)), _widened(self.stack.values, len(values)))
        self.stack.sizes[row, : len(sizes)], self.stack.values[row, : len(values)] = sizes, values

    def judge(
        self, rows: NDArray[np.int64], states: Matrix, actions: Matrix, next_states: Matrix, out: Matrix
    ) -> tuple[NDArray[np.int64], Flags]:
        """Write the residuals of a step of each row into `out`; returns modes (-1: not judged), and which are main."""
        modes, is_main = np.full(len(rows), -1), np.zeros(len(rows), np.bool_)
        _judge(self.stack, rows, states, actions, next_states, out, modes, is_main)
        return modes, is_main


def _flatten(judged: JudgedModes) -> tuple[NDArray[np.int64], Floats]:
    model = next(model for model in judged.models if model is not None)
    q, k, n_modes, d = len(judged.entries), len(judged.flags), len(judged.models), len(judged.low)
    values = [judged.low, judged.high, judged.mode_values.ravel()]
    at, modes = 2 * d + n_modes * k, []
    for each in judged.models:
        if each is None:
            modes.append((0,) * _MODE)
            continue
        f = each.features
        modes.append((at, f.is_per_action, f.has_curves, f.has_products, len(f.waves)))
        values += [part.ravel() for part in (f.centre, f.scale, f.low, f.high, f.waves, each.weights, each.noise,
                                             each.bend, each.outside, each.inverse_gram)]  # fmt: skip
        at = sum(map(len, values))
    n_actions, size = model.features.n_actions, model.features.action_size
    noise = judged.usual.noise
    values += [*judged.usual[:2], *judged.usual[3:], np.array(judged.levels), noise.places.ravel(), noise.sizes.ravel()]
    head = [n_modes, q, k, n_actions, size, len(model.noise), judged.main, at, len(noise.places)]
    parts = [*head, *judged.entries, *judged.flags, *np.array(modes).ravel()]
    return np.array(parts, np.int64), np.concatenate(values)


def _widened(rows: NDArray[Number], width: int) -> NDArray[Number]:
    """The rows, with zeros added where they are shorter than this."""
    missing = width - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, missing))) if missing > 0 else rows


@kernel()
def stacked_model(sizes: NDArray[np.int64], values: Floats, mode: int) -> LocalModel:
    """The model of a mode; its arrays are parts of `values`."""
    q, k, n_actions, size, n_noise = sizes[1], sizes[2], sizes[3], sizes[4], sizes[5]
    first = _HEAD + q + k + mode * _MODE
    info = sizes[first : first + _MODE]
    at, n_waves = info[0], info[4]
    entries = sizes[_HEAD : _HEAD + q]
    centre, scale = values[at : at + q], values[at + q : at + 2 * q]
    low, high = values[at + 2 * q : at + 3 * q], values[at + 3 * q : at + 4 * q]
    at += 4 * q
    waves = values[at : at + n_waves * (q + 1)].reshape((n_waves, q + 1))
    features = Features(
        entries, centre, scale, low, high, n_actions, size, info[1] > 0, info[2] > 0, info[3] > 0, waves
    )
    at += n_waves * (q + 1)
    n = n_features(features)
    weights = values[at : at + n * q].reshape((n, q))
    at += n * q
    noise = values[at : at + n_noise * q].reshape((n_noise, q))
    at += n_noise * q
    bend = values[at : at + q]
    outside = values[at + q : at + q + n_noise * q].reshape((n_noise, q))
    at += q + n_noise * q
    return LocalModel(features, weights, noise, bend, outside, values[at : at + (q + 1) ** 2].reshape((q + 1, q + 1)))


@kernel()
def stacked_usual(sizes: NDArray[np.int64], values: Floats) -> tuple[Usual, Levels]:
    """The usual residuals of the home mode; their arrays are parts of `values`."""
    q, at, n_places = sizes[1], sizes[7], sizes[8]
    centre, scale = values[at : at + q], values[at + q : at + 2 * q]
    least, tolerance = values[at + 2 * q : at + 3 * q], values[at + 3 * q : at + 4 * q]
    at += 4 * q
    levels = Levels(values[at], values[at + 1])
    at += 2
    places = values[at : at + n_places * q].reshape((n_places, q))
    at += n_places * q
    noise = LocalNoise(places, values[at : at + n_places * q].reshape((n_places, q)))
    return Usual(centre, scale, noise, least, tolerance), levels


@kernel()
def _judge(
    stack: Stack, rows: NDArray[np.int64], states: Matrix, actions: Matrix, next_states: Matrix, out: Matrix,
    modes: NDArray[np.int64], is_main: Flags,
) -> None:  # fmt: skip
    d = states.shape[1]
    found = np.empty((1, d))
    for m in range(len(rows)):
        sizes, values = stack.sizes[rows[m]], stack.values[rows[m]]
        n_modes, q, k = sizes[0], sizes[1], sizes[2]
        if n_modes == 0:
            continue
        mode_values = values[2 * d : 2 * d + n_modes * k].reshape((n_modes, k))
        mode = find_mode(
            sizes[_HEAD + q : _HEAD + q + k], mode_values, values[:d], values[d : 2 * d], states[m], next_states[m]
        )
        if mode < 0 or sizes[_HEAD + q + k + mode * _MODE] == 0:
            continue
        model = stacked_model(sizes, values, mode)
        write_residuals(model, model.weights, states[m : m + 1], actions[m : m + 1], next_states[m : m + 1], found)
        for i in range(q):
            out[m, sizes[_HEAD + i]] = found[0, i]
        modes[m], is_main[m] = mode, mode == sizes[6]
