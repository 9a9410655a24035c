"""A limit on regions: which go, and that search, candidates and statistics stay right."""

import numpy as np
import pytest
from numpy.typing import NDArray

from methods.napping.trial import as_keys, as_states
from nappingrl.methods.napping.principles import Principles
from nappingrl.methods.napping_ucb.cells import Cells
from nappingrl.methods.voronoi.limit import kept_regions

ROWS = np.arange(2)


def table(visits: list[int], is_open: list[int]) -> dict[str, NDArray[np.generic]]:
    candidates = np.array([[True, bool(flag)] for flag in is_open])
    return {"visits": np.array(visits), "candidates": candidates}


@pytest.mark.parametrize(
    ("visits", "is_open", "limit", "kept"),
    [
        ([3, 2, 5, 1], [0, 0, 0, 0], 3, [0, 2, 3]),  # the least visited goes, but not the newest
        ([1, 9, 5, 1], [1, 0, 1, 0], 3, [0, 2, 3]),  # closed ones before open ones
        ([2, 1, 1, 1], [1, 1, 1, 0], 3, [0, 2, 3]),  # the oldest of equals
        ([7, 1], [1, 1], 1, [1]),
        ([1] * 41, [0] * 41, 40, list(range(3, 41))),  # a twentieth and the one that is too many
        ([1] * 30 + [2] * 10, [0] * 40, 20, list(range(21, 40))),  # as after loading an agent without a limit
    ],
)
def test_the_least_visited_closed_principles_go(
    visits: list[int], is_open: list[int], limit: int, kept: list[int]
) -> None:
    assert kept_regions(table(visits, is_open), limit).tolist() == kept


def nearest(sites: NDArray[np.float32], point: NDArray[np.float32]) -> int:
    return int(((sites.astype(np.float64) - point) ** 2).sum(axis=1).argmin()) if len(sites) else -1


@pytest.mark.parametrize("dim", [3, 20])  # with fewer and more dimensions than a projection
def test_search_stays_exact_while_principles_are_dropped(dim: int) -> None:
    limit, n_steps = 150, 1500
    random = np.random.default_rng(dim)
    principles = Principles(2, 3, dim, situation_dim=dim, max_regions=limit)
    principles.start(ROWS, as_keys([1, 2]))
    n_dropped = 0
    for t in range(n_steps):
        points = as_states(random.normal(size=(2, dim)) + t / 300)
        wanted = random.integers(0, 3, 2)
        actions, regions = principles.select(ROWS, points, wanted)
        for row in ROWS if t % 7 == 0 else ():
            assert regions[row] == nearest(principles.table(row)["site"], points[row])
        before = principles.n_regions.copy()
        renumbered = principles.update(
            ROWS, points, wanted, actions, regions, np.full(2, -1.0 - t), 0.0, 1.0, situations=points
        )
        assert renumbered.tolist() == ROWS[principles.n_regions < before].tolist()
        n_dropped += len(renumbered)
        assert principles.n_regions.max() <= limit
    assert n_dropped > 100
    for row in ROWS:
        known = principles.table(row)
        np.testing.assert_array_equal(known["site"], known["situation"])  # all arrays moved alike
        assert principles.n_open[row] == (known["candidates"].sum(axis=1) > 1).sum() > 0


def test_visited_principles_survive_any_number_of_others() -> None:
    principles = Principles(1, 2, 2, max_regions=100)
    row, wanted = np.zeros(1, np.int64), np.zeros(1, np.int64)
    principles.start(row, as_keys([1]))

    def step(point: tuple[float, float], score: float) -> None:
        states = as_states([point])
        actions, regions = principles.select(row, states, wanted)
        principles.update(row, states, wanted, actions, regions, np.array([score]), 0.0, 1.0)

    for _ in range(5):
        step((50.0, 50.0), 0.5)
    first = principles.table(0)
    for t in range(2000):
        step((float(t % 40), -float(t)), -1.0 - t)
    last = principles.table(0)
    assert last["visits"][0] >= first["visits"][0] == 5
    np.testing.assert_array_equal(last["site"][0], first["site"][0])


def test_cells_keep_their_statistics_while_others_are_dropped() -> None:
    limit, dim = 60, 2
    random = np.random.default_rng(1)
    cells, threshold, order = Cells(2, 3, dim, dim, max_cells=limit), np.ones(2), np.tile(np.arange(3), (2, 1))
    cells.forget(ROWS)
    n_dropped, n_steps = 0, 800
    for t in range(n_steps):
        points, wanted = as_states(random.normal(size=(2, dim))), random.integers(0, 3, 2)
        actions, at = cells.select(ROWS, points, wanted, order, threshold)
        for row in ROWS:
            sites = cells.table(row, 1.0)["site"]
            assert at[row] in (-1, nearest(sites, points[row]))
        scores = np.full(2, -0.1 * t)
        n_dropped += len(cells.update(ROWS, points, wanted, actions, at, scores, threshold, scores < 1.0, points))
        assert cells.n_cells.max() <= limit
    assert n_dropped > 20
    for row in ROWS:
        known = cells.state(row)
        np.testing.assert_array_equal(known["site"], known["situation"])
        assert known["trial_counts"].sum() == n_steps > known["counts"].sum() > 0
