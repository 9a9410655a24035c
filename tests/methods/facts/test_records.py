"""Steps as facts."""

import numpy as np
import pytest

from methods.facts.worlds import record, seen
from nappingrl.methods.facts import records
from nappingrl.methods.facts.records import Places, Recorder


def test_places_are_numbered_as_they_are_met() -> None:
    places = Places(2)
    assert [places.add(seen(*xy)) for xy in ((5, 1), (2, 2), (5, 1), (0, 0))] == [0, 1, 0, 2]
    assert places.find(seen(2, 2)) == 1
    assert places.find(seen(2, 3)) == -1
    assert len(places) == 3
    assert places.observations.tolist() == [[5, 1], [2, 2], [0, 0]]
    assert Places(2).observations.shape == (0, 2)


def test_zeros_of_both_signs_are_one_place() -> None:
    places = Places(2)
    assert places.add(seen(-0.0, 1)) == places.add(seen(0.0, 1)) == 0


def test_steps_are_kept_once() -> None:
    recorder = Recorder(Places(1))
    step = (0, seen(1), 2, seen(3), 0.5, False)
    assert recorder.add(*step)
    assert not recorder.add(*step)
    assert recorder.add(1, *step[1:]), "the same at another time"
    assert recorder.add(*step[:4], -0.5, False), "another reward"
    facts = recorder.facts()
    assert facts.n == 3
    assert facts.times.tolist() == [0, 1, 0]
    assert (facts.places.tolist(), facts.next_places.tolist(), facts.actions.tolist()) == ([0] * 3, [1] * 3, [2] * 3)
    assert facts.rewards.tolist() == [0.5, 0.5, -0.5]
    assert not facts.terminated.any()


def test_no_facts_have_the_right_types() -> None:
    facts = record(Places(1), []).facts()
    assert facts.n == 0
    assert (facts.places.dtype, facts.rewards.dtype, facts.terminated.dtype) == (np.int64, np.float64, np.bool_)


def test_their_number_is_bounded_and_so_is_that_of_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "MAX_FACTS", 5)
    recorder = Recorder(Places(1))
    is_new = [recorder.add(0, seen(i), 0, seen(i + 1), 0.0, False) for i in range(50)]
    assert is_new == [True] * 5 + [False] * 45
    assert recorder.facts().n == 5
    assert len(recorder.places) == 6


def test_restored_it_goes_on_identically() -> None:
    going = Recorder(Places(1))
    for i in range(4):
        going.add(i, seen(i), i % 2, seen(i + 1), 0.25 * i, i == 3)
    restored = Recorder(Places(1, going.places.observations))
    restored.restore(going.facts())
    for recorder in (going, restored):
        assert not recorder.add(2, seen(2), 0, seen(3), 0.5, False)
        assert recorder.add(0, seen(9), 0, seen(0), 0.0, False)
    for name in ("times", "places", "actions", "next_places", "rewards", "terminated"):
        np.testing.assert_array_equal(getattr(restored.facts(), name), getattr(going.facts(), name))
    for name in ("moves", "outcomes", "last_time", "contradicted_share"):
        assert getattr(restored, name) == getattr(going, name)
    np.testing.assert_array_equal(restored.places.observations, going.places.observations)
