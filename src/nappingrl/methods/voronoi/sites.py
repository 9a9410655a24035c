"""Storage of sites: the points of the Voronoi sets of many trials.

Sites are kept in pages of one pool, in order of creation. A trial owns a list of pages, so it can grow without limit,
and returns them when it ends. Data about sites that others keep (principles, statistics) has the same pages: arrays
(n_pages, PAGE, ...), enlarged with `resized_to`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.voronoi.nearest import BLOCK, BOX, PAGE, PROJECTION, RELATIVE_ROUNDING, SiteArrays, has_room
from nappingrl.types import Rows

_REFIT_AT = (256, 2048, 16384)
"""Numbers of sites at which the directions of the projections are fitted; after the last they are good enough."""
_FIT_SAMPLE = 2048
_PAGE_ARRAYS = ("site", "wanted")
_LEAF_ARRAYS = ("projection", "member", "filled")


class _PagePool:
    """Which pages of a pool belong to which trial."""

    def __init__(self, n: int, pages_each: int) -> None:
        self.size = n * pages_each
        self.table = np.zeros((n, pages_each), np.int64)
        self.n_owned = np.zeros(n, np.int64)
        self._free = list(range(self.size))

    def take(self, row: int) -> None:
        """Give a trial one more page; an exhausted pool doubles."""
        if not self._free:
            self._free = list(range(self.size, 2 * self.size))
            self.size *= 2
        if self.n_owned[row] == self.table.shape[1]:
            self.table = np.hstack([self.table, np.zeros_like(self.table)])
        self.table[row, self.n_owned[row]] = self._free.pop()
        self.n_owned[row] += 1

    def release(self, rows: Rows) -> None:
        """Return all pages of these trials to the pool."""
        for row in rows:
            self._free.extend(self.table[row, : self.n_owned[row]].tolist())
        self.n_owned[rows] = 0


class Sites:
    """The sites of n trials."""

    def __init__(self, n: int, dim: int) -> None:
        self._pages, self._leaves = _PagePool(n, 4), _PagePool(n, 4)
        pages, leaves = self._pages.size, self._leaves.size
        self._n_created = 0
        self._refit_at = list(_REFIT_AT if dim > PROJECTION else ())
        self.arrays = SiteArrays(
            pages=self._pages.table,
            n_sites=np.zeros(n, np.int64),
            max_norm=np.zeros(n, np.float32),
            site=np.zeros((pages, PAGE, dim), np.float32),
            wanted=np.zeros((pages, PAGE), np.int64),
            leaves=self._leaves.table,
            n_leaves=np.zeros(n, np.int64),
            projection=np.zeros((leaves, PROJECTION, PAGE), np.float32),
            member=np.zeros((leaves, PAGE), np.int64),
            filled=np.zeros(leaves, np.int64),
            box=np.zeros((n, 2, BOX, BLOCK), np.float32),
            directions=np.eye(PROJECTION, dim, dtype=np.float32),
            pages_owned=self._pages.n_owned,
            leaves_owned=self._leaves.n_owned,
            projected=np.zeros(PROJECTION, np.float32),
            bounds=np.zeros(PAGE, np.uint32),
            box_bounds=np.zeros(BLOCK, np.uint32),
        )

    @property
    def n_pages(self) -> int:
        """Pages in the pool, in use or free."""
        return len(self.arrays.site)

    def clear(self, rows: Rows) -> None:
        """Remove the sites of these trials."""
        self._pages.release(rows)
        self._leaves.release(rows)
        for array in (self.arrays.n_sites, self.arrays.n_leaves, self.arrays.max_norm):
            array[rows] = 0

    def reserve(self, rows: Rows, n_more: int = 1) -> None:
        """Reserve space for more sites in each of these trials, and for as many leaves as will probably be split."""
        if n_more == 1 and not _is_any_full(self.arrays, rows):
            return
        n_pages = -(-(self.arrays.n_sites + n_more) // PAGE)
        n_leaves = self.arrays.n_leaves + 1 + 2 * n_more // PAGE  # a split makes two halves of a page
        for pool, n_needed in ((self._pages, n_pages), (self._leaves, n_leaves)):
            for row in rows[pool.n_owned[rows] < n_needed[rows]].tolist():
                while pool.n_owned[row] < n_needed[row]:
                    pool.take(row)
        self._resize()

    def maybe_refit_index(self, n_created: int) -> None:
        """Count new sites, and fit better directions when there are many more than at the last fit."""
        self._n_created += n_created
        if self._refit_at and self._n_created >= self._refit_at[0]:
            del self._refit_at[0]
            self._fit_directions()

    def fill(self, row: int, points: NDArray[np.float32], wanted: NDArray[np.int64]) -> None:
        """Give an empty trial these sites."""
        for _ in range(0, len(points), PAGE):
            self._pages.take(row)
        self._resize()
        self.arrays.n_sites[row] = len(points)
        at = self.addresses(row)
        self.arrays.site[at], self.arrays.wanted[at] = points, wanted
        self._measure(row)
        self._rebuild_index(row)
        self.maybe_refit_index(len(points))

    def keep(self, row: int, kept: NDArray[np.int64], others: Iterable[NDArray[Any]]) -> None:
        """Drop all sites of a trial but these, given in order of creation; `others` are arrays of the same pages."""
        pages, slots = self.addresses(row)
        old, new = (pages[kept], slots[kept]), (pages[: len(kept)], slots[: len(kept)])
        arrays: list[NDArray[Any]] = [self.arrays.site, self.arrays.wanted, *others]
        for array in arrays:
            array[new] = array[old]
        self.arrays.n_sites[row] = len(kept)
        self._measure(row)
        self._rebuild_index(row)

    def addresses(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pages and slots of a trial's sites, in order of creation."""
        index = np.arange(self.arrays.n_sites[row])
        return self.arrays.pages[row, index // PAGE], index % PAGE

    def _resize(self) -> None:
        """Enlarge the arrays to the size of their pools."""
        larger: dict[str, NDArray[Any]] = {"pages": self._pages.table, "leaves": self._leaves.table}
        box, width = self.arrays.box, self._leaves.table.shape[1]
        if box.shape[3] < width:  # 4, 8, 16...: from BLOCK on, a multiple of it
            larger["box"] = np.concatenate([box, np.zeros((*box.shape[:3], width - box.shape[3]), np.float32)], axis=3)
            larger["box_bounds"] = np.zeros(width, np.uint32)
        for names, pool in ((_PAGE_ARRAYS, self._pages), (_LEAF_ARRAYS, self._leaves)):
            larger |= {name: resized_to(getattr(self.arrays, name), pool.size) for name in names}
        self.arrays = self.arrays._replace(**larger)

    def _measure(self, row: int) -> None:
        """Find the largest norm of a trial's sites."""
        points = self.arrays.site[self.addresses(row)].astype(np.float64)
        max_norm = np.sqrt((points**2).sum(axis=1).max(initial=0.0))
        self.arrays.max_norm[row] = max_norm * RELATIVE_ROUNDING

    def _fit_directions(self) -> None:
        """Project along the leading principal directions of a sample of all sites."""
        rows = np.flatnonzero(self.arrays.n_sites).tolist()
        if not rows:
            return
        points = np.concatenate([self.arrays.site[self.addresses(row)] for row in rows]).astype(np.float64)
        sample = points[:: -(-len(points) // _FIT_SAMPLE)]
        centred = sample - sample.mean(axis=0)
        _, directions = np.linalg.eigh(centred.T @ centred)  # in order of increasing variance
        leading = np.ascontiguousarray(directions.T[: -PROJECTION - 1 : -1], np.float32)
        self.arrays = self.arrays._replace(directions=leading)
        for row in rows:
            self._rebuild_index(row)

    def _rebuild_index(self, row: int) -> None:
        """Project all sites of a trial and distribute them over leaves."""
        projected = self.arrays.site[self.addresses(row)] @ self.arrays.directions.T
        groups = [np.arange(len(projected))] if len(projected) else []
        leaves = []
        while groups:
            members = groups.pop()
            if len(members) < PAGE:
                leaves.append(members)
                continue
            side = np.ptp(projected[members, :BOX], axis=0).argmax()
            members = members[np.argsort(projected[members, side], kind="stable")]
            groups += [members[: len(members) // 2], members[len(members) // 2 :]]
        while self._leaves.n_owned[row] < len(leaves):
            self._leaves.take(row)
        self._resize()
        arrays = self.arrays
        arrays.n_leaves[row] = len(leaves)
        for k, (leaf, members) in enumerate(zip(arrays.leaves[row], leaves, strict=False)):
            arrays.filled[leaf] = len(members)
            arrays.member[leaf, : len(members)] = members
            arrays.projection[leaf, :, : len(members)] = projected[members].T
            boxed = projected[members, :BOX]
            arrays.box[row, :, :, k] = boxed.min(axis=0), boxed.max(axis=0)


def resized_to(array: NDArray[Any], length: int) -> NDArray[Any]:
    """The array if it is long enough, otherwise a longer copy with uninitialised rows at its end."""
    if len(array) >= length:
        return array
    larger = np.empty((length, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


@kernel(allocates=False)
def _is_any_full(sites: SiteArrays, rows: Rows) -> bool:
    """Whether any of these trials needs another page or leaf."""
    for row in rows:  # noqa: SIM110 (numba does not support generators)
        if not has_room(sites, row):
            return True
    return False
