"""Thresholds from the scores before the novelty."""

from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.methods.threshold import HELD_OUT_EPISODES, MAX_SCORES, MIN_SCORES, Calibration
from nappingrl.score import Score

ROW = np.array([0])
ORIGINAL = np.array([True])
Scores = list[float] | NDArray[np.float64]


def make(threshold: float = 0.0, supremum: float = inf, false_rate: float = 0.05) -> Calibration:
    calibration = Calibration(1, Score("s", lambda o, a, o2, r, end: r, threshold, supremum), false_rate)
    calibration.start(ROW)
    return calibration


def episode(calibration: Calibration, scores: Scores) -> None:
    for score in scores:
        calibration.record(ROW, np.array([score]))
    calibration.end_episode(ROW, ORIGINAL)


def one_step_episodes(calibration: Calibration, scores: Scores) -> None:
    """Episodes of one step, in which a score is its own running mean."""
    for score in scores:
        episode(calibration, [score])


def add_held_out_episodes(calibration: Calibration, score: float = -1e6) -> None:
    one_step_episodes(calibration, [score] * HELD_OUT_EPISODES)


def judge(calibration: Calibration, scores: Scores, supremum: float = inf, seed: int = 0) -> list[bool]:
    rng, fails = np.random.default_rng(seed), []
    for score in scores:
        fails.append(bool(calibration.judge(ROW, np.array([score]), supremum, rng.random(1))[0]))
        calibration.end_episode(ROW, ~ORIGINAL)
    return fails


def threshold(calibration: Calibration) -> float:
    return float(calibration.threshold(ROW)[0])


def test_threshold_is_the_quantile_of_recorded_scores():
    calibration = make(supremum=1000.0)
    one_step_episodes(calibration, np.arange(1.0, 101.0))
    add_held_out_episodes(calibration)
    calibration.calibrate(0)
    assert threshold(calibration) == 5.0
    assert judge(calibration, [4.9, 5.1, 100.0]) == [True, False, False]


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("draw", ["normal", "coarse"])
def test_false_rate_in_the_unchanged_domain(rate, draw):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=6000) if draw == "normal" else rng.choice([-1.0, 0.0, 0.5], 6000, p=[0.1, 0.3, 0.6])
    calibration = make(supremum=9.0, false_rate=rate)
    one_step_episodes(calibration, scores[:2000])
    add_held_out_episodes(calibration)
    calibration.calibrate(0)
    assert np.mean(judge(calibration, scores[2000:])) == pytest.approx(rate, abs=0.3 * rate + 0.004)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.25, 1.0]), min_size=MIN_SCORES, max_size=120),
    st.sampled_from([0.02, 0.05, 0.3]),
)
def test_false_rate_on_recorded_scores(scores, rate):
    calibration = make(supremum=1.0, false_rate=rate)
    one_step_episodes(calibration, scores)
    add_held_out_episodes(calibration)
    calibration.calibrate(0)
    means = [np.mean(judge(calibration, scores, 1.0, seed)) for seed in range(8)]
    assert np.mean(means) <= rate + 4 * np.sqrt(rate / (8 * len(scores)))


def test_constant_score_never_fails():
    calibration = make(threshold=-5.0)
    one_step_episodes(calibration, [2.0] * MIN_SCORES)
    add_held_out_episodes(calibration, 2.0)
    calibration.calibrate(0)
    assert judge(calibration, [2.0] * 30) == [False] * 30
    assert threshold(calibration) == pytest.approx(2.0)
    assert judge(calibration, [1.0]) == [True]


def test_supremum_never_fails():
    calibration = make(supremum=1.0)
    one_step_episodes(calibration, [-1.0] + [1.0] * 99)
    add_held_out_episodes(calibration)
    calibration.calibrate(0)
    assert judge(calibration, [1.0, 0.9] * 20, 1.0) == [False, True] * 20


@pytest.mark.parametrize(("n", "expected"), [(MIN_SCORES - 1, -7.0), (MIN_SCORES, 3.0)])
def test_too_few_scores_use_the_default_threshold(n, expected):
    calibration = make(threshold=-7.0, supremum=9.0)
    one_step_episodes(calibration, [3.0] * n)
    add_held_out_episodes(calibration)
    calibration.calibrate(0)
    assert threshold(calibration) == expected


def test_last_and_unfinished_episodes_are_held_out():
    calibration = make(supremum=9.0)
    episode(calibration, [3.0] * 60)
    for _ in range(HELD_OUT_EPISODES):
        episode(calibration, [-1.0] * 500)
    calibration.record(ROW, np.array([-2.0]))
    calibration.calibrate(0)
    assert threshold(calibration) == 3.0


def test_only_the_latest_scores_are_kept():
    calibration = make(supremum=9.0)
    one_step_episodes(calibration, [5.0] * 300)
    episode(calibration, [3.0] * (MAX_SCORES - HELD_OUT_EPISODES))
    add_held_out_episodes(calibration)
    calibration.calibrate(0)
    assert threshold(calibration) == 3.0


def test_failure_needs_a_low_running_mean():
    calibration = make(supremum=9.0)
    one_step_episodes(calibration, [0.0] * 100)
    add_held_out_episodes(calibration)
    calibration.calibrate(0)

    def fails(score: float) -> bool:
        return bool(calibration.judge(ROW, np.array([score]), 9.0, np.ones(1))[0])

    assert [fails(score) for score in (2.0, -1.0, -1.0, 1.0)] == [False, False, True, False]
    # running means: 2, .5, -.25
    calibration.end_episode(ROW, ~ORIGINAL)
    assert fails(-1.0), "the running mean starts anew in each episode"


@settings(max_examples=25, deadline=None)
@given(st.floats(1e-3, 1e3), st.integers(0, 10))
def test_score_without_supremum_is_scale_free(scale, seed):
    scores = np.random.default_rng(seed).normal(size=200)
    verdicts = []
    for factor in (1.0, scale):
        calibration = make()
        one_step_episodes(calibration, scores)
        add_held_out_episodes(calibration)
        calibration.calibrate(0)
        verdicts.append(judge(calibration, (scores[:80] - 0.5) * factor))
    assert verdicts[0] == verdicts[1]
    assert any(verdicts[0])
    assert not all(verdicts[0])
