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
# Rounding allowances of the lower bound: relative for float32 sums of squares, and per unit of norm for the shadows
# (summed in float64, stored in float32).
_RELATIVE = np.float32(1 + 1e-4)
_SLACK = np.float32(1e-6)


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
    directions: NDArray[np.float64]
    """(dim, SHADOW), orthonormal columns."""
    wanted: NDArray[np.int64]
    """(pool, PAGE): the action the agent wanted when the site was made."""


class Sites:
    """The sites of n trials."""

    def __init__(self, n: int, dim: int) -> None:
        self.n, self.dim = n, dim
        shadow = min(SHADOW, dim)
        self._allocated = np.zeros(n, np.int64)
        pool = _PAGES * n
        self._free: list[int] = list(range(pool))
        self._created, self._fits = 0, list(_FITS if dim > SHADOW else ())
        self.plots = Plots(
            pages=np.zeros((n, 1), np.int64),
            n_sites=np.zeros(n, np.int64),
            reach=np.zeros(n, np.float32),
            site=np.zeros((pool, PAGE, dim), np.float32),
            shadow=np.zeros((pool, shadow, PAGE), np.float32),
            box=np.zeros((pool, 2, shadow), np.float32),
            directions=np.eye(dim, shadow),
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
        self.plots = self.plots._replace(directions=np.ascontiguousarray(directions[:, -SHADOW:]))
        for row in np.flatnonzero(self.plots.n_sites):
            self._cast_shadows(int(row))

    def _cast_shadows(self, row: int) -> None:
        """Shadows and boxes of all sites of a trial, anew."""
        plots = self.plots
        pages, places = self.addresses(row)
        shades = (plots.site[pages, places] @ plots.directions).astype(np.float32)
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


@njit(cache=True)
def cast_shadow(directions: NDArray[np.float64], point: NDArray[np.float32], out: NDArray[np.float64]) -> None:
    """Coordinates of a point along the directions."""
    out[:] = 0.0
    for i in range(point.shape[0]):
        for k in range(out.shape[0]):
            out[k] += point[i] * directions[i, k]


@njit(cache=True)
def squared_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """Squared Euclidean distance in eight lanes: fast, and the same bits wherever it is called."""
    zero = np.float32(0)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
    whole = a.shape[0] // 8 * 8
    for i in range(0, whole, 8):
        d0, d1, d2, d3 = a[i] - b[i], a[i + 1] - b[i + 1], a[i + 2] - b[i + 2], a[i + 3] - b[i + 3]
        d4, d5, d6, d7 = a[i + 4] - b[i + 4], a[i + 5] - b[i + 5], a[i + 6] - b[i + 6], a[i + 7] - b[i + 7]
        s0, s1, s2, s3 = s0 + d0 * d0, s1 + d1 * d1, s2 + d2 * d2, s3 + d3 * d3
        s4, s5, s6, s7 = s4 + d4 * d4, s5 + d5 * d5, s6 + d6 * d6, s7 + d7 * d7
    for i in range(whole, a.shape[0]):
        d0 = a[i] - b[i]
        s0 += d0 * d0
    return ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))


@njit(cache=True)
def nearest(plots: Plots, row: int, query: NDArray[np.float32], wanted: int, guess: int) -> int:
    """Index of the trial's site nearest to `query`, the earliest of equals; -1 if there is none.

    With wanted >= 0 only sites made for that action n_sites. `guess` is any site that may be near, or -1.
    """
    n = plots.n_sites[row]
    shade = np.empty(plots.directions.shape[1], np.float64)
    cast_shadow(plots.directions, query, shade)
    slack = _SLACK * (np.sqrt(squared_distance(query, np.zeros_like(query))) + plots.reach[row])
    found, best, limit = -1, np.float32(np.inf), np.float32(np.inf)
    if 0 <= guess < n and (wanted < 0 or plots.wanted[plots.pages[row, guess // PAGE], guess % PAGE] == wanted):
        found, best = guess, squared_distance(plots.site[plots.pages[row, guess // PAGE], guess % PAGE], query)
        limit = (np.sqrt(best) * _RELATIVE + slack) ** 2
    bound = np.empty(PAGE, np.float32)
    for first in range(0, n, PAGE):
        page = plots.pages[row, first // PAGE]
        if box_bound(plots.box[page], shade) > limit:
            continue
        bound[:] = 0
        for k in range(shade.shape[0]):
            line, coordinate = plots.shadow[page, k], np.float32(shade[k])
            for j in range(PAGE):
                d = line[j] - coordinate
                bound[j] += d * d
        for j in range(min(PAGE, n - first)):
            if bound[j] <= limit and (wanted < 0 or plots.wanted[page, j] == wanted):
                distance = squared_distance(plots.site[page, j], query)
                if distance < best or (distance == best and first + j < found):
                    found, best = first + j, distance
                    limit = (np.sqrt(best) * _RELATIVE + slack) ** 2
    return found


@njit(cache=True)
def box_bound(box: NDArray[np.float32], shade: NDArray[np.float64]) -> np.float32:
    """Squared distance from a shadow to the box around a page's shadows."""
    total = np.float32(0)
    for k in range(shade.shape[0]):
        coordinate = np.float32(shade[k])
        d = max(box[0, k] - coordinate, coordinate - box[1, k], np.float32(0))
        total += d * d
    return total


@njit(cache=True)
def add_site(plots: Plots, row: int, point: NDArray[np.float32], wanted: int) -> int:
    """Store a site where room was made; returns its index."""
    i: int = plots.n_sites[row]
    page, j = plots.pages[row, i // PAGE], i % PAGE
    plots.site[page, j] = point
    plots.wanted[page, j] = wanted
    shade = np.empty(plots.directions.shape[1], np.float64)
    cast_shadow(plots.directions, point, shade)
    for k in range(shade.shape[0]):
        s = np.float32(shade[k])
        plots.shadow[page, k, j] = s
        plots.box[page, 0, k] = s if j == 0 else min(s, plots.box[page, 0, k])
        plots.box[page, 1, k] = s if j == 0 else max(s, plots.box[page, 1, k])
    plots.reach[row] = max(plots.reach[row], np.sqrt(squared_distance(point, np.zeros_like(point))))
    plots.n_sites[row] = i + 1
    return i
