"""MountainCar with the paper's horizon (500 steps) and novelties: force and gravity drawn at once."""

import math

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.base import Domain
from nappingrl.domains.canvas import Canvas
from nappingrl.novelties.novelty import Novelty
from nappingrl.score import Score
from nappingrl.types import Actions, Defaults, DomainSpec, Flags, Floats, Observations, Point, Rows, Solved

POSITION_MIN, POSITION_MAX, GOAL, MAX_SPEED = -1.2, 0.6, 0.5, 0.07
_PARAMETERS = {"force": 0.001, "gravity": 0.0025}
RANGES = {"force": (0.0001, 0.02), "gravity": (0.0001, 0.005)}


def _with_velocity(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    push: Floats = action - np.ones(len(action))
    return push * np.sign(obs2[:, 1].astype(np.float64))


def _from_rest_right(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    moving = _with_velocity(obs, action, obs2, reward, end)
    return np.where(obs[:, 1] == 0, np.sign(obs2[:, 1].astype(np.float64)), moving)


def _energy(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    def energy(o: Observations) -> Floats:
        position, velocity = o.astype(np.float64).T
        return np.asarray(0.5 * velocity**2 + _PARAMETERS["gravity"] / 3 * np.sin(3 * position))

    return energy(obs2) - energy(obs)


def _faster(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    return np.abs(obs2[:, 1].astype(np.float64)) - np.abs(obs[:, 1])


def _push_along(obs: Observations) -> Actions:
    """Push the way the car rolls; from rest, right."""
    return np.where(obs[:, 1] < 0, 0, 2)


_SCORES = (
    Score("with-velocity", _with_velocity, 1.0, 1.0, "(a - 1) sgn(v'): push the way the car rolls"),
    Score("from-rest-right", _from_rest_right, 1.0, 1.0, "the same, but from rest the car must start right"),
    Score("energy", _energy, 0.0, description="mechanical energy (at the old gravity) must grow"),
    Score("faster", _faster, 0.0, description="|v| must grow"),
)


def _won(lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    """The car reached the goal."""
    return terminated


class MountainCar(Domain):
    """An underpowered car in a valley; dynamics as in gymnasium's MountainCar."""

    spec = DomainSpec(
        observation_low=np.array([POSITION_MIN, -MAX_SPEED], np.float32),
        observation_high=np.array([POSITION_MAX, MAX_SPEED], np.float32),
        observation_centre=np.array([-math.pi / 6, 0.0]),
        observation_scale=np.array([0.9, MAX_SPEED]),
        observation_names=("position", "velocity"),
        observation_words=(
            ("left of the valley's floor", "right of the valley's floor"),
            ("rolling left", "rolling right"),
        ),
        n_actions=3,
        action_names=("LEFT", "COAST", "RIGHT"),
        horizon=500,
        return_range=(-500.0, 0.0),
        return_limits=(-120.0, -80.0),
        won=_won,
        solved=Solved("won", 1.0),
        parameters=_PARAMETERS,
        n_reset_draws=1,
        frames_per_second=30,
        novelties={
            "physics": Novelty("physics", RANGES, "the paper's: force and gravity drawn at once"),
            **{name: Novelty(name, {name: span}, f"{name} alone is drawn") for name, span in RANGES.items()},
        },
        scores={score.name: score for score in _SCORES},
        controllers={score.name: _push_along for score in _SCORES},
        oracle="nappingrl.domains.mountaincar_oracle:MountainCarOracle",
        defaults=Defaults(
            agent="dqn", novelty="physics", score="from-rest-right", detector="rolling-mean",
            options={"rule": "fallback", "space": "raw"},
        ),
    )  # fmt: skip

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, spec)
        self._state = np.zeros((n, 2))

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Position uniform in [-0.6, -0.4), at rest."""
        self._state[rows, 0] = -0.6 + (-0.4 - -0.6) * uniforms[:, 0]
        self._state[rows, 1] = 0.0

    def observe(self, rows: Rows) -> Observations:
        """Position and velocity."""
        return self._state[rows].astype(np.float32)

    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        """Reward -1 a step; ends at the goal."""
        terminated = np.empty(len(rows), np.bool_)
        _step(self._state, self._parameters, rows, actions, terminated)
        return np.full(len(rows), -1.0), terminated

    def draw(self, row: int, canvas: Canvas) -> None:
        """The valley, the car and the flag."""
        hill = [_place(float(p)) for p in np.linspace(POSITION_MIN, POSITION_MAX, 120)]
        canvas.polygon([*hill, (600, 400), (0, 400)], "ground")
        foot = _place(GOAL)
        canvas.line(foot, (foot[0], foot[1] - 50), 2, "joint")
        canvas.polygon([(foot[0], foot[1] - 50), (foot[0], foot[1] - 36), (foot[0] + 24, foot[1] - 43)], "goal")
        self.draw_predicted(row, self._state[row], canvas)

    def draw_predicted(self, row: int, observation: Floats, canvas: Canvas) -> bool:
        """The car."""
        position = float(observation[0])
        slope = math.cos(3 * position)
        x, y = _place(position, 12)
        c, s = math.cos(math.atan(slope)), -math.sin(math.atan(slope))
        corners = [(-20, -10), (20, -10), (20, 8), (-20, 8)]
        canvas.polygon([(x + a * c - b * s, y + a * s + b * c) for a, b in corners], "body")
        for a in (-12, 12):
            canvas.circle((x + a * c - 9 * s, y + a * s + 9 * c), 6, "joint")
        return True


def _place(position: float, above: float = 0.0) -> Point:
    """Where a position of the valley is drawn."""
    height = math.sin(3 * position) * 0.45 + 0.55
    return (position - POSITION_MIN) * 600 / (POSITION_MAX - POSITION_MIN), 380 - height * 300 - above


@kernel()
def _step(
    state: NDArray[np.float64], parameters: NDArray[np.float64], rows: Rows, actions: Actions, terminated: Flags
) -> None:
    """One step, in the order of operations of gymnasium's MountainCar so that both give the same bits."""
    for m in range(rows.shape[0]):
        row = rows[m]
        force, gravity = parameters[row]
        position, velocity = state[row]
        velocity += (actions[m] - 1) * force + math.cos(3 * position) * (-gravity)
        velocity = min(max(velocity, -MAX_SPEED), MAX_SPEED)
        position += velocity
        position = min(max(position, POSITION_MIN), POSITION_MAX)
        if position == POSITION_MIN and velocity < 0:
            velocity = 0.0
        state[row, 0], state[row, 1] = position, velocity
        terminated[m] = position >= GOAL and velocity >= 0.0
