"""CartPole with the paper's horizon (200 steps) and novelties: five physical constants drawn at once."""

import math
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.canvas import Canvas
from nappingrl.domains.compiled import CompiledDomain, make_kernels, observe_state
from nappingrl.novelties.novelty import Novelty
from nappingrl.score import Score, compiled_score
from nappingrl.types import Actions, Defaults, DomainSpec, Flags, Floats, Observation, Observations, Rows, Solved

TIME_STEP = 0.02
ANGLE_LIMIT = 12 * 2 * math.pi / 360
POSITION_LIMIT = 2.4
GROUND = 300.0
"""Where the track is drawn."""

RANGES = {
    "length": (0.05, 5.0),
    "gravity": (0.98, 98.0),
    "masscart": (0.1, 10.0),
    "masspole": (0.01, 1.0),
    "force": (1.0, 100.0),
}


def _follow(k: float) -> Callable[[Observations], Actions]:
    """Push the cart under the pole: to where theta + k w points."""

    def controller(obs: Observations) -> Actions:
        return (obs[:, 2] + k * obs[:, 3] > 0).astype(np.int64)

    return controller


def _push_back(k: float) -> Score:
    """-sgn(theta + k w)(w' - w): the pole's angular velocity must change against where the pole is heading."""
    weight = np.float32(k)

    @kernel(allocates=False)
    def push_back(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
        heading = 1.0 if obs[2] + weight * obs[3] > 0 else -1.0
        return -heading * (np.float64(obs2[3]) - np.float64(obs[3]))

    description = f"-sgn(th + {k:g} w) (w' - w): push against where the pole heads"
    return compiled_score(f"push-back-{k:g}", push_back, description=description)


@kernel(allocates=False)
def _terminal(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
    return -1.0 if end else 1.0


def _angle_drop(k: float) -> Score:
    """|theta + k w| must fall."""
    weight = np.float32(k)

    @kernel(allocates=False)
    def angle_drop(obs: Observation, action: int, obs2: Observation, reward: float, end: bool) -> float:
        before = abs(np.float64(obs[2]) + np.float64(weight * obs[3]))
        return before - abs(np.float64(obs2[2]) + np.float64(weight * obs2[3]))

    name = f"lean-drop-{k:g}" if k else "angle-drop"
    return compiled_score(name, angle_drop, description=f"|th{f' + {k:g} w' if k else ''}| must fall")


_SCORES = (
    _push_back(0.3),
    _push_back(0.1),
    _angle_drop(0.2),
    _angle_drop(0.0),
    compiled_score("terminal", _terminal, supremum=1.0, description="-1 when the episode ends, else +1"),
)
_CONTROLLERS = {
    "push-back-0.3": _follow(0.3),
    "push-back-0.1": _follow(0.1),
    "lean-drop-0.2": _follow(0.2),
    "angle-drop": _follow(0.0),
}
_BOUNDS = np.array([2 * POSITION_LIMIT, inf, 2 * ANGLE_LIMIT, inf], np.float32)


def _won(lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    """The pole stood to the end."""
    return ~terminated


def _describe(observation: NDArray[np.floating[Any]]) -> str:
    """Where the pole leans, and whether it falls."""
    angle, speed = observation[2], observation[3]
    side = "right" if angle > 0 else "left"
    return f"pole leaning {side} and {'falling' if angle * speed > 0 else 'rising'}"


@kernel(allocates=False)
def euler_step(state: Floats, parameters: Floats, action: int) -> bool:
    """One Euler step in place, with gymnasium's order of operations so that both give the same bits; True: it ended."""
    length, gravity, masscart, masspole, force = parameters
    total_mass, polemass_length = masspole + masscart, masspole * length
    x, x_dot, theta, theta_dot = state
    push = force if action == 1 else -force
    cos, sin = np.cos(theta), np.sin(theta)
    temp = (push + polemass_length * (theta_dot * theta_dot) * sin) / total_mass
    theta_acc = (gravity * sin - cos * temp) / (length * (4.0 / 3.0 - masspole * (cos * cos) / total_mass))
    x_acc = temp - polemass_length * theta_acc * cos / total_mass
    state[0], state[1] = x + TIME_STEP * x_dot, x_dot + TIME_STEP * x_acc
    state[2], state[3] = theta + TIME_STEP * theta_dot, theta_dot + TIME_STEP * theta_acc
    return bool(abs(state[0]) > POSITION_LIMIT or abs(state[2]) > ANGLE_LIMIT)


@kernel(allocates=False)
def _step(state: Floats, parameters: Floats, action: int) -> tuple[float, bool]:
    """Reward 1 a step; ends when the pole falls or the cart leaves the track."""
    return 1.0, euler_step(state, parameters, action)


class CartPole(CompiledDomain):
    """A pole on a cart. Physics as in gymnasium's CartPole (Euler), with every parameter a primitive number."""

    spec = DomainSpec(
        observation_low=-_BOUNDS,
        observation_high=_BOUNDS,
        observation_centre=np.zeros(4),
        observation_scale=np.array([POSITION_LIMIT, 2.0, ANGLE_LIMIT, 2.0]),
        observation_names=("cart position", "cart velocity", "pole angle", "pole angular velocity"),
        observation_units=("m", "m/s", "rad", "rad/s"),
        describe_state=_describe,
        n_actions=2,
        action_names=("LEFT", "RIGHT"),
        horizon=200,
        return_range=(1.0, 200.0),
        return_limits=(150.0, inf),
        won=_won,
        solved=Solved("return", 195.0),
        parameters={"length": 0.5, "gravity": 9.8, "masscart": 1.0, "masspole": 0.1, "force": 10.0},
        positive=("length", "masscart", "masspole"),
        n_reset_draws=4,
        novelties={
            "physics": Novelty("physics", RANGES, "the paper's: length, gravity, both masses and force drawn at once"),
            **{name: Novelty(name, {name: span}, f"{name} alone is drawn") for name, span in RANGES.items()},
        },
        scores={score.name: score for score in _SCORES},
        controllers=_CONTROLLERS,
        oracle="nappingrl.domains.cartpole_oracle:CartPoleOracle",
        defaults=Defaults(
            agent="ppo", novelty="physics", score="push-back-0.3", detector="rolling-mean",
            options={"rule": "revised", "space": "embedding"},
        ),
    )  # fmt: skip

    kernels = make_kernels(_step, observe_state)

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, 4, spec)

    def reset(self, rows: Rows, uniforms: Floats) -> None:
        """All four numbers uniform in [-0.05, 0.05)."""
        self._state[rows] = -0.05 + 0.1 * uniforms

    def draw(self, row: int, canvas: Canvas) -> None:
        """Cart and pole, both drawn to the scale of their parameters."""
        canvas.line((0, GROUND), (600, GROUND), 2, "ground")
        self.draw_predicted(row, self._state[row], canvas)

    def draw_predicted(self, row: int, observation: Floats, canvas: Canvas) -> bool:
        """Cart and pole."""
        length, _, masscart, masspole, _ = self._parameters[row]
        x, _, angle, _ = observation.tolist()
        scale = 600 / (2 * POSITION_LIMIT)
        ground, at = GROUND, 300 + x * scale
        width, height = 50 * masscart ** (1 / 3), 30 * masscart ** (1 / 3)
        reach = min(scale * 2 * length, 270.0)
        tip = (at + reach * math.sin(angle), ground - height - reach * math.cos(angle))
        canvas.polygon([(at - width / 2, ground), (at + width / 2, ground), (at + width / 2, ground - height),
                        (at - width / 2, ground - height)], "body")  # fmt: skip
        canvas.line((at, ground - height), tip, 10 * (masspole / 0.1) ** (1 / 3), "part")
        canvas.circle((at, ground - height), 5, "joint")
        return True
