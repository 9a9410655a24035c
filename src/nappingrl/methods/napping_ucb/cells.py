"""Cells with statistics: how each action scored in each Voronoi cell, and what cells learn from one another.

A cell is a site (`methods/voronoi`) with the action the agent wanted there. It keeps visits and mean score of every
action. The expected score of an action in a cell is estimated in three steps, each the prior of the next:

    trial    = (PRIOR_WEIGHT threshold + sum of its scores)       / (PRIOR_WEIGHT + its count)
    wanted   = (SHARED_WEIGHT trial    + sum where w was wanted)  / (SHARED_WEIGHT + count where w was wanted)
    estimate = (SHARED_WEIGHT wanted   + visits * mean in cell)   / (SHARED_WEIGHT + visits)

So a new cell starts with the experience of the others, and an untried action counts as just good enough. The cell
chooses the highest estimate; ties go to the first action in the agent's order of preference (or the domain's order,
if it has one). Actions tried in the cell get the bonus of an upper confidence bound,

    explore * noise * sqrt(log(1 + visits of the cell) / (visits + SHARED_WEIGHT)),

where noise is the standard deviation of scores within (cell, action). The wanted action counts as good enough until it
has failed in the cell and has `min_visits` there, so without a failure no untried action is chosen. It is also kept
unless the other action is better by more than the noise of its mean.

A new cell is created where the nearest one was created for another action, and where an action scores below the
threshold and clearly below its mean in the cell. Everything works on a batch of trials; trials are independent.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.napping_ucb.store import Cell, CellStore, StoreView, TrialStats, cell_at, new_cell
from nappingrl.methods.voronoi.limit import kept_regions
from nappingrl.methods.voronoi.nearest import nearest
from nappingrl.types import Actions, Flags, Floats, ModelStates, Observations, Rows

PRIOR_WEIGHT = 1.0
"""Number of visits that the threshold counts as."""
SHARED_WEIGHT = 0.5
"""Number of visits that the experience of other cells counts as."""
_NO_MASK = np.zeros((0, 0), np.bool_)


class _Options(NamedTuple):
    min_visits: int
    explore: float


class Cells:
    """The cells of n trials; with more than `max_cells`, a trial drops the least visited ones (`voronoi/limit.py`)."""

    def __init__(
        self, n: int, n_actions: int, dim: int, situation_dim: int = 0, min_visits: int = 1, explore: float = 0.2,
        max_cells: int = 0,
    ) -> None:  # fmt: skip
        self._options = _Options(min_visits, explore)
        self._max_cells = max_cells
        self._store = CellStore(n, n_actions, dim, situation_dim)

    @property
    def n_cells(self) -> NDArray[np.int64]:
        """Number of cells of each trial, (n,)."""
        return self._store.n_cells

    def forget(self, rows: Rows) -> None:
        """Drop everything these trials have learned."""
        self._store.clear(rows)

    def select(
        self, rows: Rows, points: ModelStates, wanted: Actions, order: Actions, thresholds: Floats,
        mask: NDArray[np.bool_] | None = None,
    ) -> tuple[Actions, Rows]:  # fmt: skip
        """The actions to execute, and the cell of each (-1: none).

        `order` (m, n_actions) breaks ties. Actions that `mask` (m, n_actions) excludes are never chosen; if none
        remains, the wanted action is.
        """
        actions, cells = wanted.copy(), np.full(len(rows), -1)
        mask = _NO_MASK if mask is None else mask
        _select(self._store.view, self._options, rows, points, wanted, order, mask, thresholds, actions, cells)
        return actions, cells

    def update(
        self, rows: Rows, points: ModelStates, wanted: Actions, executed: Actions, cells: Rows, scores: Floats,
        thresholds: Floats, fails: Flags, situations: Observations | None = None,
    ) -> Rows:  # fmt: skip
        """Learn from the scores of the executed actions, in the cells that `select` returned.

        Returns the rows that had too many cells: cells that `select` returned for them are no longer valid.
        """
        if situations is None:
            situations = np.zeros((len(rows), self._store.situation_dim), np.float32)
        self._store.reserve(rows)
        n_created = _update(
            self._store.view, rows, points, wanted, executed, cells, scores, thresholds, fails, situations
        )
        self._store.maybe_refit_index(n_created)
        if not self._max_cells:
            return rows[:0]
        is_full = self.n_cells[rows] > self._max_cells
        full: Rows = rows[is_full]
        for row, threshold in zip(full.tolist(), thresholds[is_full].tolist(), strict=True):
            self._store.keep(row, kept_regions(self.table(row, threshold), self._max_cells))
        return full

    def n_open(self, rows: Rows, thresholds: Floats) -> NDArray[np.int64]:
        """Number of cells of each row without a good enough action but with untried ones, (m,)."""
        return self._store.n_open(rows, thresholds)

    def table(self, row: int, threshold: float) -> dict[str, NDArray[Any]]:
        """The cells of one trial in order of creation: the columns of `Principles.table`, and the statistics."""
        cells = self._store.cells(row)
        counts, means = cells["counts"], cells["means"]
        tested = counts > 0
        tested_means = np.where(tested, means, -np.inf)
        best, best_action = tested_means.max(axis=1), tested_means.argmax(axis=1)
        is_open = (best < threshold) & ~tested.all(axis=1)
        is_best = np.arange(counts.shape[1]) == best_action[:, None]
        return {
            "site": cells["site"],
            "wanted": cells["wanted"],
            "candidates": np.where(is_open[:, None], ~tested, is_best),
            "tested": tested,
            "best": best,
            "best_action": best_action,
            "visits": counts.sum(axis=1),
            "situation": cells["situation"],
            "counts": counts,
            "means": means,
        }

    def state(self, row: int) -> dict[str, NDArray[Any]]:
        """Everything one trial has learned, as named arrays."""
        return self._store.state(row)

    def restore(self, row: int, state: dict[str, NDArray[Any]]) -> None:
        """Replace everything one trial has learned with a `state`."""
        self._store.restore(row, state)


# ----------------------------------------------------------------------------------------------------------- choice


@kernel()
def _select(
    store: StoreView, options: _Options, rows: Rows, points: ModelStates, wanted: Actions, order: Actions,
    mask: NDArray[np.bool_], thresholds: Floats, actions: Actions, cells: Rows,
) -> None:  # fmt: skip
    sites, stats, trials = store
    allowed = np.ones(order.shape[1], np.bool_)
    for m in range(rows.shape[0]):
        row = rows[m]
        index = nearest(sites, row, points[m], -1)
        if index < 0:
            continue  # no cells yet
        cell = cell_at(sites, stats, row, index)
        if cell.wanted != wanted[m]:
            continue  # the cell belongs to another action
        cells[m] = index
        if mask.shape[0]:
            allowed = mask[m]
        actions[m] = _choose(cell, trials, row, order[m], allowed, thresholds[m], options)


@kernel(inline="always")
def _choose(
    cell: Cell, trials: TrialStats, row: int, order: Actions, allowed: NDArray[np.bool_], threshold: float,
    options: _Options,
) -> int:  # fmt: skip
    """The allowed action with the highest bound, or the wanted one if the difference may be noise."""
    wanted, noise, log_visits = cell.wanted, _noise(trials, row), math.log(1.0 + cell.counts.sum())
    chosen, highest = -1, -math.inf
    for a in order:
        if allowed[a]:
            bound = _estimate(cell, trials, row, a, threshold, options.min_visits)
            if cell.counts[a]:
                bound += options.explore * noise * math.sqrt(log_visits / (cell.counts[a] + SHARED_WEIGHT))
            if bound > highest:
                chosen, highest = a, bound
    if chosen < 0:
        return int(wanted)
    if allowed[wanted] and min(cell.counts[wanted], cell.counts[chosen]) >= options.min_visits:
        gain = _estimate(cell, trials, row, chosen, threshold, options.min_visits)
        gain -= _estimate(cell, trials, row, wanted, threshold, options.min_visits)
        if gain <= noise / math.sqrt(cell.counts[chosen]):
            return int(wanted)
    return int(chosen)


@kernel(inline="always")
def _estimate(cell: Cell, trials: TrialStats, row: int, a: int, threshold: float, min_visits: int) -> float:
    """The expected score of an action in a cell."""
    wanted, count = cell.wanted, cell.counts[a]
    prior = (PRIOR_WEIGHT * threshold + trials.sums[row, a]) / (PRIOR_WEIGHT + trials.counts[row, a])
    prior = SHARED_WEIGHT * prior + trials.sums_by_wanted[row, wanted, a]
    prior /= SHARED_WEIGHT + trials.counts_by_wanted[row, wanted, a]
    estimate = (SHARED_WEIGHT * prior + count * cell.means[a]) / (SHARED_WEIGHT + count)
    if a == wanted and (count < min_visits or not cell.has_failed[0]):
        return float(max(estimate, threshold))
    return float(estimate)


@kernel(inline="always")
def _noise(trials: TrialStats, row: int) -> float:
    """Standard deviation of scores within (cell, action)."""
    freedom, squares = trials.noise[row]
    return math.sqrt(squares / freedom) if freedom > 0 else 0.0


# --------------------------------------------------------------------------------------------------------- learning


@kernel()
def _update(
    store: StoreView, rows: Rows, points: ModelStates, wanted: Actions, executed: Actions, cells: Rows, scores: Floats,
    thresholds: Floats, fails: Flags, situations: Observations,
) -> int:  # fmt: skip
    sites, stats, trials = store
    n_created = 0
    for m in range(rows.shape[0]):
        row, a, score = rows[m], executed[m], scores[m]
        _add_to_trial(trials, row, wanted[m], a, score)
        if cells[m] >= 0:
            cell = cell_at(sites, stats, row, cells[m])
            noise = _noise(trials, row)
            if not _needs_split(cell, points[m], a, score, thresholds[m], noise):
                _add_to_cell(cell, trials, row, a, score, fails[m])
                continue
        cell = new_cell(sites, stats, row, points[m], wanted[m], situations[m])
        _add_to_cell(cell, trials, row, a, score, fails[m])
        n_created += 1
    return n_created


@kernel(inline="always")
def _add_to_trial(trials: TrialStats, row: int, wanted: int, a: int, score: float) -> None:
    """Count a score in the statistics of the trial."""
    trials.counts[row, a] += 1
    trials.sums[row, a] += score
    trials.counts_by_wanted[row, wanted, a] += 1
    trials.sums_by_wanted[row, wanted, a] += score


@kernel(inline="always")
def _add_to_cell(cell: Cell, trials: TrialStats, row: int, a: int, score: float, fails: bool) -> None:
    """Count a score in the cell, and its deviation in the noise of the trial."""
    count, mean = cell.counts[a], cell.means[a]
    cell.counts[a] = count + 1
    cell.means[a] = mean + (score - mean) / (count + 1)
    cell.has_failed[0] |= fails and a == cell.wanted
    if count > 0:
        trials.noise[row, 0] += 1
        trials.noise[row, 1] += (score - mean) * (score - cell.means[a])


@kernel(inline="always")
def _needs_split(cell: Cell, point: NDArray[np.float32], a: int, score: float, threshold: float, noise: float) -> bool:
    """Whether an action fails here that clearly did better in the cell before."""
    is_clear = score < threshold and score < cell.means[a] - noise
    return bool(cell.counts[a] > 0 and is_clear and _differ(cell.site, point))


@kernel()
def _differ(site: NDArray[np.float32], point: NDArray[np.float32]) -> bool:
    """Whether a new site here would be found: of equal sites, the first one is."""
    for k in range(site.shape[0]):  # noqa: SIM110 (numba does not support generators)
        if site[k] != point[k]:
            return True
    return False
