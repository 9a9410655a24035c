"""A detector that compares the distribution of each observation with the one before the novelty."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from nappingrl._build import kernel
from nappingrl.detectors.calibrated import Calibrated
from nappingrl.detectors.tail_limits import gumbel_limit
from nappingrl.errors import BadAgentError, BadSpecError
from nappingrl.snapshot import Expected, restore_arrays
from nappingrl.types import DomainSpec, Flags, Floats, Rows, Transition

_POINTS = 50
"""Observations kept of an episode, evenly spaced: 2000 of a trial with 40 calibration episodes."""
_MAX_FEATURES = 1000
"""2000 observations with that many features take 8 MB per trial."""
_MAX_NAMED = 5
_MAX_DISTANCE = 0.99
"""Greater distances are clipped to this one."""
_MIN_SPREAD = 0.01
"""Least spread of the held-out distances, which are all 0 if every episode is the same."""


class KsFeatures(Calibrated):
    """Two-sample Kolmogorov-Smirnov test per feature: an episode against those before the novelty.

    The observations of one episode are dependent, so textbook limits would alarm all the time. The limit of a feature
    is learned: each calibration episode is held out and compared with the others, and a Gumbel distribution with the
    mean and the spread of these distances gives the distance that is exceeded in `rate` episodes, divided by the number
    of features (Bonferroni).
    """

    saved: ClassVar[Mapping[str, Expected]] = {
        **Calibrated.saved, "_counts": Expected(low=0, below="n_filled"), "_stride": Expected(low=1, high=2**40),
        "_steps": Expected(low=0), "_filled": Expected(low=0, below="n_filled"), "_points": Expected(with_inf=True),
        "_window": Expected(with_inf=True), "_limits": Expected(with_nan=True), "_distances": Expected(low=0, high=1),
    }  # fmt: skip

    def __init__(
        self, n: int, rate: float = 0.001, calibration: int = 40, points: int = _POINTS, names: tuple[str, ...] = (),
        n_features: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(n, calibration)
        self.rate, self.names = rate, names
        self._shape, self._n_features = (calibration, points), n_features
        self._counts = np.zeros((n, calibration), np.int64)
        """Points of each calibration episode."""
        self._stride = np.ones(n, np.int64)
        """Of the running episode every stride-th observation is kept."""
        self._steps, self._filled = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._allocate(0)

    @override
    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "KsFeatures":
        points = min(_POINTS, domain.horizon) if domain.horizon else _POINTS
        n_features = domain.observation_low.size if domain.observation_low.shape else None  # None: a dictionary
        return cls(n, points=points, names=domain.observation_names, n_features=n_features)

    def _allocate(self, n_features: int) -> None:
        """Allocate the arrays, once the number of features is known."""
        episodes, points = self._shape
        self._points = np.full((self.n, n_features, episodes, points), np.inf, np.float32)
        self._window = np.full((self.n, n_features, points), np.inf, np.float32)
        self._limits = np.full((self.n, n_features), np.nan)
        self._distances = np.zeros((self.n, n_features))

    @override
    def start(self, rows: Rows, episode: int) -> None:
        super().start(rows, episode)
        self._counts[rows] = 0
        self._points[rows], self._limits[rows], self._distances[rows] = np.inf, np.nan, 0.0
        self.discard_episode(rows)

    @override
    def discard_episode(self, rows: Rows) -> None:
        self._window[rows] = np.inf
        self._stride[rows], self._steps[rows], self._filled[rows] = 1, 0, 0

    @override
    def step(self, rows: Rows, transition: Transition) -> None:
        """Keep every stride-th observation of the episode; when the window is full, drop every second one."""
        features = _flat(transition.observations)
        if not self._window.shape[1]:
            self._allocate(_check(features.shape[1]))
        is_kept = self._steps[rows] % self._stride[rows] == 0
        self._steps[rows] += 1
        full = rows[is_kept & (self._filled[rows] == self._shape[1])]
        if len(full):
            thinned = self._window[full][:, :, ::2]
            self._window[full] = np.inf
            self._window[full, :, : thinned.shape[2]] = thinned
            self._filled[full], self._stride[full] = thinned.shape[2], self._stride[full] * 2
            is_kept &= (self._steps[rows] - 1) % self._stride[rows] == 0
        kept = rows[is_kept]
        self._window[kept, :, self._filled[kept]] = features[is_kept]
        self._filled[kept] += 1

    @override
    def _learn(self, rows: Rows, returns: Floats) -> None:
        """Keep the points of the latest calibration episodes."""
        slots = self._n_learned[rows] % self.calibration
        self._points[rows, :, slots] = self._window[rows]
        self._counts[rows, slots] = self._filled[rows]
        self.discard_episode(rows)

    @override
    def _judge(self, rows: Rows, returns: Floats) -> Flags:
        for row in rows[np.isnan(self._limits[rows, 0])]:
            self._limits[row] = self._learn_limits(row)
        for row in rows:
            ks_distances(
                self._points[row].reshape(len(self._limits[row]), -1), self._counts[row].sum(),
                np.sort(self._window[row], axis=1), self._filled[row], self._distances[row],
            )  # fmt: skip
        self.discard_episode(rows)
        alarms: Flags = np.any(self._excess(rows) > 0, axis=1)
        return alarms

    def _excess(self, rows: Rows) -> Floats:
        """How far the distance of each feature is above its limit."""
        excess: Floats = np.minimum(self._distances[rows], _MAX_DISTANCE) - self._limits[rows]
        return excess

    def _learn_limits(self, row: int) -> Floats:
        """The limit of each feature; from here on the points are sorted."""
        points, counts = self._points[row], self._counts[row]
        n_features, total = len(points), counts.sum()
        episodes = np.sort(points, axis=2).swapaxes(0, 1).copy()
        points[:] = np.sort(points.reshape(n_features, -1), axis=1).reshape(points.shape)
        reference = points.reshape(n_features, -1)
        held_out = np.zeros((np.count_nonzero(counts), n_features))
        for i, episode in enumerate(np.flatnonzero(counts)):
            count = counts[episode]
            ks_distances(reference, total, episodes[episode], count, held_out[i])
            held_out[i] *= total / (total - count)  # the reference contains the episode itself
        return limits(held_out, self.rate / n_features)

    @override
    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        points = state.get("_points", np.zeros(0))
        n_features = points.shape[1] if points.ndim == 4 else 0
        if n_features > _MAX_FEATURES or n_features not in (0, self._n_features or n_features):
            raise BadAgentError(f"array '_points' has {n_features} features; allowed: {self._n_features}")
        self._allocate(n_features)
        restore_arrays(self, state, sizes={"n_filled": self._shape[1] + 1})

    @override
    def explain(self, row: int) -> str:
        """The features whose values changed, the most changed first."""
        if not self.context[row]:
            return ""
        excess = self._excess(np.array([row]))[0]
        changed = [i for i in np.argsort(-excess, kind="stable") if excess[i] > 0]
        names = self.names or tuple(f"obs[{i}]" for i in range(len(excess)))
        words = [f"{names[i]} (KS {self._distances[row, i]:.2f})" for i in changed[:_MAX_NAMED]]
        more = f" and {len(changed) - _MAX_NAMED} more" if len(changed) > _MAX_NAMED else ""
        return f"changed values of {', '.join(words)}{more}"


def limits(held_out: Floats, rate: float) -> Floats:
    """The distance of each feature that a share `rate` of episodes exceeds, from held-out ones (episodes, features).

    Computed for the inverse hyperbolic tangent of the distances, which is unbounded. A limit of 0.99 or more cannot be
    exceeded: a feature that differs that much between any two episodes is not informative.
    """
    stretched = np.arctanh(np.minimum(held_out, _MAX_DISTANCE))
    found: Floats = np.tanh(gumbel_limit(stretched, rate, _MIN_SPREAD))
    return found


def _check(n_features: int) -> int:
    """Raise if the observations have too many features to compare them one by one."""
    if not 1 <= n_features <= _MAX_FEATURES:
        raise BadSpecError(
            f"detector ks compares each feature of an observation; {n_features} came, allowed: 1 to {_MAX_FEATURES}; "
            "use a detector of returns, such as cusum"
        )
    return n_features


def _flat(observations: Any) -> NDArray[np.float32]:
    """(m, features); of a dictionary all its arrays. NaN becomes infinity."""
    parts = list(observations.values()) if isinstance(observations, dict) else [observations]
    table = np.concatenate([np.asarray(part, np.float32).reshape(len(part), -1) for part in parts], axis=1)
    return np.where(np.isnan(table), np.float32(np.inf), table)


@kernel()
def ks_distances(
    reference: NDArray[np.float32], n_reference: int, sample: NDArray[np.float32], n_sample: int, out: Floats
) -> None:
    """The KS distance of each feature between two samples, given by the first n of their sorted values."""
    for feature in range(len(out)):
        i, j, worst = 0, 0, 0.0
        while i < n_reference and j < n_sample:
            value = min(reference[feature, i], sample[feature, j])
            while i < n_reference and reference[feature, i] <= value:
                i += 1
            while j < n_sample and sample[feature, j] <= value:
                j += 1
            worst = max(worst, abs(i / n_reference - j / n_sample))
        out[feature] = worst
