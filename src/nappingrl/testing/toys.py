"""A small domain and a small agent in which any method can be tried within milliseconds."""

import numpy as np
from typing_extensions import override

from nappingrl.agents.mlp import MlpAgent
from nappingrl.domains.base import Domain
from nappingrl.novelties.novelty import Novelty
from nappingrl.score import Score
from nappingrl.types import Actions, Defaults, DomainSpec, Flags, Floats, Observations, OracleController, Rows, Solved

HORIZON = 12


def _nearer(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    before, after = np.abs(obs[:, 0].astype(np.float64)), np.abs(obs2[:, 0].astype(np.float64))
    return before - after


def _won(lengths: Rows, terminated: Flags, returns: Floats) -> Flags:
    return ~terminated


def _home(obs: Observations) -> Actions:
    return np.where(obs[:, 0] > 0, 0, 2)


class Corridor(Domain):
    """A walker in a corridor must stay near the middle; the novelty reverses its steps."""

    spec = DomainSpec(
        observation_low=np.array([-3.0, -1.0], np.float32),
        observation_high=np.array([3.0, 1.0], np.float32),
        observation_centre=np.zeros(2),
        observation_scale=np.array([3.0, 1.0]),
        observation_names=("position", "last step"),
        observation_words=(("left of the middle", "right of the middle"), ("went left", "went right")),
        n_actions=3,
        action_names=("LEFT", "STAY", "RIGHT"),
        horizon=HORIZON,
        return_range=(1.0, float(HORIZON)),
        return_limits=(HORIZON - 1.0, np.inf),
        won=_won,
        solved=Solved("return", HORIZON - 1.0),
        parameters={"step": 0.5},
        n_reset_draws=1,
        novelties={"reversed": Novelty("reversed", {"step": (-0.9, -0.4)}, "steps go the other way")},
        scores={"nearer": Score("nearer", _nearer, description="steps towards the middle")},
        controllers={"nearer": _home},
        oracle="nappingrl.testing.toys:CorridorOracle",
        defaults=Defaults(agent="walker", novelty="reversed", score="nearer", detector="given"),
    )

    def __init__(self, n: int, spec: DomainSpec | None = None) -> None:
        super().__init__(n, spec)
        self._state = np.zeros((n, 2))

    @override
    def reset(self, rows: Rows, uniforms: Floats) -> None:
        self._state[rows, 0] = uniforms[:, 0] * 2 - 1
        self._state[rows, 1] = 0.0

    @override
    def observe(self, rows: Rows) -> Observations:
        return self._state[rows].astype(np.float32)

    @override
    def step(self, rows: Rows, actions: Actions) -> tuple[Floats, Flags]:
        moves = (actions - 1) * self._parameters[rows, 0]
        self._state[rows, 0] += moves
        self._state[rows, 1] = moves
        return np.ones(len(rows)), np.abs(self._state[rows, 0]) > 2.0


class CorridorOracle(OracleController):
    """Walks home, whichever way steps go. A plan is the sign of the step."""

    def plan(self, parameters: Floats) -> Floats:
        """The sign of each step."""
        return np.sign(parameters)

    def act(self, plans: Floats, observations: Observations, steps: Rows) -> Actions:
        """Towards the middle."""
        actions: Actions = (1 - np.sign(observations[:, 0].astype(np.float64)) * plans[:, 0]).astype(np.int64)
        return actions


def make_walker() -> MlpAgent:
    """An actor-critic that walks towards the middle, as if steps went the right way."""
    hidden = np.array([[1.0, 0.0], [0.3, 0.7]], np.float32)  # (inputs, outputs)
    no_bias = np.zeros(2, np.float32)
    action = np.array([[1.0, 0.0, -1.0], [0.0, 0.0, 0.0]], np.float32)
    action_bias = np.array([0.0, 0.1, 0.0], np.float32)
    weights = {
        "mlp_extractor.policy_net.0.weight": hidden.T,
        "mlp_extractor.policy_net.0.bias": no_bias,
        "action_net.weight": action.T,
        "action_net.bias": action_bias,
        "mlp_extractor.value_net.0.weight": hidden.T,
        "mlp_extractor.value_net.0.bias": no_bias,
        "value_net.weight": np.ones((1, 2), np.float32),
        "value_net.bias": np.zeros(1, np.float32),
    }
    return MlpAgent("walker", [(hidden, no_bias), (action, action_bias)], "tanh", weights=weights)
