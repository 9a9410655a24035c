"""`napping train`."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import nappingrl
from cli.results import assert_refused, last_json
from command_line import Napping
from nappingrl import agents

ENV = """
import os
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv


class Fatal(CartPoleEnv):
    steps = 0

    def step(self, action):
        Fatal.steps += 1
        if Fatal.steps == int(os.environ.get("FATAL_STEP", "0")):
            os.kill(os.getpid(), int(os.environ["FATAL_SIGNAL"]))
        return super().step(action)


gymnasium.register("Fatal-v0", Fatal, max_episode_steps=50)
gymnasium.register("Endless-v0", CartPoleEnv)
"""
"""CartPole, which sends its process a signal in a step that the environment names."""
OPTIONS = ("--option", "n_steps=16", "batch_size=16", "n_epochs=1")


@pytest.fixture
def fatal(tmp_path: Path) -> Path:
    """The folder of the module `fatal`."""
    (tmp_path / "fatal.py").write_text(ENV)
    return tmp_path


def test_train_unknown_recipe(napping: Napping) -> None:
    assert_refused(napping("train", "cartpole", "pppo"), "pppo", "Did you mean")
    assert_refused(napping("train", "cartpol", "ppo"), "cartpol", "Did you mean")
    assert not Path("zoo").exists()


def test_train_mistakes(napping: Napping, fatal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one line that says what is allowed, and nothing is left behind."""
    monkeypatch.syspath_prepend(fatal)
    assert_refused(napping("train"), "DOMAIN and AGENT", "--env")
    assert_refused(napping("train", "cartpole"), "DOMAIN and AGENT")
    assert_refused(napping("train", "cartpole", "ppo", "--env", "CartPole-v1"), "--env")
    assert_refused(napping("train", "cartpole", "ppo", "--option", "gamma=1"), "--option", "need --env")
    assert_refused(napping("train", "cartpole", "ppo", "--out", "a.zip"), "a.zip", "folder")
    assert_refused(napping("train", "--env", "CartPole-v7"), "CartPole-v7", "Did you mean")
    assert_refused(napping("train", "--env", "Pendulum-v1", "--algorithm", "dqn"), "allowed there: ppo, sac")
    assert_refused(napping("train", "--env", "CartPole-v1", "--algorithm", "sac"), "allowed there: ppo, dqn, qrdqn")
    assert_refused(napping("train", "--env", "CartPole-v1", "--algorithm", "a2c"), "unknown algorithm 'a2c'")
    assert_refused(napping("train", "--env", "CartPole-v1", "--option", "gama=1"), "Did you mean 'gamma'")
    assert_refused(napping("train", "--env", "CartPole-v1", "--option", "gamma"), "NAME=VALUE")
    assert_refused(napping("train", "--env", "CartPole-v1", "--steps", "0"), "--steps 0 is not")
    assert_refused(napping("train", "--env", "fatal:Endless-v0"), "no time limit")
    assert not list(Path().iterdir())


def test_train_help_has_an_example(napping: Napping) -> None:
    assert "napping train --env LunarLander-v3 --algorithm ppo" in " ".join(napping("train", "--help").out.split())


def test_train_env(napping: Napping) -> None:
    """The agent goes where --out says; the next command is printed and works; a second call does not train again."""
    words = ("train", "--env", "CartPole-v1", "--steps", "64", "--seed", "4", *OPTIONS, "--out", "agents/mine")
    done = napping(*words)
    assert (done.status, done.err) == (0, "")
    assert "CartPole-v1 PPO: mean return" in done.out
    assert "next: napping run --env CartPole-v1 --agent agents/mine.zip" in done.out
    assert sorted(path.name for path in Path("agents").iterdir()) == ["mine.json", "mine.zip"]
    card = last_json(napping(*words, "--json"))
    assert card == json.loads(Path("agents/mine.json").read_text())
    assert card["command"] == f"napping {' '.join(words)}"
    assert_refused(napping(*words[:4], "65", *words[5:]), "agents/mine.zip", "another agent")
    run = ("run", "--env", "CartPole-v1", "--agent", "agents/mine.zip", "--protocol", "1+1", "--trials", "1")
    assert napping(*run, "--method", "frozen", "--workers", "1", "--out", "agents/run").status == 0


def test_train_names_the_file(napping: Napping) -> None:
    Path("folder").mkdir()
    words = ("train", "--env", "nappingrl/CartPole-v0", "--steps", "32", *OPTIONS)
    assert napping(*words, "--out", "folder").status == 0
    assert Path("folder/nappingrl-CartPole-v0-ppo.zip").is_file()


def test_killed_training_resumes_to_the_same_agent(fatal: Path) -> None:
    """A kill, a termination and Ctrl-C; each call goes on from the last checkpoint."""
    words = [sys.executable, "-m", "nappingrl", "train", "--env", "fatal:Fatal-v0", "--steps", "320", *OPTIONS]
    path = os.pathsep.join([str(fatal), str(Path(nappingrl.__file__).parents[1])])

    def train(out: str, number: int = 0, step: int = 0) -> subprocess.CompletedProcess[str]:
        given = os.environ | {"PYTHONPATH": path, "FATAL_SIGNAL": str(number), "FATAL_STEP": str(step)}
        return subprocess.run([*words, "--out", out], check=False, cwd=fatal, env=given, capture_output=True, text=True)

    assert train("whole.zip").returncode == 0
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        done = train("parts.zip", number, 600)
        assert done.returncode in (-number, 128 + number)
        assert (fatal / "parts-training" / "checkpoint.pt").is_file()
        assert not (fatal / "parts.zip").exists()
    assert "Continue with: napping train --env fatal:Fatal-v0" in done.stderr
    done = train("parts.zip")
    assert done.returncode == 0, done.stderr
    assert agents.load(fatal / "parts.zip").sha256 == agents.load(fatal / "whole.zip").sha256
    assert not (fatal / "parts-training").exists()
