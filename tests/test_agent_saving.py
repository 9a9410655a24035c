"""NappingAgent.save and load: an agent goes on as if nothing had happened."""

import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import nappingrl
from adapted_agents import FAILING, HARD, adapted, cartpole, play, tables, waits
from nappingrl import NappingAgent
from nappingrl.agents import zoo_names
from nappingrl.agents.base import Agent
from nappingrl.detectors import RollingMean
from nappingrl.domains.as_env import DomainEnv
from nappingrl.domains.from_env import domain_from_env
from nappingrl.errors import BadAgentError
from nappingrl.novelties.subject import read_env_by_id
from nappingrl.score import Score, reward_score


@pytest.mark.parametrize(
    "options",
    [
        {},
        {
            "rule": "fallback",
            "space": "raw",
            "choice": "preference",
            "score": "lean-drop-0.2",
            "seed": 5,
            "n_envs": 2,
        },
    ],
)
def test_saved_agents_go_on_as_if_nothing_had_happened(agent: Agent, tmp_path: Path, options: dict[str, Any]) -> None:
    made = adapted(agent, episodes=6, **options)
    loaded = NappingAgent.load(made.save(tmp_path / "a.zip"), model=agent)
    assert tables(loaded) == tables(made)
    assert loaded.explain() == made.explain() != []
    assert loaded.config == made.config
    assert loaded.detected.all()
    returns = [play(player, player.wrap(cartpole(**HARD)), 6, seed=9) for player in (made, loaded)]
    assert returns[0] == returns[1]
    assert tables(loaded) == tables(made)


def test_random_choice_goes_on_after_loading(car_agent: Agent, tmp_path: Path) -> None:
    """With three actions an open principle draws among candidates: the stream goes on where it was."""

    def drive(player: NappingAgent, episodes: int, seed: int) -> list[float]:
        env = DomainEnv("mountaincar")
        env.set_params(force=0.0004, gravity=0.0008)
        return play(player, player.wrap(TimeLimit(env, 200)), episodes, seed)

    made = NappingAgent(car_agent, domain="mountaincar", detector="given", rule="printed", score="energy")
    drive(made, 2, seed=0)
    loaded = NappingAgent.load(made.save(tmp_path / "a.zip"), model=car_agent)
    assert any(sum(candidates) > 1 for candidates in tables(made)["candidates"]), "some principles are open"
    drive(made, 3, seed=5)
    drive(loaded, 3, seed=5)
    assert tables(loaded) == tables(made)


@waits
def test_detection_goes_on_after_loading(agent: Agent, tmp_path: Path) -> None:
    """The returns that the rolling mean has seen are part of what was saved."""
    made = NappingAgent(agent, domain="cartpole", method="napping")
    play(made, made.wrap(cartpole(**FAILING)), 4, seed=0)
    loaded = NappingAgent.load(made.save(tmp_path / "a.zip"), model=agent)
    for player in (made, loaded):
        assert player.detected.tolist() == [False]
        play(player, player.wrap(cartpole(**FAILING)), 1, seed=4)
    assert made.detected.tolist() == loaded.detected.tolist() == [True]


@waits
def test_what_was_detected_stays_detected_after_loading(agent: Agent, tmp_path: Path) -> None:
    made = NappingAgent(agent, domain="cartpole", method="napping")
    play(made, made.wrap(cartpole(**FAILING)), 7, seed=0)
    loaded = NappingAgent.load(made.save(tmp_path / "a.zip"), model=agent)
    assert made.detected.tolist() == loaded.detected.tolist() == [True]


def test_every_environment_is_saved(agent: Agent, tmp_path: Path) -> None:
    made = NappingAgent(agent, domain="cartpole", detector="given", n_envs=2, method="napping")
    other = made.wrap(cartpole(**HARD), 1)
    observation, _ = other.reset(seed=0)
    for _ in range(60):
        actions, _ = made.predict(np.stack([np.zeros(4, np.float32), observation]))
        observation, _, terminated, truncated, _ = other.step(actions[1])
        if terminated or truncated:
            observation, _ = other.reset()
    loaded = NappingAgent.load(made.save(tmp_path / "a"), model=agent)
    assert tables(loaded, 0) == tables(made, 0)
    assert tables(loaded, 1) == tables(made, 1)
    assert len(tables(made, 1)["visits"]) > len(tables(made, 0)["visits"]) == 0


def test_the_file_holds_json_and_arrays_and_no_pickle(agent: Agent, tmp_path: Path) -> None:
    path = adapted(agent, episodes=2).save(tmp_path / "deep.agent")
    assert path == tmp_path / "deep.agent.zip"
    with zipfile.ZipFile(path) as archive:
        assert sorted(archive.namelist()) == ["adapter.json", "principles.npz"]
        settings = json.loads(archive.read("adapter.json"))
        with archive.open("principles.npz") as file, zipfile.ZipFile(file) as arrays:
            for name in arrays.namelist():
                np.lib.format.read_magic(stream := arrays.open(name))
                assert not np.lib.format.read_array_header_1_0(stream)[2].hasobject
    assert settings["agent"]["sha256"] == agent.sha256
    assert settings["nappingrl"] == nappingrl.__version__


def test_the_base_model_is_found_by_its_path(agent_zip: Path, tmp_path: Path) -> None:
    made = NappingAgent(agent_zip, domain="cartpole", detector="given", method="napping")
    play(made, made.wrap(cartpole(**HARD)), 3, seed=0)
    loaded = NappingAgent.load(made.save(tmp_path / "a.zip"))
    assert loaded.agent.sha256 == made.agent.sha256
    assert tables(loaded) == tables(made)


def test_other_weights_are_refused(agent: Agent, other_agent: Agent, tmp_path: Path) -> None:
    path = adapted(agent, episodes=1).save(tmp_path / "a.zip")
    with pytest.raises(BadAgentError, match="belongs to other weights"):
        NappingAgent.load(path, model=other_agent)


def test_weights_that_changed_on_disk_are_refused(
    agent_zip: Path, make_zip: Callable[..., Path], tmp_path: Path
) -> None:
    base = tmp_path / "base.zip"
    base.write_bytes(agent_zip.read_bytes())
    path = NappingAgent(base, domain="cartpole", method="napping").save(tmp_path / "a.zip")
    layers = [
        (np.ones((4, 8), np.float32), np.zeros(8, np.float32)),
        (np.ones((8, 2), np.float32), np.zeros(2, np.float32)),
    ]
    make_zip(base, layers)
    with pytest.raises(BadAgentError, match=r"belongs to other weights than .*base\.zip has now"):
        NappingAgent.load(path)


@pytest.mark.parametrize("domain", [None, "cartpole"])
def test_a_score_of_your_own_must_be_given_again(agent: Agent, tmp_path: Path, domain: str | None) -> None:
    mine = Score("mine", lambda o, a, o2, r, end: np.where(end, -1.0, 1.0), supremum=1.0)
    made = NappingAgent(agent, score=mine, domain=domain, detector="given")
    path = made.save(tmp_path / "a.zip")
    with pytest.raises(BadAgentError, match="your own score 'mine'; give it as score="):
        NappingAgent.load(path, model=agent)
    assert NappingAgent.load(path, model=agent, score=mine).score is mine


def test_the_reward_with_limits_of_your_own_is_not_taken_for_the_plain_reward(agent: Agent, tmp_path: Path) -> None:
    path = NappingAgent(agent, score=reward_score(threshold=0.5, supremum=1.0)).save(tmp_path / "a.zip")
    try:
        loaded = NappingAgent.load(path, model=agent)
    except BadAgentError:
        return  # asking for it is as good as remembering it
    assert (loaded.score.threshold, loaded.score.supremum) == (0.5, 1.0)


def test_a_detector_of_your_own_must_be_given_again(agent: Agent, tmp_path: Path) -> None:
    """Else "given" would silently take its place."""
    path = NappingAgent(agent, detector=RollingMean(1, low=100), method="napping").save(tmp_path / "a.zip")
    with pytest.raises(BadAgentError, match="detector"):
        NappingAgent.load(path, model=agent)
    mine = RollingMean(1, low=100)
    assert NappingAgent.load(path, model=agent, detector=mine).detector is mine


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 half a zip"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.zip").write_bytes(content)
    for path in (tmp_path / "a.zip", tmp_path / "nowhere.zip"):
        with pytest.raises(BadAgentError, match="is not a saved NappingAgent") as caught:
            NappingAgent.load(path)
        assert "\n" not in str(caught.value)


def test_a_zip_of_something_else_is_refused(agent_zip: Path) -> None:
    with pytest.raises(BadAgentError, match="is not a saved NappingAgent"):
        NappingAgent.load(agent_zip)


@pytest.mark.parametrize(("domain", "name"), [(d, n) for d in ("cartpole", "mountaincar") for n in zoo_names(d)])
def test_shipped_agents_come_back_by_name(domain: str, name: str, tmp_path: Path) -> None:
    path = NappingAgent(name, domain=domain, method="napping").save(tmp_path / "a")
    assert NappingAgent.load(path).agent.sha256 == NappingAgent(name, domain=domain, method="napping").agent.sha256


def test_a_model_saved_by_a_relative_path_is_found_from_elsewhere(
    agent_zip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(agent_zip.parent)
    path = NappingAgent(agent_zip.name, method="napping").save(tmp_path / "a")
    monkeypatch.chdir(tmp_path)
    assert NappingAgent.load(path).agent.name == NappingAgent(agent_zip, method="napping").agent.name


def test_a_module_that_only_the_file_names_is_not_imported(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is imported once the caller names it; other names than the file's are refused."""
    (tmp_path / "trap_module.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "gymnasium.register('Trap-v0', CartPoleEnv, max_episode_steps=50)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    name = "trap_module:Trap-v0"
    path = NappingAgent(agent, domain=name, method="napping").save(tmp_path / "a")
    del sys.modules["trap_module"], gymnasium.registry["Trap-v0"]
    domain_from_env.cache_clear()
    read_env_by_id.cache_clear()
    with pytest.raises(BadAgentError, match=r"imports the module 'trap_module'.*give domain='trap_module:Trap-v0'$"):
        NappingAgent.load(path, model=agent)
    with pytest.raises(BadAgentError, match="saved with domain='trap_module:Trap-v0', not 'cartpole'"):
        NappingAgent.load(path, model=agent, domain="cartpole")
    assert "trap_module" not in sys.modules
    assert NappingAgent.load(path, model=agent, domain=name).domain.name == name
    del gymnasium.registry["Trap-v0"]


def test_a_live_agent_must_be_given_again(agent: Agent, tmp_path: Path) -> None:
    with pytest.raises(BadAgentError, match="give it as model="):
        NappingAgent.load(NappingAgent(agent, method="napping").save(tmp_path / "a"))
