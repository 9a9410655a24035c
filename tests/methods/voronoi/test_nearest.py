"""Storage of sites and exact search, through the principles that use them."""

import itertools

import numpy as np
import pytest

from methods.napping.pseudo_code import PseudoCode
from methods.napping.trial import FAIL, GOOD, as_keys, as_rows, as_states, assert_same_table, assert_table
from nappingrl.methods.napping.principles import Principles


@pytest.mark.parametrize("rule", ["printed", "fallback"])
def test_storage_grows_and_is_reused(rule: str) -> None:
    """Trials of very different sizes; when a large one restarts, its pages are used again."""
    n_actions = 3
    rng = np.random.default_rng(1)
    principles = Principles(3, n_actions, 1, rule=rule)
    principles.start(as_rows([0, 1, 2]), as_keys([1, 2, 3]))
    references = {row: PseudoCode(n_actions, rule) for row in range(3)}

    scores = itertools.count(-1.0, -1.0)  # always worse: every principle closes, every closed one is split

    def step(rows: list[int], count: int) -> None:
        for _ in range(count):
            points = (rng.integers(-4000, 4000, len(rows)) / 8).tolist()
            wanted = rng.integers(0, n_actions, len(rows)).tolist()
            states = as_states([[point] for point in points])
            score = next(scores)
            actions, regions = principles.select(as_rows(rows), states, as_rows(wanted))
            principles.update(
                as_rows(rows), states, as_rows(wanted), actions, regions, np.full(len(rows), score), 0.0, 1.0
            )
            for i, row in enumerate(rows):
                at = (points[i],)
                assert regions[i] == references[row].nearest(at, wanted[i])
                references[row].update(at, wanted[i], int(actions[i]), score, thre=0.0, sup=1.0)

    step([0, 1, 2], 30)
    while len(references[1].principles) < 1001:
        step([1], 20)
    step([2, 0], 100)
    for row in range(3):
        assert_table(principles.table(row), references[row], n_actions)
    for restarted, growing in ((1, [1, 0]), (0, [2, 1]), (2, [2, 0]), (1, [0, 1, 2]), (2, [1])):
        principles.start(as_rows([restarted]), as_keys([4]))
        references[restarted] = PseudoCode(n_actions, rule)
        step([restarted], 1)
        step(growing, 150)
        for row in range(3):
            assert_table(principles.table(row), references[row], n_actions)
    assert principles.n_regions.tolist() == [len(references[row].principles) for row in range(3)]
    assert principles.n_open.tolist() == [sum(p.is_open for p in references[row].principles) for row in range(3)]


@pytest.mark.parametrize(
    ("rule", "dim", "offset"),
    [
        ("printed", 64, 0.0),
        ("printed", 256, 0.0),
        ("printed", 64, 50.0),  # far from the origin: |x|^2 - 2xy + |y|^2 in float32 would lose the difference
        ("text", 64, 0.0),
        ("text", 256, 50.0),
    ],
)
def test_search_is_exact(rule: str, dim: int, offset: float) -> None:
    """Compare with a float64 argmin wherever the nearest two differ by more than rounding."""
    n_steps, n_rows = 1100, 2
    rng = np.random.default_rng(dim)
    steps = rng.normal(size=(n_rows, n_steps, dim)) * np.where(rng.random((n_rows, n_steps, 1)) < 0.5, 0.05, 1.0)
    points = as_states(offset + steps.cumsum(axis=1) / 8)  # a walk: near neighbours, with jumps
    centred = points.astype(np.float64) - points.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=2)
    all_distances = squares[:, :, None] + squares[:, None] - 2 * centred @ centred.transpose(0, 2, 1)
    wanted = rng.integers(0, 2, (n_steps, n_rows))
    principles = Principles(n_rows, 2, dim, rule=rule)
    rows = np.arange(n_rows)
    principles.start(rows, as_keys([1, 2]))

    judged = 0
    for t in range(n_steps):
        states = np.ascontiguousarray(points[:, t])
        actions, regions = principles.select(rows, states, wanted[t])
        for row in rows:
            distances = all_distances[row, t, :t].copy()
            if rule == "text":
                distances[wanted[:t, row] != wanted[t, row]] = np.inf
            if not np.isfinite(distances).any():
                assert regions[row] == -1
                continue
            nearest, second = np.argsort(distances, kind="stable")[:2] if t > 1 else (0, 0)
            if nearest == second or distances[second] > distances[nearest] * (1 + 1e-4):
                assert regions[row] == nearest
                judged += 1
        # two actions and scores that only get worse: every step adds a point
        principles.update(rows, states, wanted[t], actions, regions, np.full(n_rows, -1.0 - t), 0.0, 1.0)
    assert principles.n_regions.tolist() == [n_steps] * n_rows
    assert judged > 0.95 * n_rows * n_steps

    for t in rng.permutation(n_steps)[:200]:  # a stored point is its own nearest
        states = np.ascontiguousarray(points[:, t])
        assert principles.select(rows, states, wanted[t])[1].tolist() == [t, t]
    np.testing.assert_array_equal(principles.table(1)["site"], points[1])


@pytest.mark.parametrize("rule", ["printed", "text"])
@pytest.mark.parametrize(("dim", "used", "offset"), [(9, 9, 0.0), (20, 3, 0.0), (20, 3, 2.0**17), (64, 64, 1000.0)])
def test_search_with_many_ties(rule: str, dim: int, used: int, offset: float) -> None:
    """On a grid every distance is exact in float32, so ties are exact, alone and in a batch.

    With few coordinates in use the sites lie in a plane, where a lower bound from a projection is as good as exact and
    must not rule out a site by its own rounding.
    """
    n_steps, n_rows = 300, 3
    rng = np.random.default_rng(dim)
    moved = rng.integers(-1, 2, (n_rows, n_steps, dim)) * (rng.random((n_rows, n_steps, dim)) < 4 / dim)
    if used < dim:
        moved = np.zeros_like(moved)
        moved[..., :used] = rng.integers(-4, 5, (n_rows, n_steps, used))
    exact = offset + moved / 8
    points = as_states(exact)
    assert (points == exact).all()
    wanted = rng.integers(0, 2, (n_steps, n_rows))
    rows = np.arange(n_rows)
    together = Principles(n_rows, 2, dim, rule=rule)
    together.start(rows, as_keys([1, 2, 3]))
    alone = Principles(1, 2, dim, rule=rule)
    alone.start(as_rows([0]), as_keys([3]))
    ties = 0
    for t in range(n_steps):
        states = np.ascontiguousarray(points[:, t])
        score = np.full(n_rows, -1.0 - t)
        actions, regions = together.select(rows, states, wanted[t])
        also_actions, also_regions = alone.select(as_rows([0]), states[2:], wanted[t, 2:])
        assert (also_actions[0], also_regions[0]) == (actions[2], regions[2])
        for row in rows:
            distances = ((exact[row, :t] - exact[row, t]) ** 2).sum(axis=1)
            if rule == "text":
                distances[wanted[:t, row] != wanted[t, row]] = np.inf
            expected = int(distances.argmin()) if np.isfinite(distances).any() else -1
            assert regions[row] == expected
            ties += expected >= 0 and int((distances == distances[expected]).sum()) > 1
        together.update(rows, states, wanted[t], actions, regions, score, 0.0, 1.0)
        alone.update(as_rows([0]), states[2:], wanted[t, 2:], also_actions, also_regions, score[:1], 0.0, 1.0)
    assert ties > n_steps // 2
    assert_same_table(alone.table(0), together.table(2))


def test_start_after_many_regions() -> None:
    """Many regions, then none: the search must not use leftovers of the index."""
    n, dim = 2100, 16
    rows, wanted = np.arange(n), np.zeros(n, np.int64)
    states = as_states(np.random.default_rng(0).normal(size=(n, dim)))
    principles = Principles(n, 3, dim, rule="text")
    for score, n_regions in ((FAIL, n), (GOOD, 0), (FAIL, n)):
        principles.start(rows, rows.astype(np.uint64))
        actions, regions = principles.select(rows, states, wanted)
        assert set(regions.tolist()) == {-1}
        principles.update(rows, states, wanted, actions, regions, np.full(n, score), 0.0, 1.0)
        assert principles.n_regions.sum() == n_regions


def test_search_distinguishes_adjacent_floats() -> None:
    """Sites one rounding step apart, far from the origin, and each of them twice."""
    dim, n_sites = 64, 40
    sites = np.full((n_sites, dim), 50.0, np.float32)
    for i in range(1, n_sites):
        sites[i] = sites[i - 1]
        sites[i, i] = np.nextafter(sites[i, i], np.float32(100))
    principles = Principles(1, 2, dim, rule="printed")
    principles.start(as_rows([0]), as_keys([1]))
    for t, site in enumerate([*sites, *sites]):
        actions, regions = principles.select(as_rows([0]), site[None], as_rows([0]))
        assert regions[0] == (t - 1 if t < n_sites else t - n_sites)  # of equal points, the first
        principles.update(as_rows([0]), site[None], as_rows([0]), actions, regions, np.array([-1.0 - t]), 0.0, 1.0)
    assert principles.n_regions.tolist() == [2 * n_sites]


def test_search_beyond_the_range_of_float32() -> None:
    """Squared distances are infinite or NaN there: of equally far sites the first counts, and NaN has no nearest."""
    n_sites, dim = 150, 12
    principles = Principles(1, 2, dim)
    row = as_rows([0])
    principles.start(row, as_keys([1]))
    points = as_states([[1e25 * (t + 1)] * dim for t in range(n_sites)])
    for t in range(n_sites):
        wanted = as_rows([t % 2])
        principles.update(row, points[t : t + 1], wanted, wanted, as_rows([-1]), np.array([-1.0]), 0.0, 1.0)
    queries = {float(points[70, 0]): 70, 4e27: 0, float("nan"): -1}
    for value, expected in queries.items():
        query = np.full((1, dim), value, np.float32)
        assert principles.select(row, query, as_rows([0]))[1].tolist() == [expected]
