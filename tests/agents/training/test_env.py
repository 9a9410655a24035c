"""Training in any gymnasium environment: the written agent, its card, and resumed trainings."""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO, SAC
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import nappingrl
from nappingrl import agents
from nappingrl.agents.continuous import BoxMlpAgent
from nappingrl.agents.training import checkpoint, env
from nappingrl.agents.training.env import train_env
from nappingrl.agents.training.evaluation import summary
from nappingrl.agents.training.recipes import make_recipe
from nappingrl.errors import BadSpecError

SMALL = {"n_steps": "32", "n_envs": "2", "batch_size": "32"}
OFF_POLICY = {"learning_starts": "40", "train_freq": "4", "gradient_steps": "1", "batch_size": "32"}
CASES = [
    ("CartPole-v1", "ppo", SMALL),
    ("Acrobot-v1", "ppo", SMALL),  # its observations are normalised
    ("Pendulum-v1", "ppo", SMALL),  # state-dependent noise
    ("Pendulum-v1", "sac", OFF_POLICY | {"ent_coef": "auto"}),
    ("MountainCarContinuous-v0", "sac", OFF_POLICY),
    ("CartPole-v1", "dqn", OFF_POLICY),
    ("CartPole-v1", "qrdqn", OFF_POLICY | {"n_quantiles": "5", "net_arch": "16"}),
]
SB3: dict[str, Any] = {"ppo": PPO, "dqn": DQN, "sac": SAC, "qrdqn": QRDQN}


class StopError(Exception):
    """Interrupts a training."""


def recipe(env_id: str, algorithm: str, options: Mapping[str, str], steps: int = 320, seed: int = 5) -> dict[str, Any]:
    made = gymnasium.make(env_id)
    found = make_recipe(env_id, (made.observation_space, made.action_space), algorithm, steps, seed, options)
    return found | {"evaluation_episodes": 2}


@pytest.fixture(autouse=True)
def few_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.agents.training.cards.EPISODES", 4)


@pytest.mark.parametrize(("env_id", "algorithm", "options"), CASES)
def test_loaded_agent_acts_as_sb3(env_id: str, algorithm: str, options: dict[str, str], tmp_path: Path) -> None:
    """One path is enough to load the agent; its actions are those of SB3's own `predict`."""
    file = tmp_path / "agent.zip"
    card = train_env(recipe(env_id, algorithm, options), file, "napping train")
    agent = agents.load(file)
    assert (agent.sha256, card["loads"]) == (card["sha256"], True)
    assert agents.load(tmp_path / "agent.json").sha256 == agent.sha256
    model, made = SB3[algorithm].load(file, device="cpu"), gymnasium.make(env_id)
    made.observation_space.seed(3)
    observations = np.clip([made.observation_space.sample() for _ in range(50)], -5, 5).astype(np.float32)
    fed = observations
    if card["normaliser"]:
        statistics = VecNormalize.load(str(tmp_path / "agent" / "vecnormalize.pkl"), DummyVecEnv([lambda: made]))
        fed = statistics.normalize_obs(observations)
        assert not np.allclose(fed, observations)
    wanted, _ = model.predict(fed, deterministic=True)
    np.testing.assert_allclose(agent.forward(observations).actions, wanted, atol=1e-5)
    assert isinstance(agent, BoxMlpAgent) == (algorithm == "sac" or env_id == "Pendulum-v1")
    first = nappingrl.NappingAgent(file, method="frozen").predict(observations[0])[0]
    np.testing.assert_allclose(first, wanted[0], atol=1e-5)


@pytest.mark.parametrize(("env_id", "algorithm", "options"), [CASES[i] for i in (1, 3, 4, 5, 6)])
def test_resumed_training_gives_the_same_bits(
    env_id: str, algorithm: str, options: dict[str, str], tmp_path: Path
) -> None:
    """Two interruptions change neither the evaluations nor the agent."""
    found, whole = recipe(env_id, algorithm, options), {}
    expected = train_env(found, tmp_path / "whole.zip", "", on_evaluation=whole.__setitem__)
    stops, seen = [100, 230], {}

    def stop(done: int, total: int) -> None:
        if stops and done >= stops[0]:
            stops.pop(0)
            raise StopError

    for _ in range(2):
        with pytest.raises(StopError):
            train_env(found, tmp_path / "parts.zip", "", stop, seen.__setitem__)
        assert (tmp_path / "parts-training" / checkpoint.FILE).is_file()
        assert not (tmp_path / "parts.zip").exists()
    card = train_env(found, tmp_path / "parts.zip", "", stop, seen.__setitem__)
    assert seen == whole
    assert len(seen) >= 5
    assert card["sha256"] == expected["sha256"]
    assert not (tmp_path / "parts-training").exists()


def test_training_depends_on_the_seed_alone(tmp_path: Path) -> None:
    shas = [
        train_env(recipe("CartPole-v1", "ppo", SMALL, seed=seed), tmp_path / f"{i}.zip", "")["sha256"]
        for i, seed in enumerate((1, 1, 2))
    ]
    assert shas[0] == shas[1] != shas[2]


def test_card(tmp_path: Path) -> None:
    """The card tells how the agent was made and what it reaches."""
    found = recipe("CartPole-v1", "ppo", SMALL | {"learning_rate": "lin_0.01", "activation": "relu"})
    card = train_env(found, tmp_path / "agent.zip", "napping train --env CartPole-v1")
    assert card == json.loads((tmp_path / "agent.json").read_text())
    assert (card["command"], card["seed"], card["total_steps"]) == ("napping train --env CartPole-v1", 5, 320)
    assert card["versions"].keys() >= {"python", "nappingrl", "gymnasium", "torch", "stable-baselines3", "sb3-contrib"}
    returns = card["pre_novelty_return"]
    assert returns["episodes"] == 4
    assert returns["interval"][0] <= returns["mean"] <= returns["interval"][1]
    agent = agents.load(tmp_path / "agent.zip")
    assert agent.hyperparameters()["learning_rate"] == {"from": 0.01, "to": 0.0}
    assert agent.trainable().activation == "relu"


def test_interval_is_that_of_students_t() -> None:
    assert summary(np.array([1.0, 2.0, 3.0, 4.0]))["interval"] == pytest.approx([0.446, 4.554], abs=1e-3)


def test_a_finished_training_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same recipe returns the card; another one does not overwrite the agent."""
    file, options = tmp_path / "agent.zip", SMALL
    card = train_env(recipe("CartPole-v1", "ppo", options, 64), file, "")
    monkeypatch.delattr(env, "learn")
    assert train_env(recipe("CartPole-v1", "ppo", options, 64), file, "") == card
    with pytest.raises(BadSpecError, match="is another agent"):
        train_env(recipe("CartPole-v1", "ppo", options, 64, seed=6), file, "")


def interrupted(folder: Path) -> Path:
    """The checkpoint of a training that was stopped."""

    def stop(done: int, total: int) -> None:
        if done > 100:
            raise StopError

    with pytest.raises(StopError):
        train_env(recipe("CartPole-v1", "ppo", SMALL), folder / "agent.zip", "", stop)
    return folder / "agent-training" / checkpoint.FILE


def test_checkpoint_of_another_training_is_refused(tmp_path: Path) -> None:
    interrupted(tmp_path)
    with pytest.raises(BadSpecError, match=r"other values of seed; use the same options.*delete"):
        train_env(recipe("CartPole-v1", "ppo", SMALL, seed=6), tmp_path / "agent.zip", "")


class Hostile:
    """Writes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_hostile_or_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    """No code in a checkpoint runs."""
    file = interrupted(tmp_path)
    content = file.read_bytes()
    torch.save(torch.load(file, weights_only=True) | {"state": Hostile(tmp_path / "ran")}, file)
    with pytest.raises(BadSpecError, match="damaged"):
        train_env(recipe("CartPole-v1", "ppo", SMALL), tmp_path / "agent.zip", "")
    assert not (tmp_path / "ran").exists()
    file.write_bytes(content[: len(content) // 2])
    with pytest.raises(BadSpecError, match=r"damaged.*delete"):
        train_env(recipe("CartPole-v1", "ppo", SMALL), tmp_path / "agent.zip", "")


def test_checkpoints_that_hold_too_much_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before torch reads them: a compressed one may hold far more than its size."""
    file = interrupted(tmp_path)
    with zipfile.ZipFile(file) as stored, zipfile.ZipFile(tmp_path / "new", "w", zipfile.ZIP_DEFLATED) as compressed:
        for name in stored.namelist():
            compressed.writestr(name, stored.read(name))
    content = file.read_bytes()
    (tmp_path / "new").replace(file)
    with pytest.raises(BadSpecError, match="cannot be resumed: its members are compressed"):
        train_env(recipe("CartPole-v1", "ppo", SMALL), tmp_path / "agent.zip", "")
    file.write_bytes(content)
    monkeypatch.setattr(checkpoint, "MAX_BYTES", 1000)
    with pytest.raises(BadSpecError, match="at most 1,000 are read; delete"):
        train_env(recipe("CartPole-v1", "ppo", SMALL), tmp_path / "agent.zip", "")


@pytest.mark.parametrize("name", ["best", "counters", "parameters", "replay", "next_evaluation"])
def test_tampered_checkpoints_are_refused_in_one_line(tmp_path: Path, name: str) -> None:
    file = interrupted(tmp_path)
    content = checkpoint.load_tensors(file)
    for value in (None, "text", {"policy": torch.zeros(3)}, {"mean": 1.0, "num_timesteps": -5}):
        torch.save(content | {"state": content["state"] | {name: value}}, file)
        with pytest.raises(BadSpecError, match=r"the checkpoint .* delete") as caught:
            train_env(recipe("CartPole-v1", "ppo", SMALL), tmp_path / "agent.zip", "")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{" + " " * 2000 + "}", "[" * 100_000])
def test_a_card_that_is_too_large_or_deep_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(env, "MAX_BYTES", 1000 if text[0] == "{" else 1 << 20)
    (tmp_path / "agent.zip").touch()
    (tmp_path / "agent.json").write_text(text)
    with pytest.raises(BadSpecError, match="is another agent, or one without its card"):
        train_env(recipe("CartPole-v1", "ppo", SMALL), tmp_path / "agent.zip", "")


def test_diverging_training(tmp_path: Path) -> None:
    """A learning rate that is far too large: one line, with what to do."""
    found = recipe("CartPole-v1", "ppo", SMALL | {"learning_rate": "1e30"})
    with pytest.raises(BadSpecError, match=r"diverged before step .* smaller learning_rate"):
        train_env(found, tmp_path / "agent.zip", "")


def test_discrete_observations(tmp_path: Path) -> None:
    """SB3 encodes them one-hot; the agent can be loaded, or the card says that it cannot."""
    card = train_env(recipe("FrozenLake-v1", "ppo", SMALL, 64), tmp_path / "agent.zip", "")
    assert PPO.load(tmp_path / "agent.zip").observation_space == gymnasium.spaces.Discrete(16)
    if card["loads"]:
        assert agents.load(tmp_path / "agent.zip").sha256 == card["sha256"]


def test_unwritable_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadSpecError, match="cannot be written"):
        train_env(recipe("CartPole-v1", "ppo", SMALL), tmp_path / "file" / "agent.zip", "")
