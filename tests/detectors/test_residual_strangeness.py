"""Strangeness: how whole episodes rank among those of the calibration."""

import numpy as np
import pytest

from nappingrl.detectors.residual.config import ResidualConfig
from nappingrl.detectors.residual.strangeness import Strangeness
from nappingrl.types import Floats
from nappingrl.world_model.reference import Judged

ROWS = np.array([0])
N_STEPS = 30


def calibrated(means: Floats) -> Strangeness:
    """A test whose calibrated episodes have these means."""
    m = len(means) * N_STEPS
    nothing, none = np.zeros((m, 1)), np.zeros(m, np.int64)
    strangeness = Strangeness(1, ResidualConfig())
    episodes = np.repeat(np.arange(len(means)), N_STEPS)
    strangeness.calibrate(0, Judged(nothing, none, nothing, episodes, nothing, nothing, np.repeat(means, N_STEPS)))
    return strangeness


def n_until_alarm(strangeness: Strangeness, mean: float, most: int = 20) -> int:
    for n in range(1, most + 1):
        strangeness.end_episode(0, np.full(N_STEPS, mean))
        if strangeness.is_alarm(ROWS)[0]:
            return n
    return 0


def test_successive_episodes_that_are_stranger_than_all_raise_an_alarm() -> None:
    means = np.linspace(0.3, 0.8, 40)
    assert n_until_alarm(calibrated(means), 0.9) == 4
    assert n_until_alarm(calibrated(means), 0.75) == 0


def test_fewer_calibrated_episodes_need_more_strange_ones() -> None:
    assert n_until_alarm(calibrated(np.linspace(0.3, 0.8, 12)), 0.9) == 8
    assert n_until_alarm(calibrated(np.linspace(0.3, 0.8, 4)), 9.0) == 0


@pytest.mark.parametrize("mean", [0.5, np.nan])
def test_one_episode_in_between_that_is_not_strange_starts_anew(mean: float) -> None:
    strangeness = calibrated(np.linspace(0.3, 0.8, 40))
    for _ in range(3):
        strangeness.end_episode(0, np.full(N_STEPS, 0.9))
    strangeness.end_episode(0, np.full(N_STEPS, mean))
    strangeness.end_episode(0, np.full(N_STEPS, 0.9))
    assert strangeness.is_alarm(ROWS)[0] == np.isnan(mean)  # too few judged steps say nothing


def test_false_alarms_do_not_depend_on_the_distribution() -> None:
    rng = np.random.default_rng(0)
    n_alarms = 0
    for _ in range(300):
        means = 0.5 + rng.pareto(1.5, 80)
        strangeness = calibrated(means[:40])
        for mean in means[40:]:
            strangeness.end_episode(0, np.full(N_STEPS, mean))
            if strangeness.is_alarm(ROWS)[0]:
                n_alarms += 1
                break
    assert n_alarms <= 1
