"""`napping convert`: a zip of SB3 becomes an agent as this package ships them."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from stable_baselines3 import PPO

from cli.results import assert_refused
from command_line import Napping
from nappingrl import agents
from nappingrl.cli.argv import parse


@pytest.fixture(scope="module")
def ppo_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("agents") / "untrained.zip"
    PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu", policy_kwargs={"net_arch": [8]}).save(path)
    return path


def convert(*more: str | Path) -> tuple[str | Path, ...]:
    return ("--source", "my own", "--licence", "LICENSE", "--out", "zoo", *more)


def test_a_converted_agent_acts_like_its_zip(napping: Napping, ppo_zip: Path) -> None:
    Path("LICENSE").write_text("Use it as you like.\n")
    done = napping("convert", ppo_zip, "cartpole", "mine", *convert("--json"))
    assert (done.status, done.err) == (0, "")
    card = json.loads(done.out)
    assert card == json.loads(Path("zoo/cartpole-mine.json").read_text())
    assert (card["licence"], card["source"], card["original"]["file"]) == (
        "Use it as you like.\n", "my own", ppo_zip.name,
    )  # fmt: skip
    zipped, converted = agents.load(ppo_zip), agents.load("zoo/cartpole-mine.json")
    assert converted.sha256 == zipped.sha256
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    assert (converted.forward(observations).actions == zipped.forward(observations).actions).all()
    parse(shlex.split(card["command"])[1:])
    run = ("run", "cartpole", "--agent", "zoo/cartpole-mine.json", "--trials", "1", "--protocol", "1+1")
    assert napping(*run, "--workers", "1", "--out", "run").status == 0


def test_hyperparameters_that_the_zip_does_not_show(napping: Napping, ppo_zip: Path) -> None:
    Path("LICENSE").write_text("free")
    words = ("convert", ppo_zip, "cartpole", "mine", *convert("--json", "--option", "learning_rate=lin_0.5"))
    card = json.loads(napping(*words).out)
    assert card["recipe"]["hyperparameters"]["learning_rate"] == {"from": 0.5, "to": 0.0}
    assert_refused(napping(*words[:-1], "learning_rat=1"), "Did you mean 'learning_rate'")


def test_mistakes_are_one_line_and_write_nothing(napping: Napping, ppo_zip: Path) -> None:
    assert_refused(napping("convert", ppo_zip, "cartpol", "mine", *convert()), "Did you mean 'cartpole'")
    assert_refused(napping("convert", ppo_zip, "cartpole", "../mine", *convert()), "letters, digits and dashes")
    assert_refused(napping("convert", ppo_zip, "cartpole", "mine", *convert()), "licence 'LICENSE'")
    Path("LICENSE").write_text(" ")
    assert_refused(napping("convert", ppo_zip, "cartpole", "mine", *convert()), "is empty")
    Path("LICENSE").write_text("free")
    assert_refused(napping("convert", ppo_zip, "mountaincar", "mine", *convert()), "mountaincar gives (2,)")
    assert_refused(napping("convert", "nothing.zip", "cartpole", "mine", *convert()), "nothing.zip")
    assert not list(Path().rglob("*.npz"))
