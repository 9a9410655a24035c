"""Exact search for the nearest site of a trial, and the index that makes it fast.

The *projection* of a site is its coordinates along the few leading principal directions of all sites. Projections are
never further apart than the sites themselves, so most sites are ruled out by their projection alone. Projections are
stored in *leaves*. A full leaf is split across its longest side, so a leaf holds neighbours, and the box around them
rules out whole leaves. Directions and leaves affect how long the search takes, never what it finds.

Bounds are squared distances, kept as the bits of their floats: as whole numbers they have the same order, NaN comes
last, and SIMD instructions find the least of them. Within a leaf, the last bits tell which site a bound belongs to.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel

PAGE = 64
"""Sites per page, and projections per leaf."""
PROJECTION = 8
"""Dimensions of a projection."""
BOX = 4
"""Dimensions of the box around a leaf: the leading ones of the projection, which rule out nearly as much as all."""
BLOCK = 16
"""The bounds of that many leaves are computed at once."""
_LAST = np.uint32(PAGE - 1)
_INFINITE = np.float32(np.inf).view(np.uint32) | _LAST
_NEVER = np.uint32(2**32 - 1)
"""A bound above every other: of what is not there, or was searched."""
# Rounding allowances of the lower bound, in float32. Sums of squares have a relative one. That of projections is per
# dimension and unit of norm: a dot product of n terms is off by at most n * 2**-24 of the product of the norms, and a
# projection has eight of them.
RELATIVE_ROUNDING = np.float32(1 + 1e-4)
_PROJECTION_ROUNDING = np.float32(2e-7)
_FAST = {"reassoc", "contract", "nsz"}
"""Sums may be reordered, so that they become vector instructions; NaN and infinity keep their meaning."""


class SiteArrays(NamedTuple):
    """The sites of all trials and their index, as kernels see them."""

    pages: NDArray[np.int64]
    """(n, p): pages of each trial, in order."""
    n_sites: NDArray[np.int64]
    """(n,): sites of each trial."""
    max_norm: NDArray[np.float32]
    """(n,): largest norm among the sites of each trial."""
    site: NDArray[np.float32]
    """(pages, PAGE, dim)."""
    wanted: NDArray[np.int64]
    """(pages, PAGE): the action the agent wanted when the site was created."""
    leaves: NDArray[np.int64]
    """(n, q): leaves of each trial."""
    n_leaves: NDArray[np.int64]
    """(n,): leaves in use by each trial."""
    projection: NDArray[np.float32]
    """(leaves, PROJECTION, PAGE)."""
    member: NDArray[np.int64]
    """(leaves, PAGE): the site of the trial that each projection belongs to."""
    filled: NDArray[np.int64]
    """(leaves,): projections in each leaf."""
    box: NDArray[np.float32]
    """(n, 2, BOX, q): lower and upper corners around the projections of each leaf of a trial."""
    directions: NDArray[np.float32]
    """(PROJECTION, dim), orthonormal rows."""
    pages_owned: NDArray[np.int64]
    """(n,): pages of each trial."""
    leaves_owned: NDArray[np.int64]
    """(n,): leaves of each trial, in use or free."""
    projected: NDArray[np.float32]
    """(PROJECTION,): space that a search computes in, like the next two, so that it allocates nothing."""
    bounds: NDArray[np.uint32]
    """(PAGE,)."""
    box_bounds: NDArray[np.uint32]
    """(q,)."""


# Kernels that take `SiteArrays` are inlined: every call would pass more than a hundred numbers.


@kernel(allocates=False, forceinline=True)
def address(sites: SiteArrays, row: int, i: int) -> tuple[int, int]:
    """Page and slot of the i-th site of a trial."""
    return sites.pages[row, i // PAGE], i % PAGE


# ----------------------------------------------------------------------------------------------------------- search


@kernel(allocates=False, forceinline=True)
def nearest(sites: SiteArrays, row: int, query: NDArray[np.float32], wanted: int) -> int:
    """Index of the trial's site nearest to `query`, the earliest of equals; -1 if there is none.

    With wanted >= 0, only sites created for that action count. Leaves and the sites in them are searched in the order
    of their bounds, until the least exceeds the best distance.
    """
    n_leaves = sites.n_leaves[row]
    if n_leaves == 0:
        return -1
    projected, bounds = sites.projected, sites.bounds
    _project(sites.directions, query, projected)
    slack = _PROJECTION_ROUNDING * np.float32(query.shape[0]) * (_norm(query) + sites.max_norm[row])
    found, best, limit = -1, np.float32(np.inf), _INFINITE
    box_bounds = sites.box_bounds[: _box_bounds(sites.box[row], n_leaves, projected, sites.box_bounds)]
    for _ in range(n_leaves):
        bound = _minimum(box_bounds)
        if bound > limit:
            break
        k = _position(box_bounds, bound)
        box_bounds[k] = _NEVER
        leaf = sites.leaves[row, k]
        filled = sites.filled[leaf]
        _leaf_bounds(sites.projection[leaf], filled, projected, bounds)
        for _ in range(filled):
            bound = _minimum(bounds)
            if bound > limit:
                break
            j = bound % PAGE
            bounds[j] = _NEVER
            i = sites.member[leaf, j]
            page, slot = address(sites, row, i)
            if wanted < 0 or sites.wanted[page, slot] == wanted:
                distance = _squared_distance(sites.site[page, slot], query)
                if distance < best or (distance == best and i < found) or found < 0:
                    found, best = i, distance
                    limit = _bits((np.sqrt(best) * RELATIVE_ROUNDING + slack) ** 2) | _LAST
    return found


@kernel(allocates=False)
def _bits(value: np.float32) -> np.uint32:
    """The bits of a float that is not negative; NaN may have a sign."""
    return np.float32(abs(value)).view(np.uint32)


@kernel(allocates=False)
def _minimum(bounds: NDArray[np.uint32]) -> np.uint32:
    """The least bound."""
    least = _NEVER
    for k in range(bounds.shape[0]):
        least = min(least, bounds[k])
    return least


@kernel(allocates=False)
def _position(bounds: NDArray[np.uint32], bound: np.uint32) -> int:
    """Index of a bound; apart from `_minimum`, whose loop becomes vector instructions."""
    k = 0
    while bounds[k] != bound:
        k += 1
    return k


@kernel(allocates=False, fastmath=_FAST)
def _project(directions: NDArray[np.float32], point: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Coordinates of a point along the directions. Unrolled for SIMD."""
    d0, d1, d2, d3 = directions[0], directions[1], directions[2], directions[3]
    d4, d5, d6, d7 = directions[4], directions[5], directions[6], directions[7]
    p0 = p1 = p2 = p3 = p4 = p5 = p6 = p7 = np.float32(0)
    for i in range(point.shape[0]):
        x = point[i]
        p0 += d0[i] * x
        p1 += d1[i] * x
        p2 += d2[i] * x
        p3 += d3[i] * x
        p4 += d4[i] * x
        p5 += d5[i] * x
        p6 += d6[i] * x
        p7 += d7[i] * x
    out[0], out[1], out[2], out[3], out[4], out[5], out[6], out[7] = p0, p1, p2, p3, p4, p5, p6, p7


@kernel(allocates=False, fastmath=_FAST)
def _squared_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> np.float32:
    """Squared Euclidean distance. Called from one place only, so that equal points give equal bits."""
    total = np.float32(0)
    for i in range(a.shape[0]):
        d = a[i] - b[i]
        total += d * d
    return total


@kernel(allocates=False, fastmath=_FAST)
def _norm(point: NDArray[np.float32]) -> np.float32:
    total = np.float32(0)
    for i in range(point.shape[0]):
        total += point[i] * point[i]
    return np.float32(np.sqrt(total))


@kernel(allocates=False, fastmath=_FAST)
def _box_bounds(box: NDArray[np.float32], n: int, p: NDArray[np.float32], out: NDArray[np.uint32]) -> int:
    """Squared distances from a projection to the boxes of n leaves; returns n rounded up to a multiple of BLOCK."""
    p0, p1, p2, p3 = p[0], p[1], p[2], p[3]
    low, high = box[0], box[1]
    end = (n + BLOCK - 1) // BLOCK * BLOCK
    for k in range(end):
        d0, d1 = _gap(low[0, k], p0, high[0, k]), _gap(low[1, k], p1, high[1, k])
        d2, d3 = _gap(low[2, k], p2, high[2, k]), _gap(low[3, k], p3, high[3, k])
        out[k] = _bits(d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3) if k < n else _NEVER
    return end


@kernel(allocates=False, fastmath=_FAST)
def _gap(low: np.float32, p: np.float32, high: np.float32) -> np.float32:
    """How far p is outside of an interval."""
    below, above = low - p, p - high
    gap = below if below > above else above
    return gap if gap > 0 else np.float32(0)


@kernel(allocates=False, fastmath=_FAST)
def _leaf_bounds(leaf: NDArray[np.float32], filled: int, p: NDArray[np.float32], out: NDArray[np.uint32]) -> None:
    """Squared distances from a projection to those of a leaf. Unrolled for SIMD."""
    p0, p1, p2, p3, p4, p5, p6, p7 = p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
    for j in range(PAGE):
        d0, d1, d2, d3 = leaf[0, j] - p0, leaf[1, j] - p1, leaf[2, j] - p2, leaf[3, j] - p3
        d4, d5, d6, d7 = leaf[4, j] - p4, leaf[5, j] - p5, leaf[6, j] - p6, leaf[7, j] - p7
        total = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3 + d4 * d4 + d5 * d5 + d6 * d6 + d7 * d7
        out[j] = (_bits(total) & ~_LAST) | np.uint32(j) if j < filled else _NEVER


# -------------------------------------------------------------------------------------------------------- insertion


@kernel(allocates=False, forceinline=True)
def has_room(sites: SiteArrays, row: int) -> bool:
    """Whether there is space for one more site of a trial, and for splitting one more leaf."""
    return bool(sites.n_sites[row] < sites.pages_owned[row] * PAGE and sites.n_leaves[row] < sites.leaves_owned[row])


@kernel(allocates=False, forceinline=True)
def add_site(sites: SiteArrays, row: int, point: NDArray[np.float32], wanted: int) -> int:
    """Store a site in space reserved before (`Sites.reserve`); returns its index."""
    i: int = sites.n_sites[row]
    page, slot = address(sites, row, i)
    for k in range(point.shape[0]):
        sites.site[page, slot, k] = point[k]
    sites.wanted[page, slot] = wanted
    sites.max_norm[row] = max(sites.max_norm[row], _norm(point))
    sites.n_sites[row] = i + 1
    projected = sites.projected
    _project(sites.directions, point, projected)
    if sites.n_leaves[row] == 0:
        sites.n_leaves[row] = 1
        sites.filled[sites.leaves[row, 0]] = 0
    end = _box_bounds(sites.box[row], sites.n_leaves[row], projected, sites.box_bounds)
    box_bounds = sites.box_bounds[:end]
    k = _position(box_bounds, _minimum(box_bounds))
    leaf, box = sites.leaves[row, k], sites.box[row]
    _add_to_leaf(sites.projection[leaf], sites.member[leaf], sites.filled, leaf, box, k, i, projected)
    if sites.filled[leaf] == PAGE:
        other = sites.n_leaves[row]
        sites.n_leaves[row] += 1
        _split_leaf(sites.projection, sites.member, sites.filled, leaf, sites.leaves[row, other], box, k, other)
    return i


# These two take the arrays they need one by one: a call that passes `SiteArrays` takes long to compile.


@kernel(allocates=False)
def _add_to_leaf(
    projection: NDArray[np.float32], member: NDArray[np.int64], filled: NDArray[np.int64], leaf: int,
    box: NDArray[np.float32], k: int, i: int, projected: NDArray[np.float32],
) -> None:  # fmt: skip
    """Append a projection to a leaf, the k-th of its trial, which has free space, and widen its box."""
    j = filled[leaf]
    member[j] = i
    filled[leaf] = j + 1
    for d in range(PROJECTION):
        projection[d, j] = projected[d]
    for d in range(BOX):
        box[0, d, k] = projected[d] if j == 0 else min(projected[d], box[0, d, k])
        box[1, d, k] = projected[d] if j == 0 else max(projected[d], box[1, d, k])


@kernel()
def _split_leaf(
    projection: NDArray[np.float32], member: NDArray[np.int64], filled: NDArray[np.int64], leaf: int, other_leaf: int,
    box: NDArray[np.float32], k: int, other: int,
) -> None:  # fmt: skip
    """Split a full leaf, the k-th of its trial, across the longest side of its box; the upper half moves to another."""
    side, longest = 0, np.float32(-1)
    for d in range(BOX):
        length = box[1, d, k] - box[0, d, k]
        if length > longest:
            side, longest = d, length
    order = _sorted_order(projection[leaf, side])
    projections, members = projection[leaf].copy(), member[leaf].copy()
    projected = np.empty(PROJECTION, np.float32)
    filled[leaf] = filled[other_leaf] = 0
    for step in range(PAGE):
        to, at = (leaf, k) if step < PAGE // 2 else (other_leaf, other)
        for d in range(PROJECTION):
            projected[d] = projections[d, order[step]]
        _add_to_leaf(projection[to], member[to], filled, to, box, at, members[order[step]], projected)


@kernel()
def _sorted_order(values: NDArray[np.float32]) -> NDArray[np.int64]:
    """The indices that sort a few values; numba takes a second to compile `np.argsort`."""
    order = np.empty(values.shape[0], np.int64)
    for i in range(values.shape[0]):
        j = i
        while j > 0 and values[order[j - 1]] > values[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    return order
