"""Any gymnasium environment as a world of trials: its class, its runs, the command line."""

import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.cli import main
from nappingrl.detectors import Detector
from nappingrl.domains import find_domain
from nappingrl.errors import BadAgentError, BadSpecError, NappingError, UnknownNameError
from nappingrl.methods.napping.rules import RULES
from nappingrl.methods.napping.space import SPACES
from nappingrl.novelties.subject import make_env
from nappingrl.registry import detectors
from nappingrl.trials.engine import Engine
from nappingrl.trials.runner import replay, run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder
from nappingrl.types import DomainSpec

from domains import toy_envs  # isort: skip

toy_envs.register()
IDS = ["CartPole-v1", "Acrobot-v1", "Pendulum-v1", "toys/Echo-v0", "toys/EchoBox-v0"]
NOVELTY = "force_mag=5..20; action-delay=1"
FREE = {"rolling-mean", "given", "never"}
"""Detectors that need nothing but the domain's facts."""


def domain_with(env_id: str, *novelties: str) -> DomainSpec:
    return find_domain(env_id).for_novelties(novelties)


def rows_of(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def echo_agent() -> Agent:
    """Wants action 2 where the observation is positive: always."""
    rng = np.random.default_rng(0)
    first, last = rng.normal(size=(4, 6)).astype(np.float32), rng.normal(size=(6, 3)).astype(np.float32)
    return MlpAgent("echo", [(first, np.zeros(6, np.float32)), (last, np.zeros(3, np.float32))], "tanh")


# ---- the class ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS)
def test_tables_fit_the_spaces(env_id: str) -> None:
    spec, env = domain_with(env_id), gymnasium.make(env_id)
    space: Any = env.observation_space
    assert spec is domain_with(env_id), "made once"
    assert (spec.name, spec.env_id) == (env_id, env_id)
    assert spec.observation_low.shape == spec.observation_scale.shape == spec.observation_centre.shape == space.shape
    assert len(spec.observation_names) == len(spec.observation_words) == space.shape[0]
    assert (spec.observation_scale > 0).all()
    assert np.isfinite(spec.observation_centre).all()
    assert spec.horizon == gymnasium.spec(env_id).max_episode_steps
    assert spec.return_range is None
    assert spec.defaults.novelty in spec.novelties
    assert spec.defaults.score in spec.scores
    assert spec.defaults.options["rule"] in RULES
    assert spec.defaults.options["space"] in SPACES
    assert [one.name for one in spec.novelties.values()] == list(spec.novelties)
    assert all(entry.description for entry in [*spec.novelties.values(), *spec.scores.values()])
    facts = spec
    if isinstance(env.action_space, gymnasium.spaces.Box):
        assert (facts.n_actions, spec.action_names) == (0, ())
        np.testing.assert_array_equal(facts.action_high, env.action_space.high)
    else:
        assert facts.n_actions == len(spec.action_names) == len(set(spec.action_names))
    assert isinstance(detectors.get("given").for_domain(2, spec), Detector)
    assert set(detectors.names()) >= FREE


def test_bounds_that_are_no_bounds_are_measured() -> None:
    spec = domain_with("CartPole-v1")
    assert spec.observation_scale[0] == pytest.approx(4.8)
    assert 0.1 < spec.observation_scale[1] < 3, "what random play shows"


@pytest.mark.parametrize(
    ("env_id", "text"),
    [
        ("Acrobt-v1", "unknown environment 'Acrobt-v1'.* Did you mean 'Acrobot-v1'"),
        ("Acrobot-v7", "Did you mean 'Acrobot-v1'"),
        ("no_such_module:Echo-v0", "module 'no_such_module' .* is not found"),
        (":Echo-v0", "no module before its ':'"),
        ("..up:Echo-v0", "no module before its ':'"),
        ("a/b:Echo-v0", "no module before its ':'"),
        ("m" * 5000 + ":Echo-v0", r"mmm\.\.\.' has no module"),
        ("E" * 5000 + "-v0", r"^unknown environment 'E{100}\.\.\.'"),
        ("toys/Endless-v0", r"has no time limit.*register it with max_episode_steps"),
        ("toys/Pictures-v0", "allowed: one row of numbers"),
        ("Blackjack-v1", r"has observations Tuple\(Discrete\(32\).*--wrap flatten"),
    ],
)
def test_environments_that_cannot_serve_are_refused_in_one_line(env_id: str, text: str) -> None:
    with pytest.raises(NappingError, match=text) as caught:
        find_domain(env_id)
    assert "\n" not in str(caught.value)


def test_names_without_a_version_are_still_those_of_domains() -> None:
    with pytest.raises(UnknownNameError, match="unknown domain 'cartpol'; allowed: angrybirds, cartpole"):
        find_domain("cartpol")


def test_parameters_are_what_the_novelty_changes() -> None:
    assert domain_with("CartPole-v1").parameters == domain_with("CartPole-v1", "none").parameters == {}
    assert domain_with("CartPole-v1", NOVELTY).parameters == {"force_mag": 10.0, "action-delay": 0.0}
    named = domain_with("CartPole-v1", "action-remap").parameters
    assert named == {"action-remap[0]": 0.0, "action-remap[1]": 1.0}


def test_episodes_are_those_of_gymnasium() -> None:
    spec, env = domain_with("CartPole-v1"), make_env(gymnasium.spec("CartPole-v1"))
    world, rows = spec.make(3), rows_of(1)
    world.reset(rows, np.array([[0.25]]))
    observation, _ = env.reset(seed=2**29)
    ended = np.zeros(1, np.bool_)
    for action in (0, *[1] * 20):
        if ended[0]:
            break
        np.testing.assert_array_equal(world.observe(rows)[0], observation)
        rewards, ended = world.step(rows, rows_of(action))
        observation, reward, terminated, *_ = env.step(np.int64(action))
        assert (rewards[0], ended[0]) == (reward, terminated)
    assert ended[0]


def test_environments_are_made_when_needed_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    real_init, spec = toy_envs.Echo.__init__, domain_with("toys/Echo-v0", "gains[1]=2")
    monkeypatch.setattr(toy_envs.Echo, "__init__", lambda self, **kw: (events.append("made"), real_init(self, **kw))[1])
    monkeypatch.setattr(toy_envs.Echo, "close", lambda self: events.append("closed"))
    world = spec.make(128)
    assert events == []
    world.reset(rows_of(5), np.zeros((1, 1)))
    world.reset(rows_of(5), np.zeros((1, 1)))
    assert events == ["made"]
    world.apply(rows_of(5), {"gains[1]": 2.0})
    assert events == ["made"], "an episode under way goes on in it"
    world.reset(rows_of(5), np.zeros((1, 1)))
    assert events == ["made", "closed", "made"]
    del world
    gc.collect()
    assert events == ["made", "closed", "made", "closed"]


def test_novelties_of_rows_do_not_touch_each_other() -> None:
    world, rows = domain_with("toys/Echo-v0", "size=5; area=follows; reward-shift=1").make(2), rows_of(0, 1)
    world.apply(rows_of(1), {"size": 6.0, "reward-shift": 1.0})
    world.reset(rows, np.zeros((2, 1)))
    rewards, _ = world.step(rows, rows_of(2, 2))
    assert world.observe(rows)[:, 1:].tolist() == [[20, 3, 9], [20, 6, 36]]
    assert rewards.tolist() == [2, 3]
    world.apply(rows_of(1), None)
    world.reset(rows, np.zeros((2, 1)))
    assert world.observe(rows)[1].tolist() == world.observe(rows)[0].tolist()


def test_continuous_actions_reach_the_environment() -> None:
    world, rows = domain_with("toys/EchoBox-v0", "action-scale=-1").make(2), rows_of(0, 1)
    world.apply(rows_of(1), {"action-scale": -1.0})
    world.reset(rows, np.zeros((2, 1)))
    rewards, _ = world.step(rows, np.array([[1.5], [1.5]], np.float32))
    assert rewards.tolist() == [1.5, -1.5]


def test_success_is_the_reward_threshold_or_not_known() -> None:
    cart, echo, returns = domain_with("CartPole-v1"), domain_with("toys/Echo-v0"), np.array([474.0, 475.0])
    assert cart.solved is not None
    assert (cart.solved.column, cart.solved.level) == ("return", 475.0)
    assert cart.won(rows_of(1, 1), np.ones(2, np.bool_), returns).tolist() == [False, True]
    assert echo.solved is None
    assert not echo.won(rows_of(1, 1), np.ones(2, np.bool_), returns).any()


def test_situations_are_named() -> None:
    words = domain_with("CartPole-v1").describe(np.array([0.0, 0.0, 0.1, -0.5]))
    assert "pole angle high" in words
    assert "pole angular velocity low" in words
    assert domain_with("toys/Echo-v0").observation_names[1] == "observation 1"


# ---- runs ---------------------------------------------------------------------------------------------------------


def test_a_spec_is_verified_when_it_is_completed() -> None:
    full = RunSpec("CartPole-v1", "x.zip", "napping", " force_mag = 5..20;action-delay=1; ").complete()
    assert full.novelty == "force_mag=5..20;action-delay=1"
    assert (full.detector, full.score, full.options) == ("given", "reward", {"rule": "fallback", "space": "embedding"})
    for novelty, text in (
        ("masscart=5", "stale"),
        ("gravty=5", "Did you mean 'gravity'"),
        ("action-dely", "unknown novelty of CartPole-v1 'action-dely'.*Did you mean 'action-delay'"),
        ("action-remap=0,1", "changes nothing"),
    ):
        with pytest.raises(NappingError, match=text):
            RunSpec("CartPole-v1", "x.zip", novelty=novelty).complete()
    with pytest.raises(BadSpecError, match="has no meaning for action-delay"):
        RunSpec("CartPole-v1", "x.zip", novelty="action-delay=1", strength=0.5).complete()


def test_strength_pulls_values(agent: Agent) -> None:
    rows = nappingrl.run(
        "CartPole-v1", agent, "frozen", novelty="force_mag=20", strength=0.25, trials=1, protocol="1+1"
    ).rows
    assert rows["param_force_mag"].to_list() == [10.0, 12.5]


def test_a_trial_alone_is_the_trial_in_a_batch(agent: Agent) -> None:
    text = f"{NOVELTY};obs-noise=0.01;action-noise=0.1"
    run = RunSpec("CartPole-v1", "balance", novelty=text, trials=4, protocol="1+2").complete()
    trials = run.trial_specs()
    together = Engine(run, agent, slots=2).run_trials(trials)
    for i in (0, 3):
        alone = Engine(run, agent, slots=1).run_trials([trials[i]])
        assert alone.equals(together.filter(pl.col("number") == i))
    changed = together.filter(pl.col("phase") == "novel")
    assert changed["param_force_mag"].n_unique() == 4
    assert changed["param_action-delay"].unique().to_list() == [1.0]
    assert together.filter(pl.col("phase") == "pre")["param_force_mag"].unique().to_list() == [10.0]


def test_all_novelties_of_an_environment(agent: Agent) -> None:
    rows = nappingrl.run("CartPole-v1", agent, "napping", novelty="all", trials=1, protocol="1+2").rows
    assert rows["novelty"].unique(maintain_order=True).to_list() == list(domain_with("CartPole-v1").novelties)
    delays = rows.filter(pl.col("novelty") != "action-delay")["param_action-delay"]
    assert delays.unique().to_list() == [0.0]


def test_another_environment_takes_its_place() -> None:
    rows = nappingrl.run(
        "toys/Echo-v0", echo_agent(), "frozen", novelty="other-env=toys/Drifting-v0", trials=2, protocol="1+1"
    ).rows
    assert rows["param_other-env"].to_list() == [0.0, 1.0] * 2
    world, row = domain_with("toys/Echo-v0", "other-env=toys/Drifting-v0").make(1), rows_of(0)
    world.apply(row, {"other-env": 1.0})
    world.reset(row, np.zeros((1, 1)))
    rewards, _ = world.step(row, rows_of(2))
    assert world.observe(row)[0, 1:].tolist() == [21, 4, 10]
    assert rewards.tolist() == [2]


@pytest.mark.parametrize(
    ("other", "text"),
    [("toys/Echo-v0", "changes nothing"), ("CartPole-v1", "the agent does not fit it"), ("Ecko-v0", "unknown env")],
)
def test_another_environment_must_fit_and_differ(other: str, text: str) -> None:
    with pytest.raises(NappingError, match=text):
        domain_with("toys/Echo-v0").novelty(f"other-env={other}")


def test_ns_gym_environments_serve_where_it_is_installed() -> None:
    ns_gym = pytest.importorskip("ns_gym")
    from nappingrl.novelties.ns_gym import Plain

    update = ns_gym.update_functions.IncrementUpdate(ns_gym.schedulers.ContinuousScheduler(), k=0.5)
    env = Plain(ns_gym.wrappers.NSClassicControlWrapper(gymnasium.make("CartPole-v1"), {"gravity": update}))
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    observation, reward, *_ = env.step(1)
    assert env.observation_space.contains(observation)
    assert reward == 1.0


def test_an_agent_that_does_not_fit_is_refused(agent: Agent) -> None:
    with pytest.raises(BadAgentError, match="Acrobot-v1 gives"):
        nappingrl.run("Acrobot-v1", agent, "frozen", trials=1)


def test_doubts_are_kept_with_the_run(agent: Agent, tmp_path: Path) -> None:
    spec = RunSpec("CartPole-v1", "balance", "frozen", "x_threshold=4", trials=1, protocol="1+1").complete()
    notes = run_into(tmp_path, spec, agent).manifest.notes
    assert notes == ["x_threshold=4 made no difference in 24 episodes of random play in CartPole-v1"]


# ---- the command line ---------------------------------------------------------------------------------------------

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def napping(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)

    def call(*words: Any) -> tuple[int, str, str]:
        capsys.readouterr()
        status = 0
        try:
            main([str(word) for word in words])
        except SystemExit as end:
            status = int(end.code or 0)
        return status, *capsys.readouterr()

    return call


def test_run_report_replay_figure_and_export(napping: Command, agent_zip: Path, tmp_path: Path) -> None:
    start = ("run", "--env", "CartPole-v1", "--agent", agent_zip, "--trials", 3, "--protocol", "1+3", "--workers", 1)
    status, out, err = napping(*start, "--novelty", NOVELTY, "--method", "frozen", "--out", "a", "--json")
    assert (status, err) == (0, "")
    found = json.loads(out.splitlines()[-1])
    assert found["domain"] == "CartPole-v1"
    assert found["novelty"] == "force_mag=5..20;action-delay=1"
    assert found["return_range"] is None
    assert found["failed"] is None
    assert found["by_novelty"][found["novelty"]]["failed"] is None
    assert 0 <= found["solved"] <= 1
    status, out, err = napping(*start, "--novelty", NOVELTY, "--method", "napping", "--score", "terminal", "--out", "b")
    assert status == 0
    assert "score 'terminal' was never below 0" in err
    assert "--env CartPole-v1" in RunFolder.open(Path("b")).manifest.command
    assert replay(RunFolder.open(Path("b")), "2").is_same
    status, out, err = napping("replay", "b", 2)
    assert (status, err) == (0, "")
    assert "the same rows as stored" in out
    assert "these rules describe" in out
    status, out, err = napping("report", "a", "b", "--out", "page", "--json")
    assert (status, err) == (0, "")
    page = Path("page/report.html").read_text(encoding="utf-8")
    assert "the lowest and highest return in these runs" in page
    assert "the domain has no minimum return" in page
    for words in (
        ("figure", "regions-over-time", "b", "--out", "f.png"),
        ("export", "b", "--format", "wsu", "--out", "w"),
    ):
        status, out, err = napping(*words)
        assert (status, err) == (0, ""), words


def test_what_is_not_known_is_null(napping: Command, make_zip: Callable[..., Path], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(a, b)).astype(np.float32), np.zeros(b, np.float32)) for a, b in ((4, 6), (6, 3))]
    file = make_zip(tmp_path / "echo.zip", layers)
    start = ("run", "--env", "toys/Echo-v0", "--agent", file, "--trials", 2, "--protocol", "1+2", "--workers", 1)
    status, out, err = napping(*start, "--method", "napping", "--novelty", "action-remap=1,2,0", "--json")
    assert status == 0
    assert "score 'reward' was never below 0" in err
    found = json.loads(out.splitlines()[-1])
    assert found["solved"] is found["failed"] is found["return_range"] is None
    folder = next(Path("runs").iterdir())
    assert folder.name == "toys-Echo-v0-echo-napping-1"
    status, out, err = napping("report", folder)
    assert (status, err) == (0, "")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "not defined: the environment has no reward threshold" in page


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "no domain is given; allowed: a DOMAIN of `napping list`, or --env"),
        (("cartpole", "--env", "CartPole-v1"), "both DOMAIN (cartpole) and --env (CartPole-v1) are given"),
        (("--env", "cartpole"), "unknown environment 'cartpole'"),
        (("--env", "Blackjack-v1"), "Blackjack-v1 has observations"),
        (("--env", "CartPole-v1", "--novelty", "masscart=5"), "leaves stale values"),
        (("--env", "MountainCar-v0"), "no agent is shipped for MountainCar-v0; give one with --agent"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_line(napping: Command, words: tuple[str, ...], text: str) -> None:
    status, out, err = napping("run", *words)
    assert (status, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_list_says_that_any_environment_will_do(napping: Command) -> None:
    status, out, err = napping("list")
    assert (status, err) == (0, "")
    assert "napping run --env ID --agent PATH.zip" in out
