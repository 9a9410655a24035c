"""Exact search for the nearest site of a trial, and the index that makes it fast.

The *projection* of a site is its coordinates along the few leading principal directions of all sites. Projections are
never further apart than the sites themselves, so most sites are ruled out by their projection alone. Projections are
stored in *leaves*. A full leaf is split across its longest side, so a leaf holds neighbours, and the box around them
rules out whole leaves. Directions and leaves affect how long the search takes, never what it finds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel

PAGE = 64
"""Sites per page, and projections per leaf."""
PROJECTION = 8
"""Dimensions of a projection."""
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
    """(leaves, 2, PROJECTION): lower and upper corner around the projections of a leaf."""
    directions: NDArray[np.float32]
    """(PROJECTION, dim), orthonormal rows."""
    pages_owned: NDArray[np.int64]
    """(n,): pages of each trial."""
    leaves_owned: NDArray[np.int64]
    """(n,): leaves of each trial, in use or free."""
    projected: NDArray[np.float32]
    """(PROJECTION,): space that a search computes in, like the next two, so that it allocates nothing."""
    bounds: NDArray[np.float32]
    """(PAGE,)."""
    box_bounds: NDArray[np.float32]
    """(q,)."""


@kernel(allocates=False)
def address(sites: SiteArrays, row: int, i: int) -> tuple[int, int]:
    """Page and slot of the i-th site of a trial."""
    return sites.pages[row, i // PAGE], i % PAGE


# ----------------------------------------------------------------------------------------------------------- search


@kernel(allocates=False)
def nearest(sites: SiteArrays, row: int, query: NDArray[np.float32], wanted: int) -> int:
    """Index of the trial's site nearest to `query`, the earliest of equals; -1 if there is none.

    With wanted >= 0, only sites created for that action count.
    """
    n_leaves = sites.n_leaves[row]
    if n_leaves == 0:
        return -1
    projected, bounds, box_bounds = sites.projected, sites.bounds, sites.box_bounds
    _project(sites.directions, query, projected)
    slack = _PROJECTION_ROUNDING * np.float32(query.shape[0]) * (_norm(query) + sites.max_norm[row])
    first = 0
    for k in range(n_leaves):
        box_bounds[k] = _box_bound(sites.box[sites.leaves[row, k]], projected)
        if box_bounds[k] < box_bounds[first]:
            first = k
    found, best, limit = -1, np.float32(np.inf), np.float32(np.inf)
    for turn in range(n_leaves):
        # The leaf with the nearest box comes first, then the others in order.
        k = first if turn == 0 else turn - (turn <= first)
        if box_bounds[k] > limit:
            continue
        leaf = sites.leaves[row, k]
        filled = sites.filled[leaf]
        least = _leaf_bounds(sites.projection[leaf], projected, filled, bounds)
        for step in range(filled):
            j = least + step if least + step < filled else least + step - filled
            if bounds[j] <= limit:
                i = sites.member[leaf, j]
                page, slot = address(sites, row, i)
                if wanted < 0 or sites.wanted[page, slot] == wanted:
                    distance = _squared_distance(sites.site[page, slot], query)
                    if distance < best or (distance == best and i < found) or found < 0:
                        found, best = i, distance
                        limit = (np.sqrt(best) * RELATIVE_ROUNDING + slack) ** 2
    return found


@kernel(allocates=False, fastmath=_FAST)
def _project(directions: NDArray[np.float32], point: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Coordinates of a point along the directions."""
    for k in range(directions.shape[0]):
        total = np.float32(0)
        for i in range(point.shape[0]):
            total += directions[k, i] * point[i]
        out[k] = total


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


@kernel(allocates=False)
def _box_bound(box: NDArray[np.float32], projected: NDArray[np.float32]) -> np.float32:
    """Squared distance from a projection to the box of a leaf."""
    total = np.float32(0)
    for k in range(PROJECTION):
        d = max(box[0, k] - projected[k], projected[k] - box[1, k], np.float32(0))
        total += d * d
    return total


@kernel(allocates=False, fastmath=_FAST)
def _leaf_bounds(leaf: NDArray[np.float32], p: NDArray[np.float32], filled: int, out: NDArray[np.float32]) -> int:
    """Squared distances from a projection to those of a leaf; returns the index of the least. Unrolled for SIMD."""
    p0, p1, p2, p3, p4, p5, p6, p7 = p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
    for j in range(PAGE):
        d0, d1, d2, d3 = leaf[0, j] - p0, leaf[1, j] - p1, leaf[2, j] - p2, leaf[3, j] - p3
        d4, d5, d6, d7 = leaf[4, j] - p4, leaf[5, j] - p5, leaf[6, j] - p6, leaf[7, j] - p7
        out[j] = d0 * d0 + d1 * d1 + d2 * d2 + d3 * d3 + d4 * d4 + d5 * d5 + d6 * d6 + d7 * d7
    least = 0
    for j in range(1, filled):
        if out[j] < out[least]:
            least = j
    return least


# -------------------------------------------------------------------------------------------------------- insertion


@kernel(allocates=False)
def has_room(sites: SiteArrays, row: int) -> bool:
    """Whether there is space for one more site of a trial, and for splitting one more leaf."""
    return bool(sites.n_sites[row] < sites.pages_owned[row] * PAGE and sites.n_leaves[row] < sites.leaves_owned[row])


@kernel(allocates=False)
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
    # The leaf with the nearest box.
    leaf, least = sites.leaves[row, 0], np.float32(np.inf)
    for k in range(sites.n_leaves[row]):
        bound = _box_bound(sites.box[sites.leaves[row, k]], projected)
        if bound < least:
            leaf, least = sites.leaves[row, k], bound
    _add_to_leaf(sites, leaf, i, projected)
    if sites.filled[leaf] == PAGE:
        other = sites.leaves[row, sites.n_leaves[row]]
        sites.n_leaves[row] += 1
        _split_leaf(sites, leaf, other)
    return i


@kernel(allocates=False)
def _add_to_leaf(sites: SiteArrays, leaf: int, i: int, projected: NDArray[np.float32]) -> None:
    """Append a projection to a leaf with free space and widen its box."""
    j = sites.filled[leaf]
    sites.member[leaf, j] = i
    sites.filled[leaf] = j + 1
    for k in range(PROJECTION):
        p = projected[k]
        sites.projection[leaf, k, j] = p
        sites.box[leaf, 0, k] = p if j == 0 else min(p, sites.box[leaf, 0, k])
        sites.box[leaf, 1, k] = p if j == 0 else max(p, sites.box[leaf, 1, k])


@kernel()
def _split_leaf(sites: SiteArrays, leaf: int, other: int) -> None:
    """Split a full leaf across the longest side of its box; the upper half moves to another leaf."""
    side, longest = 0, np.float32(-1)
    for k in range(PROJECTION):
        length = sites.box[leaf, 1, k] - sites.box[leaf, 0, k]
        if length > longest:
            side, longest = k, length
    order = np.argsort(sites.projection[leaf, side])
    projections, members = sites.projection[leaf].copy(), sites.member[leaf].copy()
    projected = np.empty(PROJECTION, np.float32)
    sites.filled[leaf] = sites.filled[other] = 0
    for step in range(PAGE):
        for k in range(PROJECTION):
            projected[k] = projections[k, order[step]]
        _add_to_leaf(sites, leaf if step < PAGE // 2 else other, members[order[step]], projected)
