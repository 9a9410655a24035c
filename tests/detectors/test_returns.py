"""CUSUM, Page-Hinkley and ADWIN on hand-made and on random returns."""

import sys

import numpy as np
import pytest

from detectors.by_hand import needs_river, returns_of
from nappingrl.detectors import Adwin, Cusum, Detector, PageHinkley
from nappingrl.errors import MissingExtraError

NEVER = 999
KINDS = [Cusum, PageHinkley, pytest.param(Adwin, marks=needs_river)]
USUAL = [9.0, 11.0] * 20
"""Mean 10, and a spread of the square root of 40/39: 1.0127."""


def alarm(detector: Detector, returns: list[float], first: int = -40) -> int:
    return int(returns_of(detector, np.array([returns]), first)[0])


def test_cusum_by_hand() -> None:
    """With a spread of s = 1.0127 and an allowance of 0.5, returns of 10 - 3 s add 2.5 each."""
    spread = np.sqrt(40 / 39)
    returns = USUAL + [10 - 3 * spread] * 10
    assert alarm(Cusum(1, limit=7.4), returns) == 3
    assert alarm(Cusum(1, limit=7.6), returns) == 4
    assert alarm(Cusum(1, limit=7.4), USUAL + [10 + 3 * spread] * 10) == 3
    assert alarm(Cusum(1, limit=7.4, allowance=3.0), returns) == NEVER
    assert alarm(Cusum(1, limit=7.4, clip=2.0), returns) == 5, "1.5 each"


def test_a_sum_of_cusum_does_not_go_below_0() -> None:
    """A hundred good episodes earn no credit for bad ones."""
    spread = np.sqrt(40 / 39)
    returns = USUAL + [10.0] * 100 + [10 - 3 * spread] * 3
    assert alarm(Cusum(1, limit=7.4), returns) == 103


def test_page_hinkley_by_hand() -> None:
    """The k-th return at 3 spreads is 3 - 3 k / (40 + k) from the mean so far, less 0.5: 2.427, 2.357, 2.291."""
    returns = USUAL + [10 + 3 * np.sqrt(40 / 39)] * 10
    assert alarm(PageHinkley(1, limit=7.07), returns) == 3
    assert alarm(PageHinkley(1, limit=7.08), returns) == 4


def test_page_hinkley_forgives_a_slow_drift_that_cusum_does_not() -> None:
    drift = (10 + np.minimum(np.arange(1000) / 500, 0.9)).tolist()
    assert alarm(PageHinkley(1), USUAL + drift) == NEVER
    assert alarm(Cusum(1), USUAL + drift) < 1000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("usual", "other"), [(200.0, 100.0), (200.0, 300.0), (-500.0, -100.0), (0.0, 1.0)])
def test_returns_that_were_all_the_same(kind: type[Detector], usual: float, other: float) -> None:
    assert alarm(kind(1), [usual] * 80) == NEVER
    detector = kind(1)
    assert 2 <= alarm(detector, [usual] * 40 + [other] * 40) <= 4
    assert (
        detector.explain(0)
        == f"returns {'rose above' if other > usual else 'fell below'} their previous mean of {usual:g}"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundredth_of_the_mean_is_no_change_of_returns_that_were_all_the_same(kind: type[Detector]) -> None:
    assert alarm(kind(1), [200.0] * 40 + [198.0] * 40) == NEVER


@pytest.mark.parametrize("kind", [Cusum, PageHinkley])
def test_one_odd_episode_does_not_alarm_two_do(kind: type[Detector]) -> None:
    assert alarm(kind(1), [*USUAL, -1e9, *USUAL]) == NEVER
    assert alarm(kind(1), [*USUAL, -1e9, -1e9]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_comes_before_the_novelty_does_not_alarm(kind: type[Detector]) -> None:
    assert alarm(kind(1), [0.0] * 20 + [200.0] * 20) == NEVER


@pytest.mark.parametrize("kind", KINDS)
def test_false_alarms_are_rare(kind: type[Detector]) -> None:
    """1 per 1000 episodes at most, in 300 trials of 200 episodes after the 40 learned from."""
    rng = np.random.default_rng(5)
    shape = 300, 240
    for returns in (rng.normal(100, 20, shape), rng.uniform(-1, 1, shape), rng.integers(0, 2, shape).astype(float)):
        found = returns_of(kind(300), returns)
        watched = np.minimum(found, 200).sum()
        assert 1000 * (found < NEVER).sum() / watched < 1.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", [-1, 1])
def test_a_jump_of_four_spreads_is_found_soon(kind: type[Detector], side: int) -> None:
    rng = np.random.default_rng(6)
    returns = rng.normal(100, 20, (100, 80))
    returns[:, 40:] += side * 80
    found = returns_of(kind(100), returns)
    assert (found >= 1).all()
    assert np.median(found) <= 8
    assert found.max() < 40


@needs_river
@pytest.mark.parametrize(("jump", "expected"), [(3.0, 7), (4.0, 6), (6.0, 5), (8.0, 4), (30.0, 3)])
def test_adwin_alarms_where_its_bound_says(jump: float, expected: int) -> None:
    """After 40 returns of 0 spreads, k of `jump` spreads are a part of their own as soon as the means differ enough.

    The bound of Bifet and Gavalda: sqrt(2 v L / m) + 2 L / (3 m) with L = ln(2 ln(n) / delta), v the variance of all n
    and 1/m = 1/n0 + 1/n1; river takes n0 and n1 as `least` - 1 smaller.
    """

    def bound(k: int) -> float:
        log, m = np.log(2 * np.log(40 + k) / 0.002), 1 / (1 / 39 + 1 / (k - 1))
        return float(np.sqrt(2 * np.var([0.0] * 40 + [jump] * k) * log / m) + 2 * log / (3 * m))

    assert min(k for k in range(2, 40) if jump > bound(k)) == expected
    returns = [100.0] * 40 + [100.0 + 5.0 * jump] * 39  # where all are the same the spread is a twentieth
    assert alarm(Adwin(1), returns) == expected


@needs_river
def test_adwin_remembers_more_episodes_than_it_had_room_for() -> None:
    detector = Adwin(1, calibration=10)
    assert alarm(detector, [9.0, 11.0] * 50 + [30.0] * 20, first=0) > 100
    assert detector.state()["_history"].shape[1] >= 100


@needs_river
def test_adwin_drops_the_older_half_of_a_full_history_and_still_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.detectors.adwin.MAX_HISTORY", 80)
    detector, loaded = Adwin(1), Adwin(1)
    usual = np.random.default_rng(1).normal(100.0, 5.0, 500).tolist()
    assert alarm(detector, usual) == NEVER
    assert detector.state()["_history"].shape[1] == 80
    loaded.restore(detector.state())
    for jumped in range(20):
        for each in (detector, loaded):
            each.end_episode(np.array([0]), np.array([150.0]), np.array([500 + jumped]))
        assert detector.context[0] == loaded.context[0] == (jumped >= 2)


def test_adwin_without_river_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "river.drift", None)
    with pytest.raises(MissingExtraError, match=r'^detector adwin needs river: pip install "nappingrl\[detect\]"$'):
        Adwin(1)
