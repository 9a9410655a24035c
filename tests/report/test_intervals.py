"""Intervals over trials: against scipy, against plain loops, and by how often they cover."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from nappingrl.errors import BadRunError
from nappingrl.report import intervals
from nappingrl.report.intervals import (
    Interval,
    bootstrap_interval,
    mean_difference_interval,
    resampled_interval,
)

SAMPLE = np.random.default_rng(5).gamma(2.0, size=40)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


# ---- formulas -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_mean_t_is_scipys(level: float) -> None:
    found = intervals.mean_interval(SAMPLE, level)
    assert found is not None
    assert (found.value, found.level, found.n) == (pytest.approx(SAMPLE.mean()), level, 40)
    assert_allclose((found.low, found.high), stats.t.interval(level, 39, SAMPLE.mean(), stats.sem(SAMPLE)))


def test_mean_t_by_hand() -> None:
    found = intervals.mean_interval([1.0, 2.0, 3.0])  # sd 1, t(2) at 97.5 % = 4.302653
    assert found is not None
    assert_allclose((found.low, found.high), 2 + np.array([-1, 1]) * 4.302653 / 3**0.5, rtol=1e-6)


@pytest.mark.parametrize("n", [6, 7, 10, 25, 40, 101])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_median_lies_between_the_order_statistics_of_the_binomial(n: int, level: float) -> None:
    x = rng(n).permutation(np.arange(1.0, n + 1))
    found = intervals.median_interval(x, level)
    assert found is not None
    k = max(k for k in range(1, n // 2 + 1) if stats.binom.cdf(k - 1, n, 0.5) <= (1 - level) / 2)
    assert (found.low, found.high) == (k, n + 1 - k)
    assert found.value == (n + 1) / 2


def test_median_by_hand() -> None:
    # n = 10: P(at most 1 below the median) = 11/1024 = .0107 <= .025 < P(at most 2) = 56/1024. So x(2) and x(9).
    found = intervals.median_interval(np.arange(10.0))
    assert found == Interval(4.5, 1.0, 8.0, 0.95, 10)
    assert intervals.median_interval(np.arange(5.0)) is None  # even the range covers with 1 - 2/32 < 95 %
    assert intervals.median_interval(np.arange(6.0)) == Interval(2.5, 0.0, 5.0, 0.95, 6)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (71, 300)])
def test_rate_is_wilsons(k: int, n: int) -> None:
    found = intervals.rate_interval(np.arange(n) < k)
    assert found is not None
    assert (found.value, found.n) == (k / n, n)
    assert_allclose((found.low, found.high), stats.binomtest(k, n).proportion_ci(method="wilson"))
    z = 1.959963984540054
    centre, half = k / n + z * z / (2 * n), z * (k / n * (1 - k / n) / n + z * z / (4 * n * n)) ** 0.5
    by_hand = np.array([centre - half, centre + half]) / (1 + z * z / n)
    assert_allclose((found.low, found.high), by_hand, atol=1e-12)


def test_a_rate_needs_flags() -> None:
    with pytest.raises(ValueError, match="0 or 1"):
        intervals.rate_interval([0.5, 1.0])


def test_iqm_is_rliables() -> None:
    assert intervals.iqm(np.array([100.0, 1, 2, 3, 4, 5, 6, -100])) == (2 + 3 + 4 + 5) / 4
    assert intervals.iqm(np.array([9.0, 1, 2])) == 4  # int(.25 * 3) = 0 are cut
    assert intervals.iqm(SAMPLE) == stats.trim_mean(SAMPLE, 0.25, axis=None)


def test_improvement_by_hand() -> None:
    assert intervals.improvement(np.array([1.0, 2, 3, 4]), np.array([0.0, 2, 5, 4])) == (1 + 0.5 + 0 + 0.5) / 4


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=1, max_size=20))
def test_improvements_of_both_sides_add_up(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    assert intervals.improvement(x, y) + intervals.improvement(y, x) == pytest.approx(1)
    assert intervals.improvement(x, x) == 0.5


# ---- bootstrap ----------------------------------------------------------------------------------------------------


def test_bootstrap_is_scipys() -> None:
    found = bootstrap_interval(intervals.mean, SAMPLE, rng=rng(1), level=0.9, resamples=2000)
    theirs = stats.bootstrap(
        (SAMPLE,), np.mean, n_resamples=2000, confidence_level=0.9, method="percentile", rng=rng(1)
    ).confidence_interval
    assert found is not None
    assert_allclose((found.low, found.high), theirs)
    assert (found.value, found.level, found.n) == (pytest.approx(SAMPLE.mean()), 0.9, 40)


def test_stratified_bootstrap_is_a_plain_loop_over_strata() -> None:
    x = np.concatenate([rng(2).normal(0, 1, 30), rng(3).normal(50, 1, 10)])
    strata = np.repeat(["b", "a"], [30, 10])
    loop, generator = [], rng(4)
    for _ in range(3000):
        parts = [generator.choice(x[strata == name], int((strata == name).sum())) for name in ("a", "b")]
        whole = np.sort(np.concatenate(parts))
        loop.append(whole[10:30].mean())
    found = bootstrap_interval(intervals.iqm, x, rng=rng(5), strata=strata)
    assert found is not None
    assert_allclose((found.low, found.high), np.percentile(loop, [2.5, 97.5]), atol=0.05)


def test_strata_keep_their_sizes() -> None:
    x, strata = np.repeat([0.0, 100.0], 10), np.repeat([0, 1], 10)
    assert bootstrap_interval(intervals.mean, x, rng=rng(), strata=strata) == Interval(50.0, 50.0, 50.0, 0.95, 20)
    loose = bootstrap_interval(intervals.mean, x, rng=rng())
    assert loose is not None
    assert loose.low < 40 < 60 < loose.high


def test_pairs_stay_together() -> None:
    hard = rng(6).normal(0, 10, 60)  # draws differ much, the methods little
    x, y = hard + 1 + rng(7).normal(0, 0.1, 60), hard

    def difference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return intervals.iqm(a) - intervals.iqm(b)  # type: ignore[no-any-return]

    paired = bootstrap_interval(difference, x, y, rng=rng(8), resamples=2000)
    assert paired is not None
    assert 0.8 < paired.low < paired.high < 1.2
    assert bootstrap_interval(intervals.improvement, x, y, rng=rng(9), resamples=200) == Interval(
        1.0, 1.0, 1.0, 0.95, 60
    )


def test_the_interval_of_improvement_is_that_of_the_mean_of_wins() -> None:
    x, y = rng(1).integers(0, 3, 50).astype(float), rng(2).integers(0, 3, 50).astype(float)
    wins = np.where(x > y, 1.0, np.where(x == y, 0.5, 0.0))
    assert bootstrap_interval(intervals.improvement, x, y, rng=rng(3)) == bootstrap_interval(
        intervals.mean, wins, rng=rng(3)
    )


def test_a_generator_is_all_the_randomness_there_is() -> None:
    one, two, other = (bootstrap_interval(intervals.iqm, SAMPLE, rng=rng(seed), resamples=500) for seed in (1, 1, 2))
    assert one == two != other


# ---- few and equal trials -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[], [1.0]])
def test_one_trial_has_no_interval(values: list[float]) -> None:
    assert intervals.mean_interval(values) is None
    assert intervals.median_interval(values) is None
    assert intervals.rate_interval(values) is None
    assert bootstrap_interval(intervals.mean, values, rng=rng()) is None
    assert bootstrap_interval(intervals.improvement, values, values, rng=rng()) is None


def test_a_stratum_of_one_trial_has_no_interval() -> None:
    assert bootstrap_interval(intervals.iqm, [1.0, 2, 3], rng=rng(), strata=["a", "a", "b"]) is None


def test_equal_values_give_an_interval_of_no_width() -> None:
    flat = Interval(0.25, 0.25, 0.25, 0.95, 8)
    values = [0.25] * 8
    assert intervals.mean_interval(values) == intervals.median_interval(values) == flat
    assert (
        bootstrap_interval(intervals.mean, values, rng=rng())
        == bootstrap_interval(intervals.iqm, values, rng=rng())
        == flat
    )


def test_bad_values_are_refused() -> None:
    with pytest.raises(ValueError, match="NaN"):
        intervals.mean_interval([1.0, np.nan])
    with pytest.raises(ValueError, match="one value per trial"):
        intervals.mean_interval(np.ones((3, 40)))  # episodes are not trials
    with pytest.raises(ValueError, match="one of each per trial"):
        bootstrap_interval(intervals.improvement, [1.0, 2], [1.0], rng=rng())
    with pytest.raises(ValueError, match="one of each per trial"):
        bootstrap_interval(intervals.mean, [1.0, 2], rng=rng(), strata=["a"])
    with pytest.raises(ValueError, match="between 0 and 1"):
        intervals.mean_interval([1.0, 2], level=95)


# ---- pairs --------------------------------------------------------------------------------------------------------


def test_pairs_are_joined_by_novelty_and_number() -> None:
    first = pl.DataFrame({"novelty": ["a", "a", "b", "b"], "number": [0, 1, 0, 1], "nrp": [1.0, 2.0, 3.0, None]})
    second = pl.DataFrame({"novelty": ["b", "b", "a"], "number": [1, 0, 1], "nrp": [9.0, float("nan"), 0.5]})
    pairs = intervals.pair(first, second, "nrp")
    assert pairs.novelty.tolist() == ["a"]
    assert_array_equal(pairs.difference, [1.5])
    assert (pairs.unpaired, pairs.undefined) == (1, 2)


def test_pairs_need_one_row_per_trial_and_common_trials() -> None:
    table = pl.DataFrame({"novelty": ["a", "a"], "number": [0, 1], "level": [1.0, 2.0]})
    with pytest.raises(BadRunError, match="more than one row"):
        intervals.pair(pl.concat([table, table]), table, "level")
    with pytest.raises(BadRunError, match="no trial in common"):
        intervals.pair(table, table.with_columns(novelty=pl.lit("b")), "level")


# ---- coverage -----------------------------------------------------------------------------------------------------


def covered(found: Interval | None, truth: float) -> bool:
    assert found is not None
    return found.low <= truth <= found.high


def test_intervals_cover_as_often_as_they_say() -> None:
    generator, n = rng(11), 400
    normal = generator.normal(3.0, 2.0, (n, 30))
    skewed = generator.exponential(1.0, (n, 30))
    wins = generator.random((n, 30)) < 0.3
    mean = np.mean([covered(intervals.mean_interval(x), 3.0) for x in normal])
    median = np.mean([covered(intervals.median_interval(x), np.log(2)) for x in skewed])
    rate = np.mean([covered(intervals.rate_interval(x), 0.3) for x in wins])
    resampled = np.mean(
        [covered(bootstrap_interval(intervals.mean, x, rng=generator, resamples=400), 3.0) for x in normal]
    )
    trimmed = np.mean(
        [covered(bootstrap_interval(intervals.iqm, x, rng=generator, resamples=400), 3.0) for x in normal]
    )
    assert 0.92 < mean < 0.98
    assert median > 0.93  # at least the level, being discrete
    assert 0.91 < rate < 0.99
    assert 0.89 < resampled < 0.98  # percentile intervals are a little narrow at 30 trials
    assert 0.89 < trimmed < 0.98


def test_intervals_over_episodes_would_be_too_narrow() -> None:
    """Why the axis matters: 40 episodes of a trial share its draw."""
    generator = rng(12)
    wrong = right = 0
    for _ in range(200):
        draws = generator.normal(0.0, 1.0, (20, 1))
        levels = draws + generator.normal(0.0, 0.2, (20, 40))
        wrong += covered(intervals.mean_interval(levels.ravel()), 0.0)
        right += covered(intervals.mean_interval(levels.mean(axis=1)), 0.0)
    assert right / 200 > 0.9
    assert wrong / 200 < 0.5


def test_bands() -> None:
    values = np.random.default_rng(0).normal(size=(200, 3))
    found = intervals.over_trials(values, "mean")
    np.testing.assert_allclose(found.centre, values.mean(axis=0))
    half = 1.96 * values.std(axis=0) / np.sqrt(200)
    np.testing.assert_allclose(found.upper - found.centre, half, rtol=0.15)
    np.testing.assert_allclose(found.centre - found.lower, half, rtol=0.15)
    assert np.isnan(intervals.over_trials(values[:5], "median").lower).all()
    assert np.isnan(intervals.over_trials(values[:1], "mean").upper).all()
    share = intervals.rate_band(np.array([3]), 20)
    ends = stats.binomtest(3, 20).proportion_ci(method="wilson")
    assert (share.lower[0], share.upper[0]) == pytest.approx((ends.low, ends.high))


def test_difference_of_two_groups_is_welchs() -> None:
    first, second = rng(3).normal(5, 1, 12), rng(4).normal(3, 4, 30)
    found = mean_difference_interval(first, second)
    assert found is not None
    variances = first.var(ddof=1) / 12, second.var(ddof=1) / 30
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 11 + variances[1] ** 2 / 29)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(sum(variances))
    assert (found.value, found.n) == (pytest.approx(first.mean() - second.mean()), 12)
    assert (found.low, found.high) == (pytest.approx(found.value - half), pytest.approx(found.value + half))
    assert mean_difference_interval([1.0], [2.0, 3.0]) is None
    equal = mean_difference_interval([2.0, 2.0], [1.0, 1.0])
    assert equal is not None
    assert (equal.low, equal.high) == (1.0, 1.0)


def test_resampled_means_agree_with_the_bootstrap_of_scipy() -> None:
    values = rng(4).normal(2, 1, (40, 2))
    found = resampled_interval(lambda means: means[:, 0] / means[:, 1], values, resamples=4000)
    expected = stats.bootstrap(
        (values[:, 0], values[:, 1]), lambda a, b, axis: a.mean(axis) / b.mean(axis), paired=True, vectorized=True,
        n_resamples=4000, method="percentile", rng=rng(5),
    ).confidence_interval  # fmt: skip
    assert found is not None
    assert found.low == pytest.approx(expected.low, rel=0.03)
    assert found.high == pytest.approx(expected.high, rel=0.03)
    assert resampled_interval(lambda means: means[:, 0], values[:1]) is None
    assert resampled_interval(lambda means: np.full(len(means), np.nan), values) is None
