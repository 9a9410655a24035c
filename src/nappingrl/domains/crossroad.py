"""CrossRoad: cross eight rows of traffic. The authors' code is not public; this follows the paper's words.

Row 0 is the pavement where the player starts, row i = 1..8 has one car, row 9 is the other side. A car is four cells
long on a ring of fourteen; its left edge is a real number, and it covers the four cells from the floor of that edge.
"""

import math
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.canvas import SIZE, Canvas
from nappingrl.domains.compiled import CompiledDomain, make_kernels
from nappingrl.novelties.novelty import Novelty
from nappingrl.score import compiled_score
from nappingrl.types import Actions, Defaults, DomainSpec, Flags, Floats, Observation, Observations, Rows, Solved

COLUMNS, GOAL, CARS, CAR_LENGTH, START = 14, 9, 8, 4, 7
HORIZON = 100
WIDE, HIGH = SIZE[0] / COLUMNS, SIZE[1] / (GOAL + 1)
"""Of a cell as it is drawn."""
LEFT, RIGHT, UP, DOWN, STAY = range(5)
SPEED_UNITS = 100
"""Speeds are in hundredths of a cell per step."""

POSITIONS = (3, 8, 5, 7, 10, 1, 6, 2)
SPEEDS = (-80, 110, -100, -140, 60, 160, -90, 120)
NEW_SPEEDS = (100, 140, 90, 120, 160, 80, 110, 60)
NOISE_POSITION, NOISE_SPEED = 1.0, 10.0

NEIGHBOURS = ("ahead left", "ahead", "ahead right", "left", "right", "behind left", "behind", "behind right")
_DX = np.array([-1, 0, 1, -1, 1, -1, 0, 1])
_DY = np.array([1, 1, 1, 0, 0, -1, -1, -1])
_NEAR = tuple(2 * i + 3 for i in range(5))
"""Where an observation tells of cars within one column in the row ahead or in the player's own."""


def _traffic(name: str, description: str, speeds: Sequence[float], positions: Sequence[float] = POSITIONS) -> Novelty:
    """Cars at these positions with these speeds, each with noise: one layout per trial."""
    ranges = {f"position_{i}": (p - NOISE_POSITION, p + NOISE_POSITION) for i, p in enumerate(positions, 1)}
    ranges |= {f"speed_{i}": (v - NOISE_SPEED, v + NOISE_SPEED) for i, v in enumerate(speeds, 1)}
    return Novelty(name, ranges, description)


NOVELTIES = (
    _traffic("super-slow", "all cars at a fifth of their speed", [0.2 * v for v in SPEEDS]),
    _traffic("super-fast", "all cars at twice their speed", [2.0 * v for v in SPEEDS]),
    _traffic("new-speeds", "other speeds in the same directions",
             [math.copysign(new, v) for new, v in zip(NEW_SPEEDS, SPEEDS, strict=True)]),
    _traffic("opposite-direction", "every car turns round", [-v for v in SPEEDS]),
    _traffic("all-to-the-left", "all cars drive to the left", [-abs(v) for v in SPEEDS]),
    _traffic("all-to-the-right", "all cars drive to the right", [abs(v) for v in SPEEDS]),
    _traffic("shift-speeds", "each row gets the speed of the row before it", [*SPEEDS[-1:], *SPEEDS[:-1]]),
    _traffic("reverse-cars", "the rows of cars in reverse order", SPEEDS[::-1], POSITIONS[::-1]),
    _traffic("noise", "the noise that all the others have too, and nothing else", SPEEDS),
)  # fmt: skip


@kernel(allocates=False)
def _rows_up(obs: Observation, obs2: Observation) -> float:
    return float(np.rint((np.float64(obs2[1]) - np.float64(obs[1])) * GOAL))


@kernel(allocates=False)
def _progress(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    if reward < 0:
        return -1.0
    up = _rows_up(obs, obs2)
    return -0.5 if up < 0 else up


@kernel(allocates=False)
def _excused(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    is_idle = reward >= 0 and _rows_up(obs, obs2) == 0
    for i in _NEAR:
        is_idle &= obs[i] < 0
    return -0.5 if is_idle else _progress(obs, action, obs2, reward, end)


@kernel(allocates=False)
def _reward(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    return reward


def _walk_on(obs: Observations) -> Actions:
    """Up while no car is ahead; else wait, and step aside from a car beside."""
    ahead, left, right = obs[:, 5] >= 0, obs[:, 9] >= 0, obs[:, 11] >= 0
    aside = np.where(left & ~right, RIGHT, np.where(right & ~left, LEFT, STAY))
    return np.where(ahead, aside, UP)


_SCORES = (
    compiled_score(
        "excused-progress", _excused, 0.0, 1.0,
        "progress, but a step aside or a rest costs .5 unless a car is within one column here or ahead",
    ),
    compiled_score("progress", _progress, 0.0, 1.0, "hit or out of time -1, up 1, aside or rest 0, down -.5"),
    compiled_score("reward", _reward, 0.0, 1.0, "the reward: hit or out of time -1, crossed 1, else 0"),
)  # fmt: skip


def _won(lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    """The player reached the other side."""
    return returns > 0


def _describe(observation: NDArray[np.floating[Any]]) -> str:
    """Where cars are."""
    cars = [place for i, place in enumerate(NEIGHBOURS) if observation[3 + 2 * i] >= 0]
    where = "on the pavement" if observation[1] == 0 else "on the road"
    return f"{where}, {'cars ' + ', '.join(cars) if cars else 'no car near'}"


@kernel(allocates=False)
def moved(x: int, y: int, action: int) -> tuple[int, int]:
    """Where an action takes the player: not beyond the sides, nor below the pavement."""
    if action == LEFT:
        return max(0, x - 1), y
    if action == RIGHT:
        return min(COLUMNS - 1, x + 1), y
    if action == UP:
        return x, y + 1
    if action == DOWN:
        return x, max(0, y - 1)
    return x, y


@kernel(allocates=False)
def car_edge(parameters: Floats, y: int, t: int) -> float:
    """The left edge of a row's car after t steps, not wrapped: from the start, so that no rounding adds up."""
    position, speed = parameters[y - 1], parameters[CARS + y - 1]
    return float((position * SPEED_UNITS + speed * t) / SPEED_UNITS)


@kernel(allocates=False)
def is_hit(x: int, y: int, parameters: Floats, t: int) -> bool:
    """Whether the cell is covered at any moment while the row's car makes the move after step t."""
    if y < 1 or y > CARS:
        return False
    before, after = math.floor(car_edge(parameters, y, t)), math.floor(car_edge(parameters, y, t + 1))
    swept = abs(after - before) + CAR_LENGTH
    return bool((x - min(before, after)) % COLUMNS < swept)


@kernel(allocates=False)
def _step(player: Rows, parameters: Floats, action: int) -> tuple[float, bool]:
    """The player (column, row, step) moves, then the cars, whose places follow from the step.

    +1 on the other side, -1 when hit or after 100 steps; both end it.
    """
    x, y = moved(player[0], player[1], action)
    player[0], player[1] = x, y
    player[2] += 1
    if y >= GOAL:
        return 1.0, True
    if is_hit(x, y, parameters, player[2] - 1) or player[2] >= HORIZON:
        return -1.0, True
    return 0.0, False


@kernel(allocates=False)
def _observe(player: Rows, parameters: Floats, out: Observation) -> None:
    """Own column and row, then for each neighbouring cell its column and row if a car covers it, else (-1, -1)."""
    x, y, t = player
    out[0], out[1] = x / (COLUMNS - 1), y / GOAL
    for i in range(8):
        column, row = x + _DX[i], y + _DY[i]
        is_covered = False
        if 1 <= row <= CARS and 0 <= column < COLUMNS:
            is_covered = (column - math.floor(car_edge(parameters, row, t))) % COLUMNS < CAR_LENGTH
        out[2 + 2 * i] = column / (COLUMNS - 1) if is_covered else -1.0
        out[3 + 2 * i] = row / GOAL if is_covered else -1.0


class CrossRoad(CompiledDomain):
    """A road of eight rows; the player sees the eight cells around it."""

    spec = DomainSpec(
        observation_low=np.array([0.0, 0.0] + [-1.0] * 16, np.float32),
        observation_high=np.ones(18, np.float32),
        observation_centre=np.zeros(18),
        observation_scale=np.ones(18),
        observation_names=("column", "row", *(f"car {place} ({axis})" for place in NEIGHBOURS for axis in ("x", "y"))),
        split_words={2 + 2 * i: ("", "") for i in range(8)}
        | {3 + 2 * i: (f"no car {place}", f"a car {place}") for i, place in enumerate(NEIGHBOURS)},
        describe_state=_describe,
        n_actions=5,
        action_names=("LEFT", "RIGHT", "UP", "DOWN", "STAY"),
        horizon=HORIZON,
        return_range=(-1.0, 1.0),
        return_limits=(1.0, inf),
        won=_won,
        solved=Solved("return", 1.0),
        parameters={f"position_{i}": float(p) for i, p in enumerate(POSITIONS, 1)}
        | {f"speed_{i}": float(v) for i, v in enumerate(SPEEDS, 1)},
        frames_per_second=8,
        novelties={novelty.name: novelty for novelty in NOVELTIES},
        scores={score.name: score for score in _SCORES},
        controllers={"excused-progress": _walk_on, "progress": _walk_on},
        oracle="nappingrl.domains.crossroad_oracle:CrossRoadOracle",
        defaults=Defaults(
            agent="dqn", novelty="opposite-direction", score="excused-progress", detector="rolling-mean",
            options={"rule": "fallback", "space": "embedding"},
        ),
    )  # fmt: skip

    kernels = make_kernels(_step, _observe)
    state_dtype = np.int64

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, 3, spec)

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """The player on the pavement, the cars at their start: nothing is drawn, a layout belongs to the trial."""
        self._state[rows] = (START, 0, 0)

    def draw(self, row: int, canvas: Canvas) -> None:
        """Red cars, a green player, and the road with its rows."""
        _box(canvas, 0, 0, COLUMNS, 0, "pavement")
        _box(canvas, 0, GOAL, COLUMNS, 0, "pavement")
        for y in range(1, GOAL + 1):
            canvas.line((0, SIZE[1] - y * HIGH), (SIZE[0], SIZE[1] - y * HIGH), 1, "pavement")
        x, y, t = self._state[row].tolist()
        _box(canvas, x, y, 1, 6, "player")
        for y in range(1, CARS + 1):
            edge = car_edge(self._parameters[row], y, t) % COLUMNS
            for x in (edge, edge - COLUMNS):
                if x > -CAR_LENGTH:
                    _box(canvas, x, y, CAR_LENGTH, 4, "car")

    def draw_predicted(self, row: int, observation: Floats, canvas: Canvas) -> bool:
        """The player."""
        column, line = observation[:2].tolist()
        _box(canvas, column * (COLUMNS - 1), line * GOAL, 1, 6, "player")
        return True


def _box(canvas: Canvas, x: float, y: float, cells: float, inset: float, colour: str) -> None:
    """A rectangle of some cells of a row."""
    left, right = max(x * WIDE + inset, 0), min((x + cells) * WIDE - inset, SIZE[0])
    top, bottom = SIZE[1] - (y + 1) * HIGH + inset, SIZE[1] - y * HIGH - inset
    canvas.polygon([(left, top), (right, top), (right, bottom), (left, bottom)], colour)
