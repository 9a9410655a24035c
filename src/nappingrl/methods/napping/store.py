"""Storage of principles: one entry per site, in arrays of the same pages."""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.voronoi.nearest import PAGE, SiteArrays, add_site, address
from nappingrl.methods.voronoi.sites import Sites, resized_to
from nappingrl.snapshot import Expected, Sizes
from nappingrl.types import Rows


class PrincipleArrays(NamedTuple):
    """The principles of all trials; all arrays are (n_pages, PAGE, ...), like the sites."""

    candidates: NDArray[np.bool_]
    """(..., n_actions): the actions to try instead of the wanted one."""
    tested: NDArray[np.bool_]
    """(..., n_actions): the actions executed in the region."""
    best: NDArray[np.float64]
    """The best score in the region."""
    best_action: NDArray[np.int64]
    """The action with the best score; only the fallback rule updates it."""
    visits: NDArray[np.int64]
    situation: NDArray[np.float32]
    """(..., situation_dim): the observation at creation, which makes a principle readable."""


class PrincipleTable(NamedTuple):
    """The principles of one trial in order of creation, and what they may hold when they come from a file."""

    site: Annotated[NDArray[np.float32], Expected(("m", "dim"))]
    wanted: Annotated[NDArray[np.int64], Expected(("m",), low=0, below="n_actions")]
    candidates: Annotated[NDArray[np.bool_], Expected(("m", "n_actions"))]
    tested: Annotated[NDArray[np.bool_], Expected(("m", "n_actions"))]
    best: Annotated[NDArray[np.float64], Expected(("m",), with_inf=True)]
    best_action: Annotated[NDArray[np.int64], Expected(("m",), low=0, below="n_actions")]
    visits: Annotated[NDArray[np.int64], Expected(("m",), low=1)]
    situation: Annotated[NDArray[np.float32], Expected(("m", "situation_dim"))]

    def check(self, sizes: Sizes) -> None:
        """Raise if a principle has no candidate."""
        if not self.candidates.any(axis=1).all():
            raise ValueError("a principle has no candidate")


class Principle(NamedTuple):
    """One principle: views into the arrays, of length one for the scalars that change."""

    wanted: int
    candidates: NDArray[np.bool_]
    tested: NDArray[np.bool_]
    best: NDArray[np.float64]
    best_action: NDArray[np.int64]
    visits: NDArray[np.int64]


class StoreView(NamedTuple):
    """The store as kernels see it."""

    sites: SiteArrays
    principles: PrincipleArrays
    n_open: NDArray[np.int64]


class PrincipleStore:
    """The principles of n trials."""

    def __init__(self, n: int, n_actions: int, dim: int, situation_dim: int) -> None:
        self._sites = Sites(n, dim)
        shape = self._sites.n_pages, PAGE
        self._principles = PrincipleArrays(
            candidates=np.zeros((*shape, n_actions), np.bool_),
            tested=np.zeros((*shape, n_actions), np.bool_),
            best=np.zeros(shape),
            best_action=np.zeros(shape, np.int64),
            visits=np.zeros(shape, np.int64),
            situation=np.zeros((*shape, situation_dim), np.float32),
        )
        self.n_open = np.zeros(n, np.int64)
        self.situation_dim = situation_dim

    @property
    def view(self) -> StoreView:
        """The current arrays; valid until the store grows."""
        return StoreView(self._sites.arrays, self._principles, self.n_open)

    @property
    def n_regions(self) -> NDArray[np.int64]:
        """Number of principles of each trial, (n,)."""
        return self._sites.arrays.n_sites

    def clear(self, rows: Rows) -> None:
        """Remove the principles of these trials."""
        self._sites.clear(rows)
        self.n_open[rows] = 0

    def reserve(self, rows: Rows, n_more: int = 1) -> None:
        """Reserve space for more principles in each of these trials."""
        self._sites.reserve(rows, n_more)
        self._resize()

    def maybe_refit_index(self, n_created: int) -> None:
        """Count new principles, and now and then make the search faster."""
        self._sites.maybe_refit_index(n_created)

    def table(self, row: int) -> dict[str, NDArray[Any]]:
        """The principles of one trial in order of creation, as named arrays."""
        at, sites = self._sites.addresses(row), self._sites.arrays
        table: dict[str, NDArray[Any]] = {"site": sites.site[at], "wanted": sites.wanted[at]}
        return table | {name: array[at] for name, array in self._principles._asdict().items()}

    def restore(self, row: int, table: dict[str, NDArray[Any]]) -> None:
        """Replace the principles of one trial with those of a `table`."""
        self.clear(np.array([row]))
        self._sites.fill(row, table["site"], table["wanted"])
        self._resize()
        at = self._sites.addresses(row)
        for name, array in self._principles._asdict().items():
            array[at] = table[name]
        self.n_open[row] = int((table["candidates"].sum(axis=1) > 1).sum())

    def keep(self, row: int, kept: Rows) -> None:
        """Drop all principles of one trial but these, given in order of creation."""
        self._sites.keep(row, kept, self._principles)
        self.n_open[row] = (self._principles.candidates[self._sites.addresses(row)].sum(axis=1) > 1).sum()

    def _resize(self) -> None:
        n_pages = self._sites.n_pages
        if len(self._principles.best) < n_pages:
            self._principles = PrincipleArrays(*(resized_to(array, n_pages) for array in self._principles))


# Kernels that return a `Principle` are inlined: every call would count references to every array.


@kernel(allocates=False, inline="always")
def principle_at(sites: SiteArrays, principles: PrincipleArrays, row: int, region: int) -> Principle:
    """The principle of a trial's region."""
    page, i = address(sites, row, region)
    return Principle(
        wanted=sites.wanted[page, i],
        candidates=principles.candidates[page, i],
        tested=principles.tested[page, i],
        best=principles.best[page, i : i + 1],
        best_action=principles.best_action[page, i : i + 1],
        visits=principles.visits[page, i : i + 1],
    )


@kernel(allocates=False, inline="always")
def new_principle(
    sites: SiteArrays, principles: PrincipleArrays, row: int, model_state: NDArray[np.float32], a_agent: int, a: int,
    score: float, situation: NDArray[np.float32],
) -> Principle:  # fmt: skip
    """A principle at a new site, in space reserved before; its candidates are still to be set."""
    region = add_site(sites, row, model_state, a_agent)
    page, i = address(sites, row, region)
    for k in range(situation.shape[0]):
        principles.situation[page, i, k] = situation[k]
    principle = principle_at(sites, principles, row, region)
    # paper: `best` is the score of the action just executed, so that action counts as tested.
    principle.tested[:] = False
    principle.tested[a] = True
    principle.best[0] = score
    principle.best_action[0] = a
    principle.visits[0] = 1
    return principle
