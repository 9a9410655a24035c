"""When a rollout terminates: half-spaces that contain terminal states and no survived one.

A termination is bad (going on would have earned more) or wanted. The border of a bad one is drawn close to the
survived states, that of a wanted one close to the terminal states. A bad one is also expected on the opposite side of
the centre, until a state beyond it is survived.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.foresight.config import ForesightConfig
from nappingrl.methods.foresight.quadric import Quadric, fit_quadric, no_quadric, outside
from nappingrl.types import Flags, Floats
from nappingrl.world_model.bounds import extremes
from nappingrl.world_model.transitions import Transitions

ABOVE, BELOW = 1, -1


class HalfSpace(NamedTuple):
    """The states with an observation above or below a limit."""

    observation: int
    side: int
    """ABOVE or BELOW the limit."""
    limit: float


@dataclass(frozen=True, slots=True)
class Termination:
    """Terminates where all its half-spaces contain the state."""

    half_spaces: tuple[HalfSpace, ...]
    reward: float
    """The reward of the last step."""


class Terminations(NamedTuple):
    """All known terminations, as the kernels take them."""

    observations: NDArray[np.int64]
    """(terminations, d) observations of the half-spaces; -1: no more."""
    sides: NDArray[np.int64]
    limits: NDArray[np.float64]
    rewards: Floats
    """(terminations,) the reward of the last step."""
    bad: Quadric
    wanted: Quadric
    n_unexplained: int
    """Terminal states that no region contains."""

    @property
    def is_known(self) -> bool:
        """Whether any termination is known."""
        return bool(len(self.rewards) or len(self.bad.weights) or len(self.wanted.weights))

    @property
    def max_reward(self) -> float:
        """The largest reward of a last step; 0 if no termination is known."""
        quadrics = [quadric.reward for quadric in (self.bad, self.wanted) if len(quadric.weights)]
        return max([*self.rewards.tolist(), *quadrics], default=0.0)


def find_terminations(
    data: list[Transitions], centre: Floats, scale: Floats, horizon: int, config: ForesightConfig
) -> Terminations:
    """The terminations that explain the transitions."""
    survived = [part for t in data for part in (t.states, t.next_states[~t.terminated])]
    edges = _edges(survived)
    terminal = np.concatenate([t.next_states[t.terminated] for t in data])
    rewards = np.concatenate([t.rewards[t.terminated] for t in data])
    alive_rewards = np.concatenate([t.rewards[~t.terminated] for t in data])
    return_of_going_on = (alive_rewards.mean() if len(alive_rewards) else 0.0) * horizon / 2
    regions: list[Termination] = []
    quadrics: list[Quadric] = []
    n_unexplained = 0
    for is_bad in (True, False):
        at = (rewards < return_of_going_on) == is_bad
        outer = _edges([*edges, terminal[~at]])  # a bad region contains no wanted one, and vice versa
        found, unexplained = _cover(outer, terminal[at], rewards[at], is_bad, config)
        if is_bad:
            found += _mirrored(found, outer, centre)
        regions += found
        quadric = no_quadric()
        if unexplained.any():
            reward = float(rewards[at][unexplained].mean())
            quadric = fit_quadric(np.concatenate(survived), terminal[at][unexplained], reward, centre, scale, config)
            n_unexplained += 0 if len(quadric.weights) else int(unexplained.sum())
        quadrics.append(quadric)
    return pack(regions[: config.max_terminations], len(centre), quadrics[0], quadrics[1], n_unexplained)


def _edges(states: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """(2, d) the lowest and the highest values of all these states."""
    each = [extremes(np.atleast_2d(part)) for part in states]
    return np.array([np.min([low for low, _ in each], axis=0), np.max([high for _, high in each], axis=0)])


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A half-space just beyond the survived states."""

    observation: int
    side: int
    edge: float
    """The outermost survived value."""
    contains: Flags
    """(terminal states,)"""

    def half_space(self, terminal: NDArray[np.float64], margin: float) -> HalfSpace:
        """The border at this share of the way from the edge to the nearest terminal state."""
        nearest = self.side * (self.side * terminal[self.contains, self.observation]).min()
        return HalfSpace(self.observation, self.side, float(self.edge + margin * (nearest - self.edge)))


def _cover(
    edges: NDArray[np.float64], terminal: NDArray[np.float64], rewards: Floats, is_bad: bool, config: ForesightConfig
) -> tuple[list[Termination], Flags]:
    """Half-spaces over the terminal states, the largest first; and which states none of them contains.

    `edges` (2, d): the outermost values of the survived states.
    """
    left = np.ones(len(terminal), np.bool_)
    found: list[Termination] = []
    margin = config.termination_margin if is_bad else 1 - config.termination_margin
    candidates = _candidates(edges, terminal)
    while left.any() and len(found) < config.max_terminations - 4:
        counts = [int((candidate.contains & left).sum()) for candidate in candidates]
        if max(counts) == 0:
            break
        best = candidates[int(np.argmax(counts))]
        half_spaces = [
            candidate.half_space(terminal, margin)
            for candidate in candidates
            if np.array_equal(candidate.contains & left, best.contains & left)
        ]
        reward = float(rewards[best.contains].mean())
        left = left & ~best.contains
        # Equally good explanations: expect a bad termination where any of them holds, a wanted one where all do.
        if is_bad:
            found += [Termination((half_space,), reward) for half_space in half_spaces]
        else:
            found.append(Termination(tuple(half_spaces), reward))
    return found, left


def _candidates(edges: NDArray[np.float64], terminal: NDArray[np.float64]) -> list[_Candidate]:
    lowest, highest = edges
    return [
        _Candidate(i, side, edge, side * terminal[:, i] > side * edge)
        for i in range(terminal.shape[1])
        for side, edge in ((ABOVE, highest[i]), (BELOW, lowest[i]))
    ]


def _mirrored(found: list[Termination], edges: NDArray[np.float64], centre: Floats) -> list[Termination]:
    """The opposites of bad terminations that no survived state refutes."""
    known = {(half_space.observation, half_space.side) for each in found for half_space in each.half_spaces}
    mirrored = []
    for termination in found:
        i, side, limit = termination.half_spaces[0]
        opposite = 2 * centre[i] - limit
        outermost = edges[1 if side == BELOW else 0, i]
        if (i, -side) not in known and side * outermost > side * opposite:
            mirrored.append(Termination((HalfSpace(i, -side, float(opposite)),), termination.reward))
    return mirrored


def pack(
    regions: list[Termination],
    d: int,
    bad: Quadric | None = None,
    wanted: Quadric | None = None,
    n_unexplained: int = 0,
) -> Terminations:
    """Terminations in d observations, as the kernels take them."""
    observations, sides = np.full((len(regions), d), -1), np.zeros((len(regions), d), np.int64)
    limits, rewards = np.zeros((len(regions), d)), np.zeros(len(regions))
    for k, termination in enumerate(regions):
        rewards[k] = termination.reward
        for q, half_space in enumerate(termination.half_spaces[:d]):
            observations[k, q], sides[k, q], limits[k, q] = half_space
    return Terminations(
        observations, sides, limits, rewards, bad or no_quadric(), wanted or no_quadric(), n_unexplained
    )


@kernel(allocates=False)
def termination_at(terminations: Terminations, state: Floats) -> int:
    """The termination that contains a state: its number, n or n + 1 for the quadrics (bad, wanted), or -1."""
    n, d = terminations.observations.shape
    for k in range(n):
        holds = True
        for q in range(d):
            i = terminations.observations[k, q]
            if i < 0:
                break
            if terminations.sides[k, q] * state[i] <= terminations.sides[k, q] * terminations.limits[k, q]:
                holds = False
                break
        if holds:
            return k
    if terminations.bad.weights.shape[0] and outside(terminations.bad, state):
        return int(n)
    if terminations.wanted.weights.shape[0] and outside(terminations.wanted, state):
        return int(n) + 1
    return -1


@kernel(allocates=False)
def terminal_reward(terminations: Terminations, number: int) -> float:
    """The reward of a step that terminates this way."""
    n = terminations.rewards.shape[0]
    if number < n:
        return float(terminations.rewards[number])
    return float(terminations.bad.reward if number == n else terminations.wanted.reward)


@kernel()
def terminations_at(
    terminations: Terminations, states: NDArray[np.float64], out: NDArray[np.int64], rewards: Floats
) -> None:
    """The termination of each of m states (-1: none) into `out`; replaces the rewards of those that terminate."""
    for m in range(states.shape[0]):
        out[m] = termination_at(terminations, states[m])
        if out[m] >= 0:
            rewards[m] = terminal_reward(terminations, out[m])
