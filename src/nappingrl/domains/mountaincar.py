"""MountainCar with the paper's horizon (500 steps) and novelties: force and gravity drawn at once."""

import math

import numpy as np

from nappingrl._build import kernel
from nappingrl.domains.canvas import Canvas
from nappingrl.domains.compiled import CompiledDomain, make_kernels, observe_state
from nappingrl.novelties.novelty import Novelty
from nappingrl.score import Score, compiled_score
from nappingrl.types import Actions, Defaults, DomainSpec, Flags, Floats, Observation, Observations, Point, Rows, Solved

POSITION_MIN, POSITION_MAX, GOAL, MAX_SPEED = -1.2, 0.6, 0.5, 0.07
_PARAMETERS = {"force": 0.001, "gravity": 0.0025}
RANGES = {"force": (0.0001, 0.02), "gravity": (0.0001, 0.005)}


@kernel(allocates=False)
def _with_velocity(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    return float((action - 1.0) * np.sign(np.float64(obs2[1])))


@kernel(allocates=False)
def _from_rest_right(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    if obs[1] == 0:
        return float(np.sign(np.float64(obs2[1])))
    return _with_velocity(obs, action, obs2, reward, end)


def _energy(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    def energy(o: Observations) -> Floats:
        position, velocity = o.astype(np.float64).T
        return np.asarray(0.5 * velocity**2 + _PARAMETERS["gravity"] / 3 * np.sin(3 * position))

    return energy(obs2) - energy(obs)


@kernel(allocates=False)
def _faster(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    return abs(np.float64(obs2[1])) - abs(np.float64(obs[1]))


def _push_along(obs: Observations) -> Actions:
    """Push the way the car rolls; from rest, right."""
    return np.where(obs[:, 1] < 0, 0, 2)


_SCORES = (
    compiled_score("with-velocity", _with_velocity, 1.0, 1.0, "(a - 1) sgn(v'): push the way the car rolls"),
    compiled_score("from-rest-right", _from_rest_right, 1.0, 1.0, "the same, but from rest the car must start right"),
    Score("energy", _energy, 0.0, description="mechanical energy (at the old gravity) must grow"),
    compiled_score("faster", _faster, 0.0, description="|v| must grow"),
)


def _won(lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    """The car reached the goal."""
    return terminated


@kernel(allocates=False)
def _step(state: Floats, parameters: Floats, action: int) -> tuple[float, bool]:
    """Reward -1 a step, ends at the goal. In the order of operations of gymnasium's MountainCar, to have its bits."""
    force, gravity = parameters
    position, velocity = state
    velocity += (action - 1) * force + math.cos(3 * position) * (-gravity)
    velocity = min(max(velocity, -MAX_SPEED), MAX_SPEED)
    position += velocity
    position = min(max(position, POSITION_MIN), POSITION_MAX)
    if position == POSITION_MIN and velocity < 0:
        velocity = 0.0
    state[0], state[1] = position, velocity
    return -1.0, position >= GOAL and velocity >= 0.0


class MountainCar(CompiledDomain):
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

    kernels = make_kernels(_step, observe_state)

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, 2, spec)

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """Position uniform in [-0.6, -0.4), at rest."""
        self._state[rows, 0] = -0.6 + (-0.4 - -0.6) * uniforms[:, 0]
        self._state[rows, 1] = 0.0

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
