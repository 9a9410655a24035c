"""Scores for three environments of gymnasium: what a swing-up must do is gain energy.

Energies are those of the environment as it was; the novelty is not told.
"""

from collections.abc import Callable

import numpy as np

from nappingrl.score import Score
from nappingrl.types import Actions, Flags, Floats, Observations


def _acrobot_energy(observations: Observations) -> Floats:
    """Two links of mass, length and moment of inertia 1, hanging from a pivot; gravity 9.8."""
    cos1, sin1, cos2, sin2, first, second = observations.astype(np.float64).T
    both = first + second
    kinetic = 0.5 * ((0.25 + 1 + 1) * first**2 + (0.25 + 1) * both**2 + cos2 * first * both)
    potential = -9.8 * (1.5 * cos1 + 0.5 * (cos1 * cos2 - sin1 * sin2))
    return np.asarray(kinetic + potential)


def _acrobot(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    gain = _acrobot_energy(obs2) - _acrobot_energy(obs)
    return np.where(end, np.abs(gain), gain)  # arriving is no failure


def _drive_the_joint(obs: Observations) -> Actions:
    """Push the second joint the way it turns."""
    return np.where(obs[:, 5] < 0, 0, 2)


def _pendulum(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    """Below, the energy must come nearer to that of standing upright; near the top the pole must straighten up."""

    def missing(o: Observations) -> Floats:
        cos, sin, speed = o.astype(np.float64).T
        energy, lean = np.abs(speed**2 / 6 + 5 * cos - 5), np.abs(np.arctan2(sin, cos) + 0.3 * speed)
        return np.asarray(np.where(obs[:, 0] > 0.8, lean, energy))

    return missing(obs) - missing(obs2)


def _car(obs: Observations, action: Actions, obs2: Observations, reward: Floats, end: Flags) -> Floats:
    def energy(o: Observations) -> Floats:
        position, velocity = o.astype(np.float64).T
        return np.asarray(0.5 * velocity**2 + 0.0025 / 3 * np.sin(3 * position))

    gain = energy(obs2) - energy(obs)
    return np.where(end, np.abs(gain), gain)


ENERGIES: dict[str, Score] = {
    "Acrobot-v1": Score("energy", _acrobot, description="mechanical energy (before the novelty) must grow"),
    "Pendulum-v1": Score("energy", _pendulum,
                         description="energy (before the novelty) must come nearer to that of standing; at the top the "
                         "pole must straighten up"),
    "MountainCarContinuous-v0": Score("energy", _car, description="mechanical energy (before the novelty) must grow"),
}  # fmt: skip

CONTROLLERS: dict[str, Callable[[Observations], Actions]] = {"Acrobot-v1": _drive_the_joint}
"""The policies behind these scores, where there is one."""
