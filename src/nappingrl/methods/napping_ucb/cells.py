"""Cells with statistics: how each action has scored in each Voronoi cell, and what cells learn from one another.

A cell is a site (`methods/voronoi`) with the action the agent wanted there. It keeps visits and mean score of every
action. What an action is worth in a cell is estimated in three steps, each the prior of the next:

    shared = (FIRST threshold + sum of a's scores)           / (FIRST + how often a was executed)
    keyed  = (OTHERS shared   + its sum where w was wanted)  / (OTHERS + how often, where w was wanted)
    worth  = (OTHERS keyed    + visits * mean in the cell)   / (OTHERS + visits)

so that a new cell begins with what was learned elsewhere, and an action that nobody has tried counts as just good
enough. Chosen is the greatest worth, of equals the first in the agent's own order (or the world's, where it has one);
actions that were tried in the cell get the bonus of an upper confidence bound,

    explore * noise * sqrt(log(1 + visits of the cell) / (visits + OTHERS)),

noise being the spread of scores within (cell, action). The agent's own action counts as good enough until it has failed
in the cell and had its `min_visits` there, so that without a failure no untried action gets a chance; and it is kept
unless the other one is better by more than the noise of its mean.

A cell is made where the nearest one belongs to another action, and where an action scores below the threshold and
clearly below its mean in the cell. All works on a batch of trials; what happens in one does not depend on the others.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.voronoi.sites import PAGE, Plots, Sites, add_site, grown, nearest
from nappingrl.types import Actions, Flags, Floats, ModelStates, Observations, Rows

FIRST, OTHERS = 1.0, 0.5
"""Visits that the threshold, and the experience of other cells, count as."""


class Arms(NamedTuple):
    """The actions of each cell. All arrays are (pool, PAGE, ...), like the sites."""

    counts: NDArray[np.int64]
    """(..., actions): how often each was executed in the cell."""
    means: NDArray[np.float64]
    """(..., actions): their mean scores."""
    has_failed: NDArray[np.bool_]
    """Whether the agent's own action has failed in the cell."""
    situation: NDArray[np.float32]
    """The observation at creation, so that a cell can be read."""


class Shared(NamedTuple):
    """What the cells of a trial know together. All arrays are (n, ...)."""

    counts: NDArray[np.float64]
    """(n, actions): how often each was executed."""
    sums: NDArray[np.float64]
    """(n, actions): the sums of their scores."""
    keyed_counts: NDArray[np.float64]
    """(n, wanted, actions)."""
    keyed_sums: NDArray[np.float64]
    noise: NDArray[np.float64]
    """(n, 2): degrees of freedom and sum of squares within (cell, action)."""


class Cells:
    """The cells of n trials."""

    def __init__(
        self, n: int, n_actions: int, dim: int, situation_dim: int = 0, min_visits: int = 1, explore: float = 0.2
    ) -> None:
        self.n_actions, self._min_visits, self._explore = n_actions, min_visits, explore
        self._sites = Sites(n, dim)
        pool, a = self._sites.pool, n_actions
        self._arms = Arms(
            counts=np.zeros((pool, PAGE, a), np.int64),
            means=np.zeros((pool, PAGE, a)),
            has_failed=np.zeros((pool, PAGE), np.bool_),
            situation=np.zeros((pool, PAGE, situation_dim), np.float32),
        )
        self._shared = Shared(
            np.zeros((n, a)), np.zeros((n, a)), np.zeros((n, a, a)), np.zeros((n, a, a)), np.zeros((n, 2))
        )

    @property
    def n_cells(self) -> NDArray[np.int64]:
        """How many cells each trial has, (n,)."""
        return self._sites.plots.n_sites

    def forget(self, rows: Rows) -> None:
        """Drop all that these trials have learned."""
        self._sites.clear(rows)
        for array in self._shared:
            array[rows] = 0

    def select(
        self, rows: Rows, points: ModelStates, wanted: Actions, order: Actions, thresholds: Floats,
        mask: NDArray[np.bool_] | None = None,
    ) -> tuple[Actions, Rows]:  # fmt: skip
        """The actions to execute, and the cell each was taken from (-1: none).

        `order` (m, n_actions) decides between equals; `mask` (m, n_actions) leaves out actions that make no sense now;
        where none is left the wanted action is taken.
        """
        actions, cells = wanted.copy(), np.full(len(rows), -1)
        _select(
            self._sites.plots, self._arms, self._shared, rows, points, wanted, order, thresholds,
            _NO_MASK if mask is None else mask, self._min_visits, self._explore, actions, cells,
        )  # fmt: skip
        return actions, cells

    def update(
        self, rows: Rows, points: ModelStates, wanted: Actions, executed: Actions, cells: Rows, scores: Floats,
        thresholds: Floats, fails: Flags, situations: Observations | None = None,
    ) -> None:  # fmt: skip
        """Learn from the scores of the executed actions; `cells` are those that `select` found."""
        self._sites.make_room(rows)
        self._grow()
        if situations is None:
            situations = np.zeros((len(rows), self._arms.situation.shape[2]), np.float32)
        created = _update(
            self._sites.plots, self._arms, self._shared, rows, points, wanted, executed, cells, scores,
            thresholds, fails, situations,
        )  # fmt: skip
        self._sites.after_growth(created)

    def n_open(self, rows: Rows, thresholds: Floats) -> NDArray[np.int64]:
        """How many cells of each row know no action that is good enough and have some left to try."""
        found = np.zeros(len(rows), np.int64)
        _count_open(self._sites.plots, self._arms, rows, thresholds, found)
        return found

    def table(self, row: int, threshold: float) -> dict[str, NDArray[Any]]:
        """The cells of one trial in the order of creation: the names of `Principles.table`, and the statistics."""
        at, plots = self._sites.addresses(row), self._sites.plots
        counts, means = self._arms.counts[at], self._arms.means[at]
        tested = counts > 0
        tried = np.where(tested, means, -np.inf)
        best, best_action = tried.max(axis=1, initial=-np.inf), tried.argmax(axis=1) if len(tried) else _NO_ACTIONS
        is_open = (best < threshold) & ~tested.all(axis=1)
        closed = np.arange(self.n_actions) == best_action[:, None]
        return {
            "site": plots.site[at], "wanted": plots.wanted[at],
            "candidates": np.where(is_open[:, None], ~tested, closed), "tested": tested,
            "best": best, "best_action": best_action, "visits": counts.sum(axis=1),
            "situation": self._arms.situation[at], "counts": counts, "means": means,
        }  # fmt: skip

    def state(self, row: int) -> dict[str, NDArray[Any]]:
        """All that one trial has learned, as named arrays."""
        at, plots = self._sites.addresses(row), self._sites.plots
        cells: dict[str, NDArray[Any]] = {"site": plots.site[at], "wanted": plots.wanted[at]}
        cells |= {f"arms.{name}": array[at] for name, array in self._arms._asdict().items()}
        return cells | {f"shared.{name}": array[row].copy() for name, array in self._shared._asdict().items()}

    def restore(self, row: int, state: dict[str, NDArray[Any]]) -> None:
        """Put back what `state` gave."""
        self.forget(np.array([row]))
        self._sites.put(row, state["site"], state["wanted"])
        self._grow()
        at = self._sites.addresses(row)
        for name, array in self._arms._asdict().items():
            array[at] = state[f"arms.{name}"]
        for name, array in self._shared._asdict().items():
            array[row] = state[f"shared.{name}"]

    def _grow(self) -> None:
        self._arms = grown(self._arms, self._sites.pool)


_NO_MASK = np.zeros((0, 0), np.bool_)
_NO_ACTIONS = np.zeros(0, np.int64)


# ------------------------------------------------------------------------------------------------------- the choice


@kernel()
def _select(
    plots: Plots, arms: Arms, shared: Shared, rows: Rows, points: ModelStates, wanted: Actions, order: Actions,
    thresholds: Floats, mask: NDArray[np.bool_], min_visits: int, explore: float, actions: Actions, cells: Rows,
) -> None:  # fmt: skip
    for m in range(rows.shape[0]):
        row, own = rows[m], wanted[m]
        i = nearest(plots, row, points[m], -1)
        if i < 0:
            continue
        page, j = plots.pages[row, i // PAGE], i % PAGE
        if plots.wanted[page, j] != own:
            continue
        cells[m] = i
        counts, means = arms.counts[page, j], arms.means[page, j]
        noise, spread = _noise(shared, row), math.log(1.0 + counts.sum())
        chosen, greatest, worth, own_worth = -1, -math.inf, -math.inf, -math.inf
        for place in range(order.shape[1]):
            a = order[m, place]
            if mask.shape[0] and not mask[m, a]:
                continue
            value = _worth(shared, row, own, a, counts[a], means[a], thresholds[m])
            if a == own and (counts[a] < min_visits or not arms.has_failed[page, j]):
                value = max(value, thresholds[m])
            if a == own and counts[a] >= min_visits:
                own_worth = value
            bonus = explore * noise * math.sqrt(spread / (counts[a] + OTHERS)) if counts[a] else 0.0
            if value + bonus > greatest:
                chosen, greatest, worth = a, value + bonus, value
        if chosen < 0:
            continue
        # Back to the agent's own action unless the other is better by more than noise.
        is_noise = counts[chosen] >= min_visits and worth - own_worth <= noise / math.sqrt(counts[chosen])
        actions[m] = own if is_noise else chosen


@kernel()
def _worth(shared: Shared, row: int, own: int, a: int, count: int, mean: float, threshold: float) -> float:
    """What an action is expected to score in a cell."""
    together = (FIRST * threshold + shared.sums[row, a]) / (FIRST + shared.counts[row, a])
    keyed = (OTHERS * together + shared.keyed_sums[row, own, a]) / (OTHERS + shared.keyed_counts[row, own, a])
    return float((OTHERS * keyed + count * mean) / (OTHERS + count))


@kernel()
def _noise(shared: Shared, row: int) -> float:
    """The spread of scores within (cell, action)."""
    freedom, squares = shared.noise[row]
    return math.sqrt(squares / freedom) if freedom > 0 else 0.0


@kernel()
def _count_open(plots: Plots, arms: Arms, rows: Rows, thresholds: Floats, found: Rows) -> None:
    for m in range(rows.shape[0]):
        for i in range(plots.n_sites[rows[m]]):
            page, j = plots.pages[rows[m], i // PAGE], i % PAGE
            has_untried, has_good = False, False
            for a in range(arms.counts.shape[2]):
                if arms.counts[page, j, a] == 0:
                    has_untried = True
                elif arms.means[page, j, a] >= thresholds[m]:
                    has_good = True
            found[m] += has_untried and not has_good


# -------------------------------------------------------------------------------------------------------- learning


@kernel()
def _update(
    plots: Plots, arms: Arms, shared: Shared, rows: Rows, points: ModelStates, wanted: Actions, executed: Actions,
    cells: Rows, scores: Floats, thresholds: Floats, fails: Flags, situations: Observations,
) -> int:  # fmt: skip
    created = 0
    for m in range(rows.shape[0]):
        row, i, own, a, score = rows[m], cells[m], wanted[m], executed[m], scores[m]
        shared.counts[row, a] += 1
        shared.sums[row, a] += score
        shared.keyed_counts[row, own, a] += 1
        shared.keyed_sums[row, own, a] += score
        if i >= 0:
            page, j = plots.pages[row, i // PAGE], i % PAGE
            count, mean = arms.counts[page, j, a], arms.means[page, j, a]
            is_clear = score < thresholds[m] and score < mean - _noise(shared, row)
            is_split = count > 0 and is_clear and _differ(plots.site[page, j], points[m])
            if not is_split:
                arms.counts[page, j, a] = count + 1
                arms.has_failed[page, j] |= fails[m] and a == own
                arms.means[page, j, a] = mean + (score - mean) / (count + 1)
                if count > 0:
                    shared.noise[row, 0] += 1
                    shared.noise[row, 1] += (score - mean) * (score - arms.means[page, j, a])
                continue
        i = add_site(plots, row, points[m], own)
        page, j = plots.pages[row, i // PAGE], i % PAGE
        arms.counts[page, j] = 0
        arms.means[page, j] = 0.0
        arms.counts[page, j, a], arms.means[page, j, a] = 1, score
        arms.has_failed[page, j] = fails[m] and a == own
        arms.situation[page, j] = situations[m]
        created += 1
    return created


@kernel()
def _differ(site: NDArray[np.float32], point: NDArray[np.float32]) -> bool:
    """Whether a new site here would be found: of equal ones the first is."""
    for k in range(site.shape[0]):  # noqa: SIM110 (numba knows no generators)
        if site[k] != point[k]:
            return True
    return False
