"""Outcomes that repeat."""

from typing import Any

import numpy as np
import pytest

from nappingrl.types import Decision, DomainSpec, Transition
from nappingrl.world_model.memory import TransitionMemory
from nappingrl.world_model.repeats import MIN_REPEATED, MIN_SHARE, N_FIRST, Repeats, end_of, place
from nappingrl.world_model.transitions import Transitions
from world_model.toy_domains import BOX, transitions_of, unbounded


def ring(n: int, size: int = 5) -> Transitions:
    """Walks round a ring: the action is the parity of the lap."""
    numbers = np.arange(n)
    actions = np.eye(2)[numbers // size % 2]
    return transitions_of(numbers[:, None] % size, actions, (numbers[:, None] + 1) % size)


def test_what_always_repeated_is_expected() -> None:
    steps = ring(60)
    repeats = Repeats(steps)
    assert repeats.is_usable
    for m in range(10):
        assert repeats.expects(steps.states[m], int(steps.actions[m].argmax())) == end_of(steps, m)
    assert repeats.expects(np.array([9.0]), 0) is None


@pytest.mark.parametrize(("n", "is_usable"), [(10 + MIN_REPEATED - 1, False), (10 + MIN_REPEATED, True)])
def test_enough_steps_must_repeat(n: int, is_usable: bool) -> None:
    assert Repeats(ring(n)).is_usable is is_usable


def test_a_single_other_outcome_makes_it_unusable() -> None:
    steps = ring(100)
    steps.next_states[99] = 3.5
    assert not Repeats(steps).is_usable
    assert Repeats(steps).expects(steps.states[0], 0) is None


def test_a_single_other_ending_makes_it_unusable() -> None:
    steps = ring(100)
    steps.terminated[99] = True
    assert not Repeats(steps).is_usable


def test_worlds_whose_steps_hardly_repeat_are_given_up() -> None:
    n = N_FIRST + 100
    numbers = np.arange(n, dtype=np.float64)
    numbers[-60:] = 0.0  # many repeat, too late
    steps = transitions_of(numbers[:, None], np.eye(2)[np.zeros(n, np.int64)], numbers[:, None] + 1)
    assert max(MIN_REPEATED, MIN_SHARE * n) <= 60
    assert not Repeats(steps).is_usable
    assert not Repeats(steps.at(slice(0, 0))).is_usable


def test_zeros_of_both_signs_are_one_place() -> None:
    assert place(np.array([-0.0, 1.0])) == place(np.array([0.0, 1.0], np.float32))
    assert place(np.array([0.0, 1.0])) != place(np.array([1.0, 0.0]))


def fill(memory: TransitionMemory, n: int) -> None:
    row, no = np.array([0]), np.zeros(1, np.bool_)
    for m in range(n):
        states, nexts = np.full((1, 1), m % 5, np.float32), np.full((1, 1), (m + 1) % 5, np.float32)
        actions = np.array([m // 5 % 2])
        decision = Decision(actions, np.zeros((1, 1), np.float32), np.zeros((1, 2), np.float32))
        memory.add(row, Transition(states, decision, actions, nexts, np.ones(1), no, no), no)


def test_the_memory_tells_only_of_sealed_steps_and_forgets_them_with_the_trial() -> None:
    memory = TransitionMemory(1, unbounded(1))
    fill(memory, 60)
    assert memory.repeats(0) is None
    memory.seal(0)
    repeats = memory.repeats(0)
    assert repeats is not None
    assert memory.repeats(0) is repeats
    restored = TransitionMemory(1, unbounded(1))
    restored.restore(memory.state())
    again = restored.repeats(0)
    assert again is not None
    assert again.expects(np.array([1.0]), 1) == repeats.expects(np.array([1.0]), 1) is not None
    memory.start(np.array([0]))
    fill(memory, 5)
    memory.seal(0)
    assert memory.repeats(0) is None


def test_continuous_actions_do_not_repeat() -> None:
    domain: DomainSpec = BOX
    memory = TransitionMemory(1, domain)
    memory.seal(0)
    nothing: Any = memory.repeats(0)
    assert nothing is None
