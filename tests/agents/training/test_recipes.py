"""Recipes of trainings: tuned values, SB3's defaults, options, and what does not fit."""

from typing import Any

import gymnasium
import pytest
from gymnasium.spaces import Box, Discrete, MultiDiscrete

import nappingrl.domains.angrybirds.physics.box2d  # noqa: F401 - imports Box2D without its warnings
from nappingrl.agents.training.learning import make_model
from nappingrl.agents.training.recipes import make_recipe
from nappingrl.errors import BadSpecError, UnknownNameError

FLAT, TWO = Box(-1, 1, (3,)), Discrete(2)


def recipe(*args: Any, **options: str) -> dict[str, Any]:
    return make_recipe("CartPole-v1", (FLAT, TWO), *args, options=options)


@pytest.mark.parametrize(
    ("env_id", "algorithm"),
    [
        *((env_id, "ppo") for env_id in ("Acrobot-v1", "BipedalWalker-v3", "CartPole-v1", "LunarLander-v3")),
        *((env_id, "ppo") for env_id in ("LunarLanderContinuous-v3", "MountainCarContinuous-v0", "MountainCar-v0")),
        *((env_id, "ppo") for env_id in ("Pendulum-v1", "nappingrl/CartPole-v0")),
        *((env_id, "dqn") for env_id in ("Acrobot-v1", "CartPole-v1", "LunarLander-v3", "MountainCar-v0")),
        *((env_id, "qrdqn") for env_id in ("Acrobot-v1", "CartPole-v1", "LunarLander-v3", "MountainCar-v0")),
        *((env_id, "sac") for env_id in ("BipedalWalker-v3", "LunarLanderContinuous-v3", "MountainCarContinuous-v0")),
        ("Pendulum-v1", "sac"),
    ],
)
def test_tuned_values(env_id: str, algorithm: str) -> None:
    """SB3 accepts every tuned set, without a warning; the card names its source."""
    made = gymnasium.make(env_id)
    found = make_recipe(env_id, (made.observation_space, made.action_space), algorithm)
    assert "Zoo" in found["about"] or "shipped recipe" in found["about"]
    assert found["hyperparameters"]
    small = {"n_steps": 64, "batch_size": 64, "buffer_size": 500}
    values = {key: min(value, small[key]) if key in small else value for key, value in found["hyperparameters"].items()}
    make_model(found | {"hyperparameters": values}, 0)


def test_defaults_of_sb3() -> None:
    found = make_recipe("Other-v0", (FLAT, TWO), "dqn")
    assert found["about"] == "DQN with SB3's default values."
    assert (found["total_steps"], found["seed"], found["hyperparameters"]) == (100_000, 0, {"buffer_size": 100_001})


def test_options_take_the_place_of_tuned_values() -> None:
    found = recipe(
        "ppo", 500, 3, gamma="0.5", learning_rate="lin_2e-3", target_kl="none", normalise="true", n_envs="3",
        net_arch="32,16", activation="relu", use_sde="false",
    )  # fmt: skip
    values = found["hyperparameters"]
    assert (values["gamma"], values["learning_rate"], values["target_kl"]) == (0.5, {"from": 2e-3, "to": 0.0}, None)
    assert (values["use_sde"], values["n_epochs"]) == (False, 20)
    assert (found["normalise"], found["n_envs"], found["net_arch"]) == (True, 3, [32, 16])
    assert (found["policy"], found["total_steps"], found["seed"]) == ({"activation_fn": "relu"}, 500, 3)
    assert recipe("dqn", gradient_steps="-1")["hyperparameters"]["gradient_steps"] == -1
    continuous = make_recipe("Pendulum-v1", (FLAT, FLAT), "sac", options={"ent_coef": "auto"})
    assert continuous["hyperparameters"]["ent_coef"] == "auto"


@pytest.mark.parametrize(
    ("algorithm", "option", "value", "message"),
    [
        ("ppo", "learning_rat", "1", r"unknown option of PPO 'learning_rat'.*Did you mean 'learning_rate'\?"),
        ("ppo", "buffer_size", "1", "unknown option of PPO 'buffer_size'"),
        ("dqn", "n_quantiles", "5", "unknown option of DQN"),
        ("ppo", "policy_kwargs", "{}", "unknown option"),
        ("ppo", "learning_rate", "fast", r"learning_rate=fast: allowed: a number, lin_NUMBER"),
        ("ppo", "learning_rate", "nan", "allowed: a number"),
        ("ppo", "learning_rate", "-1", "greater than 0"),
        ("ppo", "learning_rate", "lin_-1", "greater than 0"),
        ("ppo", "n_steps", "1.5", "n_steps=1.5: allowed: a whole number"),
        ("ppo", "gamma", "1.5", "between 0 and 1"),
        ("ppo", "use_sde", "maybe", "true or false"),
        ("ppo", "n_envs", "0", "greater than 0"),
        ("ppo", "net_arch", "64,x", "sizes of hidden layers"),
        ("ppo", "activation", "rel", "Did you mean 'relu'"),
        ("dqn", "train_freq", "0", "greater than 0"),
    ],
)
def test_bad_options(algorithm: str, option: str, value: str, message: str) -> None:
    with pytest.raises((BadSpecError, UnknownNameError), match=message) as caught:
        recipe(algorithm, **{option: value})
    assert "\n" not in str(caught.value)


def test_what_sb3_refuses_is_one_line() -> None:
    with pytest.raises(BadSpecError, match=r"PPO refuses these hyperparameters: .*batch_size") as caught:
        make_model(recipe("ppo", batch_size="1"), 0)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("algorithm", "actions", "message"),
    [
        ("dqn", FLAT, r"dqn cannot learn actions Box.*; allowed there: ppo, sac"),
        ("qrdqn", FLAT, "allowed there: ppo, sac"),
        ("sac", TWO, r"sac cannot learn actions Discrete\(2\) of CartPole-v1; allowed there: ppo, dqn, qrdqn"),
        ("ppo", MultiDiscrete([2, 2]), "allowed: Discrete from 0"),
        ("ppo", Discrete(2, start=1), "allowed: Discrete from 0"),
        ("ppo", Box(-1, 1, (2, 2)), "allowed: Discrete from 0"),
        ("sax", TWO, r"unknown algorithm 'sax'; allowed: dqn, ppo, qrdqn, sac\. Did you mean 'sac'"),
    ],
)
def test_actions_that_do_not_fit(algorithm: str, actions: Any, message: str) -> None:
    with pytest.raises((BadSpecError, UnknownNameError), match=message):
        make_recipe("CartPole-v1", (FLAT, actions), algorithm)


def test_numbers_out_of_range() -> None:
    with pytest.raises(BadSpecError, match="--steps 0 is not"):
        recipe("ppo", 0)
    with pytest.raises(BadSpecError, match="--seed -1 is not"):
        recipe("ppo", 5, -1)
    with pytest.raises(BadSpecError, match="normalise=true needs Box observations"):
        make_recipe("FrozenLake-v1", (Discrete(16), TWO), "ppo", options={"normalise": "true"})
    with pytest.raises(BadSpecError, match="has observations Text"):
        make_recipe("Other-v0", (gymnasium.spaces.Text(3), TWO), "ppo")
