"""The scores of three environments of gymnasium, against their physics; and what NAPPING makes of them."""

from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

import nappingrl
from nappingrl.domains import find_domain
from nappingrl.domains.swing_up_scores import ENERGIES


def observed(env_id: str, state: Any) -> Any:
    """What the world shows of its state."""
    if env_id == "Acrobot-v1":
        first, second, *speeds = state
        return [np.cos(first), np.sin(first), np.cos(second), np.sin(second), *speeds]
    return [np.cos(state[0]), np.sin(state[0]), state[1]] if env_id == "Pendulum-v1" else state


def steps(env_id: str, actions: list[Any], state: tuple[float, ...]) -> tuple[Any, Any]:
    """Observations before and after each of these actions, from this state of the world."""
    env = gymnasium.make(env_id).unwrapped
    env.reset(seed=0)
    env.state = np.array(state)  # type: ignore[attr-defined]
    seen = [observed(env_id, state), *(env.step(action)[0] for action in actions)]
    return np.array(seen[:-1], np.float32), np.array(seen[1:], np.float32)


def scores(env_id: str, actions: list[Any], state: tuple[float, ...]) -> Any:
    obs, obs2 = steps(env_id, actions, state)
    n = len(obs)
    return ENERGIES[env_id](obs, np.zeros(n), obs2, np.zeros(n), np.zeros(n, np.bool_))


@pytest.mark.parametrize("state", [(0.3, -0.5, 0.8, -1.2), (1.0, 0.7, -1.0, 2.0), (-0.4, 2.0, 1.5, 0.1)])
def test_acrobot_keeps_its_energy_without_torque_and_gains_what_the_torque_does(state: tuple[float, ...]) -> None:
    """The work of a torque is torque times the angle by which the second joint turns."""
    assert np.abs(scores("Acrobot-v1", [1] * 5, state)).max() < 0.02
    for action, torque in ((0, -1.0), (2, 1.0)):
        obs, obs2 = steps("Acrobot-v1", [action], state)
        angles = [np.arctan2(o[0, 3], o[0, 2]) for o in (obs, obs2)]
        turned = (angles[1] - angles[0] + np.pi) % (2 * np.pi) - np.pi
        assert scores("Acrobot-v1", [action], state)[0] == pytest.approx(torque * turned, abs=0.02)


def test_the_car_gains_when_it_is_pushed_the_way_it_rolls() -> None:
    for velocity in (-0.03, 0.03):
        forwards = scores("MountainCarContinuous-v0", [np.array([np.sign(velocity)])], (-0.5, velocity))[0]
        backwards = scores("MountainCarContinuous-v0", [np.array([-np.sign(velocity)])], (-0.5, velocity))[0]
        assert backwards < 0 < forwards


@pytest.mark.parametrize(("angle", "speed", "good"), [
    (np.pi, 1.0, 2.0), (np.pi, -1.0, -2.0), (2.5, -1.0, -2.0), (0.2, 0.0, -2.0), (-0.2, 0.0, 2.0), (0.1, -2.0, 2.0),
])  # fmt: skip
def test_the_pendulum_is_pumped_below_and_straightened_above(angle: float, speed: float, good: float) -> None:
    """A torque of the other sign scores less."""
    right, wrong = (scores("Pendulum-v1", [np.array([torque])], (angle, speed))[0] for torque in (good, -good))
    assert right > wrong
    assert right > 0


def test_arriving_is_no_failure() -> None:
    obs, obs2 = steps("MountainCarContinuous-v0", [np.array([-1.0])], (0.44, 0.07))
    lost = ENERGIES["MountainCarContinuous-v0"](obs, np.zeros(1), obs2, np.zeros(1), np.zeros(1, np.bool_))
    arrived = ENERGIES["MountainCarContinuous-v0"](obs, np.zeros(1), obs2, np.zeros(1), np.ones(1, np.bool_))
    assert lost[0] < 0 < arrived[0]


@pytest.mark.parametrize("env_id", ENERGIES)
def test_they_are_the_defaults_of_their_worlds(env_id: str) -> None:
    domain = find_domain(env_id)
    assert domain.defaults.score == "energy"
    assert set(domain.scores) == {"energy", "reward", "terminal"}
    assert find_domain("CartPole-v1").defaults.score == "reward"


@pytest.mark.parametrize(("env_id", "agent", "novelty", "frozen", "least"), [
    ("Acrobot-v1", "dqn", "action-remap", -490.0, -300.0),
    ("Pendulum-v1", "sac", "action-scale=-1", -1200.0, -600.0),
    ("MountainCarContinuous-v0", "sac", "action-scale=-1", -50.0, 70.0),
])  # fmt: skip
def test_napping_repairs_reversed_actions(env_id: str, agent: str, novelty: str, frozen: float, least: float) -> None:
    """The mean of episodes 4 to 9 after the novelty."""
    levels = []
    for method in ("frozen", "napping"):
        rows = nappingrl.run(env_id, agent, method, novelty=novelty, trials=2, seed=7, detector="given",
                             protocol="1+10").rows  # fmt: skip
        levels.append(rows.filter(pl.col("episode") >= 4)["return"].to_numpy().mean())
    assert levels[0] < frozen
    assert levels[1] > least
