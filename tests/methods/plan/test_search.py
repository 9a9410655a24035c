"""Sequences of actions in a world that is known by heart."""

import numpy as np
import pytest

from nappingrl.methods.plan.search import evaluate, follow, write_changed, write_simple
from nappingrl.world_model.basis import make_frame
from nappingrl.world_model.model import Model

KEY, COUNTER = np.uint64(3), np.uint64(0)


def line(n_actions: int) -> Model:
    """A place on a line: x' = x + action (or the number of a discrete one); the reward of a step is x."""
    frame = make_frame(np.zeros(1), np.ones(1), False)
    size = n_actions or 3
    affine = np.zeros((2, size, 2))
    if n_actions:
        affine[0, :, 1] = np.arange(n_actions)
        affine[1, :, 0] = 1.0
    else:
        affine[0, 1, 1] = affine[1, 0, 0] = 1.0
    shared, none, limit = np.zeros((2, frame.n_shared)), np.full(1, -1), np.full(1, 100.0)
    return Model(frame, shared, affine, none, np.zeros((1, size + 2)), -limit, limit, np.zeros(1))


def test_sequences_earn_what_the_model_says() -> None:
    for n_actions, sequence in ((3, [2, 0, 1]), (0, [1, -1, 0.5])):
        sequences = np.array(sequence, float).reshape(1, 3, 1)
        totals, ends = np.empty(1), np.empty((1, 1))
        start = np.array([1.0])
        evaluate(line(n_actions), start, sequences, n_actions, 0.5, (-9.0, 9.0), 0.0, totals, ends)
        places = 1 + np.cumsum([0, *sequence])
        assert totals[0] == places[0] + 0.5 * places[1] + 0.25 * places[2]
        assert ends[0, 0] == places[3]
        np.testing.assert_array_equal(follow(line(n_actions), start, sequences[0], n_actions)[:, 0], places[1:])


def test_rewards_stay_within_what_was_ever_earned() -> None:
    totals, ends = np.empty(1), np.empty((1, 1))
    evaluate(line(0), np.array([5.0]), np.zeros((1, 2, 1)), 0, 1.0, (0.0, 2.0), 0.0, totals, ends)
    assert totals[0] == 4.0
    evaluate(line(0), np.array([5.0]), np.zeros((1, 2, 1)), 0, 1.0, (0.0, 2.0), 0.1, totals, ends)
    assert totals[0] == pytest.approx(4.0 - 2 * 0.1 * 4)  # four half ranges outside, twice


def test_changes_hold_for_several_steps_and_keep_the_sequence_itself() -> None:
    sequences, base = np.empty((40, 8, 2)), np.linspace(-1, 1, 16).reshape(8, 2)
    counter = write_changed(sequences, base, 0, 4, 0.1, KEY, COUNTER)
    np.testing.assert_array_equal(sequences[0], base)
    assert np.abs(sequences).max() <= 1
    inner = (sequences - base)[1:, 1:4]  # no entry of these is near a limit
    assert np.abs(inner - inner[:, :1]).max() < 1e-12
    assert np.abs(inner).min() > 0
    other = np.empty_like(sequences)
    write_changed(other, base, 0, 4, 0.1, KEY, counter)
    assert not np.array_equal(other[1:], sequences[1:])


def test_discrete_changes_are_actions() -> None:
    sequences, base = np.empty((50, 6, 1)), np.ones((6, 1))
    write_changed(sequences, base, 3, 2, 0.5, KEY, COUNTER)
    assert set(sequences.ravel().tolist()) == {0.0, 1.0, 2.0}
    assert 0.5 < (sequences == 1).mean() < 0.85


def test_every_action_alone_is_tried() -> None:
    sequences = np.full((9, 2, 2), 7.0)
    write_simple(sequences, np.array([0.3, -0.2]), 0)
    assert sequences[0, 0].tolist() == [7, 7]
    assert sequences[1:6, 1].tolist() == [[0.3, -0.2], [-1, 0], [1, 0], [0, -1], [0, 1]]
    discrete = np.full((4, 2, 1), 7.0)
    write_simple(discrete, np.array([2.0]), 3)
    assert discrete[:, 0, 0].tolist() == [7, 2, 0, 1]
