"""Metrics: every formula on cases worked out by hand, and a small run measured again by plain loops."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nappingrl.errors import BadRunError
from nappingrl.report import metrics
from report.rows import flags

NAN = math.nan


EARLY, NEVER, LATE, AT_ONCE, FLICKER = "..x.|....", "....|....", "....|..xx", "....|xxxx", "....|.x.x"
ALL = flags(EARLY, NEVER, LATE, AT_ONCE, FLICKER)
TAU = 4


# ---- performance --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returns", "limits", "expected", "words"),
    [
        ([1, 100.5, 200], (1.0, 200.0), [0, 0.5, 1], "cartpole: performance = (return - 1) / 199, 0 to 1"),
        ([-500, -125, 0], (-500.0, 0.0), [0, 0.75, 1], "mountaincar: performance = (return + 500) / 500, 0 to 1"),
        ([-1, 1], (-1.0, 1.0), [0, 1], "crossroad: performance = (return + 1) / 2, 0 to 1"),
    ],
)
def test_returns_are_mapped_to_0_1_and_the_map_is_said(
    returns: list[float], limits: tuple[float, float], expected: list[float], words: str
) -> None:
    assert_allclose(metrics.performance(np.array(returns), limits), expected)
    assert metrics.performance_words(words.split(":")[0], limits) == words


@pytest.mark.parametrize("bad", [0.0, 201.0, NAN])
def test_returns_outside_the_range_are_refused(bad: float) -> None:
    with pytest.raises(BadRunError, match="1 to 200"):
        metrics.performance(np.array([5.0, bad]), (1.0, 200.0))


def test_the_default_window_is_a_tenth_and_at_least_one() -> None:
    assert [metrics.default_window(n) for n in (1, 9, 10, 19, 80, 200)] == [1, 1, 1, 1, 8, 20]


# ---- detection ----------------------------------------------------------------------------------------------------


def test_counts() -> None:
    assert_array_equal(metrics.false_positives(ALL, TAU), [1, 0, 0, 0, 0])
    assert_array_equal(metrics.true_positives(ALL, TAU), [0, 0, 2, 4, 2])
    assert_array_equal(metrics.true_negatives(ALL, TAU), [3, 4, 4, 4, 4])
    assert_array_equal(metrics.is_early(ALL, TAU), [True, False, False, False, False])
    assert_array_equal(metrics.m22(ALL, TAU), [0.75, 1, 1, 1, 1])


def test_an_early_alarm_spoils_a_trial_whatever_follows() -> None:
    detected = flags("...x|xxxx", "....|...x")
    assert_array_equal(metrics.correctly_detected(detected, TAU), [False, True])
    assert_array_equal(metrics.correctly_detected(detected, TAU, min_tp=2), [False, False])  # HYDRA's TP > 1


def test_both_variants_of_false_negatives() -> None:
    assert_array_equal(metrics.false_negatives(ALL, TAU, "first"), [NAN, NAN, 2, 0, 1])
    assert_array_equal(metrics.false_negatives(ALL, TAU, "count"), [4, 4, 2, 0, 2])
    with pytest.raises(ValueError, match="first, count"):
        metrics.false_negatives(ALL, TAU, "other")  # type: ignore[arg-type]


def test_m1_is_defined_for_correctly_detected_trials_only() -> None:
    assert_array_equal(metrics.m1(ALL, TAU, "first"), [NAN, NAN, 2, 0, 1])
    assert_array_equal(metrics.m1(ALL, TAU, "count"), [NAN, NAN, 2, 0, 2])
    assert_array_equal(metrics.m1(flags("...x|xxxx"), TAU, "count"), [NAN])


@given(st.integers(0, 6), st.integers(1, 6), st.integers(0, 12))
def test_both_variants_agree_where_detection_is_latched(tau: int, n_post: int, first: int) -> None:
    detected = np.arange(tau + n_post) >= first
    assert_array_equal(metrics.m1(detected, tau, "first"), metrics.m1(detected, tau, "count"))


def test_without_episodes_before_the_novelty_nothing_is_early_and_m22_is_undefined() -> None:
    detected = flags("|.xx")
    assert metrics.false_positives(detected, 0) == [0]
    assert not metrics.is_early(detected, 0).any()
    assert np.isnan(metrics.m22(detected, 0)).all()
    assert metrics.m1(detected, 0) == [1]


def test_one_trial_may_come_as_a_vector() -> None:
    assert metrics.m1(flags(LATE)[0], TAU) == 2
    assert metrics.amoc(flags(LATE)[0].astype(float), TAU, scaled=False) == pytest.approx(3 / 5)
    assert metrics.nrp(np.array([0.5, 0.2, 0.4]), np.array([0.8, 0.0, 0.0]), 1, 2) == pytest.approx(0.3 / 0.8)


# ---- AMOC ---------------------------------------------------------------------------------------------------------


def test_amoc_of_yes_or_no_detection() -> None:
    # Npost = 8 - 4 + 1 = 5. LATE: alarm at e - tau = 2, S = 3/5. FLICKER: at 1, S = 4/5. An early alarm ends at F = 1
    # before any area is gathered.
    q = ALL.astype(float)
    assert_allclose(metrics.amoc(q, TAU, scaled=False), [0, 0, 3 / 5, 1, 4 / 5])
    assert_allclose(metrics.amoc(q, TAU), [0, 0, 1, 1, 1])
    assert_allclose(metrics.amoc(flags("...x|xxxx").astype(float), TAU), [0])


def test_amoc_of_graded_probabilities() -> None:
    # N = 10, tau = 4, Npost = 7. Walk: e1 (false) -> (1, 0); e8 -> (1, 3/7); e2 (false) -> (2, 3/7); e5 -> (2, 6/7).
    # F by 2: area = (1 - .5) * 3/7. S scaled by 6/7: (1 - .5) * 1/2.
    q = np.zeros(10)
    q[[1, 8, 2, 5]] = 0.9, 0.8, 0.7, 0.6
    assert metrics.amoc(q, 4, scaled=False) == pytest.approx(0.5 * 3 / 7)
    assert metrics.amoc(q, 4) == pytest.approx(0.25)


def amoc_by_hand(q: list[float], tau: int, scaled: bool) -> float:
    """The walk of the definition, one alarm at a time."""
    alarms = sorted((e for e in range(len(q)) if q[e] > 0), key=lambda e: -q[e])
    n_post, false, best, earliest, points = len(q) - tau + 1, 0, 0.0, math.inf, []
    for e in alarms:
        if e < tau:
            false += 1
        elif e < earliest:
            earliest, best = e, (n_post - (e - tau)) / n_post
        points.append((false, best))
    points = [(f / false if false else 0.0, s / best if scaled and best else s) for f, s in points]
    points.append((1.0, points[-1][1] if points else 0.0))
    return sum((f2 - f1) * (s1 + s2) / 2 for (f1, s1), (f2, s2) in pairwise(points))


@given(st.data(), st.integers(0, 5), st.integers(1, 6), st.booleans())
def test_amoc_is_the_walk(data: st.DataObject, tau: int, n_post: int, scaled: bool) -> None:
    levels = st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.75, 1.0])
    n = tau + n_post
    q = data.draw(st.lists(st.lists(levels, min_size=n, max_size=n), min_size=1, max_size=4))
    areas = metrics.amoc(np.array(q), tau, scaled)
    assert_allclose(areas, [amoc_by_hand(row, tau, scaled) for row in q], atol=1e-12)
    assert ((areas >= 0) & (areas <= 1 + 1e-12)).all()


# ---- reaction -----------------------------------------------------------------------------------------------------

P = np.array([[0.9, 0.7, 0.1, 0.3, 0.5, 0.6]])
BASE = np.array([[1.0, 0.6, 0.2, 0.2, 0.1, 0.1]])


def test_nrp_family() -> None:
    # the baseline before the novelty: (1.0 + .6) / 2 = .8
    assert_allclose(metrics.nrp(P, BASE, 2, 2), [(0.5 + 0.6) / 2 / 0.8])
    assert_allclose(metrics.inrp(P, BASE, 2, 2), [(0.1 + 0.3) / 2 / 0.8])
    assert_allclose(metrics.inrp(P, BASE, 2, 1), [0.1 / 0.8])
    assert_allclose(metrics.onrp(P, BASE, 2), [(0.1 + 0.3 + 0.5 + 0.6) / 4 / 0.8])


def test_pti_family() -> None:
    assert_allclose(metrics.opti(P, BASE, 2), [1.5 / (1.5 + 0.6)])
    assert_allclose(metrics.apti(P, BASE, 2, 2), [1.1 / (1.1 + 0.2)])
    assert_allclose(metrics.ipti(P, BASE, 2, 3), [0.9 / (0.9 + 0.5)])
    assert_allclose(metrics.opti(P, BASE, 2, normalised=False), [1.5 / 0.6])
    assert_allclose(metrics.apti(P, BASE, 2, 2, normalised=False), [1.1 / 0.2])
    assert_allclose(metrics.ipti(P, BASE, 2, 3, normalised=False), [0.9 / 0.5])


def test_denominators_of_0() -> None:
    zero = np.zeros((1, 6))
    assert np.isnan(metrics.nrp(P, zero, 2, 2)).all()
    assert np.isnan(metrics.nrp(P, BASE, 0, 2)).all()  # nothing before the novelty
    assert metrics.opti(zero, zero, 2) == [0]  # by definition, not 0.5
    assert metrics.opti(P, zero, 2) == [1]
    assert np.isnan(metrics.opti(P, zero, 2, normalised=False)).all()
    assert np.isnan(metrics.opti(P, np.full((1, 6), NAN), 2)).all()


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=8), st.floats(0.1, 10))
def test_no_gain_is_a_half_and_gains_do_not_depend_on_the_unit(p: list[float], unit: float) -> None:
    ours = np.array(p)
    assert metrics.opti(ours, ours, 1) == pytest.approx(0.5)
    theirs = ours[::-1].copy()
    assert metrics.opti(ours * unit, theirs * unit, 1) == pytest.approx(float(metrics.opti(ours, theirs, 1)))
    gain = float(metrics.apti(ours, theirs, 1, 2))
    assert gain + float(metrics.apti(theirs, ours, 1, 2)) == pytest.approx(1)
    assert float(metrics.apti(ours, theirs, 1, 2, normalised=False)) == pytest.approx(gain / (1 - gain))


@pytest.mark.parametrize("m", [-1, 0, 5])
def test_windows_must_fit(m: int) -> None:
    for function in (metrics.nrp, metrics.inrp, metrics.apti, metrics.ipti):
        with pytest.raises(ValueError, match="1 to 4"):
            function(P, BASE, 2, m)  # type: ignore[operator]


def test_a_novelty_must_be_followed_by_an_episode() -> None:
    with pytest.raises(ValueError, match="at least one must follow"):
        metrics.onrp(P, BASE, 6)


def test_nrm() -> None:
    # before: .4, .6: mean .5, sd .1 (n) or .1414 (n - 1). After: means .69, .71 -> 1.9 and 2.1 deviations (n).
    p = np.array([[0.4, 0.6, 0.69, 0.69], [0.4, 0.6, 0.71, 0.71], [0.4, 0.6, 0.29, 0.29]])
    assert_array_equal(metrics.nrm(p, 2), [1, 0, 0])
    assert_array_equal(metrics.nrm(p, 2, ddof=1), [1, 1, 1])


def test_nrm_without_spread_takes_a_tiny_one() -> None:
    p = np.array([[0.7] * 6, [0.7] * 3 + [0.70001] * 3, [0.7] * 3 + [0.70003] * 3])  # sd -> 1e-5: 0, 1 and 3 of them
    assert_array_equal(metrics.nrm(p, 3), [1, 1, 0])
    assert np.isnan(metrics.nrm(p, 0)).all()
    assert np.isnan(metrics.nrm(p, 1, ddof=1)).all()
    assert np.isnan(metrics.nrm(np.full((2, 4), NAN), 2)).all()


# ---- NovGrid and others -------------------------------------------------------------------------------------------


def test_resilience() -> None:
    assert_allclose(metrics.resilience_drop(BASE, 2), [1.0 - 0.15])
    assert_allclose(metrics.resilience_vs_random(BASE, np.array([[0, 0, 0.1, 0, 0, 0.1]]), 2), [0.15 - 0.05])
    assert np.isnan(metrics.resilience_drop(BASE, 0)).all()


def test_levels_and_regret() -> None:
    assert_allclose(metrics.last_mean(P, 2, 3), [(0.3 + 0.5 + 0.6) / 3])
    assert_allclose(metrics.one_shot_performance(P, 2), [0.3])
    assert np.isnan(metrics.one_shot_performance(P, 5)).all()
    assert_allclose(metrics.oracle_regret(P, np.ones((1, 6)), 2), [1 - 1.5 / 4])


def test_retention() -> None:
    before, after = np.array([[1.0, 0.6], [0.0, 0.0]]), np.array([[0.6, 0.6, 0.6], [1.0, 1.0, 1.0]])
    assert_allclose(metrics.retention(before, after), [0.75, NAN])
    assert metrics.retention(before[0], before[0]) == 1


def test_convergence_by_hand() -> None:
    # after the novelty: 0 .2 .8 1 1 1; last 2: 1. Smoothed over 2: 0 .1 .5 .9 1 1. Within .1 from the fourth on.
    p = np.array([[0.5, 0, 0.2, 0.8, 1, 1, 1]])
    lengths = np.array([[9, 10, 20, 30, 40, 50, 60]])
    assert metrics.convergence_episode(p, 1, eps=0.1, m=2, smooth=2) == [3]
    assert metrics.adaptive_efficiency(p, lengths, 1, eps=0.1, m=2, smooth=2) == [10 + 20 + 30]
    assert metrics.convergence_episode(p, 1, eps=0.2, m=2, smooth=1) == [2]
    assert metrics.convergence_episode(p, 1, eps=0.0, m=2, smooth=2) == [4]


def test_a_flat_curve_converged_at_once_and_a_leap_at_the_end_not_at_all() -> None:
    p = np.array([[0.7] * 8, [0.1] * 7 + [0.9]])
    lengths = np.full((2, 8), 10)
    assert_array_equal(metrics.convergence_episode(p, 0, eps=0.0, m=3, smooth=5), [0, NAN])
    assert_array_equal(metrics.adaptive_efficiency(p, lengths, 0, eps=0.0, m=3, smooth=5), [0, NAN])


def test_a_curve_that_leaves_the_band_again_has_not_converged_before() -> None:
    p = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    assert metrics.convergence_episode(p, 0, eps=0.1, m=1, smooth=1) == 3


@pytest.mark.parametrize(("eps", "smooth"), [(-0.1, 1), (0.1, 0)])
def test_convergence_rules_that_make_no_sense(eps: float, smooth: int) -> None:
    with pytest.raises(ValueError, match="allowed"):
        metrics.convergence_episode(P, 2, eps, 1, smooth)


def test_failed_tasks() -> None:
    returns = np.array([[-50.0, -500, -500], [-500, -500, -499], [-500, -500, -500], [-9, -9, -9]])
    assert_array_equal(metrics.failed(returns, 1, -500), [True, False, True, False])
    theirs, ours = np.array([True, True, True, False]), np.array([True, False, False, True])
    assert_array_equal(metrics.failed_removed(ours, theirs), [0, 1, 1, NAN])  # 2 of 3
    assert metrics.failed_cut(ours, theirs) == pytest.approx(1 - 2 / 3)  # the newly failed one counts against it
    assert metrics.failed_cut(ours, ~np.ones(4, bool)) is None
