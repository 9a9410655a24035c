"""HYDRA in CartPole: plans with a model of cart and pole, and repairs its constants after a bad episode."""

import heapq

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.cartpole import ANGLE_LIMIT, POSITION_LIMIT, TIME_STEP, CartPole, euler_step
from nappingrl.scripted.base import Observation, ScriptedAgent, ScriptedPolicy
from nappingrl.scripted.hydra import NOTICEABLE, Beliefs, Constant, discounted
from nappingrl.types import Floats

_DEFAULTS = CartPole.spec.parameters
CONSTANTS = (
    Constant("length", _DEFAULTS["length"], 0.1, above=0.0),
    Constant("gravity", _DEFAULTS["gravity"], 1.0, above=0.0),
    Constant("masscart", _DEFAULTS["masscart"], 1.0, above=0.0),
    Constant("masspole", _DEFAULTS["masspole"], 0.1, above=0.0),
    Constant("force", _DEFAULTS["force"], 1.0, above=0.0),
    Constant("angle limit", ANGLE_LIMIT, 0.1, above=0.0),
    Constant("position limit", POSITION_LIMIT, 0.1, above=0.0),
)
"""The parameters of the domain in their order, then the limits of an episode; the steps are the published ones."""
N_PHYSICAL = len(_DEFAULTS)
REPLAN = 25
"""Steps between two plans."""
MOST_EXPANSIONS = 20_000
"""Expanded nodes per plan; the published planner stops after 60 seconds instead."""
GOOD = 0.975
"""Episodes at least this share of the horizon long need no repair."""
MOST_REPAIR_EXPANSIONS = 100

Actions = NDArray[np.int64]
States = NDArray[np.float64]


@kernel()
def _advance(state: Floats, constants: Floats, action: int) -> bool:
    """One step of the model in place; True if the episode ends."""
    euler_step(state, constants[:N_PHYSICAL], action)
    return bool(abs(state[2]) >= constants[N_PHYSICAL] or abs(state[0]) >= constants[N_PHYSICAL + 1])


@kernel()
def simulate(start: Floats, constants: Floats, actions: Actions) -> States:
    """The states from `start` under these actions, up to the end of the episode."""
    states = np.empty((len(actions) + 1, 4))
    states[0] = start
    for i in range(len(actions)):
        states[i + 1] = states[i]
        if _advance(states[i + 1], constants, actions[i]):
            return states[: i + 2]
    return states


@kernel()
def plan(start: Floats, constants: Floats, n_steps: int, most_expansions: int) -> Actions:
    """Actions that keep the pole up for `n_steps`, by greedy best-first search; empty if none were found.

    The heuristic of a state is the norm of (position, angle, their velocities and accelerations) times the remaining
    time: calm states late in the plan are expanded first.
    """
    room = 2 * most_expansions + 1
    states, parents = np.empty((room, 4)), np.empty(room, np.int64)
    actions, depths = np.empty(room, np.int64), np.empty(room, np.int64)
    states[0], depths[0] = start, 0
    n, queue = 1, [(0.0, 0)]
    for _ in range(most_expansions):
        if len(queue) == 0:
            break
        _, node = heapq.heappop(queue)
        for action in range(2):
            states[n] = states[node]
            if _advance(states[n], constants, action):
                continue
            parents[n], actions[n], depths[n] = node, action, depths[node] + 1
            if depths[n] == n_steps:
                return _trace(n, parents, actions, n_steps)
            accelerations = (states[n, 1::2] - states[node, 1::2]) / TIME_STEP
            size = np.sqrt((states[n] ** 2).sum() + (accelerations**2).sum())
            heapq.heappush(queue, (size * (n_steps - depths[n]) * TIME_STEP, n))
            n += 1
    return np.empty(0, np.int64)


@kernel()
def _trace(node: int, parents: Actions, actions: Actions, n_steps: int) -> Actions:
    """The actions that led to a node."""
    out = np.empty(n_steps, np.int64)
    for i in range(n_steps - 1, -1, -1):
        out[i] = actions[node]
        node = parents[node]
    return out


def inconsistency(constants: Floats, observed: States, actions: Actions) -> float:
    """Deviation of the model from the observed states under the same actions from the same start."""
    simulated = simulate(observed[0], constants, actions)
    if len(simulated) < len(observed):
        return float(len(observed) - len(simulated))
    return discounted(np.sqrt(((simulated - observed) ** 2).sum(axis=1)))


class HydraCartPolePolicy(ScriptedPolicy):
    """A plan, the beliefs it was made with, and the states observed since."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.beliefs = Beliefs(CONSTANTS)
        self._begin()

    def _begin(self) -> None:
        self._n_steps = 0
        self._plan: Actions = np.empty(0, np.int64)
        self._next = 0
        """Index of the next action of the plan."""
        self._clear_record()

    def _clear_record(self) -> None:
        self._states: list[Observation] = []
        self._actions: list[int] = []

    def act(self, observation: Observation) -> int:
        """Take the next action of the plan, which is renewed every 25 steps; without a plan, a random action."""
        if self._n_steps % REPLAN == 0:
            self._replan(observation)
        if self._next < len(self._plan):
            self._next += 1
            return int(self._plan[self._next - 1])
        return int(self.rng.integers(2))

    def _replan(self, observation: Observation) -> None:
        """Plan to the end of the episode; keep the old plan if none is found."""
        left = max(1, CartPole.spec.horizon - self._n_steps)
        actions = plan(observation.astype(np.float64), self.beliefs.values(), left, MOST_EXPANSIONS)
        if len(actions):
            self._plan, self._next = actions, 0
        self._clear_record()

    def learn(
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        """Record the states since the last plan; after a bad episode, repair the model with them."""
        self._n_steps += 1
        if not self._states:
            self._states.append(observation)
        self._states.append(following)
        self._actions.append(action)
        if not ended:
            return
        if self._n_steps < GOOD * CartPole.spec.horizon:
            states, actions = np.array(self._states, np.float64), np.array(self._actions)
            self.beliefs.repair(lambda c: inconsistency(c, states, actions), NOTICEABLE, MOST_REPAIR_EXPANSIONS)
        self._begin()


class HydraCartPole(ScriptedAgent):
    """HYDRA's agent for CartPole."""

    name = "hydra"
    policy = HydraCartPolePolicy

    def __init__(self) -> None:
        super().__init__(len(CartPole.spec.action_names), CartPole.spec.observation_low.shape)
