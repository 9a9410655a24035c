"""Novelty by one-step prediction: the world no longer does what a model of it, fitted before, expects.

Calibration. Over the episodes before the novelty a model is fitted and judged on episodes that it was not fitted to
(eight folds). Two things are an alarm, each with a limit that an episode of the unchanged world exceeds with
probability `false_alarms`:

- Surprise. A step's is its largest residual over the observations, each in units of its usual size; an episode's is its
  second largest step. The limit follows from the tail of the episodes' surprises (Hill's estimator on their upper
  quarter), but is at most ten times the largest. Two steps of one episode beyond it are an alarm, or one that is ten
  times beyond it.
- Drift: residuals that are small but go with what was done. Over an episode the products of residual and push are
  summed, and divided by the root of the sum of their squares. The limit follows from a Gumbel distribution with the
  mean and spread of the episodes' largest.

Worlds are known again: the way back when steps have not surprised for so long that the new world would hardly do so
(after an alarm by drift: when a whole episode drifts no more than usual); a novelty met before when its own model
explains the steps that raised the alarm.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.detectors.base import Detector
from nappingrl.detectors.tail_limits import gumbel_limit, hill_limit
from nappingrl.errors import BadSpecError
from nappingrl.types import DomainSpec, Floats, Rows, Transition
from nappingrl.world_model.action_encoding import Pushes
from nappingrl.world_model.basis import design, make_frame
from nappingrl.world_model.model import Prior, are_free, bounds, ridge
from nappingrl.world_model.transitions import Memory, Seen

CALIBRATION = 40
"""Episodes to calibrate on where nobody says when the novelty comes."""
FOLDS = 8
MOST = 20_000
"""Transitions that are remembered: where episodes are thinned, their largest surprises are lost, and limits too low."""
FEWEST = 100
"""Transitions to calibrate on; with fewer there is no limit, and no alarm."""
ALARM, FAR = 2, 10.0
"""Steps of one episode beyond the limit that are an alarm; one that is so many times beyond it counts twice."""
KNOWN = 4
"""Worlds that are remembered."""
DOUBT = 1e-6
"""The way back: the new world would stay calm for so long with at most this probability."""
RATE_STEPS = 100.0
"""Over about so many steps the rate of surprises in the new world is known."""
CLEARLY, LIKE_ITSELF = 0.1, 5.0
"""A known world explains the latest steps if it does so with at most this share of the old world's surprise, or with at
most so many times the surprise that it has had with its own steps."""
LATEST = 8
"""Steps by which a known world is recognised."""
LEAST_LIMIT, MOST_LIMIT = 5.0, 10.0
"""No limit is below so many times the usual size of a residual, nor above so many times the largest surprise."""
EVIDENCE, LEAST_DRIFT = 30.0, 4.0
"""Added to the sum of squares, so that a few steps are no drift; and the least limit of drift."""
MARGIN = 1.2
"""The curves of the model go on beyond what was seen by this factor: at its edge they are still right."""
BEYOND, MOST_BEYOND = 100.0, 10.0
"""Outside the range of the calibration residuals may be larger: by so many times per range that a state is outside, and
by so many times at most."""


class Residual(Detector):
    """Alarms when two steps of an episode surprise more than the unchanged world would."""

    needs_domain = True

    def __init__(self, n: int, domain: DomainSpec, false_alarms: float = 2.5e-4) -> None:
        super().__init__(n)
        if len(domain.observation_low.shape) != 1:
            raise BadSpecError("detector 'residual' needs observations that are one row of numbers")
        if not 0 < false_alarms < 0.1:
            raise BadSpecError(f"false_alarms={false_alarms} given; allowed: a probability per episode in (0, 0.1)")
        self.domain, self.false_alarms = domain, false_alarms
        self._pushes, d = Pushes(domain), len(domain.observation_low)
        self._low, self._high = bounds(domain)
        self._memory = Memory(n, d, self._pushes.size, most=MOST)
        n_features = make_frame(np.zeros(d), np.ones(d), True).n_shared + self._pushes.size * (d + 1)
        self._weights = np.zeros((n, KNOWN + 1, n_features, d))
        """Of the world before the novelty, and of those met since."""
        self._centre, self._scale = np.zeros((n, d)), np.ones((n, d))
        self._has_products, self._stops = np.zeros(n, np.bool_), np.ones((n, d), np.bool_)
        self._usual, self._limit = np.ones((n, d)), np.full(n, np.inf)
        self._drift_limit, self._usual_drift = np.full((2, n), np.inf)
        self._is_drift = np.zeros(n, np.bool_)  # whether the last alarm was by drift
        self._sums, self._squares = np.zeros((2, n, d, self._pushes.size))
        self._drift = np.zeros(n)
        """The largest of this episode."""
        self._is_calibrated, self._first = np.zeros(n, np.bool_), np.zeros(n, np.int64)
        self._episode = np.zeros(n, np.int64)
        self._n_known, self._n_steps = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._n_beyond, self._calm = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._rate = np.zeros(n)
        self._ring = Memory(n, d, self._pushes.size, most=2 * LATEST, size=2 * LATEST)
        self._level = np.zeros((n, KNOWN + 1))
        """The usual surprise of each known world's own steps."""
        self._changed = np.zeros((n, d))
        """Sums of the surprises of each observation beyond the limit."""

    @classmethod
    def for_domain(cls, n: int, domain: DomainSpec) -> "Residual":
        """For a world of which this much is known."""
        return cls(n, domain)

    def start(self, rows: Rows, episode: int) -> None:
        """Forget everything of these rows."""
        super().start(rows, episode)
        self._memory.clear(rows)
        self._ring.clear(rows)
        self._is_calibrated[rows], self._limit[rows], self._drift_limit[rows] = False, np.inf, np.inf
        self._forget_episode(rows)
        self._first[rows] = self._episode[rows] = episode
        self._n_known[rows] = self._n_steps[rows] = self._calm[rows] = 0
        self._changed[rows] = 0.0

    def step(self, rows: Rows, transition: Transition) -> None:
        """Judge a step, or remember it for the calibration."""
        t = transition
        states, nexts = t.observations, t.next_observations
        moves = self._pushes(t.actions)
        keep = ~self._is_calibrated[rows] | (self.context[rows] > 0)
        at = slice(None) if keep.all() else keep
        self._memory.add(
            rows[at], states[at], moves[at], nexts[at], t.rewards[at], t.terminated[at], self._episode[rows[at]]
        )
        judged = self._is_calibrated[rows]
        if not judged.any():
            return
        rows, states, nexts, moves = rows[judged], states[judged], nexts[judged], moves[judged]
        self._ring.add(rows, states, moves, nexts, t.rewards[judged], t.terminated[judged], self._episode[rows])
        residuals = self._residuals(rows, 0, states, moves, nexts)
        self._watch_drift(rows, residuals, moves)
        surprises = np.abs(residuals)
        most = surprises.max(axis=1)
        beyond = most > self._limit[rows]
        self._n_beyond[rows] += beyond.astype(np.int64) + (most > FAR * self._limit[rows])
        self._changed[rows] += np.where(beyond[:, None] & (surprises > self._limit[rows, None]), surprises, 0.0)
        z = MARGIN * np.abs(states - self._centre[rows]) / self._scale[rows]
        says = beyond | ((most > 0) & (z <= 1).all(axis=1))  # a step at a bound or outside the range says nothing
        self._calm[rows] = np.where(beyond, 0, self._calm[rows] + says)
        self._n_steps[rows] += says
        away = self.context[rows] > 0
        is_drift = self._drift[rows] > self._drift_limit[rows]
        self._is_drift[rows[~away]] = (is_drift & (self._n_beyond[rows] < ALARM))[~away]
        for row in rows[~away & (is_drift | (self._n_beyond[rows] >= ALARM))].tolist():
            self._leave(row)
        share = 1 / np.minimum(self._n_steps[rows] + 1, RATE_STEPS)
        is_new = away & (beyond | (self._calm[rows] < 2))
        self._rate[rows] = np.where(is_new, self._rate[rows] * (1 - share) + share * beyond, self._rate[rows])
        unlikely = self._calm[rows] * np.log1p(-np.clip(self._rate[rows], 1e-3, 0.95)) < np.log(DOUBT)
        for row in rows[away & unlikely & ~self._is_drift[rows]].tolist():
            self._come_back(row, int(self._calm[row]))

    def end_episode(self, rows: Rows, returns: Floats, next_episodes: Rows) -> None:
        """Calibrate after the last episode before the novelty; forget a single surprise."""
        is_over = (self.context[rows] > 0) & self._is_drift[rows] & (self._n_beyond[rows] == 0)
        for row in rows[is_over & (self._drift[rows] < self._usual_drift[rows])].tolist():
            self._come_back(row, int((self._memory.read(row).episodes == self._episode[row]).sum()))
        self._forget_episode(rows)
        self._episode[rows] = next_episodes
        due = np.where(self._first[rows] < 0, next_episodes >= 0, next_episodes - self._first[rows] >= CALIBRATION)
        for row in rows[due & ~self._is_calibrated[rows]].tolist():
            self._calibrate(row, self._memory.read(row))
            self._memory.clear(np.array([row]))

    def discard_episode(self, rows: Rows) -> None:
        """Its surprises and its drift are forgotten."""
        self._forget_episode(rows)

    def _forget_episode(self, rows: Rows) -> None:
        self._n_beyond[rows] = 0
        self._sums[rows], self._squares[rows], self._drift[rows] = 0.0, 0.0, 0.0
        self._ring.clear(rows)

    def explain(self, row: int) -> str:
        """Which observations changed, the most surprising first."""
        total = self._changed[row].sum()
        if not total:
            return ""
        names = self.domain.names
        order = np.argsort(-self._changed[row])
        return ", ".join(
            f"{names[i]} ({self._changed[row, i] / total:.0%})" for i in order if self._changed[row, i] > 0
        )

    # ---------------------------------------------------------------------------------------------- calibration

    def _calibrate(self, row: int, seen: Seen) -> None:
        self._is_calibrated[row] = True
        if len(seen.rewards) < FEWEST:
            return
        prior = Prior(seen, self.domain)
        self._stops[row] = prior.stops
        seen = seen.at(prior.are_free(seen.nexts))
        if len(seen.rewards) < FEWEST:
            return
        self._centre[row], self._scale[row] = prior.centre, MARGIN * prior.reach
        self._has_products[row] = prior.has_products
        frame = prior.frame(self._scale[row])
        x, y, penalty = design(frame, seen.states, seen.pushes), seen.nexts - seen.states, prior.penalty(frame)
        episodes = np.unique(seen.episodes)
        fold = np.searchsorted(episodes, seen.episodes) % FOLDS
        errors = np.zeros_like(y)
        gram, moment = x.T @ x + np.diag(penalty), x.T @ y
        for k in range(min(FOLDS, len(episodes))):
            held = fold == k
            weights = np.linalg.solve(gram - x[held].T @ x[held], moment - x[held].T @ y[held])
            errors[held] = y[held] - x[held] @ weights
        usual = np.sqrt((errors**2).mean(axis=0)) + 1e-3 * y.std(axis=0) + 1e-9
        self._usual[row] = usual
        surprise = np.abs(errors / usual).max(axis=1)
        each = [seen.episodes == e for e in episodes]
        second = np.array([np.sort(surprise[at])[-ALARM:][0] for at in each])
        limit = min(hill_limit(second, self.false_alarms), MOST_LIMIT * float(second.max()))
        self._limit[row] = max(limit, LEAST_LIMIT)
        drifts = np.array([_largest_drift(errors[at] / usual, seen.pushes[at]) for at in each])
        if len(drifts) > 1:
            self._drift_limit[row] = max(float(gumbel_limit(drifts, self.false_alarms)), LEAST_DRIFT)
            self._usual_drift[row] = max(float(drifts.mean() + drifts.std()), LEAST_DRIFT / 2)
        self._weights[row, 0, : x.shape[1]] = np.linalg.solve(gram, moment)

    # --------------------------------------------------------------------------------------------------- worlds

    def _leave(self, row: int) -> None:
        """An alarm: is it a world met before?"""
        n_known, old = int(self._n_known[row]), self._latest(row, 0)
        surprises = {
            world: self._latest(row, _slot(world)) for world in range(max(1, n_known - KNOWN + 1), n_known + 1)
        }
        limits = {w: max(CLEARLY * old, LIKE_ITSELF * self._level[row, _slot(w)]) for w in surprises}
        known = [world for world in surprises if surprises[world] < min(limits[world], old)]
        if known:
            self.context[row] = min(known, key=lambda world: surprises[world])
        else:
            self._n_known[row] = self.context[row] = n_known + 1
            self._weights[row, _slot(n_known + 1)] = self._weights[row, 0]
        self._rate[row], self._n_steps[row], self._calm[row] = 0.5, 0, 0

    def _latest(self, row: int, world: int) -> float:
        """How much the latest steps of this episode surprise in a world."""
        return self._surprise(row, world, self._ring.read(row).at(slice(-LATEST, None)))

    def _surprise(self, row: int, world: int, seen: Seen) -> float:
        """The median surprise of these steps in a world; steps that touch a bound say nothing."""
        seen = seen.at(self._are_free(np.full(len(seen.rewards), row), seen.nexts))
        if not len(seen.rewards):
            return 0.0
        rows = np.full(len(seen.rewards), row)
        residuals = self._residuals(rows, world, seen.states, seen.pushes, seen.nexts)
        return float(np.median(np.abs(residuals).max(axis=1)))

    def _are_free(self, rows: Rows, nexts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(m,) whether no observation was stopped by its bounds."""
        return are_free(nexts, self._low, self._high, self._stops[rows])

    def _come_back(self, row: int, n_calm: int) -> None:
        """The world has been as before for so many steps; keep a model of the one that is left."""
        seen = self._memory.read(row)
        seen = seen.at(slice(0, max(0, len(seen.rewards) - n_calm)))
        seen = seen.at(self._are_free(np.full(len(seen.rewards), row), seen.nexts))
        if len(seen.rewards) >= LATEST:
            frame = make_frame(self._centre[row], self._scale[row], bool(self._has_products[row]))
            x, y = design(frame, seen.states, seen.pushes), seen.nexts - seen.states
            slot = _slot(int(self.context[row]))
            weights = self._weights[row, slot, : x.shape[1]]
            weights += ridge(x, y - x @ weights, np.full(x.shape[1], 1e-2))
            self._level[row, slot] = self._surprise(row, slot, seen)
        self._memory.clear(np.array([row]))
        self.context[row] = 0
        self._n_beyond[row] = 0

    def _watch_drift(self, rows: Rows, residuals: NDArray[np.float64], moves: NDArray[np.float64]) -> None:
        products = residuals[:, :, None] * moves[:, None, :]
        self._sums[rows] += products
        self._squares[rows] += products**2
        drifts = _drift(self._sums[rows], self._squares[rows]).max(axis=2)
        drifting = drifts > np.maximum(self._drift_limit[rows], self._drift[rows])[:, None]
        self._changed[rows] += np.where(drifting, drifts, 0.0)
        self._drift[rows] = np.maximum(self._drift[rows], drifts.max(axis=1))

    def _residuals(
        self, rows: Rows, world: int, states: NDArray[Any], moves: NDArray[np.float64], nexts: NDArray[Any]
    ) -> NDArray[np.float64]:
        """(m, d) residuals in units of their usual size; 0 where the step touched a bound."""
        out = np.empty((len(rows), len(self._low)))
        nexts = nexts.astype(np.float64)
        _write_residuals(
            self._weights, self._centre, self._scale, self._has_products, self._usual, rows, world,
            states.astype(np.float64), moves, nexts, out,
        )  # fmt: skip
        out[~self._are_free(rows, nexts)] = 0.0
        return out

    def state(self) -> dict[str, NDArray[Any]]:
        """All that it has learned and seen."""
        return super().state() | {name: getattr(self, f"_{name}") for name in _STATE} | {
            f"{memory}/{row}/{name}": array
            for memory in ("memory", "ring")
            for row in range(self.n)
            for name, array in getattr(self, f"_{memory}").read(row)._asdict().items()
        }  # fmt: skip

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on where `state` was taken."""
        super().restore(state)
        for name in _STATE:
            getattr(self, f"_{name}")[:] = state[name]
        for memory in ("memory", "ring"):
            for row in range(self.n):
                parts = (state[f"{memory}/{row}/{name}"] for name in Seen._fields)
                getattr(self, f"_{memory}").write(row, Seen(*parts))


_STATE = ("weights", "centre", "scale", "has_products", "stops", "usual", "limit", "is_calibrated", "first", "episode",
          "n_known", "level", "n_steps", "n_beyond", "calm", "rate", "changed", "drift_limit",
          "usual_drift", "is_drift", "sums", "squares", "drift")  # fmt: skip


def _slot(world: int) -> int:
    """Where a world's model is kept; a fifth one takes the place of the first."""
    return 0 if world == 0 else 1 + (world - 1) % KNOWN


def _largest_drift(residuals: NDArray[np.float64], moves: NDArray[np.float64]) -> float:
    """The largest drift at any step of an episode."""
    products = residuals[:, :, None] * moves[:, None, :]
    return float(_drift(np.cumsum(products, axis=0), np.cumsum(products**2, axis=0)).max())


def _drift(sums: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of residual times push, in units of the root of their squares' sum."""
    return np.asarray(np.abs(sums) / np.sqrt(squares + EVIDENCE))


@kernel()
def _write_residuals(
    weights: NDArray[np.float64], centre: NDArray[np.float64], scale: NDArray[np.float64],
    has_products: NDArray[np.bool_], usual: NDArray[np.float64], rows: Rows, world: int, states: NDArray[np.float64],
    moves: NDArray[np.float64], nexts: NDArray[np.float64], out: NDArray[np.float64],
) -> None:  # fmt: skip
    m, d = states.shape
    for k in range(m):
        row = rows[k]
        frame = make_frame(centre[row], scale[row], has_products[row])
        x = design(frame, states[k : k + 1], moves[k : k + 1])[0]
        outside = 0.0
        for i in range(d):
            outside = max(outside, MARGIN * abs(states[k, i] - centre[row, i]) / scale[row, i] - 1.0)
        tolerance = min(1 + BEYOND * outside, MOST_BEYOND)
        for i in range(d):
            change = 0.0
            for f in range(x.shape[0]):
                change += weights[row, world, f, i] * x[f]
            out[k, i] = (nexts[k, i] - states[k, i] - change) / usual[row, i] / tolerance
