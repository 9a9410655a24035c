"""Entries of an observation that the actions control."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from methods.facts.worlds import record, seen
from nappingrl.methods.facts.entries import is_functional, judge_entries
from nappingrl.methods.facts.records import Facts, Places, Recorder

SMALL = st.integers(0, 3)


def controlled_entries(places: Places, worlds: list[Facts]) -> list[int]:
    """The entries that the actions control in all of these worlds."""
    found = None
    for world in worlds:
        found = judge_entries(places.observations, world, found)
    assert found is not None
    return found.controlled.tolist()


@given(st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL), min_size=1, max_size=30))
def test_functional_columns_are_those_of_a_dictionary(rows: list[tuple[int, int, int, int]]) -> None:
    known: dict[tuple[int, int], tuple[int, int]] = {}
    expected = all(known.setdefault((a, b), (c, d)) == (c, d) for a, b, c, d in rows)
    a, b, c, d = (np.array(column) for column in zip(*rows, strict=True))
    assert is_functional([a, b], [c, d.astype(np.float64)]) is expected


def walk(places: Places, moves: tuple[int, ...], seed: int, has_walker: bool = True) -> Facts:
    """Entries: x and y of a walker on a small board, and noise."""
    rng, recorder = np.random.default_rng(seed), Recorder(places)
    x = y = 2
    for time in range(300):
        noise, action = rng.integers(3), int(rng.integers(4))
        move = moves[action] if has_walker else int(rng.integers(4))
        x2 = int(np.clip(x + (-1, 1, 0, 0)[move], 0, 4))
        y2 = int(np.clip(y + (0, 0, -1, 1)[move], 0, 4))
        recorder.add(time % 20, seen(noise, x, y), action, seen(rng.integers(3), x2, y2), 0.0, False)
        x, y = x2, y2
    return recorder.facts()


def test_exactly_the_controlled_entries_are_found() -> None:
    places = Places(3)
    worlds = [walk(places, (0, 1, 2, 3), 0), walk(places, (3, 1, 0, 2), 1)]
    assert controlled_entries(places, worlds) == [1, 2]
    assert controlled_entries(places, worlds[:1]) == [1, 2]


def test_one_world_is_enough_to_contradict() -> None:
    places = Places(3)
    worlds = [walk(places, (0, 1, 2, 3), 0), walk(places, (0, 1, 2, 3), 1, has_walker=False)]
    assert controlled_entries(places, worlds) == []


def test_none_are_controlled_where_nothing_differs_by_action() -> None:
    """A clock follows from itself, and a constant too; neither is controlled."""
    places = Places(3)
    rng = np.random.default_rng(0)
    steps: list[Any] = [
        (t % 20, (t % 20, 7, rng.integers(9)), int(rng.integers(2)), (t % 20 + 1, 7, rng.integers(9)), 0.0, False)
        for t in range(200)
    ]
    facts = record(places, steps).facts()
    assert controlled_entries(places, [facts]) == []


def test_nothing_is_known_without_steps() -> None:
    nothing = record(Places(2), [])
    assert controlled_entries(nothing.places, [nothing.facts()]) == []
    assert nothing.contradicted_share == 0


def test_outcomes_that_depend_on_the_moment_contradict_each_other() -> None:
    step: Any = ((1,), 0, (2,), 0.0)
    for other, expected in [
        (((1,), 0, (2,), 0.0, False), 0),
        (((1,), 1, (3,), 0.0, False), 0),
        (((1,), 0, (3,), 0.0, False), 1),
        (((1,), 0, (2,), 1.0, False), 0),
        (((1,), 0, (2,), 0.0, True), 1),
    ]:
        found = record(Places(1), [(0, *step, False), (5, *other)])
        assert found.contradicted_share == expected, other


def test_only_actions_that_were_tried_at_several_moments_are_judged() -> None:
    steps: list[Any] = [(0, (1,), 0, (2,), 0.0, False), (1, (1,), 0, (3,), 0.0, False), (2, (3,), 0, (4,), 0.0, False)]
    assert record(Places(1), steps).contradicted_share == 1
    again: list[Any] = [(7, (3,), 0, (4,), 0.0, False)]
    assert record(Places(1), steps + again).contradicted_share == 0.5


@given(st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL, SMALL, st.booleans()), max_size=40))
def test_counts_kept_step_by_step_are_those_of_all_steps(rows: list[tuple[int, int, int, int, int, bool]]) -> None:
    recorder = record(Places(1), [(t, (p,), a, (e,), float(r), over) for t, p, a, e, r, over in rows])
    steps = dict.fromkeys(rows)
    number = {p: recorder.places.find(seen(p)) for p in range(4)}
    outcomes: dict[tuple[int, int], list[tuple[int, float, bool]]] = {}
    for _, p, a, e, r, over in steps:
        outcomes.setdefault((number[p], a), []).append((number[e], float(r), over))
    assert recorder.outcomes == {pair: set(found) for pair, found in outcomes.items()}
    ends = {pair: {end for end, _, _ in found} for pair, found in outcomes.items()}
    assert recorder.moves == {pair: next(iter(found)) for pair, found in ends.items() if len(found) == 1}
    retried = [{(end, over) for end, _, over in found} for found in outcomes.values() if len(found) > 1]
    assert recorder.contradicted_share == (np.mean([len(found) > 1 for found in retried]) if retried else 0)
    assert recorder.last_time == max((step[0] for step in steps), default=-1)
    assert recorder.facts().n == len(steps)
