"""What detectors measure, as the playground shows it: a value and the limits beyond which they alarm."""

import numpy as np

from nappingrl.detectors.base import Announced
from nappingrl.detectors.returns import Cusum, RollingMean
from nappingrl.play.match import Match, MatchSpec

ROW = np.zeros(1, np.int64)


def test_a_rolling_mean_has_one_once_its_window_is_full() -> None:
    detector = RollingMean(1, low=150.0, first=0)
    detector.start(ROW, 0)
    for episode in range(5):
        assert detector.gauge(0) is None
        detector.end_episode(ROW, np.array([200.0]), np.array([episode + 1]))
    gauge = detector.gauge(0)
    assert gauge is not None
    assert (gauge.value, gauge.low, gauge.high) == (200.0, 150.0, np.inf)


def test_cusum_alarms_where_its_sum_exceeds_the_limit() -> None:
    detector = Cusum(1)
    detector.start(ROW, -12)
    for episode in range(-12, 4):
        detector.end_episode(ROW, np.array([100.0 if episode < 0 else 0.0]), np.array([episode + 1]))
        gauge = detector.gauge(0)
        assert gauge is not None
        assert (gauge.value > gauge.high) == bool(detector.context[0])
    assert detector.context[0]


def test_residual_alarms_where_its_surprise_exceeds_the_limit() -> None:
    match = Match(MatchSpec("cartpole", method="reground", n_before=10))
    match.change_world({"action-remap[0]": 1.0, "action-remap[1]": 0.0})
    while not match.adapting.alarms:
        gauge = match.adapting.gauge
        assert gauge is None or gauge.value <= gauge.high
        match.step()
    assert match.adapting.gauge is not None
    assert match.adapting.gauge.value > match.adapting.gauge.high == 1.0


def test_a_detector_that_is_told_has_none() -> None:
    assert Announced(1).gauge(0) is None
