"""Controllers that know a world's true parameters: the ceilings that `--method oracle` shows.

They try what they could do in a copy of the world and keep the best; they are not claimed to be optimal.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl._build import kernel
from nappingrl.domains.base import Domain
from nappingrl.domains.cartpole import ANGLE_LIMIT, POSITION_LIMIT, TIME_STEP, CartPole, euler_step
from nappingrl.domains.mountaincar import POSITION_MIN, MountainCar
from nappingrl.types import Actions, Floats, Observations, Rows

_EPISODES = 6
_BEAM, _DEPTH = 24, 24


class CartPoleExpert:
    """The best of LQR, bang-bang switching lines and beam search on the true model, per world.

    A plan is (0, gains of a switching line) or (1, parameters for the beam search).
    """

    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """Try every switching line; where none survives all trials, try the beam search too."""
        return np.stack([self._plan_one(p) for p in parameters])

    def act(self, plans: NDArray[np.float64], observations: Observations, steps: Rows) -> Actions:
        """Push to the side the line says, or the first action of the best beam."""
        states = observations.astype(np.float64)
        right = (plans[:, 1:5] * states).sum(axis=1) > 0
        actions: Actions = right.astype(np.int64)
        for m in np.flatnonzero(plans[:, 0] == 1):
            actions[m] = _beam_search(states[m], plans[m, 1:])
        return actions

    def _plan_one(self, parameters: Floats) -> Floats:
        gains = np.concatenate([_switching_lines(), _lqr_lines(parameters)])
        plans: NDArray[np.float64] = np.hstack([np.zeros((len(gains), 1)), gains, np.zeros((len(gains), 1))])
        survived: Floats = self._try(plans, parameters)
        line: Floats = plans[survived.argmax()]
        search: Floats = np.concatenate([[1.0], parameters])
        is_beaten = survived.max() < CartPole.horizon and self._try(search[None], parameters)[0] > survived.max()
        return search if is_beaten else line

    def _try(self, plans: NDArray[np.float64], parameters: Floats) -> Floats:
        return _mean_lengths(CartPole, self, plans, parameters, np.random.default_rng(0).random((_EPISODES, 4)))


def _switching_lines() -> NDArray[np.float64]:
    """Theta + k w + c (x + v) = 0 for a few k and c."""
    return np.array([[c, c, 1.0, k] for k in (0.02, 0.05, 0.1, 0.2, 0.4) for c in (0.0, 0.01, 0.03, 0.1)])


def _lqr_lines(parameters: Floats) -> NDArray[np.float64]:
    """Switching lines of the discrete LQR at the upright pole, for a few prices of the push."""
    length, gravity, masscart, masspole, force = parameters
    total = masscart + masspole
    inertia = length * (4 / 3 - masspole / total)
    coupling = masspole * length / total
    a, b = np.eye(4), np.zeros((4, 1))
    a[0, 1] = a[2, 3] = TIME_STEP
    a[3, 2], b[3, 0] = TIME_STEP * gravity / inertia, -TIME_STEP * force / (total * inertia)
    a[1, 2], b[1, 0] = -coupling * a[3, 2], TIME_STEP * force / total - coupling * b[3, 0]
    lines = []
    for price in (0.01, 1.0):
        q = np.diag([1 / POSITION_LIMIT**2, 0.01, 1 / ANGLE_LIMIT**2, 0.01])
        cost = q
        for _ in range(300):
            gain = np.linalg.solve(price * np.eye(1) + b.T @ cost @ b, b.T @ cost @ a)
            cost = q + a.T @ cost @ (a - b @ gain)
        lines.append(-gain[0] if np.isfinite(gain).all() else np.array([0.0, 0.0, 1.0, 0.1]))
    return np.stack(lines)


@kernel()
def _beam_search(start: Floats, parameters: Floats) -> int:
    """First action of the beam that survives longest, then leans and drifts least."""
    states, firsts = np.empty((_BEAM, 4)), np.empty(_BEAM, np.int64)
    new_states, new_firsts, costs = np.empty((2 * _BEAM, 4)), np.empty(2 * _BEAM, np.int64), np.empty(2 * _BEAM)
    states[0] = start
    width = 1
    for depth in range(_DEPTH):
        n = 0
        for i in range(width):
            for action in range(2):
                new_states[n] = states[i]
                if not euler_step(new_states[n], parameters, action):
                    x, v, theta, w = new_states[n]
                    lean, drift = (theta + 0.1 * w) / ANGLE_LIMIT, (x + 0.5 * v) / POSITION_LIMIT
                    costs[n] = lean * lean + drift * drift
                    new_firsts[n] = action if depth == 0 else firsts[i]
                    n += 1
        if n == 0:
            return int(firsts[0]) if depth else 0
        order = np.argsort(costs[:n])
        width = min(n, _BEAM)
        for i in range(width):
            states[i] = new_states[order[i]]
            firsts[i] = new_firsts[order[i]]
    return int(firsts[0])


class MountainCarExpert:
    """Energy pumping: push the way the car rolls. A plan is the push from rest, LEFT or RIGHT, whichever is faster."""

    def plan(self, parameters: Floats) -> NDArray[np.float64]:
        """Try both first pushes."""
        return np.stack([self._plan_one(p) for p in parameters])

    def act(self, plans: NDArray[np.float64], observations: Observations, steps: Rows) -> Actions:
        """Push with the velocity; away from the left wall."""
        direction = np.sign(observations[:, 1].astype(np.float64))
        direction = np.where(direction == 0, plans[:, 0], direction)
        direction = np.where(observations[:, 0] <= np.float32(POSITION_MIN), 1.0, direction)
        return direction.astype(np.int64) + 1

    def _plan_one(self, parameters: Floats) -> Floats:
        plans = np.array([[1.0], [-1.0]])
        starts = (np.arange(_EPISODES) + 0.5)[:, None] / _EPISODES
        best: Floats = plans[_mean_lengths(MountainCar, self, plans, parameters, starts).argmin()]
        return best


def _mean_lengths(
    kind: type[Domain], expert: Any, plans: NDArray[np.float64], parameters: Floats, starts: Floats
) -> Floats:
    """Mean episode length of each plan in a copy of the world, over the same few starts."""
    n = len(plans) * len(starts)
    world, running = kind(n), np.arange(n)
    world.apply(running, dict(zip(kind.parameters, parameters.tolist(), strict=True)))
    world.reset(running, np.tile(starts, (len(plans), 1)))
    lengths, each = np.zeros(n), np.repeat(plans, len(starts), axis=0)
    for step in range(kind.horizon):
        actions = expert.act(each[running], world.observe(running), np.full(len(running), step))
        _, terminated = world.step(running, actions)
        lengths[running] += 1
        running = running[~terminated]
    means: Floats = lengths.reshape(len(plans), len(starts)).mean(axis=1)
    return means
