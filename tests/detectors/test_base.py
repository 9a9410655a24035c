"""Novelty detectors on hand-made returns."""

from collections.abc import Sequence
from math import inf

import numpy as np
import pytest

from nappingrl.detectors import Announced, Detector, Never, RollingMean
from nappingrl.types import Decision, Transition

NO_STEP = Transition(
    np.zeros((2, 1), np.float32),
    Decision(np.zeros(2, np.int64), np.zeros((2, 1), np.float32), np.zeros((2, 2), np.float32)),
    np.zeros(2, np.int64),
    np.zeros((2, 1), np.float32),
    np.zeros(2),
    np.zeros(2, np.bool_),
    np.zeros(2, np.bool_),
)


def alarms(detector: Detector, returns: Sequence[float], first_episode: int = 0, row: int = 0) -> list[int]:
    """The first episode before which the detector alarms, for the returns of consecutive episodes of one trial."""
    rows = np.array([row])
    detector.start(rows, first_episode)
    if detector.context[row]:
        return [first_episode]
    for i, value in enumerate(returns):
        following = first_episode + i + 1
        detector.begin_phase(rows, following >= 0)
        detector.end_episode(rows, np.array([value]), np.array([following]))
        if detector.context[row]:
            return [following]
    return []


def test_never_alarms() -> None:
    assert alarms(Never(1), [-1e9] * 20, first_episode=-5) == []


def test_given_alarms_when_episode_0_begins() -> None:
    assert alarms(Announced(1), [200.0] * 5, first_episode=-3)[0] == 0


def test_given_alarms_at_once_without_a_first_phase() -> None:
    assert alarms(Announced(1), [], first_episode=0) == [0]
    assert alarms(Announced(1), [], first_episode=-1) == []


@pytest.mark.parametrize("kind", [Never, Announced, RollingMean])
def test_a_step_alone_does_not_alarm(kind: type[Detector]) -> None:
    detector = kind(2)
    detector.step(np.array([1, 0]), NO_STEP)
    assert detector.context.tolist() == [0, 0]


def test_rolling_mean_is_judged_first_before_episode_5() -> None:
    assert alarms(RollingMean(1, low=150), [0.0] * 8, first_episode=-3) == [5]
    assert alarms(RollingMean(1, low=150), [0.0] * 8) == [5]


def test_returns_before_the_novelty_have_left_the_window_by_then() -> None:
    """Before episode 5 the window holds the returns of episodes 0..4 and no others."""
    assert alarms(RollingMean(1, low=150), [0.0] * 10 + [200.0] * 5, first_episode=-10) == []
    assert alarms(RollingMean(1, low=150), [200.0] * 10 + [0.0] * 5, first_episode=-10) == [5]


@pytest.mark.parametrize(
    ("returns", "expected"),
    [
        ([200, 200, 200, 200, 0], []),  # 160
        ([200, 200, 200, 150, 0], []),  # 150 is not below 150
        ([200, 200, 200, 149, 0], [5]),
        ([200, 200, 200, 200, 0, 0], [6]),  # 120
        ([0, 200, 200, 200, 200, 200], []),
        ([100, 100, 100, 200, 200, 200, 200, 200], [5]),  # 140, then 160, 180, 200
    ],
)
def test_mean_of_the_last_five(returns: list[float], expected: list[int]) -> None:
    assert alarms(RollingMean(1, low=150), returns) == expected


def test_two_sided() -> None:
    limits = {"low": -120.0, "high": -80.0}
    assert alarms(RollingMean(1, **limits), [-100.0] * 5) == []
    assert alarms(RollingMean(1, **limits), [-121.0] * 5) == [5]
    assert alarms(RollingMean(1, **limits), [-79.0] * 5) == [5]
    assert alarms(RollingMean(1, **limits), [-120.0] * 5) == alarms(RollingMean(1, **limits), [-80.0] * 5) == []


def test_without_limits_it_never_alarms() -> None:
    assert alarms(RollingMean(1), [-1e9] * 9) == []


def test_window_and_first_can_be_chosen() -> None:
    assert alarms(RollingMean(1, low=1, window=2, first=3), [0.0] * 4) == [3]
    assert alarms(RollingMean(1, low=1, window=3, first=-inf), [0.0] * 4, first_episode=-10) == [-7]


def test_start_forgets_the_returns_of_its_rows_only() -> None:
    detector = RollingMean(2, low=150, first=-inf)
    both = np.array([0, 1])
    for episode in range(4):
        detector.end_episode(both, np.zeros(2), np.full(2, episode + 1))
    detector.start(np.array([0]), 0)
    detector.end_episode(both, np.zeros(2), np.array([5, 5]))
    assert detector.context.tolist() == [0, 1]
    for episode in range(3):
        detector.end_episode(np.array([0]), np.zeros(1), np.array([episode + 2]))
    assert detector.context.tolist() == [0, 1]
    detector.end_episode(np.array([0]), np.zeros(1), np.array([5]))
    assert detector.context.tolist() == [1, 1]


def test_rows_are_judged_apart_in_the_order_they_are_given() -> None:
    detector = RollingMean(3, low=150)
    rows = np.array([2, 0])
    for episode in range(5):
        detector.end_episode(rows, np.array([0.0, 200.0]), np.full(2, episode + 1))
    assert detector.context.tolist() == [0, 0, 1]


def test_given_follows_the_protocol_there_and_back() -> None:
    detector, found = Announced(2), []
    detector.start(np.array([0, 1]), -1)
    for is_novel in (False, True, False, True):
        detector.begin_phase(np.array([1]), is_novel)
        found.append(detector.context.tolist())
    assert found == [[0, 0], [0, 1], [0, 0], [0, 1]]
