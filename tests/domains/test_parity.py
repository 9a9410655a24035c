"""Our CartPole and MountainCar against gymnasium's own, step by step and bit by bit."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import pytest

from nappingrl.domains import find_domain
from nappingrl.domains.as_env import DomainEnv

Env = gymnasium.Env[Any, Any]
REFERENCE = {"cartpole": "CartPole-v1", "mountaincar": "MountainCar-v0"}


def reference(domain: str) -> Any:
    return gymnasium.make(REFERENCE[domain]).unwrapped


def change_reference(env: Any, domain: str, params: Mapping[str, float]) -> None:
    """Set gymnasium's attributes, the derived ones too: it does not compute them again."""
    for name, value in params.items():
        setattr(env, "force_mag" if (domain, name) == ("cartpole", "force") else name, value)
    if domain == "cartpole":
        env.total_mass = env.masspole + env.masscart
        env.polemass_length = env.masspole * env.length


def assert_same(ours: Env, theirs: Env, seed: int, steps: int) -> int:
    """Step both with the same random actions from the same seed; returns how many episodes ended."""
    rng = np.random.default_rng(seed)
    np.testing.assert_array_equal(ours.reset(seed=seed)[0], theirs.reset(seed=seed)[0])
    endings = 0
    for _ in range(steps):
        action = rng.integers(ours.action_space.n)  # type: ignore[attr-defined]
        mine, yours = ours.step(action), theirs.step(action)
        np.testing.assert_array_equal(mine[0], yours[0])
        assert mine[0].dtype == yours[0].dtype
        assert mine[1:3] == yours[1:3]
        if mine[2]:
            endings += 1
            np.testing.assert_array_equal(ours.reset()[0], theirs.reset()[0])
    return endings


@pytest.mark.parametrize("seed", range(5))
def test_cartpole_default_world(seed: int) -> None:
    assert assert_same(DomainEnv("cartpole"), reference("cartpole"), seed, 500) > 10


@pytest.mark.parametrize("seed", range(3))
def test_mountaincar_default_world(seed: int) -> None:
    assert_same(DomainEnv("mountaincar"), reference("mountaincar"), seed, 2000)


def test_mountaincar_under_control_reaches_the_goal_at_the_same_step() -> None:
    ours, theirs = DomainEnv("mountaincar"), reference("mountaincar")
    observation, _ = ours.reset(seed=1)
    theirs.reset(seed=1)
    steps = 0
    for _ in range(200):
        steps += 1
        action = np.int64(2 if observation[1] >= 0 else 0)
        mine, yours = ours.step(action), theirs.step(action)
        observation = mine[0]
        np.testing.assert_array_equal(mine[0], yours[0])
        assert mine[1:3] == yours[1:3]
        if mine[2]:
            break
    assert mine[2], "the goal was reached"
    assert steps > 50


@pytest.mark.parametrize("domain", list(REFERENCE))
@pytest.mark.parametrize("draw", range(12))
def test_changed_worlds(domain: str, draw: int) -> None:
    spec = find_domain(domain)
    names = list(spec.novelties)
    novelty = spec.novelties[names[draw % len(names)]]
    params = novelty.sample(np.random.default_rng(draw), spec.parameters)
    ours, theirs = DomainEnv(domain), reference(domain)
    ours.set_params(**params)
    change_reference(theirs, domain, params)
    assert_same(ours, theirs, seed=draw, steps=300)


def test_left_wall_stops_the_car_as_in_gymnasium() -> None:
    params = {"force": 0.02, "gravity": 0.001}
    ours, theirs = DomainEnv("mountaincar"), reference("mountaincar")
    ours.set_params(**params)
    change_reference(theirs, "mountaincar", params)
    ours.reset(seed=0)
    theirs.reset(seed=0)
    for _ in range(40):
        mine, yours = ours.step(np.int64(0)), theirs.step(0)
        np.testing.assert_array_equal(mine[0], yours[0])
    np.testing.assert_array_equal(mine[0], np.array([-1.2, 0.0], np.float32))


def test_masspole_acts_through_the_total_mass() -> None:
    """The trap: gymnasium keeps total_mass and polemass_length of the old pole when masspole alone is set."""
    ours, stale, right = DomainEnv("cartpole"), reference("cartpole"), reference("cartpole")
    ours.set_params(masspole=1.0)
    stale.masspole = 1.0
    change_reference(right, "cartpole", {"masspole": 1.0})
    for env in (ours, stale, right):
        env.reset(seed=0)
    for _ in range(3):
        seen = [env.step(1)[0] for env in (ours, stale, right)]
    np.testing.assert_array_equal(seen[0], seen[2])
    assert (seen[0] != seen[1]).any()


def test_a_push_from_rest_follows_newton() -> None:
    """From rest, upright: theta'' = -(F / M) / (l (4/3 - m / M)) and x'' = F / M - m l theta'' / M (M: both masses)."""
    params = {"length": 2.0, "gravity": 30.0, "masscart": 3.0, "masspole": 0.7, "force": 40.0}
    world, row = find_domain("cartpole").make(1), np.zeros(1, np.int64)
    world.apply(row, params)
    world.reset(row, np.full((1, 4), 0.5))  # all zero
    np.testing.assert_array_equal(world.observe(row), np.zeros((1, 4), np.float32))
    world.step(row, np.ones(1, np.int64))
    mass = 3.0 + 0.7
    turn = -(40.0 / mass) / (2.0 * (4 / 3 - 0.7 / mass))
    roll = 40.0 / mass - 0.7 * 2.0 * turn / mass
    np.testing.assert_allclose(world.observe(row)[0], [0.0, 0.02 * roll, 0.0, 0.02 * turn], rtol=1e-6)
