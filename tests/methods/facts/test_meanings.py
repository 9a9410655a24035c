"""What actions do now, by what they did before."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.methods.facts.meanings import Meanings

SIZE, N = 5, 4
MOVES = (-2, -1, 1, 2)


def moves(acts_as: tuple[int, ...], places: range = range(SIZE)) -> dict[tuple[int, int], int]:
    return {(p, a): (p + MOVES[b]) % SIZE for p in places for a, b in enumerate(acts_as)}


ORIGINAL = moves((0, 1, 2, 3))


@pytest.mark.parametrize("acts_as", list(permutations(range(N))))
def test_a_permutation_is_recovered(acts_as: tuple[int, ...]) -> None:
    meanings = Meanings(moves(acts_as, range(1)), ORIGINAL, N)
    assert meanings.acts_as.tolist() == list(acts_as)
    assert [acts_as[meanings.executes(wanted)] for wanted in range(N)] == [0, 1, 2, 3]


def test_what_was_not_tried_is_as_it_was() -> None:
    meanings = Meanings({}, ORIGINAL, N)
    assert meanings.acts_as.tolist() == [0, 1, 2, 3]
    assert [meanings.executes(wanted) for wanted in range(N)] == [0, 1, 2, 3]
    assert meanings.is_possible.all()


def test_a_contradicted_action_is_known_as_another_one_only_if_that_fits_everywhere() -> None:
    as_one = {(0, 0): ORIGINAL[0, 1]}
    assert Meanings(as_one, ORIGINAL, N).acts_as[0] == 1
    as_none = as_one | {(1, 0): ORIGINAL[1, 2]}
    meanings = Meanings(as_none, ORIGINAL, N)
    assert meanings.acts_as[0] == -1
    assert meanings.is_possible[0].tolist() == [False] * N
    assert meanings.is_possible[1:].all()


def test_actions_without_an_effect_known_before_may_mean_anything() -> None:
    meanings = Meanings({(0, 0): 9}, {(1, 0): 2}, 2)
    assert meanings.is_possible.all()
    assert meanings.acts_as.tolist() == [0, 1]


@given(st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 3)), st.integers(0, 4)), st.integers(0, 3))
def test_no_contradicted_action_is_executed_while_one_is_open(now: dict[tuple[int, int], int], wanted: int) -> None:
    """Open: nothing speaks against it, and it was not found to act as anything."""
    meanings = Meanings(now, ORIGINAL, N)
    found = meanings.executes(wanted)
    assert 0 <= found < N
    is_contradicted = [any((p, a) in now and now[p, a] != ORIGINAL[p, wanted] for p in range(SIZE)) for a in range(N)]
    is_tried = [any(action == a for _, action in now) for a in range(N)]
    has_open = any(
        not contradicted and not tried for contradicted, tried in zip(is_contradicted, is_tried, strict=True)
    )
    if has_open or not is_contradicted[wanted]:
        assert not is_contradicted[found]
    if not is_contradicted[wanted]:
        assert found == wanted
    assert np.array_equal(meanings.is_possible[:, wanted], ~np.array(is_contradicted))
