"""A detector that looks at which observations are seen, each feature for itself."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.detectors.calibrated import Calibrated
from nappingrl.detectors.tail_limits import gumbel_limit
from nappingrl.errors import BadSpecError
from nappingrl.types import DomainSpec, Flags, Floats, Rows, Transition

_POINTS = 50
"""Observations that are kept of an episode, evenly spaced: with 40 episodes to learn from 2000 of a trial."""
_MOST_FEATURES = 1000
"""2000 observations of that many take 8 MB for each trial."""
_MOST_NAMED = 5
_FAR = 0.99
"""Greater distances count as this one."""
_LEAST_SPREAD = 0.01
"""Of the distances of episodes that were held out; they are all 0 where every episode is the same."""


class KsFeatures(Calibrated):
    """Two-sample Kolmogorov-Smirnov for each feature: the episode that ended against those before the novelty.

    Observations of one episode depend on each other, so the textbook's limits would alarm all the time. The limit of
    a feature is learned: each episode before the novelty is held out and compared with the others, and a Gumbel
    distribution with the mean and the spread of these distances says which one is exceeded in `rate` episodes,
    divided by the number of features (Bonferroni).
    """

    _kept: ClassVar[tuple[str, ...]] = (
        *Calibrated._kept, "points", "counts", "window", "stride", "steps", "filled", "limits", "gaps",
    )  # fmt: skip

    def __init__(
        self, n: int, rate: float = 0.001, calibration: int = 40, points: int = _POINTS, names: tuple[str, ...] = ()
    ) -> None:
        super().__init__(n, calibration)
        self.rate, self.names = rate, names
        self._shape = (calibration, points)
        self._counts = np.zeros((n, calibration), np.int64)  # points of each episode learned from
        self._stride, self._steps, self._filled = np.ones(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._allocate(0)

    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "KsFeatures":
        """With the names of its observations, and no more room than its episodes need."""
        points = min(_POINTS, domain.horizon) if domain.horizon else _POINTS
        return cls(n, points=points, names=domain.observation_names)

    def _allocate(self, n_features: int) -> None:
        """Room for observations, once it is known how many features they have."""
        episodes, points = self._shape
        self._points = np.full((self.n, n_features, episodes, points), np.inf, np.float32)
        self._window = np.full((self.n, n_features, points), np.inf, np.float32)
        self._limits = np.full((self.n, n_features), np.nan)
        self._gaps = np.zeros((self.n, n_features))

    def start(self, rows: Rows, episode: int) -> None:
        """Forget the observations of these rows."""
        super().start(rows, episode)
        self._counts[rows] = 0
        self._points[rows], self._limits[rows], self._gaps[rows] = np.inf, np.nan, 0.0
        self._empty_window(rows)

    def discard_episode(self, rows: Rows) -> None:
        """Its observations are forgotten."""
        self._empty_window(rows)

    def _empty_window(self, rows: Rows) -> None:
        self._window[rows] = np.inf
        self._stride[rows], self._steps[rows], self._filled[rows] = 1, 0, 0

    def step(self, rows: Rows, transition: Transition) -> None:
        """Keep every stride-th observation of the episode; when there is no more room, drop every second one."""
        features = _flat(transition.observations)
        if not self._window.shape[1]:
            self._allocate(_check(features.shape[1]))
        taken = self._steps[rows] % self._stride[rows] == 0
        self._steps[rows] += 1
        full = rows[taken & (self._filled[rows] == self._shape[1])]
        if len(full):
            kept = self._window[full][:, :, ::2]
            self._window[full] = np.inf
            self._window[full, :, : kept.shape[2]] = kept
            self._filled[full], self._stride[full] = kept.shape[2], self._stride[full] * 2
            taken &= (self._steps[rows] - 1) % self._stride[rows] == 0
        at = rows[taken]
        self._window[at, :, self._filled[at]] = features[taken]
        self._filled[at] += 1

    def _learn(self, rows: Rows, returns: Floats) -> None:
        """Keep the points; of more episodes than there is room for the latest."""
        slots = self._seen[rows] % self.calibration
        self._points[rows, :, slots] = self._window[rows]
        self._counts[rows, slots] = self._filled[rows]
        self._empty_window(rows)

    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        """Compare each feature with its limit."""
        for row in rows[np.isnan(self._limits[rows, 0])]:
            self._limits[row] = self._learn_limits(row)
        for row in rows:
            _distances(
                self._points[row].reshape(len(self._limits[row]), -1), self._counts[row].sum(),
                np.sort(self._window[row], axis=1), self._filled[row], self._gaps[row],
            )  # fmt: skip
        self._empty_window(rows)
        alarms: Flags = np.any(self._excess(rows) > 0, axis=1)
        return alarms

    def _excess(self, rows: Rows) -> Floats:
        """How far the distance of each feature is above its limit."""
        above: Floats = np.minimum(self._gaps[rows], _FAR) - self._limits[rows]
        return above

    def _learn_limits(self, row: int) -> Floats:
        """The limit of each feature; from here on the points are kept in order."""
        points, counts = self._points[row], self._counts[row]
        n_features, total = len(points), counts.sum()
        episodes = np.sort(points, axis=2).swapaxes(0, 1).copy()
        points[:] = np.sort(points.reshape(n_features, -1), axis=1).reshape(points.shape)
        reference = points.reshape(n_features, -1)
        held_out = np.zeros((np.count_nonzero(counts), n_features))
        for i, episode in enumerate(np.flatnonzero(counts)):
            count = counts[episode]
            _distances(reference, total, episodes[episode], count, held_out[i])
            held_out[i] *= total / (total - count)  # as the reference has the episode itself in it
        return limits(held_out, self.rate / n_features)

    def explain(self, row: int) -> str:
        """The features that are seen at other values than before, the most changed first."""
        if not self.context[row]:
            return ""
        excess = self._excess(np.array([row]))[0]
        changed = [i for i in np.argsort(-excess, kind="stable") if excess[i] > 0]
        names = self.names or tuple(f"obs[{i}]" for i in range(len(excess)))
        words = [f"{names[i]} (KS {self._gaps[row, i]:.2f})" for i in changed[:_MOST_NAMED]]
        more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
        return f"other values than before of {', '.join(words)}{more}"

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on with these observations."""
        self._allocate(state["window"].shape[1])
        super().restore(state)


def limits(held_out: Floats, rate: float) -> Floats:
    """The distance of each feature that a share `rate` of episodes exceeds, from those of (episodes, features).

    Worked out for the inverse hyperbolic tangent of the distances, which has no upper end. A limit of 0.99 or more
    cannot be exceeded: where episodes differ that much from each other anyway, a feature says nothing.
    """
    stretched = np.arctanh(np.minimum(held_out, _FAR))
    found: Floats = np.tanh(gumbel_limit(stretched, rate, _LEAST_SPREAD))
    return found


def _check(n_features: int) -> int:
    """Raise if the observations are not of the kind that can be compared feature by feature."""
    if not 1 <= n_features <= _MOST_FEATURES:
        raise BadSpecError(
            f"detector ks compares each feature of an observation; {n_features} came, allowed: 1 to {_MOST_FEATURES}; "
            "take a detector of returns, such as cusum"
        )
    return n_features


def _flat(observations: Any) -> NDArray[np.float32]:
    """(m, features); of a dictionary all its arrays. What is not a number counts as infinite."""
    parts = list(observations.values()) if isinstance(observations, dict) else [observations]
    table = np.concatenate([np.asarray(part, np.float32).reshape(len(part), -1) for part in parts], axis=1)
    return np.where(np.isnan(table), np.float32(np.inf), table)


@kernel()
def _distances(
    reference: NDArray[np.float32], n_reference: int, sample: NDArray[np.float32], n_sample: int, gaps: Floats
) -> None:
    """For each feature the greatest distance of two distributions, given by the first n of values in order."""
    for feature in range(len(gaps)):
        i, j, worst = 0, 0, 0.0
        while i < n_reference and j < n_sample:
            value = min(reference[feature, i], sample[feature, j])
            while i < n_reference and reference[feature, i] <= value:
                i += 1
            while j < n_sample and sample[feature, j] <= value:
                j += 1
            worst = max(worst, abs(i / n_reference - j / n_sample))
        gaps[feature] = worst
