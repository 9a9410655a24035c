"""What every registered detector keeps to."""

import io

import numpy as np
import pytest

from detectors.by_hand import FACTS, NAMES, make_trials, needs_river, play
from nappingrl.detectors import Detector
from nappingrl.registry import detectors

CALIBRATED = ["page-hinkley", "cusum", pytest.param("adwin", marks=needs_river), "ks"]


def make(name: str, n: int) -> Detector:
    made: Detector = detectors.get(name).for_domain(n, FACTS)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_restored_it_goes_on_as_if_nothing_had_happened(name: str) -> None:
    """At any time, through a file without pickle: while it learns, and while it judges."""
    trials = make_trials()
    for cut in (7, 42):
        going, restored = make(name, 3), make(name, 3)
        going.start(np.arange(3), -40)
        play(going, trials.part(0, cut), -40)
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **going.state())
        file.seek(0)
        restored.start(np.arange(3), 0)
        restored.restore(dict(np.load(file, allow_pickle=False)))
        rest = trials.part(cut, 60)
        assert play(going, rest, cut - 40) == play(restored, rest, cut - 40)
        for key, value in going.state().items():
            np.testing.assert_array_equal(value, restored.state()[key])


@pytest.mark.parametrize("name", NAMES)
def test_a_trial_does_not_depend_on_its_neighbours(name: str) -> None:
    trials = make_trials()
    rows = np.array([4, 0, 2])
    together = make(name, 5)
    together.start(rows, -40)
    worlds = np.array(play(together, trials, -40, rows))
    for i in range(3):
        alone = make(name, 1)
        alone.start(np.array([0]), -40)
        assert np.array(play(alone, trials.only(np.array([i])), -40))[:, 0].tolist() == worlds[:, i].tolist()
    assert together.context[[1, 3]].tolist() == [0, 0]


@pytest.mark.parametrize("name", NAMES)
def test_a_new_trial_in_the_place_of_an_old_one_begins_afresh(name: str) -> None:
    trials, other = make_trials(), make_trials(seed=1)
    used, fresh = make(name, 3), make(name, 3)
    used.start(np.arange(3), -40)
    play(used, other, -40)
    for detector in (used, fresh):
        detector.start(np.arange(3), -40)
    assert play(used, trials, -40) == play(fresh, trials, -40)


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_jump_is_found_and_nothing_is_not(name: str) -> None:
    detector = make(name, 3)
    detector.start(np.arange(3), -40)
    worlds = np.array(play(detector, make_trials(), -40))
    assert not worlds[:40].any()
    assert worlds[45:].tolist() == [[1, 1, 0]] * 15
    assert detector.explain(0)
    assert detector.explain(2) == ""


@pytest.mark.parametrize("name", CALIBRATED)
def test_outside_trials_it_learns_from_its_first_episodes(name: str) -> None:
    """Those are numbered from 0; what changes while it learns is usual."""
    detector = make(name, 3)
    detector.start(np.arange(3), 0)
    worlds = np.array(play(detector, make_trials(), 0))
    assert not worlds[:40].any()
    assert worlds[-1].tolist() == [1, 1, 0]
    early = make(name, 3)
    early.start(np.arange(3), 0)
    assert not np.array(play(early, make_trials().part(20, 60), 0)).any()


@pytest.mark.parametrize("name", ["page-hinkley", "cusum", "ks"])
def test_four_episodes_are_too_few_to_judge_by(name: str) -> None:
    for first, expected in ((-4, [0, 0, 0]), (-5, [1, 1, 0])):
        detector = make(name, 3)
        detector.start(np.arange(3), first)
        play(detector, make_trials(seed=3).part(40 + first, 60), first)
        assert detector.context.tolist() == expected


@pytest.mark.parametrize("name", CALIBRATED)
def test_it_can_be_made_without_knowing_the_world(name: str) -> None:
    detector: Detector = detectors.get(name)(3)
    detector.start(np.arange(3), -40)
    play(detector, make_trials(), -40)
    assert detector.context.tolist() == [1, 1, 0]
