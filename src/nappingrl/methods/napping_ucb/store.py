"""Storage of cells: the scores of each action, per cell and per trial."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.voronoi.nearest import PAGE, SiteArrays, add_site, address
from nappingrl.methods.voronoi.sites import Sites, resized_to
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import Floats, Rows


class ActionStats(NamedTuple):
    """The actions of each cell; all arrays are (n_pages, PAGE, ...), like the sites."""

    counts: NDArray[np.int64]
    """(..., n_actions): how often each action was executed in the cell."""
    means: NDArray[np.float64]
    """(..., n_actions): the mean score of each action in the cell."""
    has_failed: NDArray[np.bool_]
    """Whether the wanted action has failed in the cell."""
    situation: NDArray[np.float32]
    """(..., situation_dim): the observation at creation, which makes a cell readable."""


class TrialStats(NamedTuple):
    """The actions of each trial, over all its cells."""

    counts: NDArray[np.float64]
    """(n, n_actions): how often each action was executed."""
    sums: NDArray[np.float64]
    """(n, n_actions): the sum of the scores of each action."""
    counts_by_wanted: NDArray[np.float64]
    """(n, n_actions, n_actions): counts per (wanted, executed) action."""
    sums_by_wanted: NDArray[np.float64]
    """(n, n_actions, n_actions): sums per (wanted, executed) action."""
    noise: NDArray[np.float64]
    """(n, 2): degrees of freedom and sum of squares of the scores within (cell, action)."""


class CellTable(NamedTuple):
    """Cells and statistics of one trial, and what they may hold when they come from a file."""

    site: Annotated[NDArray[np.float32], Expected(("m", "dim"))]
    wanted: Annotated[NDArray[np.int64], Expected(("m",), low=0, below="n_actions")]
    counts: Annotated[NDArray[np.int64], Expected(("m", "n_actions"), low=0)]
    means: Annotated[NDArray[np.float64], Expected(("m", "n_actions"))]
    has_failed: Annotated[NDArray[np.bool_], Expected(("m",))]
    situation: Annotated[NDArray[np.float32], Expected(("m", "situation_dim"))]
    trial_counts: Annotated[NDArray[np.float64], Expected(("n_actions",), low=0)]
    trial_sums: Annotated[NDArray[np.float64], Expected(("n_actions",))]
    trial_counts_by_wanted: Annotated[NDArray[np.float64], Expected(("n_actions", "n_actions"), low=0)]
    trial_sums_by_wanted: Annotated[NDArray[np.float64], Expected(("n_actions", "n_actions"))]
    trial_noise: Annotated[NDArray[np.float64], Expected((2,), low=0)]

    def check(self, sizes: Sizes) -> None:
        """Raise if no action was executed in a cell."""
        if not self.counts.any(axis=1).all():
            raise ValueError("no action was executed in a cell")


class Cell(NamedTuple):
    """One cell: views into the arrays, of length one for the scalar that changes."""

    site: NDArray[np.float32]
    wanted: int
    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    has_failed: NDArray[np.bool_]


class StoreView(NamedTuple):
    """The store as kernels see it."""

    sites: SiteArrays
    actions: ActionStats
    trials: TrialStats


class CellStore:
    """The cells of n trials."""

    def __init__(self, n: int, n_actions: int, dim: int, situation_dim: int) -> None:
        self._sites = Sites(n, dim)
        shape = self._sites.n_pages, PAGE
        self._actions = ActionStats(
            counts=np.zeros((*shape, n_actions), np.int64),
            means=np.zeros((*shape, n_actions)),
            has_failed=np.zeros(shape, np.bool_),
            situation=np.zeros((*shape, situation_dim), np.float32),
        )
        self._trials = TrialStats(
            counts=np.zeros((n, n_actions)),
            sums=np.zeros((n, n_actions)),
            counts_by_wanted=np.zeros((n, n_actions, n_actions)),
            sums_by_wanted=np.zeros((n, n_actions, n_actions)),
            noise=np.zeros((n, 2)),
        )
        self.situation_dim = situation_dim

    @property
    def view(self) -> StoreView:
        """The current arrays; valid until the store grows."""
        return StoreView(self._sites.arrays, self._actions, self._trials)

    @property
    def n_cells(self) -> NDArray[np.int64]:
        """Number of cells of each trial, (n,)."""
        return self._sites.arrays.n_sites

    def clear(self, rows: Rows) -> None:
        """Remove the cells and statistics of these trials."""
        self._sites.clear(rows)
        for array in self._trials:
            array[rows] = 0

    def reserve(self, rows: Rows) -> None:
        """Reserve space for one more cell in each of these trials."""
        self._sites.reserve(rows)
        self._resize()

    def maybe_refit_index(self, n_created: int) -> None:
        """Count new cells, and now and then make the search faster."""
        self._sites.maybe_refit_index(n_created)

    def n_open(self, rows: Rows, thresholds: Floats) -> NDArray[np.int64]:
        """Number of cells of each row without a good enough action but with untried ones, (m,)."""
        n_open = np.zeros(len(rows), np.int64)
        _count_open(self.view, rows, thresholds, n_open)
        return n_open

    def cells(self, row: int) -> dict[str, NDArray[Any]]:
        """The cells of one trial in order of creation, as named arrays."""
        at, sites = self._sites.addresses(row), self._sites.arrays
        cells: dict[str, NDArray[Any]] = {"site": sites.site[at], "wanted": sites.wanted[at]}
        return cells | {name: array[at] for name, array in self._actions._asdict().items()}

    def state(self, row: int) -> dict[str, NDArray[Any]]:
        """Cells and statistics of one trial, as named arrays."""
        return self.cells(row) | {f"trial_{name}": array[row].copy() for name, array in self._trials._asdict().items()}

    def restore(self, row: int, state: dict[str, NDArray[Any]]) -> None:
        """Replace cells and statistics of one trial with those of a `state`."""
        self.clear(np.array([row]))
        self._sites.fill(row, state["site"], state["wanted"])
        self._resize()
        at = self._sites.addresses(row)
        for name, array in self._actions._asdict().items():
            array[at] = state[name]
        for name, array in self._trials._asdict().items():
            array[row] = state[f"trial_{name}"]

    def keep(self, row: int, kept: Rows) -> None:
        """Drop all cells of one trial but these, given in order of creation; its statistics stay."""
        self._sites.keep(row, kept, self._actions)

    def _resize(self) -> None:
        n_pages = self._sites.n_pages
        if len(self._actions.counts) < n_pages:
            self._actions = ActionStats(*(resized_to(array, n_pages) for array in self._actions))


# Kernels that return a `Cell` are inlined: every call would count references to every array.


@kernel(inline="always")
def cell_at(sites: SiteArrays, stats: ActionStats, row: int, index: int) -> Cell:
    """The index-th cell of a trial."""
    page, i = address(sites, row, index)
    return Cell(
        site=sites.site[page, i],
        wanted=sites.wanted[page, i],
        counts=stats.counts[page, i],
        means=stats.means[page, i],
        has_failed=stats.has_failed[page, i : i + 1],
    )


@kernel(inline="always")
def new_cell(
    sites: SiteArrays, stats: ActionStats, row: int, point: NDArray[np.float32], wanted: int,
    situation: NDArray[np.float32],
) -> Cell:  # fmt: skip
    """A cell without scores at a new site, in space reserved before."""
    index = add_site(sites, row, point, wanted)
    page, i = address(sites, row, index)
    for k in range(situation.shape[0]):
        stats.situation[page, i, k] = situation[k]
    cell = cell_at(sites, stats, row, index)
    cell.counts[:] = 0
    cell.means[:] = 0.0
    cell.has_failed[0] = False
    return cell


@kernel()
def _count_open(store: StoreView, rows: Rows, thresholds: Floats, out: Rows) -> None:
    sites, stats, _ = store
    for m in range(rows.shape[0]):
        for index in range(sites.n_sites[rows[m]]):
            page, i = address(sites, rows[m], index)
            has_untried, has_good = False, False
            for a in range(stats.counts.shape[2]):
                if stats.counts[page, i, a] == 0:
                    has_untried = True
                elif stats.means[page, i, a] >= thresholds[m]:
                    has_good = True
            out[m] += has_untried and not has_good
