"""Worlds in which time matters."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from methods.facts.worlds import Cell, adapt, original_steps, seen
from nappingrl.methods.facts.describe import describe
from nappingrl.methods.facts.timed import TimedWorld
from nappingrl.methods.facts.trial import FactsTrial
from nappingrl.types import DomainSpec

UP, STAY, DOWN = range(3)
TOP = 4
PHASES = (0, 1, 4, 2, 2, 4, 1)
"""What a sign shows: it does not follow from what it showed before."""


def calm(row: int, time: int) -> bool:
    """No row is ever dangerous."""
    return False


def dangerous(row: int, time: int) -> bool:
    """Whether a step at this time into the row is one too many."""
    return (row == 1 and time % 4 != 1) or (row == 2 and time % 2 == 1) or (row == 3 and time % 3 == 0)


@dataclass
class Crossing:
    """(row, sign, constant): the top row is the goal."""

    is_dangerous: Callable[[int, int], bool]
    acts_as: tuple[int, ...] = (UP, STAY, DOWN)
    horizon: int = 15
    constant: float = 3.0
    start: Cell = field(init=False)

    def __post_init__(self) -> None:
        self.start = (0, PHASES[0], self.constant)  # type: ignore[assignment]
        low, high = np.array([0.0, 0.0, -np.inf]), np.array([TOP, 9.0, np.inf])
        names = {"observation_names": ("row", "sign", "constant"), "action_names": ("up", "stay", "down")}
        self.spec = DomainSpec(low, high, 3, self.horizon, **names)

    def step(self, cell: Cell, action: int, time: int) -> tuple[Cell, float, bool]:
        row = min(max(cell[0] + (1, 0, -1)[self.acts_as[action]], 0), TOP)
        end = (row, PHASES[(time + 1) % 7], self.constant)
        if self.is_dangerous(row, time):
            return end, -1.0, True  # type: ignore[return-value]
        return end, float(row == TOP), row == TOP  # type: ignore[return-value]


def up(time: int, cell: Cell) -> int:
    """It waits for six steps."""
    return UP if time >= 6 else STAY


def entered(world: Crossing) -> FactsTrial:
    trial = FactsTrial(world.spec)
    trial.enter(1, original_steps(Crossing(calm, constant=world.constant), up, 20))
    return trial


@pytest.mark.parametrize("acts_as", [(UP, STAY, DOWN), (DOWN, UP, STAY)], ids=["same", "remapped"])
def test_it_learns_when_it_is_safe(acts_as: tuple[int, ...]) -> None:
    """Four rows and fifteen moments: a few deaths in each row are enough."""
    world = Crossing(dangerous, acts_as)
    trial = entered(world)
    returns = adapt(trial, world, up, 40)
    assert isinstance(trial.world, TimedWorld)
    assert returns[0] == -1.0
    assert returns[-10:] == [1.0] * 10
    assert trial.world.varying.tolist() == [0]
    assert "facts about row, the step of the episode: " in describe(trial)


def test_a_safe_world_stays_safe() -> None:
    world = Crossing(calm)
    assert adapt(entered(world), world, up, 5) == [1.0] * 5


def test_without_a_horizon_it_plans_twice_as_far_as_the_original_episodes_went() -> None:
    world = Crossing(dangerous, horizon=0)
    trial = entered(world)
    adapt(trial, world, up, 40)
    assert isinstance(trial.world, TimedWorld)
    longest = int(trial.original.facts().times.max()) + 1
    assert longest > 1
    assert len(trial.world.values) - 1 == 2 * longest


def test_without_a_horizon_it_learns_when_it_is_safe() -> None:
    world = Crossing(dangerous, horizon=0)
    assert adapt(entered(world), world, up, 40)[-10:] == [1.0] * 10


def test_cells_and_moments_that_are_unknown_have_no_scores() -> None:
    world = Crossing(dangerous)
    trial = entered(world)
    adapt(trial, world, up, 5)
    assert isinstance(trial.world, TimedWorld)
    assert trial.world.scores(0, seen(0, 9, 3)) is not None, "the sign does not matter"
    assert trial.world.scores(0, seen(17, 0, 3)) is None
    assert trial.world.scores(world.horizon - 1, seen(0, 0, 3)) is not None
    assert trial.world.scores(world.horizon, seen(0, 0, 3)) is None
    assert trial.act(0, seen(17, 0, 3), STAY) == STAY


@pytest.mark.parametrize("constant", [3e38, -1e30])
def test_huge_observations_do_no_harm(constant: float) -> None:
    """Some environments show the largest number for "nothing here"."""
    world = Crossing(dangerous, constant=constant)
    assert adapt(entered(world), world, up, 40)[-10:] == [1.0] * 10


def test_a_known_death_is_not_repeated() -> None:
    world = Crossing(dangerous)
    trial = entered(world)
    adapt(trial, world, up, 1)
    assert isinstance(trial.world, TimedWorld)
    scores = trial.world.scores(6, seen(*world.start))
    assert scores is not None
    assert scores.argmax() != UP
    assert scores[UP] == pytest.approx(-1.0)
