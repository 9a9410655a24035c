"""Re-grounding through the public interface: in trials, and around a gymnasium environment."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from nappingrl import NappingAgent
from nappingrl.agents import load
from nappingrl.agents.base import Agent
from nappingrl.domains.cartpole import CartPole
from nappingrl.methods.reground import Reground
from nappingrl.novelties.novelty import Novelty
from nappingrl.types import Decision, Observations

CARTPOLE = "nappingrl/CartPole-v0"
Env = gymnasium.Env[Any, Any]
Show = Callable[[Any], Any]


class Sensors(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shows something else."""

    def __init__(self, env: Env, show: Show) -> None:
        super().__init__(env)
        self._show = show

    def observation(self, observation: Any) -> Any:
        return np.asarray(self._show(np.array(observation)), np.float32)


def cartpole(**params: float) -> Env:
    """A CartPole with these parameters, seeded."""
    env = gymnasium.make(CARTPOLE)
    env.reset(seed=0, options={"params": params})
    return env


def play(agent: NappingAgent, env: Env, episodes: int) -> list[int]:
    """Lengths of episodes."""
    lengths = []
    for _ in range(episodes):
        observation, _ = env.reset()
        lengths.append(0)
        is_over = False
        while not is_over:
            observation, _, terminated, truncated, _ = env.step(agent.predict(observation)[0])
            lengths[-1] += 1
            is_over = terminated or truncated
    return lengths


def calibrated(agent: Any = "ppo", env: Env | None = None, **options: Any) -> NappingAgent:
    made = NappingAgent(agent, domain="cartpole", method="reground", detector="given", **options)
    made.calibrate(env or cartpole(), episodes=8)
    return made


# ---- trials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("detector", ["given", "never"])
def test_in_an_unchanged_world_it_is_the_frozen_agent(detector: str) -> None:
    options: dict[str, Any] = {"novelty": "none", "detector": detector, "trials": 2, "protocol": "6+4", "seed": 5}
    mine, frozen = (nappingrl.run("cartpole", "ppo", method, **options).rows for method in ("reground", "frozen"))
    columns = ["episode", "return", "length"]
    assert_frame_equal(mine.select(columns), frozen.select(columns))


def test_reversed_pushes_are_translated_in_every_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CartPole.spec.novelties, "reversed", Novelty("reversed", {"force": (-10.0, -10.0)}))
    run = nappingrl.run("cartpole", "ppo", "reground", novelty="reversed", detector="given", trials=4, protocol="6+6")
    later = run.rows.filter(pl.col("episode") >= 2)
    assert (later["return"] == 200).all()
    assert (later["regions"] == 1).all()


# ---- around an environment ------------------------------------------------------------------------------------------


def negated(i: int) -> Show:
    return lambda observation: np.where(np.arange(4) == i, -observation, observation)


@pytest.mark.parametrize(
    ("show", "words"),
    [
        (negated(3), "pole angular velocity is negated"),
        (lambda observation: observation[[0, 1, 3, 2]], "pole angle <-> pole angular velocity"),
        (lambda observation: observation + np.eye(4)[3], "pole angular velocity is shifted by 1"),
    ],
    ids=["negated", "swapped", "shifted"],
)
def test_changed_sensors_are_inverted_before_the_agent_sees_them(show: Show, words: str) -> None:
    agent = calibrated()
    lengths = play(agent, agent.wrap(Sensors(cartpole(), show)), 6)
    assert lengths[2:] == [200] * 4, lengths
    assert agent.describe_policy() == words
    assert [str(rule) for rule in agent.explain()] == [f"everywhere: now {words}"], "visits are not counted"
    assert agent.method.is_certain(np.arange(1)).all()
    observation = np.array([0.1, -0.2, 0.03, 0.4], np.float32)
    rows, shown = np.arange(1), np.asarray(show(observation), np.float32)[None]
    seen, wanted = agent.method.forward(rows, shown), agent.agent.forward(observation[None])
    np.testing.assert_allclose(seen.model_states, wanted.model_states, atol=0.02)


def test_it_says_why_it_does_nothing() -> None:
    agent = calibrated()
    with pytest.warns(nappingrl.AdaptationWarning, match="no map of actions or sensors explains"):
        play(agent, agent.wrap(cartpole(gravity=60.0, masspole=3.0, length=3.0)), 8)
    assert agent.describe_policy() == ""
    assert agent.method.status(0)
    assert not agent.method.is_certain(np.arange(1)).any()
    short = NappingAgent("ppo", domain="cartpole", method="reground", detector="given")
    with pytest.warns(nappingrl.AdaptationWarning):
        play(short, short.wrap(cartpole(force=-10.0)), 4)
    assert "recorded" in short.method.status(0)


def test_known_contexts_are_recalled_and_the_original_world_is_met_untranslated() -> None:
    agent = calibrated()
    env = agent.wrap(cartpole(force=-10.0))
    play(agent, env, 3)
    words = agent.describe_policy()
    assert words == "LEFT <-> RIGHT"
    agent.adaptation.switch_context(0, 0)
    assert agent.describe_policy() == ""
    assert play(agent, agent.wrap(cartpole()), 1) == [200]
    agent.adaptation.switch_context(0, 2)
    assert agent.describe_policy() == ""
    agent.adaptation.switch_context(0, 1)
    assert agent.describe_policy() == words
    assert play(agent, agent.wrap(cartpole(force=-10.0)), 1) == [200]
    assert agent.method.context_sizes(0) == {0: 0, 1: 1, 2: 0}


# ---- saved ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("n_steps", [5, 9, 11, 60])
def test_saved_anywhere_it_goes_on_identically(tmp_path: Path, n_steps: int, guard: bool) -> None:
    """Before the first search, while something is tried, and after it is established."""

    def actions(agent: NappingAgent, seed: int, n: int) -> list[int]:
        env = agent.wrap(cartpole(force=-10.0))
        observation, _ = env.reset(seed=seed, options={"params": {"force": -10.0}})
        taken = []
        for _ in range(n):
            taken.append(int(agent.predict(observation)[0]))
            observation, _, terminated, truncated, _ = env.step(taken[-1])
            if terminated or truncated:
                observation, _ = env.reset(options={"params": {"force": -10.0}})
        return taken

    made = calibrated(guard=guard)
    actions(made, 3, n_steps)
    loaded = NappingAgent.load(made.save(tmp_path / "saved"))
    assert loaded.describe_policy() == made.describe_policy()
    assert actions(loaded, 8, 300) == actions(made, 8, 300)
    assert loaded.describe_policy() == made.describe_policy() == "LEFT <-> RIGHT"


# ---- no layout is known ----------------------------------------------------------------------------------------------


ORDER, SCALES = [2, 0, 3, 1], np.array([8.0, 0.25, 2.0, 16.0], np.float32)


class Disguised(Agent):
    """An agent for observations in another order and unit, with its actions exchanged."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.name, self.n_actions, self.embedding_dim = agent.name, agent.n_actions, agent.embedding_dim
        self.observation_shape, self.sha256 = agent.observation_shape, agent.sha256

    def forward(self, observations: Observations) -> Decision:
        original = np.empty_like(observations)
        original[:, ORDER] = observations / SCALES
        decision = self._agent.forward(original)
        return Decision(1 - decision.actions, decision.model_states, decision.preferences[:, ::-1])


class Disguise(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with its observations in another order and unit, and its actions exchanged."""

    def reset(self, **options: Any) -> Any:
        observation, info = self.env.reset(**options)
        return observation[ORDER] * SCALES, info

    def step(self, action: Any) -> Any:
        observation, *rest = self.env.step(1 - action)
        return observation[ORDER] * SCALES, *rest


@pytest.mark.parametrize(
    "change", [lambda: cartpole(force=-10.0), lambda: Sensors(cartpole(), negated(3))], ids=["actions", "sensors"]
)
def test_results_do_not_depend_on_the_order_and_unit_of_entries(change: Callable[[], Env]) -> None:
    plain = calibrated()
    lengths = play(plain, plain.wrap(change()), 6)
    disguised = NappingAgent(Disguised(load("ppo", "cartpole")), method="reground", detector="given")
    disguised.calibrate(Disguise(cartpole()), episodes=8)
    assert play(disguised, disguised.wrap(Disguise(change())), 6) == lengths
    assert isinstance(disguised.method, Reground)
    assert disguised.describe_policy() != ""
