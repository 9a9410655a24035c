"""CrossRoad against its rules, written out once more in plain Python with exact fractions; and by hand."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import floor, inf
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import nappingrl  # noqa: F401  (registers the environments)
from nappingrl.agents.base import Agent
from nappingrl.domains import find_domain
from nappingrl.registry import detectors
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.types import DomainSpec

LEFT, RIGHT, UP, DOWN, STAY = range(5)
POSITIONS = (3, 8, 5, 7, 10, 1, 6, 2)
SPEEDS = (-80, 110, -100, -140, 60, 160, -90, 120)
AROUND = ((-1, 1), (0, 1), (1, 1), (-1, 0), (1, 0), (-1, -1), (0, -1), (1, -1))  # NW N NE W E SW S SE
PARKED = {f"position_{i}": 0.0 for i in range(1, 9)} | {f"speed_{i}": 0.0 for i in range(1, 9)}
ROW = np.zeros(1, np.int64)
Cell = tuple[int, int]


@pytest.fixture(scope="module")
def spec() -> DomainSpec:
    found: DomainSpec = find_domain("crossroad")
    return found


# ---- the rules, once more -----------------------------------------------------------------------------------------


class Road:
    """One world, literally."""

    def __init__(self, positions: Sequence[float], speeds: Sequence[float]) -> None:
        self.start = [Fraction(p) for p in positions]
        self.speeds = [Fraction(v) / 100 for v in speeds]
        self.reset()

    def reset(self) -> None:
        self.x, self.y, self.steps, self.cars = 7, 0, 0, list(self.start)

    def covered(self, edge: Fraction) -> set[int]:
        return {(floor(edge) + k) % 14 for k in range(4)}

    def swept(self, row: int) -> set[int]:
        """All cells that the row's car covers at any moment of its move."""
        before, after = floor(self.cars[row - 1]), floor(self.cars[row - 1] + self.speeds[row - 1])
        edges = range(min(before, after), max(before, after) + 1)
        return set().union(*(self.covered(Fraction(edge)) for edge in edges))

    def target(self, cell: Cell, action: int) -> Cell:
        x, y = cell
        dx, dy = {LEFT: (-1, 0), RIGHT: (1, 0), UP: (0, 1), DOWN: (0, -1), STAY: (0, 0)}[action]
        return min(max(x + dx, 0), 13), max(y + dy, 0)

    def is_hit(self, cell: Cell) -> bool:
        x, y = cell
        return 1 <= y <= 8 and x in self.swept(y)

    def drive(self) -> None:
        self.cars = [p + v for p, v in zip(self.cars, self.speeds, strict=True)]

    def step(self, action: int) -> tuple[float, bool]:
        self.x, self.y = self.target((self.x, self.y), action)
        self.steps += 1
        if self.y == 9:
            return 1.0, True
        if self.is_hit((self.x, self.y)):
            return -1.0, True
        self.drive()
        return (-1.0, True) if self.steps == 100 else (0.0, False)

    def observe(self) -> NDArray[np.float32]:
        numbers = [self.x / 13, self.y / 9]
        for dx, dy in AROUND:
            x, y = self.x + dx, self.y + dy
            is_car = 1 <= y <= 8 and 0 <= x <= 13 and x in self.covered(self.cars[y - 1])
            numbers += [x / 13, y / 9] if is_car else [-1.0, -1.0]
        return np.array(numbers, np.float32)

    def shortest(self) -> int | None:
        """How many steps the earliest crossing takes: every cell that can be reached alive, step by step."""
        self.reset()
        alive: set[Cell] = {(7, 0)}
        for t in range(1, 101):
            reached = {self.target(cell, action) for cell in alive for action in range(5)}
            if any(y == 9 for _, y in reached):
                return t
            alive = {cell for cell in reached if not self.is_hit(cell)}
            self.drive()
        return None


def parameters_of(positions: Sequence[float], speeds: Sequence[float]) -> dict[str, float]:
    return {f"position_{i}": float(p) for i, p in enumerate(positions, 1)} | {
        f"speed_{i}": float(v) for i, v in enumerate(speeds, 1)
    }


def road_of(parameters: dict[str, float]) -> Road:
    return Road(*([parameters[f"{name}_{i}"] for i in range(1, 9)] for name in ("position", "speed")))


def compare(spec: DomainSpec, layouts: list[dict[str, float]], actions: NDArray[np.int64]) -> dict[str, int]:
    """Play the same actions here and there, all layouts in one batch; returns how often what was seen."""
    world, rows = spec.make(len(layouts)), np.arange(len(layouts))
    roads = [road_of(layout) for layout in layouts]
    for row, layout in enumerate(layouts):
        world.apply(rows[row : row + 1], layout)
    world.reset(rows, np.zeros((len(layouts), 0)))
    counts = {"steps": 0, "crossed": 0, "hit": 0, "late": 0, "cars": 0}
    for taken in actions:
        np.testing.assert_array_equal(world.observe(rows), [road.observe() for road in roads])
        rewards, terminated = world.step(rows, taken)
        expected = [road.step(int(action)) for road, action in zip(roads, taken, strict=True)]
        assert list(zip(rewards.tolist(), terminated.tolist(), strict=True)) == expected
        # Of an ended episode only the player's own place is told: the rules do not say whether the cars still move.
        np.testing.assert_array_equal(world.observe(rows)[:, :2], [road.observe()[:2] for road in roads])
        counts["steps"] += len(rows)
        counts["crossed"] += int((rewards > 0).sum())
        counts["late"] += sum(road.steps == 100 for road in roads)
        counts["hit"] += sum(end and r < 0 and road.steps < 100 for (r, end), road in zip(expected, roads, strict=True))
        counts["cars"] += int((world.observe(rows)[:, 3::2] >= 0).sum())
        for row in np.flatnonzero(terminated):
            roads[row].reset()
        world.reset(rows[terminated], np.zeros((int(terminated.sum()), 0)))
    return counts


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_rules_over_random_layouts(spec: DomainSpec, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reach = rng.choice([40, 150, 700], size=30)
    layouts = [parameters_of(rng.uniform(-20, 30, 8), rng.uniform(-r, r, 8)) for r in reach]
    # Some walk on, some wait long enough to be late.
    chance = rng.choice([0.4, 0.9, 0.0], size=30)[:, None]
    weights = np.hstack([(1 - chance) * 0.25, (1 - chance) * 0.25, chance, (1 - chance) * 0.2, (1 - chance) * 0.3])
    actions = np.array([[rng.choice(5, p=weights[row]) for row in range(30)] for _ in range(110)])
    counts = compare(spec, layouts, actions)
    assert counts["steps"] == 3300
    assert counts["crossed"] > 0
    assert counts["hit"] > 100
    assert counts["late"] > 3
    assert counts["cars"] > 500


@pytest.mark.parametrize("novelty", list(find_domain("crossroad").novelties))
def test_agrees_with_the_rules_in_every_novelty(spec: DomainSpec, novelty: str) -> None:
    rng = np.random.default_rng(5)
    layouts = [spec.novelties[novelty].sample(rng, spec.parameters) for _ in range(8)]
    counts = compare(spec, layouts, rng.choice(5, size=(60, 8), p=[0.15, 0.15, 0.5, 0.05, 0.15]))
    assert counts["hit"] > 5


@settings(deadline=None, max_examples=40)
@given(
    positions=st.lists(st.integers(-56, 112).map(lambda n: n / 4), min_size=8, max_size=8),
    speeds=st.lists(st.integers(-64, 64).map(lambda n: n * 25), min_size=8, max_size=8),
    actions=st.lists(st.integers(0, 4), min_size=5, max_size=60),
)
def test_agrees_with_the_rules_on_quarters_of_a_cell(
    spec: DomainSpec, positions: list[float], speeds: list[int], actions: list[int]
) -> None:
    """Quarters are exact in binary, so that cars come to lie on whole cells again and again; up to 16 cells a step."""
    compare(spec, [parameters_of(positions, speeds)], np.array(actions)[:, None])


def test_the_world_before_the_novelty_follows_the_rules_for_all_steps(spec: DomainSpec) -> None:
    """Speeds are whole hundredths, cars come to lie on whole cells every few steps: rounding must not show."""
    world, road = spec.make(14), Road(POSITIONS, SPEEDS)
    rows = np.arange(14)
    world.reset(rows, np.zeros((14, 0)))
    wrong = []
    for t in range(1, 100):
        world.step(rows, np.full(14, STAY))
        road.step(STAY)
        if (world.observe(rows) != road.observe()).any():
            wrong.append((t, world.observe(rows)[0, 2:8].tolist(), road.observe()[2:8].tolist()))
    assert not wrong, "row 1 as the player on the pavement sees it: (step, cells found, cells by the rules)"


# ---- by hand ------------------------------------------------------------------------------------------------------


class Player:
    """One world with named parameters."""

    def __init__(self, spec: DomainSpec, **parameters: float) -> None:
        self.world = spec.make(1)
        self.world.apply(ROW, parameters)
        self.world.reset(ROW, np.zeros((1, 0)))

    def go(self, *actions: int) -> tuple[float, bool]:
        """Take the actions; the last one's reward and end. Nothing may happen before it."""
        for i, action in enumerate(actions, 1):
            rewards, terminated = self.world.step(ROW, np.array([action]))
            if i < len(actions):
                assert (rewards[0], terminated[0]) == (0.0, False)
        return float(rewards[0]), bool(terminated[0])

    def see(self) -> list[float]:
        return [float(number) for number in self.world.observe(ROW)[0]]

    def place(self) -> Cell:
        x, y = self.see()[:2]
        return round(x * 13), round(y * 9)


def numbers(*values: float) -> list[float]:
    return [float(np.float32(value)) for value in values]


def test_the_start_by_hand(spec: DomainSpec) -> None:
    """The car of row 1 covers columns 3 to 6: of what the player at column 7 sees, only the cell ahead to the left."""
    assert Player(spec).see() == numbers(7 / 13, 0, 6 / 13, 1 / 9, *[-1] * 14)
    assert spec.parameters == parameters_of(POSITIONS, SPEEDS)
    assert (spec.horizon, spec.n_reset_draws, spec.action_names) == (100, 0, ("LEFT", "RIGHT", "UP", "DOWN", "STAY"))


def test_the_first_steps_by_hand(spec: DomainSpec) -> None:
    player = Player(spec)
    assert player.go(LEFT) == (0.0, False)
    # The car of row 1 went from 3 to 2.2: columns 2 to 5. The player is at column 6.
    assert player.see() == numbers(6 / 13, 0, 5 / 13, 1 / 9, *[-1] * 14)
    assert player.go(UP) == (0.0, False)
    # Row 1: 1.4, columns 1 to 4. Row 2: 8 + 2.2 = 10.2, columns 10 to 13. Nothing is near.
    assert player.see() == numbers(6 / 13, 1 / 9, *[-1] * 16)
    assert player.go(UP, UP) == (0.0, False)
    # Row 2: 12.4, columns 12 to 1. Row 3: 1, columns 1 to 4. Row 4: 1.4, columns 1 to 4. Still nothing.
    assert player.see() == numbers(6 / 13, 3 / 9, *[-1] * 16)
    # The cars sweep columns 0-4, 13-2, 10-1, 12-2, 11-1 in rows 4 to 8 as the player comes there: column 6 is free.
    assert player.go(*[UP] * 6) == (1.0, True)


def test_a_hit_before_the_novelty_by_hand(spec: DomainSpec) -> None:
    """After five steps the car of row 1 is at -1, in the sixth it goes on to -1.8: columns 12, 13, 0, 1 and 2."""
    assert Player(spec).go(*[LEFT] * 5, UP) == (-1.0, True), "column 2"
    assert Player(spec).go(*[LEFT] * 4, STAY, UP) == (0.0, False), "column 3"
    assert Player(spec).go(*[RIGHT] * 5, UP) == (-1.0, True), "column 12"
    assert Player(spec).go(*[RIGHT] * 4, STAY, UP) == (0.0, False), "column 11"


def near_cars(spec: DomainSpec, **positions: float) -> tuple[list[int], list[float]]:
    """Which of the eight cells around (5, 2) are covered, and what is seen; cars stand still, at 9 unless told."""
    parameters = PARKED | {f"position_{i}": 9.0 for i in range(1, 9)} | positions
    player = Player(spec, **parameters)
    player.go(LEFT, LEFT, UP, UP)
    seen = player.see()
    assert seen[:2] == numbers(5 / 13, 2 / 9)
    return [i for i in range(8) if seen[2 + 2 * i] >= 0], seen[2:]


@pytest.mark.parametrize(
    ("positions", "cells"),
    [
        ({}, []),
        ({"position_3": 1.0}, [0]),
        ({"position_3": 4.5}, [0, 1, 2]),
        ({"position_3": 2.9}, [0, 1]),
        ({"position_3": 5.0}, [1, 2]),
        ({"position_3": 6.0}, [2]),
        ({"position_3": 0.9}, []),
        ({"position_3": 7.0}, []),
        ({"position_2": 1.0}, [3]),
        ({"position_2": 6.0}, [4]),
        ({"position_1": 1.0}, [5]),
        ({"position_1": 6.0}, [7]),
        ({"position_4": 4.0}, []),
        ({"position_3": 6.0, "position_2": 1.5, "position_1": 1.0}, [2, 3, 5]),
    ],
)
def test_all_neighbours_in_their_order(spec: DomainSpec, positions: dict[str, float], cells: list[int]) -> None:
    """The player is at (5, 2)."""
    found, seen = near_cars(spec, **positions)
    assert found == cells
    expected = [((5 + dx) / 13, (2 + dy) / 9) if i in cells else (-1.0, -1.0) for i, (dx, dy) in enumerate(AROUND)]
    assert seen == numbers(*(number for pair in expected for number in pair))


def test_a_car_right_behind(spec: DomainSpec) -> None:
    """It comes when the player has left: at 9.5, 8.5, then 7.5 and 6.5."""
    player = Player(spec, **PARKED | {"position_1": 9.5, "speed_1": -100.0})
    player.go(UP, UP)
    assert [i for i in range(8) if player.see()[3 + 2 * i] >= 0] == [6, 7]
    player.go(STAY)
    assert [i for i in range(8) if player.see()[3 + 2 * i] >= 0] == [5, 6, 7]


def test_cells_outside_the_columns_are_never_covered(spec: DomainSpec) -> None:
    """On the ring column 13 is beside column 0; for the player it is not."""
    player = Player(spec, **PARKED | {"position_1": 10.0})
    player.go(*[LEFT] * 7)
    assert player.see() == numbers(0, 0, *[-1] * 16)
    player = Player(spec, **PARKED)
    player.go(*[RIGHT] * 6)
    assert player.see() == numbers(1, 0, *[-1] * 16)


def test_clamped_at_the_sides_and_at_the_bottom(spec: DomainSpec) -> None:
    player = Player(spec)
    player.go(*[LEFT] * 6)
    assert player.place() == (1, 0)
    for _ in range(3):
        player.go(LEFT)
        assert player.place() == (0, 0)
    player.go(DOWN)
    assert player.place() == (0, 0)
    player.go(*[RIGHT] * 15)
    assert player.place() == (13, 0)
    player.go(STAY)
    assert player.place() == (13, 0)
    aside = Player(spec, **PARKED)
    aside.go(UP, UP, RIGHT, UP, DOWN, DOWN, LEFT, LEFT)
    assert aside.place() == (6, 1)
    aside.go(DOWN, DOWN)
    assert aside.place() == (6, 0)


@pytest.mark.parametrize(
    ("position", "speed", "is_hit"),
    [
        (4.0, -100.0, True),  # old cells 4 to 7
        (3.0, -100.0, False),
        (10.0, -300.0, True),  # new cells 7 to 10
        (10.0, -200.0, False),
        (10.0, -700.0, True),  # old 10 to 13, new 3 to 6, column 7 in between
        (13.0, 900.0, True),  # old 13 to 2, new 8 to 11
        (12.0, 650.0, True),  # over the edge: 12, 13, 0 to 7
        (12.0, 500.0, False),  # up to 6
        (1.0, -500.0, False),  # over the other edge: 0 to 4, 10 to 13
        (1.0, -800.0, True),  # down to 7
        (3.5, 40.0, False),
        (3.5, 60.0, True),
        (8.25, -10.0, False),
        (8.25, -50.0, True),
        (8.0, 0.0, False),
        (7.99, 0.0, True),
        (4.99, 0.0, True),
        (3.99, 0.0, False),
        (3.99 + 14, 0.0, False),
        (4.0 - 28, 0.0, True),
        (0.0, 1400.0, True),  # the whole ring
    ],
)
def test_hit_at_any_moment_of_the_move(spec: DomainSpec, position: float, speed: float, is_hit: bool) -> None:
    """The player steps up to column 7 of row 1."""
    player = Player(spec, **PARKED | {"position_1": position, "speed_1": speed})
    assert player.go(UP) == ((-1.0, True) if is_hit else (0.0, False))


@pytest.mark.parametrize(("action", "is_hit"), [(STAY, True), (RIGHT, True), (LEFT, False), (UP, False), (DOWN, False)])
def test_the_new_cell_counts_and_not_the_old_one(spec: DomainSpec, action: int, is_hit: bool) -> None:
    """The car of row 1 goes from 9.5 over 8.5 to 7.5."""
    player = Player(spec, **PARKED | {"position_1": 9.5, "speed_1": -100.0})
    assert player.go(UP, action) == ((-1.0, True) if is_hit else (0.0, False))


def test_the_pavement_is_safe(spec: DomainSpec) -> None:
    whole = PARKED | {f"speed_{i}": 1400.0 for i in range(1, 9)}
    assert Player(spec, **whole).go(*[STAY, LEFT, RIGHT, DOWN] * 20) == (0.0, False)


def test_crossing_gives_one_and_ends(spec: DomainSpec) -> None:
    player = Player(spec, **PARKED)
    assert player.go(*[UP] * 9) == (1.0, True)
    assert player.place() == (7, 9)


def test_out_of_time_at_step_100_and_not_before(spec: DomainSpec) -> None:
    player = Player(spec)
    assert player.go(*[STAY] * 99) == (0.0, False)
    assert player.go(STAY) == (-1.0, True)
    player.world.reset(ROW, np.zeros((1, 0)))
    assert player.go(*[STAY] * 100) == (-1.0, True), "the clock begins anew"


def test_crossing_with_the_last_step_counts(spec: DomainSpec) -> None:
    assert Player(spec, **PARKED).go(*[STAY] * 91, *[UP] * 9) == (1.0, True)
    assert Player(spec, **PARKED).go(*[STAY] * 92, *[UP] * 8) == (-1.0, True)


def test_cars_come_back_after_a_round(spec: DomainSpec) -> None:
    """A cell in a step: the ring has 14."""
    player = Player(spec, **PARKED | {"position_1": 6.0, "speed_1": -100.0})
    first = player.see()
    seen = [first]
    for _ in range(14):
        player.go(STAY)
        seen.append(player.see())
    assert seen[14] == first
    assert [s[5] >= 0 for s in seen[:14]] == [7 in {(6 - t + k) % 14 for k in range(4)} for t in range(14)]


# ---- resets and determinism ---------------------------------------------------------------------------------------


def play(env: Any, seed: int, actions: NDArray[np.int64], **options: Any) -> Iterator[list[Any]]:
    yield env.reset(seed=seed, **options)[0].tolist()
    for action in actions:
        observation, reward, terminated, _, _ = env.step(action)
        yield [*observation.tolist(), reward, terminated]
        if terminated:
            yield env.reset()[0].tolist()


def test_nothing_is_random(spec: DomainSpec) -> None:
    actions = np.random.default_rng(0).choice(5, size=150, p=[0.2, 0.2, 0.4, 0.1, 0.1])
    for params in ({}, spec.novelties["noise"].sample(np.random.default_rng(1), spec.parameters)):
        told = [
            list(play(gymnasium.make(spec.env_id), seed, actions, options={"params": params})) for seed in (0, 1, 99)
        ]
        assert told[0] == told[1] == told[2]
        assert len(told[0]) > 152, "episodes did end"


def test_one_layout_per_trial(spec: DomainSpec, agent_for: Callable[[str], Agent]) -> None:
    """A frozen agent has the same episode again and again; another trial is another layout."""
    spec = RunSpec("crossroad", "a", "frozen", "noise", trials=12, protocol="3+4").complete()
    rows = Engine(spec, agent_for("crossroad")).run_trials(spec.trial_specs())
    for trial in rows.partition_by("trial"):
        for phase in ("pre", "novel"):
            same = trial.filter(pl.col("phase") == phase).select("return", "length", pl.col("^param_.*$"))
            assert same.n_unique() == 1
    novel = rows.filter(pl.col("phase") == "novel")
    assert novel.select(pl.col("^param_.*$")).n_unique() == 12
    assert rows.filter(pl.col("phase") == "pre").select(pl.col("^param_.*$")).unique().row(0) == (*POSITIONS, *SPEEDS)


# ---- novelties ----------------------------------------------------------------------------------------------------

BY_HAND = {
    "super-slow": (POSITIONS, (-16, 22, -20, -28, 12, 32, -18, 24)),
    "super-fast": (POSITIONS, (-160, 220, -200, -280, 120, 320, -180, 240)),
    "new-speeds": (POSITIONS, (-100, 140, -90, -120, 160, 80, -110, 60)),
    "opposite-direction": (POSITIONS, (80, -110, 100, 140, -60, -160, 90, -120)),
    "all-to-the-left": (POSITIONS, (-80, -110, -100, -140, -60, -160, -90, -120)),
    "all-to-the-right": (POSITIONS, (80, 110, 100, 140, 60, 160, 90, 120)),
    "shift-speeds": (POSITIONS, (120, -80, 110, -100, -140, 60, 160, -90)),
    "reverse-cars": ((2, 6, 1, 10, 7, 5, 8, 3), (120, -90, 160, 60, -140, -100, 110, -80)),
    "noise": (POSITIONS, SPEEDS),
}


def test_the_novelties_are_these(spec: DomainSpec) -> None:
    assert list(spec.novelties) == list(BY_HAND)
    assert spec.defaults.novelty in BY_HAND


@pytest.mark.parametrize("novelty", list(BY_HAND))
def test_novelty_by_hand(spec: DomainSpec, novelty: str) -> None:
    """Around these values, a column to each side and a tenth of a cell per step to each side, each car for itself."""
    middle = np.array(list(parameters_of(*BY_HAND[novelty]).values()))
    rng = np.random.default_rng(0)
    drawn = np.array([list(spec.novelties[novelty].sample(rng, spec.parameters).values()) for _ in range(600)]) - middle
    reach = np.repeat([1.0, 10.0], 8)
    assert (np.abs(drawn) <= reach + 1e-9).all()
    assert (drawn.min(axis=0) < -0.97 * reach).all()
    assert (drawn.max(axis=0) > 0.97 * reach).all()
    assert (np.abs(drawn.mean(axis=0)) < 0.1 * reach).all()
    together = np.corrcoef(drawn.T) - np.eye(16)
    assert np.abs(together).max() < 0.2, "drawn independently"


# ---- scores, detector, success ------------------------------------------------------------------------------------


def situation(x: int, y: int, *cars: int) -> list[float]:
    """An observation at (x, y) with cars in these of the eight cells around (NW N NE W E SW S SE)."""
    cells = [(x + dx, y + dy) if i in cars else (-13, -9) for i, (dx, dy) in enumerate(AROUND)]
    return [x / 13, y / 9, *(number for cx, cy in cells for number in (cx / 13, cy / 9))]


NW, N, NE, W, E, SW, S, SE = range(8)
TRANSITIONS: list[tuple[str, list[float], int, tuple[int, int], float, bool, float, float]] = [
    # what, before, action, after, reward, ended, progress, excused-progress
    ("up", situation(7, 0), UP, (7, 1), 0.0, False, 1.0, 1.0),
    ("up between cars", situation(7, 3, W, E, NW, NE), UP, (7, 4), 0.0, False, 1.0, 1.0),
    ("crossing", situation(7, 8), UP, (7, 9), 1.0, True, 1.0, 1.0),
    ("hit while going up", situation(7, 3, N), UP, (7, 4), -1.0, True, -1.0, -1.0),
    ("hit while waiting", situation(7, 3, E), STAY, (7, 3), -1.0, True, -1.0, -1.0),
    ("hit while going down", situation(7, 3), DOWN, (7, 2), -1.0, True, -1.0, -1.0),
    ("out of time", situation(7, 3), STAY, (7, 3), -1.0, True, -1.0, -1.0),
    ("out of time going up", situation(7, 3), UP, (7, 4), -1.0, True, -1.0, -1.0),
    ("down", situation(7, 3), DOWN, (7, 2), 0.0, False, -0.5, -0.5),
    ("down from a car", situation(7, 3, W, N), DOWN, (7, 2), 0.0, False, -0.5, -0.5),
    ("rest", situation(7, 3), STAY, (7, 3), 0.0, False, 0.0, -0.5),
    ("left", situation(7, 3), LEFT, (6, 3), 0.0, False, 0.0, -0.5),
    ("right", situation(7, 3), RIGHT, (8, 3), 0.0, False, 0.0, -0.5),
    ("left at the side", situation(0, 3), LEFT, (0, 3), 0.0, False, 0.0, -0.5),
    ("rest on the pavement", situation(7, 0), STAY, (7, 0), 0.0, False, 0.0, -0.5),
    *((f"rest, car {i}", situation(7, 3, i), STAY, (7, 3), 0.0, False, 0.0, 0.0) for i in (NW, N, NE, W, E)),
    *((f"rest, car behind {i}", situation(7, 3, i), STAY, (7, 3), 0.0, False, 0.0, -0.5) for i in (SW, S, SE)),
    ("aside, car ahead", situation(7, 3, N, NE, S), LEFT, (6, 3), 0.0, False, 0.0, 0.0),
    ("aside, car in column 0", situation(1, 3, W), RIGHT, (2, 3), 0.0, False, 0.0, 0.0),
    ("rest on the pavement, car ahead", situation(7, 0, NW), STAY, (7, 0), 0.0, False, 0.0, 0.0),
]  # fmt: skip


def test_scores_by_hand(spec: DomainSpec) -> None:
    what, before, actions, after, rewards, ended, progress, excused = zip(*TRANSITIONS, strict=True)
    # After the step cars may be anywhere: only those before it excuse.
    following = np.array([situation(*cell, *([N, W] if i % 2 else [])) for i, cell in enumerate(after)], np.float32)
    transition = (np.array(before, np.float32), np.array(actions), following, np.array(rewards), np.array(ended))
    found = {name: dict(zip(what, score(*transition).tolist(), strict=True)) for name, score in spec.scores.items()}
    assert set(found) == {"reward", "progress", "excused-progress"}
    assert found["progress"] == dict(zip(what, progress, strict=True))
    assert found["excused-progress"] == dict(zip(what, excused, strict=True))
    assert found["reward"] == dict(zip(what, rewards, strict=True))


def test_thresholds_and_defaults(spec: DomainSpec) -> None:
    assert {(score.threshold, score.supremum) for score in spec.scores.values()} == {(0.0, 1.0)}
    assert spec.defaults.score == "excused-progress"
    assert "reward" not in spec.controllers
    assert spec.return_limits == (1.0, inf)
    assert (spec.solved.column, spec.solved.level) == ("return", 1.0)
    assert spec.return_range == (-1.0, 1.0)


@pytest.mark.parametrize(("lost", "alarm"), [([], False), ([0], True), ([4], True), ([0, 1, 2, 3, 4], True)])
def test_one_lost_episode_in_five_is_a_novelty(spec: DomainSpec, lost: list[int], alarm: bool) -> None:
    detector = detectors.get("rolling-mean").for_domain(1, spec)
    detector.start(ROW, 0)
    for episode in range(5):
        detector.end_episode(ROW, np.array([-1.0 if episode in lost else 1.0]), np.array([episode + 1]))
        assert bool(detector.context[0]) == (alarm and episode == 4)


def test_won_is_a_return_above_zero(spec: DomainSpec) -> None:
    won = spec.won(np.array([100, 12, 100, 5]), np.ones(4, np.bool_), np.array([-1.0, 1.0, 1.0, -1.0]))
    assert won.tolist() == [False, True, True, False]


# ---- the oracle ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crossings() -> pl.DataFrame:
    """The oracle in forty draws of every novelty."""
    from conftest import make_agent

    spec = RunSpec("crossroad", "a", "oracle", "all", trials=40, protocol="0+2").complete()
    return Engine(spec, make_agent("crossroad")).run_trials(spec.trial_specs())


def test_oracle_crosses_in_every_draw_of_every_novelty(crossings: pl.DataFrame) -> None:
    assert crossings["trial"].n_unique() == 9 * 40
    assert crossings["won"].all()
    assert (crossings["return"] == 1.0).all()
    assert crossings["length"].min() >= 9  # type: ignore[operator]
    lengths = crossings["length"].to_numpy().reshape(-1, 2)
    assert (lengths[:, 0] == lengths[:, 1]).all(), "one plan for the trial"


@pytest.mark.parametrize("novelty", list(BY_HAND))
def test_no_crossing_is_shorter(crossings: pl.DataFrame, novelty: str) -> None:
    chosen = crossings.filter((pl.col("novelty") == novelty) & (pl.col("episode") == 0)).head(5).to_dicts()
    for row in chosen:
        layout = {name.removeprefix("param_"): value for name, value in row.items() if name.startswith("param_")}
        assert row["length"] == road_of(layout).shortest()


def test_oracle_stays_on_the_pavement_where_no_crossing_exists(spec: DomainSpec) -> None:
    expert = spec.make_oracle()
    whole = parameters_of(POSITIONS, [*SPEEDS[:4], 1400, *SPEEDS[5:]])
    assert road_of(whole).shortest() is None
    plan = expert.plan(np.array([list(whole.values())]))
    player = Player(spec, **whole)
    actions = [int(expert.act(plan, player.world.observe(ROW), np.array([t]))[0]) for t in range(100)]
    assert player.go(*actions) == (-1.0, True)


# ---- rendering ----------------------------------------------------------------------------------------------------


def colour_at(picture: NDArray[np.uint8], x: int, y: int) -> str:
    """The colour in the middle of a cell; row 0 is at the bottom."""
    red, green, blue = picture[round(400 - (y + 0.5) * 40), round((x + 0.5) * 600 / 14)].astype(int)
    if red > 1.5 * max(green, blue):
        return "red"
    return "green" if green > 1.5 * max(red, blue) else ""


@pytest.mark.parametrize("positions", [POSITIONS, (12, 0, 13, 11, 10, 4, 6, 8)])
def test_red_cars_and_a_green_player_where_they_are(spec: DomainSpec, positions: tuple[int, ...]) -> None:
    env = gymnasium.make(spec.env_id, render_mode="rgb_array")
    env.reset(options={"params": parameters_of(positions, [0.0] * 8)})
    road = Road(positions, [0] * 8)
    for action in (STAY, LEFT, LEFT, LEFT, RIGHT):
        env.step(action)
        road.step(action)
        picture: Any = env.render()
        for y in range(10):
            for x in range(14):
                is_car = 1 <= y <= 8 and x in road.covered(road.cars[y - 1])
                expected = "green" if (x, y) == (road.x, road.y) else "red" if is_car else ""
                assert colour_at(picture, x, y) == expected, (x, y)
    env.close()


def test_the_picture_follows_the_player_up(spec: DomainSpec) -> None:
    env = gymnasium.make(spec.env_id, render_mode="rgb_array")
    env.reset(options={"params": PARKED})
    for y in range(1, 10):
        env.step(UP)
        picture: Any = env.render()
        assert [colour_at(picture, 7, row) for row in range(10)] == ["green" if row == y else "" for row in range(10)]
    env.close()
