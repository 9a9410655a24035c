"""Worlds that come back: sets of principles by name, kept when saved; retention and recall; rules in words."""

from pathlib import Path

import gymnasium
import numpy as np
import polars as pl
import pytest

import nappingrl
from nappingrl import NappingAgent
from nappingrl.errors import BadSpecError, UnknownNameError
from nappingrl.methods.contexts import MAX_CONTEXTS
from nappingrl.methods.foresight.describe import describe
from nappingrl.methods.foresight.policies import LINEAR, REMAP, SimplePolicy
from nappingrl.report.summary import final_levels, summarise
from nappingrl.trials.manifest import make_manifest
from nappingrl.trials.spec import RunSpec
from nappingrl.types import DomainSpec

STORM = {"force": 30.0, "length": 2.0, "gravity": 30.0}


def play(agent: NappingAgent, steps: int = 150) -> NappingAgent:
    env = agent.wrap(gymnasium.make("nappingrl/CartPole-v0"))
    observation, _ = env.reset(seed=3, options={"params": STORM})
    for _ in range(steps):
        observation, _, terminated, truncated, _ = env.step(agent.predict(observation)[0])
        if terminated or truncated:
            observation, _ = env.reset()
    return agent


def wants(agent: NappingAgent) -> list[int]:
    """What it does at places of its choice."""
    points = np.random.default_rng(0).normal(0, 0.1, (200, 4)).astype(np.float32)
    return [int(agent.predict(point)[0]) for point in points]


@pytest.fixture
def learned() -> NappingAgent:
    return play(NappingAgent("ppo", domain="cartpole", detector="given", method="napping"))


def test_sets_have_names_and_can_be_put_away_and_taken_out(learned: NappingAgent):
    trained = wants(NappingAgent("ppo", domain="cartpole", method="frozen"))
    adapted, n = wants(learned), learned.contexts()["novelty 1"]
    assert n > 5
    assert adapted != trained
    learned.rename_context("novelty 1", "storm")
    learned.switch_to("as trained")
    assert wants(learned) == trained
    assert learned.contexts() == {"as trained": 0, "storm": n}
    learned.switch_to("storm")
    assert wants(learned) == adapted
    learned.switch_to("calm")
    assert learned.contexts() == {"as trained": 0, "storm": n, "calm": 0}
    assert wants(learned) == trained


def test_a_saved_agent_keeps_all_sets(learned: NappingAgent, tmp_path: Path):
    learned.rename_context("novelty 1", "storm")
    adapted = wants(learned)
    learned.switch_to("as trained")
    loaded = NappingAgent.load(learned.save(tmp_path / "agent"))
    assert loaded.contexts() == learned.contexts()
    loaded.switch_to("storm")
    assert wants(loaded) == adapted


def test_unknown_and_taken_names_are_refused_in_one_line(learned: NappingAgent):
    with pytest.raises(UnknownNameError, match="Did you mean 'novelty 1'"):
        learned.rename_context("novelti 1", "storm")
    with pytest.raises(BadSpecError, match="called 'as trained' already"):
        learned.rename_context("novelty 1", "as trained")


def test_the_return_protocol_with_napping_goes_back_and_recalls():
    options = {"trials": 4, "seed": 2, "protocol": "3+12+3+3", "detector": "given"}
    napping, frozen = (nappingrl.run("cartpole", "ppo", method, **options).rows for method in ("napping", "frozen"))
    old = pl.col("phase").is_in(["pre", "restored"])
    assert napping.filter(old)["return"].to_list() == frozen.filter(old)["return"].to_list()
    assert (napping.filter(phase="restored")["regions"] == 0).all()
    last = napping.filter(phase="novel").group_by("number").agg(pl.col("regions").last()).sort("number")["regions"]
    first = napping.filter(phase="recurred").group_by("number").agg(pl.col("regions").first()).sort("number")["regions"]
    assert (first >= last).all()
    assert (last > 5).all()


def test_foresight_recalls_a_novelty_in_its_first_episode():
    """Worlds in which the car is so strong that most steps touch a bound, which say nothing: five of six at least."""
    rows = nappingrl.run("mountaincar", "ppo-strong", "foresight", trials=6, seed=31, protocol="40+12+4+1").rows
    learned = rows.filter(pl.col("phase") == "novel").filter(pl.col("episode") >= 6)
    learned = learned.group_by("number").agg(pl.col("return").median()).sort("number")["return"].to_numpy()
    again = rows.filter(pl.col("phase") == "recurred").sort("number")["return"].to_numpy()
    assert (again > learned - 12).mean() > 0.8, (again, learned)


def test_retention_and_recall_by_hand():
    spec = RunSpec("mountaincar", "dqn", "frozen", trials=1, protocol="2+12+4+2").complete()
    rows = nappingrl.run("mountaincar", "dqn", "frozen", trials=1, protocol="2+12+4+2").rows
    returns = [-100.0, -100.0] + [-400.0] * 2 + [-300.0] * 10 + [-500.0, -400.0, -200.0, -100.0] + [-300.0, -500.0]
    manifest = make_manifest(spec, nappingrl.load_agent("dqn", "mountaincar"), "")
    found = summarise(manifest, rows.with_columns(pl.Series("return", returns)))
    assert found.retention == pytest.approx((500 - 150) / (500 - 100)), "from the third episode on"
    assert found.recall == pytest.approx(1.0)
    assert found.last10_mean == -300.0, "of the first time"
    assert final_levels(manifest, rows.with_columns(pl.Series("return", returns)))["level"].to_list() == [-300.0]
    assert len(found.mean) == 12


FACTS = DomainSpec(np.zeros(2), np.ones(2), 2, 10, observation_names=("height", "speed"), action_names=("DOWN", "UP"))


def test_a_policy_is_described_in_the_units_of_the_observations():
    rule = SimplePolicy(LINEAR, np.array([[0.0, 0.0, 0.0], [1.0, -2.0, 0.5]]))
    words = describe(rule, np.array([10.0, 0.0]), np.array([2.0, 4.0]), FACTS)
    assert words == "UP where +0.5 height -0.5 speed -4.5 > 0, else DOWN"
    assert describe(SimplePolicy(REMAP, np.array([[1.0, 0.0]])), np.zeros(2), np.ones(2), FACTS) == (
        "where the agent wants DOWN, do UP; where the agent wants UP, do DOWN"
    )


def test_foresight_says_its_rule_and_its_cells_do_the_same():
    agent = play(NappingAgent("ppo", domain="cartpole", method="foresight", detector="given"), 400)
    assert "pole angle" in agent.describe_policy()
    rules = agent.explain()
    assert rules
    assert {rule.wanted for rule in rules} <= {"", "LEFT", "RIGHT"}
    assert all(len(rule.now) == 1 for rule in rules)
    assert sum(rule.coverage for rule in rules) == pytest.approx(1.0)


# ---- limits -------------------------------------------------------------------------------------------------------


def names_of(agent: NappingAgent) -> list[str]:
    return [name for name in agent.contexts() if name != "as trained"]


@pytest.mark.parametrize("method", ["napping", "napping-ucb", "foresight"])
def test_the_context_left_longest_ago_is_forgotten(method: str, tmp_path: Path):
    agent = NappingAgent("ppo", domain="cartpole", method=method, detector="given")
    for number in range(MAX_CONTEXTS + 1):
        agent.switch_to(f"context {number}")
    agent.switch_to("context 0")  # known, and now the latest
    assert "context 1" in names_of(agent)
    for number in range(MAX_CONTEXTS + 1, 3 * MAX_CONTEXTS):
        agent.switch_to(f"context {number}")
        assert len(names_of(agent)) == MAX_CONTEXTS + 1
        assert ("context 0" in names_of(agent)) == (number <= 2 * MAX_CONTEXTS)
    loaded = NappingAgent.load(agent.save(tmp_path / "agent"))
    for other in (agent, loaded):
        other.switch_to("one more")
        assert "novelty 1" not in names_of(other)
    assert names_of(loaded) == names_of(agent)


def test_other_contexts_together_keep_to_the_limit_of_regions():
    agent = NappingAgent("ppo", domain="cartpole", detector="given", max_regions=40, method="napping")
    for number in range(6):
        agent.switch_to(f"context {number}")
        play(agent)
        sizes = agent.contexts()
        assert sizes[f"context {number}"] <= 40
        assert sum(sizes.values()) <= 80
        assert number == 0 or f"context {number - 1}" in sizes


def test_limits_are_saved_with_the_agent(tmp_path: Path):
    for options, expected in (({}, 20_000), ({"max_regions": 0}, 0), ({"max_regions": 300}, 300)):
        agent = NappingAgent("ppo", domain="cartpole", detector="given", method="napping", **options)
        loaded = NappingAgent.load(agent.save(tmp_path / "agent"))
        assert agent.method.option("max_regions") == loaded.method.option("max_regions") == expected


def test_runs_have_no_limit_unless_one_is_given():
    options = {"trials": 2, "seed": 2, "protocol": "1+6", "detector": "given"}
    free = nappingrl.run("cartpole", "ppo", "napping", **options).rows
    zero = nappingrl.run("cartpole", "ppo", "napping", **options, options={"max_regions": 0}).rows
    few = nappingrl.run("cartpole", "ppo", "napping", **options, options={"max_regions": 8}).rows
    assert free.equals(zero)
    assert free["regions"].max() > 8 >= few["regions"].max()
