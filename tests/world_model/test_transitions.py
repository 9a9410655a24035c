"""The transition buffer."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nappingrl.world_model.transitions import TransitionBuffer, Transitions


def fill(buffer: TransitionBuffer, row: int, times: range) -> None:
    for time in times:
        rows, value = np.array([row]), np.full((1, 1), float(time))
        rewards, terminated = np.array([float(time)]), np.array([time % 3 == 0])
        buffer.add(rows, Transitions(value, value + 0.25, value + 0.5, rewards, terminated, rows * 0))


@given(st.sampled_from([(4, 4), (8, 8), (16, 4), (64, 16)]), st.integers(0, 200))
@settings(max_examples=50, deadline=None)
def test_memory_is_bounded_keeps_order_and_the_newest_half(sizes: tuple[int, int], n: int) -> None:
    capacity, size = sizes
    buffer = TransitionBuffer(2, 1, 1, capacity=capacity, size=size)
    fill(buffer, 1, range(n))
    transitions = buffer.read(1)
    times = transitions.rewards.astype(int).tolist()
    assert len(times) <= capacity
    assert times == sorted(set(times))
    half = min(n, capacity // 2)
    assert times[len(times) - half :] == list(range(n - half, n))
    assert times[:1] == [0][:n]  # the oldest is kept, too
    if n <= capacity:
        assert len(times) == n
    else:
        assert len(times) >= capacity // 2
    np.testing.assert_array_equal(transitions.states[:, 0], times)
    np.testing.assert_array_equal(transitions.actions[:, 0], transitions.rewards + 0.25)
    np.testing.assert_array_equal(transitions.next_states[:, 0], transitions.rewards + 0.5)
    np.testing.assert_array_equal(transitions.terminated, transitions.rewards % 3 == 0)
    assert len(buffer.read(0).rewards) == 0


def test_a_memory_that_grows_by_doubling_never_holds_more_than_it_may() -> None:
    buffer = TransitionBuffer(1, 1, 1, capacity=12, size=4)
    fill(buffer, 0, range(16))
    assert buffer.count[0] <= 12


@given(st.lists(st.sampled_from([(0,), (2,), (0, 1), (2, 0, 1)]), max_size=60))
@settings(max_examples=50, deadline=None)
def test_rows_of_a_buffer_are_independent(turns: list[tuple[int, ...]]) -> None:
    together = TransitionBuffer(3, 1, 1, capacity=16, size=8)
    alone = [TransitionBuffer(1, 1, 1, capacity=16, size=8) for _ in range(3)]
    for time, rows in enumerate(turns):
        values = np.array([[100.0 * row + time] for row in rows])
        terminated, episodes = np.zeros(len(rows), np.bool_), np.full(len(rows), time)
        steps = Transitions(values, values, values, values[:, 0], terminated, episodes)
        together.add(np.array(rows), steps)
        for i, row in enumerate(rows):
            alone[row].add(np.array([0]), steps.at([i]))
    for row in range(3):
        same_transitions(together.read(row), alone[row].read(0))


@given(st.integers(0, 80), st.integers(0, 80))
@settings(max_examples=50, deadline=None)
def test_what_was_read_can_be_written(n: int, more: int) -> None:
    """And it goes on as if nothing had happened."""
    first, second = TransitionBuffer(1, 1, 1, capacity=32, size=8), TransitionBuffer(2, 1, 1, capacity=32, size=8)
    fill(first, 0, range(n))
    second.write(1, first.read(0))
    same_transitions(first.read(0), second.read(1))
    fill(first, 0, range(n, n + more))
    fill(second, 1, range(n, n + more))
    same_transitions(first.read(0), second.read(1))
    second.clear(np.array([1]))
    assert len(second.read(1).rewards) == 0


def test_what_was_read_is_a_copy() -> None:
    buffer = TransitionBuffer(1, 1, 1)
    fill(buffer, 0, range(3))
    for array in buffer.read(0):
        array[:] = 1
    assert buffer.read(0).rewards.tolist() == [0, 1, 2]


def same_transitions(mine: Transitions, theirs: Transitions) -> None:
    pairs: Any = zip(mine, theirs, strict=True)
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)


def test_the_latest_episode_is_read_alone() -> None:
    buffer = TransitionBuffer(1, 1, 1)
    row = np.array([0])
    for time, episode in enumerate([3, 3, 4, 6, 6, 6]):
        value, one = np.full((1, 1), float(time)), np.array([float(time)])
        buffer.add(row, Transitions(value, value, value, one, np.array([False]), np.array([episode])))
    assert buffer.read_episode(0).rewards.tolist() == [3.0, 4.0, 5.0]
    whole = buffer.read(0)
    for part, expected in zip(buffer.read_episode(0), whole.at(whole.episodes == 6), strict=True):
        np.testing.assert_array_equal(part, expected)
