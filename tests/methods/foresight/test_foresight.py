"""Foresight in whole trials and around a gymnasium environment, by the public interface."""

from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from command_line import Napping
from nappingrl import NappingAgent
from nappingrl.agents.base import Agent
from nappingrl.domains.cartpole import CartPole
from nappingrl.errors import AdaptationWarning, BadSpecError
from nappingrl.methods.base import MethodInfo
from nappingrl.methods.foresight import Foresight
from nappingrl.novelties.novelty import Novelty
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec
from nappingrl.types import DomainSpec

HARD = {"length": 3.5, "gravity": 38.0, "masscart": 1.5, "masspole": 0.7, "force": 53.0}
"""A world in which the agent of the tests falls within 20 steps, though it can be balanced."""


@pytest.fixture(autouse=True)
def _novelties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two worlds by their names: the hard one, and one whose force has the other sign."""
    for name, world in (("hard", HARD), ("reversed", {"force": -10.0})):
        novelty = Novelty(name, {parameter: (value, value) for parameter, value in world.items()})
        monkeypatch.setitem(CartPole.spec.novelties, name, novelty)


def returns(
    agent: Agent, method: str = "foresight", trials: int = 2, **options: Any
) -> dict[str, np.ndarray[Any, Any]]:
    """Of each phase, (trials, episodes)."""
    rows = nappingrl.run(
        "cartpole", agent, method, trials=trials, **({"novelty": "hard", "detector": "given"} | options)
    ).rows
    return {
        phase[0]: part["return"].to_numpy().reshape(trials, -1)
        for phase, part in rows.group_by("phase", maintain_order=True)
    }


# ---- trials -------------------------------------------------------------------------------------------------------


def test_without_a_change_it_is_the_frozen_agent(agent: Agent) -> None:
    options: dict[str, Any] = {"novelty": "none", "detector": "residual", "trials": 3, "protocol": "8+6"}
    mine, frozen = (nappingrl.run("cartpole", agent, method, **options).rows for method in ("foresight", "frozen"))
    assert not mine["detected"].any()
    assert_frame_equal(mine.drop("trial"), frozen.drop("trial"))


def test_it_beats_the_frozen_agent_after_a_few_episodes(agent: Agent) -> None:
    mine, frozen = (returns(agent, method, protocol="12+6")["novel"] for method in ("foresight", "frozen"))
    assert frozen.max() < 25
    assert (mine[:, 4:] >= 195).all()
    assert (mine[:, 0] >= 0.8 * frozen[:, 0]).all()


@pytest.mark.parametrize("detector", ["given", "residual"])
def test_it_beats_the_frozen_agent_when_the_force_is_reversed(agent: Agent, detector: str) -> None:
    """Though the agent, which falls at once, tries only one of the two actions after the change."""
    mine = returns(agent, novelty="reversed", protocol="20+8", detector=detector)["novel"]
    frozen = returns(agent, "frozen", novelty="reversed", protocol="20+8", detector="never")["novel"]
    assert frozen.max() < 15
    assert (mine[:, -2:].mean(axis=1) > 100).all()


def test_its_own_detector_finds_a_hard_world_in_the_first_episode(agent: Agent) -> None:
    rows = nappingrl.run(
        "cartpole", agent, "foresight", novelty="hard", detector="residual", trials=8, protocol="40+1"
    ).rows
    after = rows.filter(pl.col("episode") == 0)
    assert after["detected"].all()
    assert not rows.filter(pl.col("episode") < 0)["detected"].any()


@pytest.mark.parametrize("novelty", ["hard", "reversed"])
def test_what_was_seen_before_a_late_alarm_is_told_from_what_was_seen_before_the_change(
    agent: Agent, novelty: str
) -> None:
    """The paper's rolling mean alarms five episodes late; those five are of the changed world."""
    mine = returns(agent, novelty=novelty, detector="rolling-mean", protocol="12+9")["novel"]
    assert (mine[:, :5] < 25).all()
    assert (mine[:, 7:] >= 150).all()


@pytest.mark.parametrize("detector", ["given", "residual"])
def test_a_trial_alone_is_the_same_trial_in_a_batch(agent: Agent, detector: str) -> None:
    spec = RunSpec("cartpole", "test", "foresight", "hard", trials=2, detector=detector, protocol="14+2").complete()
    trials = spec.trial_specs()
    together = Engine(spec, agent, slots=3).run_trials(trials)
    one_slot = Engine(spec, agent, slots=1).run_trials(trials[::-1])
    alone = Engine(spec, agent, slots=2).run_trials(trials[1:2])
    assert together["return"].n_unique() > 2
    parts = together.partition_by("trial", maintain_order=True)
    assert_frame_equal(pl.concat(one_slot.partition_by("trial", maintain_order=True)[::-1]), together)
    assert_frame_equal(alone, parts[1])


@pytest.mark.parametrize(("detector", "protocol"), [("given", "12+8+4+4"), ("residual", "40+6+2+3")])
def test_it_goes_back_to_the_agent_and_recalls_the_rule(agent: Agent, detector: str, protocol: str) -> None:
    """In the old world as the frozen agent; in the changed one again at once as good as it had become."""
    mine = returns(agent, detector=detector, protocol=protocol, trials=1)
    frozen = returns(agent, "frozen", detector="never", protocol=protocol, trials=1)
    np.testing.assert_array_equal(mine["pre"], frozen["pre"])
    np.testing.assert_array_equal(mine["restored"][:, 1:], frozen["restored"][:, 1:])
    assert (mine["restored"] >= 195).all()
    assert (mine["novel"][:, -2:] >= 195).all()
    assert (mine["recurred"] >= 195).all()
    assert frozen["recurred"].max() < 25


def test_a_rule_in_force_is_counted_as_a_region(agent: Agent) -> None:
    rows = nappingrl.run(
        "cartpole", agent, "foresight", novelty="hard", detector="given", trials=1, protocol="12+4+2+2"
    ).rows
    regions = dict(zip(rows["episode"], rows["regions"], strict=True))
    assert {regions[episode] for episode in range(-12, 0)} == {0}
    assert [regions[episode] for episode in (3, 4, 5, 6, 7)] == [1, 0, 0, 1, 1]
    assert rows["open_regions"].sum() == 0


def test_with_nothing_seen_before_the_change_it_begins_from_what_it_sees(agent: Agent) -> None:
    mine = returns(agent, protocol="0+9")["novel"]
    assert (mine[:, -2:] >= 150).all()


# ---- one environment ----------------------------------------------------------------------------------------------


def play(agent: NappingAgent, env: Any, episodes: int, **params: float) -> list[float]:
    totals = []
    observation, _ = env.reset(seed=3, options={"params": params})
    for _ in range(episodes):
        total, over = 0.0, False
        while not over:
            action, _ = agent.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(int(action))
            total, over = total + float(reward), terminated or truncated
        totals.append(total)
        observation, _ = env.reset()
    return totals


def test_around_a_gymnasium_environment_it_adapts(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", method="foresight", detector="given")
    totals = play(made, made.wrap(gymnasium.make("nappingrl/CartPole-v0")), 9, **HARD)
    assert totals[0] < 25
    assert min(totals[-2:]) >= 150


def test_around_an_environment_it_waits_for_its_detector(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", method="foresight", detector="residual")
    env = made.wrap(gymnasium.make("nappingrl/CartPole-v0"))
    with pytest.warns(AdaptationWarning, match="is calibrating: 0 of 40 episodes"):
        assert play(made, env, 41) == [200.0] * 41
    assert made.detected.tolist() == [False]
    totals = play(made, env, 6, **HARD)
    assert made.detected.tolist() == [True]
    assert min(totals[-2:]) >= 150


# ---- what it cannot do --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "domain",
    [
        DomainSpec(np.zeros((2, 2)), np.ones((2, 2)), 2, 9, name="square"),
        DomainSpec(np.zeros(()), np.ones(()), 2, 9, name="point"),
    ],
)
def test_observations_that_are_not_one_row_are_refused_in_one_line(agent: Agent, domain: DomainSpec) -> None:
    info = MethodInfo(domain)
    with pytest.raises(BadSpecError, match="one row of numbers") as caught:
        Foresight(agent, info, 1)
    assert "\n" not in str(caught.value)
    assert "foresight" in str(caught.value)


def test_too_many_observations_are_refused_in_one_line(napping: Napping) -> None:
    """A model of Angry Birds' 322 observations would take gigabytes."""
    done = napping("run", "angrybirds", "--method", "foresight", "--trials", "1")
    assert done.status == 2
    assert len(done.err.strip().splitlines()) == 1
    assert "method 'foresight' models at most 64 observations, and this domain has 322" in done.err


def test_a_reversed_pendulum_is_repaired_in_its_first_episodes() -> None:
    """Ordinary episodes, which differ much from each other, are not taken for the changed world."""
    rows = nappingrl.run("Pendulum-v1", "sac", "foresight", novelty="action-scale=-1", trials=2, seed=31,
                         detector="residual", protocol="40+3").rows  # fmt: skip
    after = rows.filter(pl.col("episode") >= 0)
    assert after.filter(pl.col("episode") >= 1)["return"].to_numpy().min() > -700, "a frozen agent has about -1550"
