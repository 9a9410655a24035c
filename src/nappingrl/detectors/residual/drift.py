"""Drift: residuals too small to surprise that go the same way, go with an action, or are larger than usual."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.tail_limits import tail_limit
from nappingrl.snapshot import Expected
from nappingrl.types import Flags, Rows
from nappingrl.world_model.reference import Judged

EVIDENCE = 5.0
"""Added to the number of steps, so that a few are no drift."""
BIAS = 0.2
"""Residuals that the model leaves in parts of the world, in usual ones: they add up with the steps, not their root."""
FEW_EPISODES = 2.0
"""How much the allowance grows with the inverse root of the number of calibrated episodes."""


class Drift:
    """Compares sums over an episode with the same sums of the calibrated episodes.

    For each observation its residual is summed, times each entry of the encoded action, and its size beyond the usual
    one. Steps of an episode depend on each other, so an episode is compared with whole episodes. A sum far larger than
    ever before, by `tail_limit`, is an alarm if the episode before had one too, or at once if it is clearly larger: a
    limit of a few dozen episodes is not exact, and any world has an odd episode now and then. Smaller deviations add
    up over episodes beyond an allowance (CUSUM), for each sum and sign: several episodes in a row must deviate the same
    way.
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        "weights": Expected(low=0), "deviation": Expected(low=0, with_inf=True), "n_episodes": Expected(low=0),
        "up": Expected(low=0), "down": Expected(low=0), "largest": Expected(low=0),
        "at_alarm": Expected(low=0), "limit": Expected(low=0, with_inf=True), "size": Expected(low=0),
    }  # fmt: skip

    def __init__(self, n: int, dim: int, action_size: int, config: ResidualConfig) -> None:
        self.config = config
        shape = (n, dim, action_size + 1)
        self.mean, self.deviation = np.zeros(shape), np.full(shape, np.inf)
        """Of the sums of calibrated episodes."""
        self.size = np.zeros((n, dim))
        """Mean size of a residual."""
        self.n_episodes = np.zeros(n, np.int64)
        """Of the calibration."""
        self.limit = np.full(n, np.inf)
        """Of the sums within an episode, in deviations."""
        self.sums, self.weights = np.zeros(shape), np.zeros((n, action_size + 1))
        """Of this episode."""
        self.up, self.down = np.zeros((2, *shape))
        """Deviations beyond the allowance, added up over episodes."""
        self.largest, self.at_alarm = np.zeros((2, n))
        """The largest deviation of the latest episode, and of that of the alarm."""
        self.is_beyond, self.was_beyond = np.zeros((2, n), np.bool_)
        """Whether a sum exceeded the limit in this episode, and in the one before."""

    def start(self, rows: Rows) -> None:
        """Nothing is calibrated yet."""
        self.deviation[rows], self.limit[rows], self.n_episodes[rows] = np.inf, np.inf, 0
        self.up[rows] = self.down[rows] = 0.0
        self.largest[rows] = self.at_alarm[rows] = 0.0
        self.was_beyond[rows] = False
        self.forget_episode(rows)

    def forget_episode(self, rows: Rows) -> None:
        """A new episode begins."""
        self.sums[rows], self.weights[rows], self.is_beyond[rows] = 0.0, 0.0, False

    def calibrate(self, row: int, held_out: Judged, mode: int) -> None:
        """Learn how the sums vary between episodes; `mode`: only its steps count."""
        config = self.config
        is_counted = held_out.mode == mode
        residuals = np.where(is_counted[:, None], held_out.residuals, 0.0)
        self.size[row] = np.minimum(np.abs(residuals[is_counted]), config.max_residual).mean(axis=0)
        begins = np.concatenate([[0], np.flatnonzero(np.diff(held_out.episodes)) + 1, [len(residuals)]])
        whole, largest = _sums_of_episodes(begins, residuals, held_out.actions, self.size[row], config.max_residual)
        self.n_episodes[row] = n = len(whole)
        if n < config.min_episodes:
            return
        self.mean[row] = np.mean(whole, axis=0)
        deviation = np.maximum(np.std(whole, axis=0, ddof=1), config.least_deviation)
        self.deviation[row] = deviation * np.sqrt(1 + 1 / n)
        values = (largest / self._of_others(whole)).max(axis=(1, 2))
        limit = min(tail_limit(values, config.false_alarms), config.max_drift_factor * float(values.max()))
        self.limit[row] = max(limit, config.min_drift)

    def _of_others(self, whole: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, d, columns) the deviation that each calibrated episode would be judged by, had it come later.

        An episode that counts towards the deviation cannot exceed it by much: after few episodes, limits would be low.
        """
        n = len(whole) - 1
        centred = whole - whole.mean(axis=0)
        squares = (centred**2).sum(axis=0) - centred**2 * (n + 1) / n
        deviation = np.sqrt(np.maximum(squares, 0.0) / (n - 1))
        return np.asarray(np.maximum(deviation, self.config.least_deviation) * np.sqrt(1 + 1 / n))

    def update(
        self, rows: Rows, residuals: NDArray[np.float64], is_counted: Flags, actions: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Add a step of each row, with no residuals where it does not count; returns the deviations of the sums.

        (m, d, columns).
        """
        residuals = np.where(is_counted[:, None], residuals, 0.0)
        out = np.empty((len(rows), *self.sums.shape[1:]))
        most = self.config.max_residual
        _add_steps(self.sums, self.weights, self.size, self.deviation, rows, residuals, actions, most, out)
        return out

    def is_alarm(self, rows: Rows, deviations: NDArray[np.float64]) -> Flags:
        """Whether a sum is already far larger than ever before, and was in the episode before; or clearly larger."""
        largest, limit = deviations.max(axis=(1, 2)), self.limit[rows]
        is_beyond = largest > limit
        self.is_beyond[rows] |= is_beyond
        return np.asarray((is_beyond & self.was_beyond[rows]) | (largest > self.config.clear_drift * limit))

    def end_episode(self, rows: Rows) -> Flags:
        """Compare the episodes that are over; returns where deviations have added up to too much."""
        self.was_beyond[rows] = self.is_beyond[rows]
        config, n = self.config, self.n_episodes[rows]
        t = (_scaled(self.sums[rows], self.weights[rows]) - self.mean[rows]) / self.deviation[rows]
        scores = np.clip(_as_normal(t, n), -config.max_score, config.max_score)
        allowance = (config.allowance + FEW_EPISODES / np.sqrt(np.maximum(n, 1)))[:, None, None]
        self.up[rows] = np.maximum(self.up[rows] + scores - allowance, 0.0)
        self.down[rows] = np.maximum(self.down[rows] - scores - allowance, 0.0)
        self.largest[rows] = np.abs(scores).max(axis=(1, 2), initial=0.0)
        return np.asarray(self.evidence(rows).max(axis=(1, 2), initial=0.0) > config.drift_limit)

    def evidence(self, rows: Rows) -> NDArray[np.float64]:
        """(m, d, columns) what has added up."""
        return np.maximum(self.up[rows], self.down[rows])

    def reset(self, rows: Rows, is_alarm: bool) -> None:
        """After an alarm, or when the original world is back: what has added up is forgotten."""
        if is_alarm:
            self.at_alarm[rows] = np.maximum(self.largest[rows], self.config.max_score * (self.largest[rows] == 0))
        self.up[rows] = self.down[rows] = 0.0
        self.was_beyond[rows] = False

    def is_usual(self, rows: Rows) -> Flags:
        """Whether the latest episode drifted far less than that of the alarm."""
        return np.asarray(self.largest[rows] < 0.6 * self.at_alarm[rows])


def _scaled(sums: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(sums / np.sqrt(EVIDENCE + weights + (BIAS * weights) ** 2)[..., None, :])


def _as_normal(t: NDArray[np.float64], n: Rows) -> NDArray[np.float64]:
    """Student's t with n - 1 degrees of freedom as deviations of a normal distribution of the same probability.

    The approximation of Wallace (1959).
    """
    free = np.maximum(n.astype(np.float64) - 1, 1.0)[:, None, None]
    size = (8 * free + 1) / (8 * free + 3) * np.sqrt(free * np.log1p(t**2 / free))
    return np.asarray(np.sign(t) * size)


@kernel(allocates=False)
def _add_step(
    sums: NDArray[np.float64], weights: NDArray[np.float64], residuals: NDArray[np.float64],
    actions: NDArray[np.float64], size: NDArray[np.float64], most: float,
) -> None:  # fmt: skip
    """Add a step to the sums (d, columns) and the weights (columns,) of its episode."""
    n = len(actions)
    for i in range(len(residuals)):
        clipped = min(max(residuals[i], -most), most)
        for c in range(n):
            sums[i, c] += clipped * actions[c]
        if residuals[i] != 0:  # a step that is not judged says nothing
            sums[i, n] += abs(clipped) - size[i]
    for c in range(n):
        weights[c] += actions[c] ** 2
    weights[n] += 1.0


@kernel(allocates=False)
def _write_scaled(sums: NDArray[np.float64], weights: NDArray[np.float64], out: NDArray[np.float64]) -> None:
    """`_scaled` of one trial."""
    for c in range(len(weights)):
        root = np.sqrt(EVIDENCE + weights[c] + (BIAS * weights[c]) ** 2)
        for i in range(len(sums)):
            out[i, c] = sums[i, c] / root


@kernel(allocates=False)
def _add_steps(
    sums: NDArray[np.float64], weights: NDArray[np.float64], size: NDArray[np.float64],
    deviation: NDArray[np.float64], rows: Rows, residuals: NDArray[np.float64], actions: NDArray[np.float64],
    most: float, out: NDArray[np.float64],
) -> None:  # fmt: skip
    """Add a step of each row; `out` (m, d, columns) receives the deviations of the sums so far."""
    for m in range(len(rows)):
        row = rows[m]
        _add_step(sums[row], weights[row], residuals[m], actions[m], size[row], most)
        _write_scaled(sums[row], weights[row], out[m])
        for i in range(out.shape[1]):
            for c in range(out.shape[2]):
                out[m, i, c] = abs(out[m, i, c]) / deviation[row, i, c]


@kernel()
def _sums_of_episodes(
    begins: NDArray[np.int64], residuals: NDArray[np.float64], actions: NDArray[np.float64],
    size: NDArray[np.float64], most: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:  # fmt: skip
    """(episodes, d, columns) the scaled sums of whole episodes, and their largest size on the way."""
    n, d, n_columns = len(begins) - 1, residuals.shape[1], actions.shape[1] + 1
    whole, largest = np.zeros((n, d, n_columns)), np.zeros((n, d, n_columns))
    for e in range(n):
        sums, weights = np.zeros((d, n_columns)), np.zeros(n_columns)
        for m in range(begins[e], begins[e + 1]):
            _add_step(sums, weights, residuals[m], actions[m], size, most)
            _write_scaled(sums, weights, whole[e])
            for i in range(d):
                for c in range(n_columns):
                    largest[e, i, c] = max(largest[e, i, c], abs(whole[e, i, c]))
    return whole, largest
