"""Exchanged actions whose effect is small beside the noise of a step."""

from dataclasses import replace

import numpy as np

from detectors.linear_worlds import BEFORE, CALM, Trials
from nappingrl.detectors.residual import EXCHANGE

NOISY = replace(CALM, noise=0.06, gains=(0.1, 0.2, 0.15))
SWAPPED = replace(NOISY, gains=(-0.1, -0.2, -0.15))
"""Each action acts as the other one did."""
STILL = replace(NOISY, gains=(0.0, 0.0, 0.0))
"""Neither acts."""
LONG = 60


def noisy_trials(n: int) -> Trials:
    trials = Trials(n)
    assert not trials.play(NOISY, BEFORE, steps=LONG).any()
    return trials


def test_swapped_actions_are_found_within_tens_of_steps() -> None:
    trials = noisy_trials(8)
    believed = trials.play(SWAPPED, steps=LONG)
    assert (believed[:, 39] == 1).all()
    assert (trials.detector._cause == EXCHANGE).all()
    assert (trials.detector.exchange.is_blamed == [[False, True], [True, False]]).all()


def test_only_the_actions_themselves_end_such_an_alarm() -> None:
    """While they are swapped the alarm stays; it ends within an episode once they act as before."""
    trials = noisy_trials(8)
    trials.play(SWAPPED, steps=LONG)
    assert (trials.play(SWAPPED, 5, steps=LONG) == 1).all()
    assert (trials.play(NOISY, 2, steps=LONG)[:, LONG:] == 0).all()


def test_actions_without_effect_are_not_exchanged() -> None:
    trials = noisy_trials(4)
    trials.play(STILL, 3, steps=LONG)
    assert not trials.detector.exchange.is_blamed.any()
    assert np.isfinite(trials.detector.exchange.limit).all()
