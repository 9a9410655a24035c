"""The scores of every domain: the reward, the trained critic, and a value learned on the way."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest

import nappingrl
from conftest import make_agent
from nappingrl import NappingAgent
from nappingrl.adaptation import AdaptationSpec
from nappingrl.agents import load
from nappingrl.agents.base import Agent
from nappingrl.domains import find_domain
from nappingrl.errors import BadAgentError, BadSpecError, UnknownNameError
from nappingrl.methods.scores import CRITIC, GENERAL_SCORES, LEARNED, critic_score
from nappingrl.methods.value_estimate import ValueEstimate
from nappingrl.types import Decision, Transition

ROWS = np.arange(2)


class Position(Agent):
    """Its model state is the observation itself."""

    name, n_actions, embedding_dim, observation_shape = "position", 2, 1, (1,)

    def forward(self, observations: np.ndarray) -> Decision:  # type: ignore[override]
        m = len(observations)
        return Decision(np.zeros(m, np.int64), observations.astype(np.float32), np.zeros((m, 2), np.float32))


def step(now: list[float], then: list[float], reward: float = 1.0, ended: bool = False) -> Transition:
    agent, before, after = Position(), np.array(now)[:, None], np.array(then)[:, None]
    flags = np.full(len(now), ended)
    return Transition(before, agent.forward(before), np.zeros(len(now), np.int64), after, np.full(len(now), reward),
                      flags, ~flags & False)  # fmt: skip


def walk(value: ValueEstimate) -> None:
    """An episode of four steps, from 4 down to 0, with 1 for each: the return from a state on is the state."""
    for i in range(4):
        value.record(ROWS, step([4.0 - i] * 2, [3.0 - i] * 2))
    value.end_episode(ROWS)


def test_a_learned_value_judges_steps_by_the_returns_so_far() -> None:
    value = ValueEstimate(2, 1)
    value.start(ROWS)
    assert value.scores(ROWS, step([3, 3], [0, 4]), Position()).tolist() == [0, 0]  # nothing is known yet
    walk(value)
    as_expected, lost, gained = (value.scores(ROWS[:1], step([3], [then]), Position())[0] for then in (2, 0, 4))
    assert as_expected == pytest.approx(0, abs=0.05)
    assert lost == pytest.approx(-2, abs=0.05)
    assert gained == pytest.approx(2, abs=0.05)
    ended = value.scores(ROWS[:1], step([3], [2], ended=True), Position())[0]
    assert ended == pytest.approx(-2, abs=0.05)  # 1 + 0 - 3
    value.start(ROWS[:1])
    assert value.scores(ROWS, step([3, 3], [0, 0]), Position()) == pytest.approx([0, -2], abs=0.05)


def test_an_unfinished_episode_can_be_discarded() -> None:
    values = [ValueEstimate(2, 1) for _ in range(2)]
    for value in values:
        value.start(ROWS)
    values[0].record(ROWS, step([9, 9], [9, 9], reward=50.0))
    values[0].discard_episode(ROWS)
    for value in values:
        walk(value)
    first, second = (value.scores(ROWS, step([3, 1], [0, 4]), Position()) for value in values)
    assert first.tolist() == second.tolist()


def test_the_critic_as_a_score() -> None:
    agent = load("ppo", "cartpole")
    score = critic_score(agent)
    rng = np.random.default_rng(0)
    now, then = rng.normal(0, 0.05, (2, 6, 4)).astype(np.float32)
    ended = np.array([False] * 5 + [True])
    found = score(now, np.zeros(6, np.int64), then, np.ones(6), ended)
    expected = 1 + 0.98 * np.where(ended, 0, agent.values(then)) - agent.values(now)
    assert found == pytest.approx(expected)
    with pytest.raises(BadAgentError, match="score 'q-value' needs the critic of agent balance"):
        critic_score(make_agent("cartpole"))


@pytest.mark.parametrize("score", GENERAL_SCORES)
@pytest.mark.parametrize("method", ["napping", "napping-ucb", "switch-on-failure"])
def test_every_domain_has_them(score: str, method: str) -> None:
    options = {"layer": 1} if method == "napping" else {}
    run = nappingrl.run("cartpole", agent="dqn", method=method, score=score, trials=3, protocol="6+8", options=options)
    assert run.spec["score"] == score
    again = nappingrl.run(
        "cartpole", agent="dqn", method=method, score=score, trials=3, protocol="6+8", options=options
    )
    assert run.rows.equals(again.rows)


def test_wrong_names_and_agents_without_a_critic() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'learned'"):
        AdaptationSpec(score="learnd").resolve(find_domain("cartpole"))
    with pytest.raises(BadAgentError, match="critic"):
        NappingAgent(make_agent("cartpole"), domain="cartpole", method="napping", score=CRITIC)


def test_a_learned_value_is_not_saved(tmp_path: Path) -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="napping", score=LEARNED)
    with pytest.raises(BadSpecError, match="score 'learned' cannot be saved"):
        agent.save(tmp_path / "a")


def test_a_calibrated_threshold_for_napping() -> None:
    runs = {
        threshold: nappingrl.run(
            "cartpole",
            agent="ppo",
            method="napping",
            trials=4,
            protocol="12+12",
            detector="given",
            options={"threshold": threshold},
        )
        for threshold in ("score", "auto")
    }
    assert "threshold" not in runs["score"].spec["options"]
    assert runs["auto"].spec["options"]["threshold"] == "auto"
    assert not runs["auto"].rows["return"].equals(runs["score"].rows["return"])


@pytest.mark.filterwarnings("ignore::nappingrl.AdaptationWarning")
def test_a_saved_agent_keeps_its_calibration(tmp_path: Path) -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="napping", threshold="auto")
    env = agent.wrap(gymnasium.make("nappingrl/CartPole-v0"))
    for seed in range(8):
        observation, ended = env.reset(seed=seed)[0], False
        while not ended:
            observation, _, terminated, truncated, _ = env.step(agent.predict(observation)[0])
            ended = terminated or truncated
    again = NappingAgent.load(agent.save(tmp_path / "a"))
    assert agent.method.calibration._n_scores[0] > 1000
    assert again.method.calibration._n_scores[0] == agent.method.calibration._n_scores[0]
