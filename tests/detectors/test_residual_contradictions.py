"""Deterministic worlds: an action that leads elsewhere than it always did raises an alarm."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.detectors.residual import CONTRADICTION, Residual
from nappingrl.detectors.residual.contradictions import N_CONTRADICTED, N_LATEST
from nappingrl.types import Decision, DomainSpec, Transition

SIZE = 6
DOMAIN = DomainSpec(np.zeros(SIZE, np.float32), np.ones(SIZE, np.float32), n_actions=3, horizon=20)
BEFORE = 20
Move = Callable[[int, int], int]


def ring(place: int, action: int) -> int:
    """Actions go 1, 2 and 0 places on."""
    return (place + (1, 2, 0)[action]) % SIZE


def blocked(place: int, action: int) -> int:
    """As `ring`, but from place 2 the first action leads nowhere."""
    return place if (place, action) == (2, 0) else ring(place, action)


class Watch:
    """A detector that watches one walker, whose actions are given."""

    def __init__(self) -> None:
        self.detector, self.row = Residual(1, DOMAIN), np.array([0])
        self.detector.start(self.row, -BEFORE)
        self.episode, self.place = -BEFORE, 0

    def walk(self, actions: list[int], move: Move = ring) -> list[int]:
        """Step by step the context that it believes in."""
        contexts = []
        for action in actions:
            end = move(self.place, action)
            self.detector.step(self.row, step(self.place, action, end))
            self.place = end
            contexts.append(int(self.detector.context[0]))
        return contexts

    def end_episode(self) -> None:
        self.episode, self.place = self.episode + 1, 0
        self.detector.end_episode(self.row, np.zeros(1), np.array([self.episode]))

    def calibrate(self, move: Move = ring) -> "Watch":
        """Both of the first two actions everywhere, the third nowhere."""
        for episode in range(BEFORE):
            assert not any(self.walk([episode % 2] * SIZE + [1] + [episode % 2] * 3, move))
            self.end_episode()
        return self


def step(place: int, action: int, end: int) -> Transition:
    rows: NDArray[np.float32] = np.eye(SIZE, dtype=np.float32)
    actions, no = np.array([action]), np.zeros(1, np.bool_)
    decision = Decision(actions, np.zeros((1, 1), np.float32), np.zeros((1, 3), np.float32))
    return Transition(rows[[place]], decision, actions, rows[[end]], np.zeros(1), no, no)


def test_two_contradictions_raise_an_alarm_and_one_does_not() -> None:
    assert N_CONTRADICTED == 2
    watch = Watch().calibrate()
    assert watch.walk([0, 0, 0, 0], blocked) == [0, 0, 0, 1]
    assert watch.detector._cause[0] == CONTRADICTION


def test_a_contradiction_long_ago_does_not_count() -> None:
    watch = Watch().calibrate()
    assert not any(watch.walk([0, 0, 0], blocked))
    assert not any(watch.walk([0] * (N_LATEST - 1)))
    watch.place = 2
    assert watch.walk([0], blocked) == [0]
    assert watch.walk([0], blocked) == [1]


def test_what_was_never_tried_contradicts_nothing() -> None:
    watch = Watch().calibrate()
    assert not any(watch.walk([2] * 30, lambda place, action: (place + 3) % SIZE))


def test_an_unchanged_world_never_alarms() -> None:
    watch, rng = Watch().calibrate(), np.random.default_rng(0)
    for _ in range(30):
        assert not any(watch.walk(rng.integers(3, size=20).tolist()))
        watch.end_episode()


def test_a_world_by_chance_is_not_watched_for_contradictions() -> None:
    rng = np.random.default_rng(0)

    def slippery(place: int, action: int) -> int:
        return ring(place, int(rng.integers(3)) if rng.random() < 0.3 else action)

    watch = Watch().calibrate(slippery)
    assert watch.detector.memory.repeats(0) is None
    watch.walk([0] * 40, slippery)
    assert not watch.detector.contradictions.latest.any()


def test_it_comes_back_with_the_original_world() -> None:
    watch = Watch().calibrate()
    assert watch.walk([0] * 4, blocked)[-1] == 1
    contexts = watch.walk([0] * (N_LATEST + 1))
    assert contexts == [1] * (N_LATEST - 1) + [0] * 2
    assert watch.walk([0] * 4, lambda place, action: place)[-1] > 0, "it watches again"


def test_ways_round_the_change_do_not_say_that_the_original_world_is_back() -> None:
    """An adapted agent no longer executes what was contradicted; elsewhere everything is as it was."""
    watch = Watch().calibrate()
    watch.walk([0] * 4, blocked)
    watch.end_episode()
    for _ in range(8):
        assert watch.walk([0, 1, 0, 0, 0, 1], blocked) == [1] * 6
        watch.end_episode()
    assert watch.walk([0, 0, 0], ring) == [1, 1, 0], "it executes it, and the outcome is as it was"


def test_restored_it_goes_on_identically() -> None:
    going = Watch().calibrate()
    going.walk([0, 0, 0], blocked)  # one contradiction
    restored = Watch()
    restored.episode, restored.place = going.episode, going.place
    restored.detector.restore(going.detector.state())
    script: list[tuple[list[int], Any]] = [([0], blocked), ([0, 1] * 3, ring), ([0] * 20, ring), ([0] * 9, blocked)]
    for actions, move in script:
        assert going.walk(actions, move) == restored.walk(actions, move)
    state = restored.detector.state()
    for name, array in going.detector.state().items():
        np.testing.assert_array_equal(array, state[name], name)
