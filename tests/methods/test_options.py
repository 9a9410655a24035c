"""Options that methods declare: on the command line, in specs, in NappingAgent; and what NAPPING's do."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nappingrl import NappingAgent
from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.cli import main
from nappingrl.domains.as_env import DomainEnv
from nappingrl.errors import BadAgentError, BadSpecError, NappingError, UnknownNameError
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder


def spec_of(method: str = "napping", **options: Any) -> RunSpec:
    return RunSpec("cartpole", "a", method, options=options).complete()


def id_of(spec: RunSpec) -> str:
    return spec.trial_specs()[0].id


def deep_agent() -> MlpAgent:
    """CartPole, hidden layers of 6 and 4 units."""
    rng = np.random.default_rng(1)
    sizes = (4, 6, 4, 2)
    layers = [
        (rng.normal(size=(a, b)).astype(np.float32), rng.normal(size=b).astype(np.float32) / 4)
        for a, b in pairwise(sizes)
    ]
    return MlpAgent("deep", layers, "tanh")


# ---- specs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "default", "other"),
    [
        ("napping", {"choice": "paper"}, {"choice": "preference"}),
        ("napping", {"search": "any"}, {"search": "same-key"}),
        ("napping", {"choice": "paper", "search": "any"}, {"layer": 1}),
        ("napping-no-memory", {"choice": "paper"}, {"choice": "preference"}),
        ("replay-success", {"epsilon": 0.25}, {"epsilon": 0.3}),
        ("replay-success", {"epsilon": "0.25"}, {"epsilon": "0.5"}),
        ("replay-success", {"epsilon": "2.5e-1"}, {"epsilon": 0}),
    ],
)
def test_options_at_their_default_do_not_change_the_id(
    method: str, default: dict[str, Any], other: dict[str, Any]
) -> None:
    plain = spec_of(method)
    assert spec_of(method, **default) == plain
    assert id_of(spec_of(method, **default)) == id_of(plain) != id_of(spec_of(method, **other))
    assert spec_of(method, **other).complete() == spec_of(method, **other)


def test_numbers_may_come_as_text() -> None:
    assert spec_of("replay-success", epsilon="0.5") == spec_of("replay-success", epsilon=0.5)
    assert id_of(spec_of(layer="1")) == id_of(spec_of(layer=1))


BAD: list[tuple[str, dict[str, Any], type[NappingError], str]] = [
    ("napping", {"chioce": "random"}, UnknownNameError, "unknown option.*napping.*'chioce'.*Did you mean 'choice'"),
    ("napping", {"epsilon": 0.5}, BadSpecError, "method 'napping' takes no epsilon; methods that do: replay-success"),
    ("napping", {"choice": "prefrence"}, UnknownNameError, "choice 'prefrence'.*random.*Did you mean 'preference'"),
    ("napping", {"search": "same"}, UnknownNameError, "search 'same'.*any, same-key"),
    ("napping", {"layer": "two"}, BadSpecError, "layer=two is not a number"),
    ("replay-success", {"epsilon": "often"}, BadSpecError, "epsilon=often is not a number"),
    ("replay-success", {"epsilon": "nan"}, BadSpecError, "epsilon=nan"),
    ("replay-success", {"epsilon": -0.1}, BadSpecError, "epsilon=-0.1"),
    ("frozen", {"choice": "random"}, BadSpecError, "method 'frozen' takes no choice; methods that do: napping"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "options", "error", "text"), BAD)
def test_bad_options_are_refused_in_one_line(
    method: str, options: dict[str, Any], error: type[NappingError], text: str, agent: Agent
) -> None:
    for make in (
        lambda: spec_of(method, **options),
        lambda: NappingAgent(agent, domain="cartpole", method=method, **options),
    ):
        with pytest.raises(error, match=text) as caught:
            make()
        assert "\n" not in str(caught.value)


def test_the_choice_is_no_field_of_a_run(agent: Agent) -> None:
    with pytest.raises(TypeError, match="choice"):
        RunSpec("cartpole", choice="preference")  # type: ignore[call-arg]


# ---- the command line ---------------------------------------------------------------------------------------------


def napping(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    """Status and standard error."""
    status = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    return status, capsys.readouterr().err


@pytest.fixture
def run(agent_zip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str | Path, ...]:
    """A short run into the folder `r`."""
    monkeypatch.chdir(tmp_path)
    short = ("--trials", "2", "--protocol", "0+2", "--workers", "1", "--detector", "given", "--out", "r")
    return ("run", "cartpole", "--agent", agent_zip, *short)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("choice=preference",), {"choice": "preference"}),
        (("search=same-key", "choice=preference", "layer=1"),
         {"choice": "preference", "search": "same-key", "layer": 1}),
        (("choice=paper", "search=same-key"), {"search": "same-key"}),
    ],
)  # fmt: skip
def test_options_on_the_command_line(
    run: tuple[str | Path, ...], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: dict[str, Any]
) -> None:
    assert napping(capsys, *run, "--option", *words) == (0, "")
    assert RunFolder.open(Path("r")).manifest.spec["options"] == {"rule": "revised", "space": "embedding"} | expected
    assert napping(capsys, *run, "--option", *words) == (0, ""), "the same command continues"


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (("--option", "choice"), ("'choice'", "NAME=VALUE")),
        (("--option", "chioce=random"), ("unknown option", "'chioce'", "Did you mean 'choice'?")),
        (("--option", "choice=randm"), ("'randm'", "Did you mean 'random'?")),
        (("--option", "layer=two"), ("layer=two", "not a number")),
        (("--option", "layer=9"), ("layer", "9")),
        (("--option", "layer=0"), ("layer", "0")),
        (("--method", "frozen", "--option", "layer=1"), ("layer", "takes no")),
        (("--method", "controller", "--score", "terminal"), ("controller", "'terminal'")),
    ],
)
def test_bad_options_on_the_command_line(
    run: tuple[str | Path, ...], capsys: pytest.CaptureFixture[str], words: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    status, error = napping(capsys, *run, *words)
    assert status == 2
    assert error.startswith("napping: ")
    assert error.count("\n") == 1
    for text in texts:
        assert text in error
    assert not Path("r").exists()


def test_the_choice_flag_is_gone(run: tuple[str | Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert napping(capsys, *run, "--choice", "preference")[0] == 2
    assert not Path("r").exists()


def test_run_with_an_agent_that_train_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert napping(capsys, "train", "cartpole", "dqn", "--out", "z", "--steps", "1100", "--seed", "3")[0] == 0
    short = ("--trials", "2", "--protocol", "1+1", "--workers", "1", "--out", "r")
    status, err = napping(capsys, "run", "cartpole", "--agent", "z/cartpole-dqn.json", *short)
    assert status == 0
    assert "detector 'rolling-mean' raised no alarm" in err
    folder = RunFolder.open(Path("r"))
    assert len(folder.read()) == 4
    assert folder.manifest.agent_sha256 in Path("z/cartpole-dqn.json").read_text()
    Path("z/cartpole-dqn.npz").unlink()
    status, error = napping(capsys, "run", "cartpole", "--agent", "z/cartpole-dqn.json", *short[:-2])
    assert (status, error.count("\n")) == (2, 1)
    assert "cartpole-dqn" in error


@pytest.mark.parametrize(
    "content", ["", "{}", "[]", "3", "null", "not json", '{"a": 1}', '"text"', '{"weights": 3}', "\udcff"]
)
def test_a_json_that_is_no_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    status, error = napping(capsys, "run", "cartpole", "--agent", "notes.json")
    assert (status, error.count("\n")) == (2, 1)
    assert error.startswith("napping: ")
    assert "notes" in error
    assert not Path("runs").exists()


def test_a_card_that_does_not_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status, error = napping(capsys, "run", "cartpole", "--agent", "nowhere/a.json")
    assert (status, error.count("\n")) == (2, 1)
    assert "nowhere/a.json" in error
    assert "does not exist" in error


# ---- what NAPPING's options do ------------------------------------------------------------------------------------


def sites_and_situations(**options: Any) -> tuple[Any, Any]:
    """What is stored after a few steps in a changed CartPole, where every step is judged."""
    made = NappingAgent(deep_agent(), domain="cartpole", detector="given", method="napping", **options)
    env = made.wrap(DomainEnv("cartpole"))
    observation, _ = env.reset(seed=0, options={"params": {"force": -10.0}})
    for _ in range(40):
        observation, _, terminated, _, _ = env.step(int(made.predict(observation)[0]))
        if terminated:
            observation, _ = env.reset()
    table = made.method.principles.table(0)  # type: ignore[attr-defined]
    assert len(table["site"]) > 3
    return table["site"], table["situation"]


def test_layer_says_which_activations_are_the_embedding() -> None:
    (first, bias), (second, bias2), _ = (layer for layer in deep_agent()._layers)
    for options, n_units in (({"layer": 1}, 6), ({"layer": 2}, 4), ({}, 4)):
        sites, situations = sites_and_situations(**options)
        flow = np.tanh(situations @ first + bias)
        if n_units == 4:
            flow = np.tanh(flow @ second + bias2)
        assert sites.shape[1] == n_units
        np.testing.assert_allclose(sites, flow, atol=1e-5)


def test_layer_does_not_change_what_the_agent_wants() -> None:
    agent = deep_agent()
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    plain, other = agent.forward(observations), agent.at_layer(1).forward(observations)
    np.testing.assert_array_equal(plain.actions, other.actions)
    np.testing.assert_array_equal(plain.preferences, other.preferences)
    assert (plain.model_states.shape, other.model_states.shape) == ((50, 4), (50, 6))
    assert agent.embedding_dim == 4, "the agent itself is left as it was"


@pytest.mark.parametrize("layer", [0, 3, 99])
def test_layer_out_of_range(layer: int) -> None:
    with pytest.raises((BadAgentError, BadSpecError), match=f"layer.*{layer}") as caught:
        NappingAgent(deep_agent(), domain="cartpole", layer=layer, method="napping")
    assert "\n" not in str(caught.value)
    with pytest.raises((BadAgentError, BadSpecError), match="layer"):
        Engine(RunSpec("cartpole", "a", options={"layer": layer}).complete(), deep_agent())


def test_options_reach_the_method(agent: Agent) -> None:
    """Another search gives other trials."""
    results = []
    for options in ({}, {"search": "same-key"}):
        run = RunSpec("cartpole", "a", detector="given", protocol="0+5", trials=6, options=options).complete()
        results.append(Engine(run, agent).run_trials(run.trial_specs()).drop("trial"))
    assert not results[0].select("return", "regions").equals(results[1].select("return", "regions"))


def test_options_are_saved_with_the_agent(agent: Agent, tmp_path: Path) -> None:
    made = NappingAgent(agent, domain="cartpole", search="same-key", choice="preference", method="napping")
    loaded = NappingAgent.load(made.save(tmp_path / "a.zip"), model=agent)
    assert loaded.config["options"] == made.config["options"]
    assert loaded.config["options"].items() >= {"search": "same-key", "choice": "preference"}.items()
