"""Sites: the points of many trials' Voronoi sets, and the exact search for the nearest one.

Sites are kept in pages of one pool, in the order of their creation; a trial owns a list of pages, so it can grow
without limit and gives them back when it ends.

Beside the sites stands an index. A site's *shadow* is its coordinates along the few leading principal directions of
all sites. The distance between two shadows never exceeds the distance between the points, so most sites are ruled out
by their shadow alone. Shadows live in *leaves*: a full leaf is split across its longest side, so that the sites of a
leaf are neighbours, and the box around them rules out whole leaves. The search stays exact: directions and leaves
decide how long it takes, never what it finds.
"""

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.types import Rows

Book = TypeVar("Book", bound=tuple[Any, ...])
PAGE = 64
"""Sites of a page, and places of a leaf."""
SHADOW = 8
_FITS = (256, 2048, 16384)
"""Numbers of sites at which directions are chosen; after the last they are good enough."""
_FIT_SAMPLE = 2048
# Rounding allowances of the lower bound, in float32: relative for the sums of squares, and for the shadows per
# dimension and unit of norm (a dot product of n terms is off by at most n * 2**-24 of the norms' product, and a shadow
# has eight).
_RELATIVE = np.float32(1 + 1e-4)
_SLACK = np.float32(2e-7)
_FAST = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, so that they become vector instructions; NaN and infinity keep their meaning."""


class Plots(NamedTuple):
    """The arrays of all sites, as the kernels see them."""

    pages: NDArray[np.int64]
    """(n, p): pages of each trial, in order."""
    n_sites: NDArray[np.int64]
    """(n,): sites of each trial."""
    reach: NDArray[np.float32]
    """(n,): largest norm of a site of each trial."""
    site: NDArray[np.float32]
    """(pages, PAGE, dim)."""
    wanted: NDArray[np.int64]
    """(pages, PAGE): the action the agent wanted when the site was made."""
    leaves: NDArray[np.int64]
    """(n, q): leaves of each trial."""
    n_leaves: NDArray[np.int64]
    """(n,): leaves that each trial uses."""
    shadow: NDArray[np.float32]
    """(leaves, SHADOW, PAGE)."""
    member: NDArray[np.int64]
    """(leaves, PAGE): which site of the trial a shadow belongs to."""
    filled: NDArray[np.int64]
    """(leaves,): shadows of a leaf."""
    box: NDArray[np.float32]
    """(leaves, 2, SHADOW): least and greatest shadow of a leaf."""
    directions: NDArray[np.float32]
    """(SHADOW, dim), orthonormal rows."""


class _Shelf:
    """Which parts of a pool belong to which trial."""

    def __init__(self, n: int, each: int) -> None:
        self.size = n * each
        self.table = np.zeros((n, each), np.int64)
        self.held = np.zeros(n, np.int64)
        self._free = list(range(self.size))

    def take(self, row: int) -> None:
        """Give a trial one more part; the pool doubles when it is used up."""
        if not self._free:
            self._free = list(range(self.size, 2 * self.size))
            self.size *= 2
        if self.held[row] == self.table.shape[1]:
            self.table = np.hstack([self.table, np.zeros_like(self.table)])
        self.table[row, self.held[row]] = self._free.pop()
        self.held[row] += 1

    def give_back(self, rows: Rows) -> None:
        """Take all parts of these trials back."""
        for row in rows:
            self._free.extend(self.table[row, : self.held[row]].tolist())
        self.held[rows] = 0


class Sites:
    """The sites of n trials."""

    def __init__(self, n: int, dim: int) -> None:
        self.n, self.dim = n, dim
        self._pages, self._leaves = _Shelf(n, 4), _Shelf(n, 4)
        pages, leaves = self._pages.size, self._leaves.size
        self._created, self._fits = 0, list(_FITS if dim > SHADOW else ())
        self.plots = Plots(
            pages=self._pages.table,
            n_sites=np.zeros(n, np.int64),
            reach=np.zeros(n, np.float32),
            site=np.zeros((pages, PAGE, dim), np.float32),
            wanted=np.zeros((pages, PAGE), np.int64),
            leaves=self._leaves.table,
            n_leaves=np.zeros(n, np.int64),
            shadow=np.zeros((leaves, SHADOW, PAGE), np.float32),
            member=np.zeros((leaves, PAGE), np.int64),
            filled=np.zeros(leaves, np.int64),
            box=np.zeros((leaves, 2, SHADOW), np.float32),
            directions=np.eye(SHADOW, dim, dtype=np.float32),
        )

    @property
    def pool(self) -> int:
        """How many pages there are, used or not."""
        return len(self.plots.site)

    def clear(self, rows: Rows) -> None:
        """Forget the sites of these trials."""
        self._pages.give_back(rows)
        self._leaves.give_back(rows)
        for array in (self.plots.n_sites, self.plots.n_leaves, self.plots.reach):
            array[rows] = 0

    def make_room(self, rows: Rows) -> None:
        """See to it that each of these trials can take one more site, and split one more leaf."""
        n_sites, n_leaves = self.plots.n_sites, self.plots.n_leaves
        if not is_full(n_sites, n_leaves, self._pages.held, self._leaves.held, rows):
            return
        for row in rows[n_sites[rows] == self._pages.held[rows] * PAGE]:
            self._pages.take(row)
        for row in rows[n_leaves[rows] == self._leaves.held[rows]]:
            self._leaves.take(row)
        self._follow_shelves()

    def after_growth(self, created: int) -> None:
        """Count new sites; now and then choose better directions for the shadows."""
        self._created += created
        if self._fits and self._created >= self._fits[0]:
            del self._fits[0]
            self._fit_directions()

    def put(self, row: int, points: NDArray[np.float32], wanted: NDArray[np.int64]) -> None:
        """Give an empty trial these sites at once."""
        for _ in range(0, len(points), PAGE):
            self._pages.take(row)
        self._follow_shelves()
        self.plots.n_sites[row] = len(points)
        at = self.addresses(row)
        self.plots.site[at], self.plots.wanted[at] = points, wanted
        if len(points):
            self.plots.reach[row] = np.sqrt((points.astype(np.float64) ** 2).sum(axis=1).max()) * _RELATIVE
        self._index(row)
        self.after_growth(len(points))

    def addresses(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Page and place of each site of a trial, in the order of creation."""
        index = np.arange(self.plots.n_sites[row])
        return self.plots.pages[row, index // PAGE], index % PAGE

    def _follow_shelves(self) -> None:
        """Make the arrays as large as their shelves say."""
        plots = self.plots
        for names, size in ((("site", "wanted"), self._pages.size), (_LEAF_ARRAYS, self._leaves.size)):
            while len(getattr(plots, names[0])) < size:
                plots = plots._replace(**{name: doubled(getattr(plots, name)) for name in names})
        self.plots = plots._replace(pages=self._pages.table, leaves=self._leaves.table)

    def _fit_directions(self) -> None:
        held = [self.plots.site[self.addresses(row)] for row in range(self.n) if self.plots.n_sites[row]]
        if not held:
            return
        points = np.concatenate(held).astype(np.float64)
        sample = points[:: -(-len(points) // _FIT_SAMPLE)]
        centred = sample - sample.mean(axis=0)
        _, directions = np.linalg.eigh(centred.T @ centred)  # in the order of growing variance
        self.plots = self.plots._replace(directions=np.ascontiguousarray(directions[:, -SHADOW:].T, np.float32))
        for row in np.flatnonzero(self.plots.n_sites):
            self._index(int(row))

    def _index(self, row: int) -> None:
        """Shadows and leaves of all sites of a trial, anew."""
        shades = self.plots.site[self.addresses(row)] @ self.plots.directions.T
        groups = [np.arange(len(shades))] if len(shades) else []
        leaves = []
        while groups:
            members = groups.pop()
            if len(members) < PAGE:
                leaves.append(members)
                continue
            side = np.ptp(shades[members], axis=0).argmax()
            members = members[np.argsort(shades[members, side], kind="stable")]
            groups += [members[: len(members) // 2], members[len(members) // 2 :]]
        while self._leaves.held[row] < len(leaves):
            self._leaves.take(row)
        self._follow_shelves()
        plots = self.plots
        plots.n_leaves[row] = len(leaves)
        for leaf, members in zip(plots.leaves[row], leaves, strict=False):
            plots.filled[leaf], plots.member[leaf, : len(members)] = len(members), members
            plots.shadow[leaf, :, : len(members)] = shades[members].T
            plots.box[leaf] = shades[members].min(axis=0), shades[members].max(axis=0)


_LEAF_ARRAYS = ("shadow", "member", "filled", "box")


def doubled(array: NDArray[Any]) -> NDArray[Any]:
    """The array with as many rows again behind it, whatever they hold: memory is touched when it is used."""
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def grown(book: Book, pool: int) -> Book:
    """What is written at the sites (a named tuple of arrays), with room for a pool of so many pages."""
    while len(book[0]) < pool:
        book = type(book)(*(doubled(array) for array in book))
    return book


# ------------------------------------------------------------------------------------------------------ the search


@kernel()
def nearest(plots: Plots, row: int, query: NDArray[np.float32], wanted: int) -> int:
    """Index of the trial's site nearest to `query`, the earliest of equals; -1 if there is none.

    With wanted >= 0 only sites made for that action count.
    """
    n_leaves = plots.n_leaves[row]
    shade, bound, boxes = np.empty(SHADOW, np.float32), np.empty(PAGE, np.float32), np.empty(n_leaves, np.float32)
    cast_shadow(plots.directions, query, shade)
    slack = _SLACK * np.float32(query.shape[0]) * (norm(query) + plots.reach[row])
    start = 0
    for k in range(n_leaves):
        boxes[k] = box_bound(plots.box[plots.leaves[row, k]], shade)
        if boxes[k] < boxes[start]:
            start = k
    found, best, limit = -1, np.float32(np.inf), np.float32(np.inf)
    for turn in range(n_leaves):
        # The leaf whose box is nearest first, then the others in order.
        k = start if turn == 0 else turn - (turn <= start)
        if boxes[k] > limit:
            continue
        leaf = plots.leaves[row, k]
        filled = plots.filled[leaf]
        least = leaf_bounds(plots.shadow[leaf], shade, filled, bound)
        for step in range(filled):
            j = least + step if least + step < filled else least + step - filled
            if bound[j] <= limit:
                i = plots.member[leaf, j]
                page, place = plots.pages[row, i // PAGE], i % PAGE
                if wanted < 0 or plots.wanted[page, place] == wanted:
                    distance = squared_distance(plots.site[page, place], query)
                    if distance < best or (distance == best and i < found) or found < 0:
                        found, best = i, distance
                        limit = (np.sqrt(best) * _RELATIVE + slack) ** 2
    return found


@kernel(fastmath=_FAST)
def cast_shadow(directions: NDArray[np.float32], point: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Coordinates of a point along the directions."""
    for k in range(directions.shape[0]):
        total = np.float32(0)
        for i in range(point.shape[0]):
            total += directions[k, i] * point[i]
        out[k] = total


@kernel(fastmath=_FAST)
def squared_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """Squared Euclidean distance. Called from one place only, so that equal points give equal bits."""
    total = np.float32(0)
    for i in range(a.shape[0]):
        d = a[i] - b[i]
        total += d * d
    return total


@kernel(fastmath=_FAST)
def norm(point: NDArray[np.float32]) -> np.float32:
    """Euclidean length."""
    total = np.float32(0)
    for i in range(point.shape[0]):
        total += point[i] * point[i]
    return np.float32(np.sqrt(total))


@kernel()
def box_bound(box: NDArray[np.float32], shade: NDArray[np.float32]) -> np.float32:
    """Squared distance from a shadow to the box around a leaf's shadows."""
    total = np.float32(0)
    for k in range(SHADOW):
        d = max(box[0, k] - shade[k], shade[k] - box[1, k], np.float32(0))
        total += d * d
    return total


@kernel(fastmath=_FAST)
def leaf_bounds(shadows: NDArray[np.float32], s: NDArray[np.float32], filled: int, out: NDArray[np.float32]) -> int:
    """Squared distance of a shadow to each of a leaf; returns the place of the least. Written out for SIMD."""
    s0, s1, s2, s3, s4, s5, s6, s7 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
    for j in range(PAGE):
        d0, d1, d2, d3 = shadows[0, j] - s0, shadows[1, j] - s1, shadows[2, j] - s2, shadows[3, j] - s3
        d4, d5, d6, d7 = shadows[4, j] - s4, shadows[5, j] - s5, shadows[6, j] - s6, shadows[7, j] - s7
        out[j] = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3 + d4 * d4 + d5 * d5 + d6 * d6 + d7 * d7
    least = 0
    for j in range(1, filled):
        if out[j] < out[least]:
            least = j
    return least


# ------------------------------------------------------------------------------------------------------ new sites


@kernel()
def is_full(n_sites: Rows, n_leaves: Rows, pages_held: Rows, leaves_held: Rows, rows: Rows) -> bool:
    """Whether any of these trials needs another page or leaf."""
    for row in rows:  # noqa: SIM110 (numba knows no generators)
        if n_sites[row] == pages_held[row] * PAGE or n_leaves[row] == leaves_held[row]:
            return True
    return False


@kernel()
def add_site(plots: Plots, row: int, point: NDArray[np.float32], wanted: int) -> int:
    """Store a site where room was made; returns its index."""
    i: int = plots.n_sites[row]
    page, place = plots.pages[row, i // PAGE], i % PAGE
    plots.site[page, place] = point
    plots.wanted[page, place] = wanted
    plots.reach[row] = max(plots.reach[row], norm(point))
    plots.n_sites[row] = i + 1
    shade = np.empty(SHADOW, np.float32)
    cast_shadow(plots.directions, point, shade)
    if plots.n_leaves[row] == 0:
        plots.n_leaves[row] = 1
        plots.filled[plots.leaves[row, 0]] = 0
    # The leaf whose box is nearest.
    leaf, least = plots.leaves[row, 0], np.float32(np.inf)
    for k in range(plots.n_leaves[row]):
        bound = box_bound(plots.box[plots.leaves[row, k]], shade)
        if bound < least:
            leaf, least = plots.leaves[row, k], bound
    add_to_leaf(plots, leaf, i, shade)
    if plots.filled[leaf] == PAGE:
        other = plots.leaves[row, plots.n_leaves[row]]
        plots.n_leaves[row] += 1
        split_leaf(plots, leaf, other)
    return i


@kernel()
def add_to_leaf(plots: Plots, leaf: int, i: int, shade: NDArray[np.float32]) -> None:
    """Put a shadow into a leaf that is not full, and widen its box."""
    j = plots.filled[leaf]
    plots.member[leaf, j] = i
    plots.filled[leaf] = j + 1
    for k in range(SHADOW):
        s = shade[k]
        plots.shadow[leaf, k, j] = s
        plots.box[leaf, 0, k] = s if j == 0 else min(s, plots.box[leaf, 0, k])
        plots.box[leaf, 1, k] = s if j == 0 else max(s, plots.box[leaf, 1, k])


@kernel()
def split_leaf(plots: Plots, leaf: int, other: int) -> None:
    """Divide a full leaf across the longest side of its box; the upper half goes to another leaf."""
    side, longest = 0, np.float32(-1)
    for k in range(SHADOW):
        if plots.box[leaf, 1, k] - plots.box[leaf, 0, k] > longest:
            side, longest = k, plots.box[leaf, 1, k] - plots.box[leaf, 0, k]
    order = np.argsort(plots.shadow[leaf, side])
    shadows, members = plots.shadow[leaf].copy(), plots.member[leaf].copy()
    shade = np.empty(SHADOW, np.float32)
    plots.filled[leaf] = plots.filled[other] = 0
    for step in range(PAGE):
        for k in range(SHADOW):
            shade[k] = shadows[k, order[step]]
        add_to_leaf(plots, leaf if step < PAGE // 2 else other, members[order[step]], shade)
