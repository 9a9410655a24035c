"""A user's package: a domain with a novelty and an agent, a method and a detector. Nothing in nappingrl names them."""

import numpy as np

import nappingrl
from nappingrl.methods.base import Method
from nappingrl.types import Decision, Defaults


def _won(lengths, terminated, returns):
    return ~terminated


class Lane(nappingrl.Domain):
    """Keep to the middle of a lane; the novelty reverses the wheel."""

    spec = nappingrl.DomainSpec(
        observation_low=np.array([-3.0], np.float32),
        observation_high=np.array([3.0], np.float32),
        n_actions=2,
        action_names=("LEFT", "RIGHT"),
        horizon=10,
        return_range=(0.0, 10.0),
        won=_won,
        parameters={"wheel": 0.4},
        n_reset_draws=1,
        novelties={"reversed": nappingrl.Novelty("reversed", {"wheel": (-0.5, -0.3)}, "the wheel is reversed")},
        scores={
            "centred": nappingrl.Score(
                "centred",
                lambda obs, action, obs2, reward, end: np.abs(obs[:, 0]) - np.abs(obs2[:, 0]),
                description="nearer to the middle",
            )
        },
        defaults=Defaults(agent="driver", novelty="reversed", score="centred"),
    )

    def __init__(self, n, spec=None):
        super().__init__(n, spec)
        self._x = np.zeros(n)

    def reset(self, rows, uniforms):
        self._x[rows] = uniforms[:, 0] - 0.5

    def observe(self, rows):
        return self._x[rows, None].astype(np.float32)

    def step(self, rows, actions):
        self._x[rows] += (2 * actions - 1) * self._parameters[rows, 0]
        return np.ones(len(rows)), np.abs(self._x[rows]) > 1.5


class Driver(nappingrl.Agent):
    """Steers to the middle."""

    name = "driver"
    n_actions = 2
    embedding_dim = 1
    observation_shape = (1,)
    sha256 = "d" * 64

    def forward(self, observations):
        right = observations[:, 0] <= 0
        preferences = np.stack([~right, right], axis=1).astype(np.float32)
        return Decision(right.astype(np.int64), observations.copy(), preferences)


class Opposite(Method):
    """Does the opposite of what the agent wants once the novelty is detected."""

    def __init__(self, agent, info, n):
        super().__init__(agent, info, n)
        self._detected = np.zeros(n, np.bool_)

    def start(self, rows, keys):
        self._detected[rows] = False

    def act(self, rows, observations, decision):
        opposite = self.agent.n_actions - 1 - decision.actions
        return np.where(self._detected[rows], opposite, decision.actions)

    def learn(self, rows, transition, detected):
        self._detected[rows] = detected


class ShortEpisodes(nappingrl.Detector):
    """Alarms after an episode that ended early."""

    def __init__(self, n):
        super().__init__(n)
        self._lengths = np.zeros(n, np.int64)

    def start(self, rows, episode):
        super().start(rows, episode)
        self._lengths[rows] = 0

    def step(self, rows, transition):
        self._lengths[rows] += 1

    def end_episode(self, rows, returns, next_episodes):
        self.context[rows] |= self._lengths[rows] < 9
        self._lengths[rows] = 0

    def state(self):
        return super().state() | {"lengths": self._lengths}

    def restore(self, state):
        super().restore(state)
        self._lengths[:] = state["lengths"]
