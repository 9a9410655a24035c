"""Environments whose observations are no row of numbers: one-hot whole numbers, and wrappers by name."""

from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import WrapperSpec
from stable_baselines3 import PPO

import nappingrl
from domains import toy_envs
from nappingrl import env_wrappers
from nappingrl.agents import load
from nappingrl.cli import main
from nappingrl.cli.argv import parse
from nappingrl.cli.run import Run, command_for
from nappingrl.domains import find_domain
from nappingrl.env_wrappers import WRAPPERS, known_wrappers, with_wrappers, wrapper_specs
from nappingrl.errors import BadObservationError, BadSpecError, MissingExtraError, NappingError
from nappingrl.novelties.subject import PACKAGES
from nappingrl.trials.spec import RunSpec

toy_envs.register()


@pytest.fixture(scope="module")
def model() -> PPO:
    return PPO("MlpPolicy", gymnasium.make("FrozenLake-v1"), n_steps=8, batch_size=8, seed=0, device="cpu")


@pytest.fixture(scope="module")
def model_zip(model: PPO, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "lake.zip"
    model.save(path)
    return path


# ---- whole numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["zip", "live"])
def test_agents_encode_whole_numbers_as_sb3_does(model: PPO, model_zip: Path, source: str) -> None:
    agent = nappingrl.NappingAgent(model_zip if source == "zip" else model, domain="FrozenLake-v1", method="napping")
    assert (agent.agent.observation_shape, agent.agent.n_states) == ((16,), 16)
    assert agent.agent.sha256
    for state in range(16):
        expected, _ = model.predict(np.array(state), deterministic=True)
        assert agent.predict(state)[0] == expected
        assert agent.predict(np.eye(16, dtype=np.float32)[state])[0] == expected
    with pytest.raises(BadObservationError, match="whole numbers from 0 to 15"):
        agent.predict(16)


def test_batches_of_whole_numbers(model: PPO) -> None:
    agent = nappingrl.NappingAgent(model, n_envs=3, method="napping")
    expected, _ = model.predict(np.array([3, 0, 7]), deterministic=True)
    assert agent.predict(np.array([3, 0, 7]))[0].tolist() == expected.tolist()


def test_an_agent_adapts_around_the_raw_environment(model_zip: Path) -> None:
    agent = nappingrl.NappingAgent(model_zip, domain="FrozenLake-v1", detector="given", method="napping")
    env = agent.wrap(nappingrl.apply_novelty(gymnasium.make("FrozenLake-v1"), "action-remap=3,2,1,0"))
    observation, _ = env.reset(seed=0)
    assert observation in range(16), "the environment still shows its whole numbers"
    for _ in range(20):
        observation, _, terminated, truncated, _ = env.step(agent.predict(observation)[0])
        if terminated or truncated:
            observation, _ = env.reset()
    situations = [rule.situation for rule in agent.explain()]
    assert situations == ["everywhere"] or all("the agent" in text or "in state " in text for text in situations)


def test_trials_show_one_hot_observations(model_zip: Path) -> None:
    domain = find_domain("FrozenLake-v1").for_novelties(["action-remap"])
    copies, row = domain.make(2), np.array([1])
    copies.apply(row, {f"action-remap[{i}]": 3.0 - i for i in range(4)})
    copies.reset(row, np.array([[0.5]]))
    assert copies.observe(row)[0].tolist() == [1.0] + [0.0] * 15
    rows = nappingrl.run("FrozenLake-v1", model_zip, "napping", novelty="action-remap", trials=2, protocol="1+1").rows
    assert len(rows) == 4


def test_many_states_share_one_number_of_noise() -> None:
    taxi = find_domain("Taxi-v4")
    assert taxi.observation_low.shape == (500,)
    assert dict(taxi.novelties["obs-noise"].ranges) == {"obs-noise": (0.05, 0.05)}
    assert taxi.describe(np.eye(500)[42]) == "state 42"


def test_changes_of_raw_whole_numbers_are_refused() -> None:
    with pytest.raises(BadSpecError, match=r"one row of numbers, but here they are Discrete\(16\); .*FlattenObs"):
        nappingrl.apply_novelty(gymnasium.make("FrozenLake-v1"), "obs-drop=0")


# ---- wrappers -------------------------------------------------------------------------------------------------------


def test_wrappers_make_rows_of_numbers() -> None:
    assert find_domain("toys/Pictures-v0+flatten").observation_low.shape == (48,)
    assert find_domain("toys/Pictures-v0+grayscale+flatten").observation_low.shape == (16,)
    assert find_domain("CartPole-v1+stack-4+flatten").observation_low.shape == (16,)
    notes = find_domain("toys/Notes-v0+flatten")
    assert (notes.name, notes.observation_low.shape, notes.horizon) == ("toys/Notes-v0+flatten", (7,), 12)


def test_novelties_apply_behind_wrappers() -> None:
    domain = find_domain("toys/Notes-v0+flatten").for_novelties(["obs-drop=0;action-remap=2,1,0"])
    copies, row = domain.make(1), np.array([0])
    copies.apply(row, {"obs-drop[0]": 1.0})
    copies.reset(row, np.array([[0.5]]))
    copies.step(row, np.array([2]))
    assert copies.observe(row)[0].tolist() == [0.0, 20.0, 3.0, 9.0, 0.0, 0.0, 1.0]


def test_wrappers_of_a_given_environment_are_kept() -> None:
    env = gymnasium.wrappers.FlattenObservation(gymnasium.make("toys/Notes-v0"))
    changed = nappingrl.apply_novelty(env, "obs-shift[2]=1")
    assert changed.reset(seed=0)[0][2] == 4.0


def test_wrappers_that_draw_are_left_out_of_verification() -> None:
    """They need a picture, which the environments that are compared do not have."""
    env = gymnasium.make("CartPole-v1", render_mode="rgb_array")
    filmed = gymnasium.wrappers.RenderCollection(env)
    assert nappingrl.apply_novelty(filmed, "gravity=20").unwrapped.gravity == 20.0  # type: ignore[attr-defined]


def test_wrappers_of_a_registration_are_kept() -> None:
    flatten = WrapperSpec("FlattenObservation", "gymnasium.wrappers:FlattenObservation", {})
    spec = replace(gymnasium.spec("toys/Notes-v0"), id="toys/FlatNotes-v0")
    gymnasium.registry[spec.id] = replace(spec, additional_wrappers=(flatten,))
    try:
        assert find_domain(spec.id).observation_low.shape == (7,)
        stacked = find_domain(f"{spec.id}+stack-4+flatten")
        assert (stacked.name, stacked.observation_low.shape) == (f"{spec.id}+stack-4+flatten", (28,))
    finally:
        del gymnasium.registry[spec.id]


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("Absent-Empty-v0", MissingExtraError, "Absent-Empty-v0 needs no_such_package.*: pip install no_such_package"),
        ("Absent-Empty-v0+flatten", MissingExtraError, "pip install no_such_package"),
        ("toys/Pictures-v0", BadSpecError, "has observations .* --wrap flatten"),
        ("toys/Pictures-v0+flaten", NappingError, "unknown wrapper 'flaten'.*Did you mean 'flatten'"),
        ("toys/Pictures-v0+os:system", NappingError, "unknown"),
        ("toys/Pictures-v0+", NappingError, "unknown wrapper ''"),
        ("CartPole-v1+grayscale", BadSpecError, r"CartPole-v1\+grayscale cannot be made \(ValueError: "),
        ("CartPole+flatten", NappingError, "unknown"),
    ],
)
def test_what_cannot_be_wrapped_is_said_in_one_line(
    name: str, error: type[Exception], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PACKAGES, "Absent-", "no_such_package")
    with pytest.raises(error, match=text) as caught:
        find_domain(name)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRAPPERS, "absent", ("no_such_package.wrappers:Flat", {}, ""))
    known_wrappers.cache_clear()
    try:
        with pytest.raises(MissingExtraError, match=r"wrapper 'absent' needs no_such_package, .* pip install no_such"):
            wrapper_specs(["absent"])
    finally:
        known_wrappers.cache_clear()


def test_installed_packages_offer_wrappers(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("my-flatten", "gymnasium.wrappers:FlattenObservation", "nappingrl.wrappers")
    own = EntryPoint("flatten", "os:system", "nappingrl.wrappers")
    monkeypatch.setattr(env_wrappers, "entry_points", lambda group: [point, own])
    known_wrappers.cache_clear()
    try:
        assert wrapper_specs(["my-flatten", "flatten"])[0].entry_point == "gymnasium.wrappers:FlattenObservation"
        assert wrapper_specs(["flatten"])[0].entry_point == WRAPPERS["flatten"][0], "built-in names stay"
    finally:
        known_wrappers.cache_clear()


def test_a_novelty_around_wrappers_that_record_no_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    """As MiniGrid's: they are found by their class, or the environment could not be made again to verify a novelty."""
    monkeypatch.setitem(WRAPPERS, "row-only", ("domains.toy_envs:RowOnly", {}, ""))
    known_wrappers.cache_clear()
    try:
        env = gymnasium.make(with_wrappers("toys/Notes-v0+row-only+flatten"))
        shown = env.reset(seed=0)[0]
        reversed_order = ",".join(map(str, reversed(range(len(shown)))))
        turned = nappingrl.apply_novelty(env, f"obs-remap={reversed_order}").reset(seed=0)[0]
    finally:
        known_wrappers.cache_clear()
    np.testing.assert_array_equal(turned, shown[::-1])


def test_minigrid_where_it_is_installed() -> None:
    pytest.importorskip("minigrid")  # a run needs no import of it: the ids tell
    domain = find_domain("MiniGrid-Empty-5x5-v0+minigrid-full+minigrid-image+flatten")
    assert (domain.observation_low.shape, domain.n_actions, domain.horizon) == ((75,), 7, 100)


# ---- the command line -----------------------------------------------------------------------------------------------


def test_the_command_names_its_wrappers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    env = gymnasium.wrappers.FlattenObservation(gymnasium.make("toys/Notes-v0"))
    PPO("MlpPolicy", env, n_steps=8, batch_size=8, device="cpu").save(tmp_path / "notes.zip")
    words = ["run", "--env", "toys/Notes-v0", "--wrap", "flatten", "--agent", str(tmp_path / "notes.zip")]
    words += ["--novelty", "action-remap=2,1,0;obs-shift[0]=1", "--trials", "2", "--protocol", "1+1", "--workers", "1"]
    main([*words, "--out", str(tmp_path / "run")])
    assert "toys/Notes-v0+flatten" in capsys.readouterr().out
    run = nappingrl.read_run(tmp_path / "run")
    assert "--env toys/Notes-v0 --wrap flatten " in run.manifest.command
    main(["replay", str(tmp_path / "run"), "1"])
    assert "the same rows as stored" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "name"),
    [("--env toys/Notes-v0 --wrap flatten", "toys/Notes-v0+flatten"), ("--env FrozenLake-v1", "FrozenLake-v1")],
)
def test_agents_are_trained_behind_wrappers(
    words: str, name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nappingrl.agents.training.cards.EPISODES", 2)
    monkeypatch.setattr("nappingrl.agents.training.recipes.EVALUATION_EPISODES", 2)
    options = ["--steps", "64", "--option", "n_steps=32", "batch_size=32", "--out"]
    main(["train", *words.split(), *options, str(tmp_path / "agent.zip")])
    command = capsys.readouterr().out.splitlines()[-1].removeprefix("next: napping ")
    assert command == f"run {words} --agent {tmp_path / 'agent.zip'}"
    main([*command.split(), "--trials", "1", "--protocol", "0+1", "--workers", "1", "--out", str(tmp_path / "run")])
    assert nappingrl.read_run(tmp_path / "run").spec["domain"] == name


def test_a_spec_becomes_its_command(model_zip: Path) -> None:
    spec = RunSpec("CartPole-v1+stack-4+flatten", str(model_zip), "frozen", "none")
    command: Any = parse(command_for(spec, None).split()[1:])
    assert isinstance(command, Run)
    assert (command.env, command.wrap) == ("CartPole-v1", ("stack-4", "flatten"))
    assert command.spec().domain == spec.domain


def test_wrappers_need_an_environment() -> None:
    with pytest.raises(BadSpecError, match="--wrap flatten is for environments: give --env"):
        Run(domain="cartpole", wrap=("flatten",)).spec()


def test_a_shipped_agent_is_not_one_hot() -> None:
    assert load("ppo", "cartpole").n_states == 0
