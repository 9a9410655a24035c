"""Worlds whose outcomes follow from place and action."""

import numpy as np
import pytest

from methods.facts.worlds import MOVES, Cell, adapt, original_steps, play, record, seen, shortest
from nappingrl.methods.facts.ends import Stakes, stakes
from nappingrl.methods.facts.records import Places
from nappingrl.methods.facts.stationary import StationaryWorld
from nappingrl.methods.facts.trial import FactsTrial
from nappingrl.types import DomainSpec

LEFT, DOWN, RIGHT, UP = range(4)
OPEN = ("SFFFF", "FFFFF", "FFFFF", "FFFFG")
HOLE = ("SFFFF", "FFFFH", "FFFFF", "FFFFG")
HOLES = ("SFFHF", "FHFFF", "FFHFH", "FFFFG")
SHORT = ("SFF", "FFG")


class Grid:
    """Cells (row, column); holes end an episode without a reward."""

    start: Cell = (0, 0)

    def __init__(self, rows: tuple[str, ...], acts_as: tuple[int, ...] = (0, 1, 2, 3)) -> None:
        self.rows, self.acts_as = rows, acts_as
        self.spec = DomainSpec(np.zeros(2), np.array([len(rows) - 1.0, len(rows[0]) - 1.0]), 4, 30)

    def step(self, cell: Cell, action: int, time: int) -> tuple[Cell, float, bool]:
        down, right = MOVES[self.acts_as[action]]
        row = min(max(cell[0] + down, 0), len(self.rows) - 1)
        column = min(max(cell[1] + right, 0), len(self.rows[0]) - 1)
        kind = self.rows[row][column]
        return (row, column), float(kind == "G"), kind in "GH"


def walker(rows: tuple[str, ...] = OPEN):  # type: ignore[no-untyped-def]
    """The shortest way in this grid."""
    way = shortest(rows)
    return lambda time, cell: way.get(cell, LEFT)


def entered(world: Grid, rows: tuple[str, ...] = OPEN) -> FactsTrial:
    """A trial that has met the grid of these rows, and now another one."""
    trial = FactsTrial(world.spec)
    trial.enter(1, original_steps(Grid(rows), walker(rows)))
    return trial


def test_a_known_goal_is_found() -> None:
    """A corridor of 6 places; the goal was met once, and every step is known."""
    places = Places(1)
    steps = [(0, (p,), a, (q,), float(q == 5), q == 5) for p in range(5) for a, q in ((0, max(p - 1, 0)), (1, p + 1))]
    facts, nothing = record(places, steps), record(places, [])
    world = StationaryWorld(nothing, facts, stakes(nothing.facts(), facts.facts(), 20), 2)
    for place in range(5):
        scores = world.scores(0, seen(place))
        assert scores is not None
        assert scores.argmax() == 1
    values = world.values[:5, 1]
    assert (np.diff(values) > 0).all(), "nearer is better"
    assert values[-1] == 1.0
    assert world.scores(0, seen(9)) is None


def test_a_short_original_way_is_gone_until_it_is_contradicted() -> None:
    """Whatever the agent wants."""
    world = Grid(SHORT)
    trial, way = entered(world, SHORT), list[int]()
    play(world, lambda time, cell: trial.act(time, seen(*cell), UP), lambda *step: way.append(step[2]))
    assert way == [RIGHT, RIGHT, DOWN]
    assert not trial.now.facts().n
    changed = Grid(("SFH", "FFG"))
    returns = adapt(trial, changed, walker(SHORT), 10)
    assert returns[0] == 0.0
    assert returns[3:] == [1.0] * 7


@pytest.mark.parametrize("rows", [HOLE, HOLES], ids=["hole", "holes"])
def test_a_way_round_is_found(rows: tuple[str, ...]) -> None:
    """At most, each pair of place and action is tried once: 20 places, of which few are tried."""
    returns = adapt(entered(Grid(rows)), Grid(rows), walker(), 30)
    assert returns[0] == 0.0
    assert returns[-15:] == [1.0] * 15


@pytest.mark.parametrize("acts_as", [(2, 3, 0, 1), (1, 0, 3, 2), (1, 2, 3, 0), (0, 1, 3, 2)])
def test_remapped_actions_are_translated(acts_as: tuple[int, ...]) -> None:
    world = Grid(OPEN, acts_as)
    trial = entered(world)
    assert adapt(trial, world, walker(), 12)[-6:] == [1.0] * 6
    assert trial.world is not None
    known = trial.world.meanings.acts_as
    assert all(known[a] in (acts_as[a], a, -1) for a in range(4))


def test_where_only_actions_changed_the_agent_is_followed_into_new_places() -> None:
    """The original episodes began in another corner: a plan would try every action on its way."""
    world = Grid(OPEN, (2, 3, 0, 1))
    trial = entered(world)
    adapt(trial, world, walker(), 6)
    world.start = (3, 0)
    assert isinstance(trial.world, StationaryWorld)
    assert trial.world.is_relabelled
    n_steps: list[int] = []
    play(world, lambda time, cell: trial.act(time, seen(*cell), walker()(time, cell)), lambda *step: n_steps.append(1))
    assert len(n_steps) == 4, "straight to the goal"


def test_a_circle_is_left() -> None:
    """An agent that goes left and right for ever; what it does is translated once, then planned."""
    world = Grid(OPEN, (2, 3, 0, 1))
    trial = entered(world)
    adapt(trial, world, walker(), 6)
    returns = adapt(trial, world, lambda time, cell: LEFT if cell[1] else RIGHT, 3)
    assert returns == [1.0] * 3


@pytest.mark.parametrize("reward", [0.5, 1.0])
def test_another_reward_is_another_world(reward: float) -> None:
    places = Places(1)
    original = record(places, [(0, (0,), 0, (1,), 0.0, False), (1, (1,), 0, (2,), 1.0, True)])
    now = record(
        places, [(0, (0,), 1, (1,), 0.0, False), (0, (0,), 0, (0,), 0.0, False), (1, (1,), 1, (2,), reward, True)]
    )
    world = StationaryWorld(original, now, stakes(original.facts(), now.facts(), 9), 2)
    assert world.is_relabelled == (reward == 1.0)


def test_of_equal_actions_the_agents_is_executed() -> None:
    places = Places(1)
    steps = [(0, (0,), a, (1,), 1.0, True) for a in range(3)]
    facts, nothing = record(places, steps), record(places, [])
    trial = FactsTrial(DomainSpec(np.zeros(1), np.ones(1), 3, 5))
    trial.world = StationaryWorld(nothing, facts, stakes(nothing.facts(), facts.facts(), 5), 3)
    assert [trial.act(0, seen(0), wanted) for wanted in range(3)] == [0, 1, 2]
    assert trial.act(0, seen(7), 2) == 2, "a new place"


def test_stakes_are_read_off_what_happened() -> None:
    places = Places(1)
    original = record(
        places, [(0, (0,), 0, (1,), -1.0, False), (1, (1,), 0, (2,), -1.0, False), (2, (2,), 0, (3,), 10.0, True)]
    )
    now = record(places, [(0, (0,), 0, (1,), -1.0, False), (1, (1,), 0, (4,), -50.0, True)])
    found = stakes(original.facts(), now.facts(), 100)
    assert (found.best, found.worst, found.least_good, found.step_reward) == (10.0, -50.0, 10.0, -1.0)
    assert found.is_good(np.array([9.0, 10.0, 11.0])).tolist() == [False, True, True]
    assert found.discount**100 == pytest.approx(0.9)
    assert found.worst < found.unknown < found.best
    nothing = stakes(record(places, []).facts(), record(places, []).facts(), 0)
    assert isinstance(nothing, Stakes)
    assert nothing.worst < nothing.unknown < nothing.best


def test_places_that_look_alike_are_worth_the_mean_of_their_outcomes() -> None:
    """Action 1 in place 0 has led to the goal and, just as often, to a dead end."""
    places = Places(1)
    steps = [(0, (0,), 1, (1,), 1.0, True), (3, (0,), 1, (2,), 0.0, True), (1, (0,), 0, (0,), 0.0, False)]
    facts, nothing = record(places, steps), record(places, [])
    world = StationaryWorld(nothing, facts, stakes(nothing.facts(), facts.facts(), 20), 2)
    assert world.values[0, 1] == pytest.approx(0.5)
    assert world.values[0, 0] < 0.5


def test_some_contradictions_do_not_end_the_plan() -> None:
    """A corridor whose columns 2 and 5 look alike; the agent walks to the end of it, then wants to go left."""
    world = Grid(("SFFFFFFFFFFG",))
    trial = entered(world, world.rows)
    for first in (0, 1):
        for column in range(first, 11):
            looks = [seen(0, 2 if c == 5 else c) for c in (column, column + 1)]
            trial.learn(column - first, looks[0], RIGHT, looks[1], float(column == 10), column == 10)
        trial.end_episode(1.0, True)
    assert isinstance(trial.world, StationaryWorld)
    assert trial.act(0, seen(0, 8), LEFT) == RIGHT
