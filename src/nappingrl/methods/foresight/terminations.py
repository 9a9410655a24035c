"""When an imagined episode ends: half-spaces that hold states in which real ones ended, and none that went on.

An ending is bad (going on would have earned more) or wanted. The border of a bad one is drawn close to the states that
were survived, that of a wanted one close to those in which it came; and a bad one is expected on the opposite side of
the centre, too, until a state beyond it is survived.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.methods.foresight.quadric import Surface, find_surface, is_beyond, no_surface
from nappingrl.types import Floats
from nappingrl.world_model.transitions import Seen

MOST = 12
MARGIN = 0.25
"""How far from the nearest survived state the border of a bad ending is drawn, as a share of the way."""


class Endings(NamedTuple):
    """Known endings, as the kernels take them: each holds where all its conditions do."""

    dims: NDArray[np.int64]
    """(endings, d) observations of the conditions; -1: no more."""
    sides: NDArray[np.int64]
    """1: above the limit, -1: below it."""
    limits: NDArray[np.float64]
    rewards: Floats
    """(endings,) the reward of the last step."""
    bad: Surface
    wanted: Surface
    n_unexplained: int
    """States in which episodes ended and that nothing here holds."""

    @property
    def is_known(self) -> bool:
        """Whether any ending is known."""
        return bool(len(self.rewards) or len(self.bad.weights) or len(self.wanted.weights))


def find_endings(seen: list[Seen], centre: Floats, scale: Floats, horizon: int) -> Endings:
    """The endings that explain what was seen."""
    alive = [part for each in seen for part in (each.states, each.nexts[~each.ended])]
    survived = np.concatenate(alive)
    last = np.concatenate([each.nexts[each.ended] for each in seen])
    rewards = np.concatenate([each.rewards[each.ended] for each in seen])
    going = np.concatenate([each.rewards[~each.ended] for each in seen])
    rest = (going.mean() if len(going) else 0.0) * horizon / 2
    rows: list[tuple[list[tuple[int, int, float]], float]] = []
    surfaces, n_unexplained = [], 0
    for is_bad in (True, False):
        at = (rewards < rest) == is_bad
        others = np.concatenate([survived, last[~at]])  # no ending of one kind holds one of the other
        found, left = _cover(others, last[at], rewards[at], is_bad)
        if is_bad:
            found += _mirrored(found, others, centre)
        rows += found
        surface = no_surface()
        if left.any():
            surface = find_surface(survived, last[at][left], float(rewards[at][left].mean()), centre, scale)
            n_unexplained += 0 if len(surface.weights) else int(left.sum())
        surfaces.append(surface)
    return _pack(rows[:MOST], len(centre), surfaces[0], surfaces[1], n_unexplained)


def _cover(
    survived: NDArray[np.float64], last: NDArray[np.float64], rewards: Floats, is_bad: bool
) -> tuple[list[tuple[list[tuple[int, int, float]], float]], NDArray[np.bool_]]:
    """Half-spaces over the last states, the largest first; and which states none of them holds."""
    left = np.ones(len(last), np.bool_)
    found: list[tuple[list[tuple[int, int, float]], float]] = []
    most, least = survived.max(axis=0), survived.min(axis=0)
    while left.any() and len(found) < MOST - 4:
        options = []
        for d in range(last.shape[1]):
            for side, edge in ((1, most[d]), (-1, least[d])):
                covered = side * last[:, d] > side * edge
                options.append((int((covered & left).sum()), d, side, edge, covered))
        best = max(options, key=lambda option: option[0])
        if best[0] == 0:
            break
        conditions = []
        for _, d, side, edge, covered in options:
            if np.array_equal(covered & left, best[4] & left):
                nearest = side * (side * last[covered, d]).min()
                limit = edge + (MARGIN if is_bad else 1 - MARGIN) * (nearest - edge)
                conditions.append((d, side, float(limit)))
        reward, left = float(rewards[best[4]].mean()), left & ~best[4]
        # Equally good explanations: a bad ending is feared by each of them, a wanted one is hoped for where all hold.
        found += [([condition], reward) for condition in conditions] if is_bad else [(conditions, reward)]
    return found, left


def _mirrored(
    found: list[tuple[list[tuple[int, int, float]], float]], survived: NDArray[np.float64], centre: Floats
) -> list[tuple[list[tuple[int, int, float]], float]]:
    have = {(d, side) for conditions, _ in found for d, side, _ in conditions}
    mirrored = []
    for conditions, reward in found:
        d, side, limit = conditions[0]
        opposite = 2 * centre[d] - limit
        if (d, -side) not in have and (side * survived[:, d] > side * opposite).all():
            mirrored.append(([(d, -side, float(opposite))], reward))
    return mirrored


def _pack(
    rows: list[tuple[list[tuple[int, int, float]], float]], d: int, bad: Surface, wanted: Surface, n_unexplained: int
) -> Endings:
    dims, sides = np.full((len(rows), d), -1), np.zeros((len(rows), d), np.int64)
    limits, rewards = np.zeros((len(rows), d)), np.zeros(len(rows))
    for k, (conditions, reward) in enumerate(rows):
        rewards[k] = reward
        for q, (dim, side, limit) in enumerate(conditions[:d]):
            dims[k, q], sides[k, q], limits[k, q] = dim, side, limit
    return Endings(dims, sides, limits, rewards, bad, wanted, n_unexplained)


@kernel()
def ending_of(endings: Endings, state: Floats) -> int:
    """Which ending holds in a state: its number, the number of them for a surface (bad, wanted), or -1."""
    n, d = endings.dims.shape
    for k in range(n):
        holds = True
        for q in range(d):
            dim = endings.dims[k, q]
            if dim < 0:
                break
            if endings.sides[k, q] * state[dim] <= endings.sides[k, q] * endings.limits[k, q]:
                holds = False
                break
        if holds:
            return k
    if endings.bad.weights.shape[0] and is_beyond(endings.bad, state):
        return int(n)
    if endings.wanted.weights.shape[0] and is_beyond(endings.wanted, state):
        return int(n) + 1
    return -1


@kernel()
def last_reward(endings: Endings, ending: int) -> float:
    """The reward of the step that ends so."""
    n = endings.rewards.shape[0]
    if ending < n:
        return float(endings.rewards[ending])
    return float(endings.bad.reward if ending == n else endings.wanted.reward)


def greatest_last_reward(endings: Endings) -> float:
    """The best that an ending may give."""
    surfaces = [surface.reward for surface in (endings.bad, endings.wanted) if len(surface.weights)]
    return max([*endings.rewards.tolist(), *surfaces], default=0.0)
