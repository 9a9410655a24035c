"""Sites: the points of many trials' Voronoi sets, and the exact search for the nearest one.

Sites live in pages of one pool; a trial owns a list of pages, so it can grow without limit and gives its pages back
when it ends. Beside each site stands its *shadow*: its coordinates along the few leading principal directions of the
sites. The distance between two shadows never exceeds the distance between the points, so most sites are ruled out by
their shadow alone, whole pages of them by the box around their shadows, and the search stays exact. Directions,
boxes and the first guess only decide how fast it is, never what it finds.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from nappingrl.arrays import Rows

PAGE = 64
_PAGES = 4
"""Pages per trial that the pool begins with."""
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
    """(n, p): page numbers of each trial."""
    n_sites: NDArray[np.int64]
    """(n,): sites of each trial."""
    reach: NDArray[np.float32]
    """(n,): largest norm of a site of each trial."""
    site: NDArray[np.float32]
    """(pool, PAGE, dim)."""
    shadow: NDArray[np.float32]
    """(pool, SHADOW, PAGE)."""
    box: NDArray[np.float32]
    """(pool, 2, SHADOW): least and greatest shadow of a page."""
    directions: NDArray[np.float32]
    """(SHADOW, dim), orthonormal rows."""
    wanted: NDArray[np.int64]
    """(pool, PAGE): the action the agent wanted when the site was made."""


class Sites:
    """The sites of n trials."""

    def __init__(self, n: int, dim: int) -> None:
        self.n, self.dim = n, dim
        self._allocated = np.zeros(n, np.int64)
        pool = _PAGES * n
        self._free: list[int] = list(range(pool))
        self._created, self._fits = 0, list(_FITS if dim > SHADOW else ())
        self.plots = Plots(
            pages=np.zeros((n, 1), np.int64),
            n_sites=np.zeros(n, np.int64),
            reach=np.zeros(n, np.float32),
            site=np.zeros((pool, PAGE, dim), np.float32),
            shadow=np.zeros((pool, SHADOW, PAGE), np.float32),
            box=np.zeros((pool, 2, SHADOW), np.float32),
            directions=np.eye(SHADOW, dim, dtype=np.float32),
            wanted=np.zeros((pool, PAGE), np.int64),
        )

    @property
    def pool(self) -> int:
        """How many pages there are, used or not."""
        return len(self.plots.site)

    def clear(self, rows: Rows) -> None:
        """Forget the sites of these trials and give their pages back."""
        for row in rows:
            self._free.extend(self.plots.pages[row, : self._allocated[row]].tolist())
        self._allocated[rows] = 0
        self.plots.n_sites[rows] = 0
        self.plots.reach[rows] = 0

    def make_room(self, rows: Rows) -> None:
        """See to it that each of these trials can take one more site."""
        for row in rows[self.plots.n_sites[rows] == self._allocated[rows] * PAGE]:
            if not self._free:
                self._free = list(range(self.pool, 2 * self.pool))
                self._grow()
            if self._allocated[row] == self.plots.pages.shape[1]:
                self.plots = self.plots._replace(pages=np.hstack([self.plots.pages, np.zeros_like(self.plots.pages)]))
            self.plots.pages[row, self._allocated[row]] = self._free.pop()
            self._allocated[row] += 1

    def after_growth(self, created: int) -> None:
        """Count new sites; now and then choose better directions for the shadows."""
        self._created += created
        if self._fits and self._created >= self._fits[0]:
            del self._fits[0]
            self._fit_directions()

    def addresses(self, row: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Page and place of each site of a trial, in the order of creation."""
        index = np.arange(self.plots.n_sites[row])
        return self.plots.pages[row, index // PAGE], index % PAGE

    def _grow(self) -> None:
        plots = self.plots
        self.plots = plots._replace(
            site=doubled(plots.site),
            shadow=doubled(plots.shadow),
            box=doubled(plots.box),
            wanted=doubled(plots.wanted),
        )

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
            self._cast_shadows(int(row))

    def _cast_shadows(self, row: int) -> None:
        """Shadows and boxes of all sites of a trial, anew."""
        plots = self.plots
        pages, places = self.addresses(row)
        shades = plots.site[pages, places] @ plots.directions.T
        plots.shadow[pages, :, places] = shades
        for first in range(0, len(pages), PAGE):
            members = shades[first : first + PAGE]
            plots.box[pages[first]] = members.min(axis=0), members.max(axis=0)

    def put(self, row: int, points: NDArray[np.float32], wanted: NDArray[np.int64]) -> None:
        """Give an empty trial these sites at once."""
        for _ in range(0, len(points), PAGE):
            self.make_room(np.array([row]))
            self.plots.n_sites[row] = min(self.plots.n_sites[row] + PAGE, len(points))
        at = self.addresses(row)
        self.plots.site[at], self.plots.wanted[at] = points, wanted
        if len(points):
            self.plots.reach[row] = np.sqrt((points.astype(np.float64) ** 2).sum(axis=1).max()) * _RELATIVE
        self._cast_shadows(row)
        self.after_growth(len(points))


def doubled(array: NDArray[Any]) -> NDArray[Any]:
    """The array with as many empty rows again behind it."""
    return np.concatenate([array, np.zeros_like(array)])


@njit(cache=True, fastmath=_FAST)
def cast_shadow(directions: NDArray[np.float32], point: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Coordinates of a point along the directions."""
    for k in range(directions.shape[0]):
        total = np.float32(0)
        for i in range(point.shape[0]):
            total += directions[k, i] * point[i]
        out[k] = total


@njit(cache=True, fastmath=_FAST)
def squared_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """Squared Euclidean distance. Called from one place only, so that equal points give equal bits."""
    total = np.float32(0)
    for i in range(a.shape[0]):
        d = a[i] - b[i]
        total += d * d
    return total


@njit(cache=True, fastmath=_FAST)
def norm(point: NDArray[np.float32]) -> np.float32:
    """Euclidean length."""
    total = np.float32(0)
    for i in range(point.shape[0]):
        total += point[i] * point[i]
    return np.float32(np.sqrt(total))


@njit(cache=True)
def nearest(plots: Plots, row: int, query: NDArray[np.float32], wanted: int, guess: int) -> int:
    """Index of the trial's site nearest to `query`, the earliest of equals; -1 if there is none.

    With wanted >= 0 only sites made for that action count. `guess` is a site that may be near (or -1): the search
    begins with it and its page.
    """
    n = plots.n_sites[row]
    n_pages = (n + PAGE - 1) // PAGE
    shade, bound = np.empty(SHADOW, np.float32), np.empty(PAGE, np.float32)
    cast_shadow(plots.directions, query, shade)
    slack = _SLACK * np.float32(query.shape[0]) * (norm(query) + plots.reach[row])
    found, best, limit = -1, np.float32(np.inf), np.float32(np.inf)
    start = min(max(guess, 0), n - 1)
    for turn in range(n_pages):
        # The page of the guess first, then the others in order.
        p = start // PAGE if turn == 0 else turn - (turn <= start // PAGE)
        page, filled = plots.pages[row, p], min(PAGE, n - p * PAGE)
        if box_bound(plots.box[page], shade) > limit:
            continue
        if page_bounds(plots.shadow[page], shade, bound) > limit:
            continue
        shift = start % PAGE if turn == 0 else 0
        for step in range(filled):
            j = step + shift if step + shift < filled else step + shift - filled
            if bound[j] <= limit and (wanted < 0 or plots.wanted[page, j] == wanted):
                distance, i = squared_distance(plots.site[page, j], query), p * PAGE + j
                if distance < best or (distance == best and i < found) or found < 0:
                    found, best = i, distance
                    limit = (np.sqrt(best) * _RELATIVE + slack) ** 2
    return found


@njit(cache=True, fastmath=_FAST | {"nnan"})
def page_bounds(shadows: NDArray[np.float32], s: NDArray[np.float32], out: NDArray[np.float32]) -> np.float32:
    """Squared distance of a shadow to each of a page, and the least; written out so that it is vectorised."""
    s0, s1, s2, s3, s4, s5, s6, s7 = s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]
    least = np.float32(np.inf)
    for j in range(PAGE):
        d0, d1, d2, d3 = shadows[0, j] - s0, shadows[1, j] - s1, shadows[2, j] - s2, shadows[3, j] - s3
        d4, d5, d6, d7 = shadows[4, j] - s4, shadows[5, j] - s5, shadows[6, j] - s6, shadows[7, j] - s7
        out[j] = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3 + d4 * d4 + d5 * d5 + d6 * d6 + d7 * d7
    for j in range(PAGE):
        if out[j] < least:
            least = out[j]
    return least


@njit(cache=True)
def box_bound(box: NDArray[np.float32], shade: NDArray[np.float32]) -> np.float32:
    """Squared distance from a shadow to the box around a page's shadows."""
    total = np.float32(0)
    for k in range(shade.shape[0]):
        d = max(box[0, k] - shade[k], shade[k] - box[1, k], np.float32(0))
        total += d * d
    return total


@njit(cache=True)
def add_site(plots: Plots, row: int, point: NDArray[np.float32], wanted: int) -> int:
    """Store a site where room was made; returns its index."""
    i: int = plots.n_sites[row]
    page, j = plots.pages[row, i // PAGE], i % PAGE
    plots.site[page, j] = point
    plots.wanted[page, j] = wanted
    shade = np.empty(SHADOW, np.float32)
    cast_shadow(plots.directions, point, shade)
    for k in range(shade.shape[0]):
        s = shade[k]
        plots.shadow[page, k, j] = s
        plots.box[page, 0, k] = s if j == 0 else min(s, plots.box[page, 0, k])
        plots.box[page, 1, k] = s if j == 0 else max(s, plots.box[page, 1, k])
    plots.reach[row] = max(plots.reach[row], norm(point))
    plots.n_sites[row] = i + 1
    return i
