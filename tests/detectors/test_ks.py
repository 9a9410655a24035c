"""Kolmogorov-Smirnov per feature."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import gumbel_r

from detectors.by_hand import FACTS, make_trials, play, transition
from nappingrl.detectors.observations import KsFeatures, ks_distances, limits
from nappingrl.errors import BadSpecError


def values(most: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-5, 5), min_size=1, max_size=most)


@settings(deadline=None)
@given(values(30), values(8))
def test_the_distance_is_the_greatest_between_two_shares(reference: list[int], sample: list[int]) -> None:
    """Ties among few values, and what lies behind the counted ones is not looked at."""
    gaps = np.zeros(1)
    ordered, padded = (np.array([[*sorted(part), np.inf]], np.float32) for part in (reference, sample))
    ks_distances(ordered, len(reference), padded, len(sample), gaps)
    shares = [[np.mean(np.array(part) <= value) for value in range(-5, 6)] for part in (reference, sample)]
    assert gaps[0] == pytest.approx(np.abs(np.subtract(*shares)).max())


def test_limits_are_a_gumbel_quantile_of_the_stretched_distances() -> None:
    held_out = np.array([[0.1, 0.0], [0.2, 0.0], [0.3, 0.0]])
    stretched = np.arctanh(held_out)
    scale = stretched[:, 0].std(ddof=1) * np.sqrt(6) / np.pi
    expected = gumbel_r(loc=stretched[:, 0].mean() - np.euler_gamma * scale, scale=scale).ppf(0.99)
    found = limits(held_out, 0.01)
    assert found[0] == pytest.approx(np.tanh(expected))
    assert 0.0 < found[1] < 0.05, "where all episodes were the same little is allowed, but not nothing"


def test_limits_rise_with_rarer_false_alarms() -> None:
    held_out = np.array([[0.5], [0.6], [0.7]])
    assert 0.7 < limits(held_out, 0.1)[0] < limits(held_out, 0.01)[0] < 1.0


def test_it_says_which_features_changed() -> None:
    trials = make_trials()
    trials.observations[:, 40:, :, 0] -= 4.0 * (np.arange(3) < 2)[:, None, None]  # speed alone has changed
    detector = KsFeatures.for_domain(3, FACTS)
    detector.start(np.arange(3), -40)
    play(detector, trials, -40)
    assert detector.explain(0).startswith("changed values of speed (KS ")
    assert "height" not in detector.explain(0)
    unnamed = KsFeatures(3)
    unnamed.start(np.arange(3), -40)
    play(unnamed, trials, -40)
    assert unnamed.explain(0).startswith("changed values of obs[1] (KS ")


def test_of_many_changed_features_the_most_changed_are_named() -> None:
    detector = KsFeatures(2)
    detector.start(np.arange(2), -40)
    play(detector, make_trials(n=2, features=7), -40)
    assert detector.explain(0).endswith(" and 2 more")
    assert detector.explain(0).count("KS") == 5


def test_returns_alone_say_nothing_to_it() -> None:
    trials = make_trials()
    trials.observations[:-1, 40:] -= 4.0
    detector = KsFeatures.for_domain(3, FACTS)
    detector.start(np.arange(3), -40)
    play(detector, trials, -40)
    assert detector.context.tolist() == [0, 0, 0]


def test_a_wider_spread_is_found_too() -> None:
    trials = make_trials(steps=30)
    trials.observations[:-1, 40:] = (trials.observations[:-1, 40:] - 4.0) * 10
    detector = KsFeatures(3)
    detector.start(np.arange(3), -40)
    play(detector, trials, -40)
    assert detector.context.tolist() == [1, 1, 0]


def test_false_alarms_are_rare_though_steps_depend_on_each_other() -> None:
    """Random walks, each around a different point: the textbook's test would alarm at nearly every one."""
    rng = np.random.default_rng(8)
    n, episodes, steps = 60, 80, 20
    walks = np.cumsum(rng.normal(size=(n, episodes, steps, 2)), axis=2) * 0.1 + rng.normal(size=(n, episodes, 1, 2))
    trials = make_trials(n, episodes, steps)
    trials.observations[:] = walks
    detector = KsFeatures(n)
    detector.start(np.arange(n), -40)
    worlds = np.array(play(detector, trials, -40))
    assert 1000 * worlds[-1].sum() / (1 - worlds[40:]).sum() < 2.0


def test_long_episodes_are_thinned_evenly() -> None:
    detector = KsFeatures(2, points=4)
    detector.start(np.arange(2), -1)
    for step in range(11):
        now = np.full((2, 1), step, np.float32)
        detector.step(np.array([0, 1]), transition(now, now))
        if step == 5:
            assert detector.state()["_window"][0, 0].tolist() == [0.0, 2.0, 4.0, np.inf]
    assert detector.state()["_window"][1, 0].tolist() == [0.0, 4.0, 8.0, np.inf]


def test_of_many_episodes_before_the_novelty_the_latest_are_kept() -> None:
    trials = make_trials(episodes=120)
    trials.observations[:, :50] += 50.0
    trials.observations[:-1, 40:] -= 4.0
    trials.observations[0, 100:] += 4.0
    detector = KsFeatures(3)
    detector.start(np.arange(3), -100)
    play(detector, trials, -100)
    assert detector.context.tolist() == [1, 0, 0]


def test_a_dictionary_of_observations_is_taken_apart() -> None:
    rng = np.random.default_rng(4)
    detector = KsFeatures(1)
    detector.start(np.array([0]), -40)
    for episode in range(-40, 5):
        for _ in range(6):
            seen = {"a": rng.normal(size=(1, 2, 2)), "b": rng.normal(size=(1, 1)) + 9.0 * (episode >= 0)}
            detector.step(np.array([0]), transition(seen, seen))
        detector.end_episode(np.array([0]), np.zeros(1), np.array([episode + 1]))
    assert detector.explain(0).startswith("changed values of obs[4] (KS 1.00)")


def test_values_that_are_no_numbers_do_not_stop_it() -> None:
    trials = make_trials()
    trials.observations[0, ::3, 2, 0] = np.nan
    trials.observations[1, ::3, 2, 1] = np.inf
    detector = KsFeatures(3)
    detector.start(np.arange(3), -40)
    play(detector, trials, -40)
    assert detector.context.tolist() == [1, 1, 0]


def test_pictures_are_refused_in_one_line() -> None:
    picture = np.zeros((1, 84, 84), np.uint8)
    with pytest.raises(BadSpecError, match=r"^detector ks compares each feature .* 7056 came, allowed: 1 to 1000"):
        KsFeatures(1).step(np.array([0]), transition(picture, picture))
