"""Candidates for agents with continuous actions, and NAPPING over them."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_baselines3 import SAC

from nappingrl import NappingAgent
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.errors import BadAgentError, BadObservationError, BadSpecError
from nappingrl.methods.napping.candidates import LocalCandidates, choice_names
from nappingrl.registry import methods
from nappingrl.score import Score
from nappingrl.types import DomainSpec

LOW, HIGH = np.array([-1.0, 0.0], np.float32), np.array([3.0, 10.0], np.float32)


def constant_agent(*wanted: float) -> BoxMlpAgent:
    """An agent that wants the same action everywhere; its embedding is the observation."""
    layers = [(np.zeros((2, len(wanted)), np.float32), np.array(wanted, np.float32))]
    return BoxMlpAgent("constant", layers, "relu", ActionBox(LOW[: len(wanted)], HIGH[: len(wanted)], False))


def test_candidates_by_hand() -> None:
    """As wanted, a quarter, half and all of the range up and down in each number, mirrored; clipped to the box."""
    candidates = LocalCandidates(LOW, HIGH)
    assert candidates.n == 14
    every = candidates.all_of(np.array([[0.5, 9.0]], np.float32))[0]
    np.testing.assert_array_equal(every[:7, 0], [0.5, 1.5, -0.5, 2.5, -1.0, 3.0, -1.0])
    np.testing.assert_array_equal(every[7:13, 1], [10.0, 6.5, 10.0, 4.0, 10.0, 0.0])
    assert (every[:7, 1] == 9.0).all()
    assert (every[7:13, 0] == 0.5).all()
    np.testing.assert_array_equal(every[13], [1.5, 1.0])
    valid = candidates.valid_mask(np.array([[0.5, 9.0]], np.float32))[0]
    assert valid.all()
    assert np.flatnonzero(~candidates.valid_mask(np.array([[3.0, 9.95]], np.float32))[0]).tolist() == [
        1,
        3,
        5,
        7,
        9,
        11,
    ]
    assert candidates.names[0] == "as wanted"
    assert candidates.names[3] == "as wanted, plus 2 in dimension 0"
    assert candidates.names[8] == "as wanted, minus 2.5 in dimension 1"
    assert candidates.names[13] == "mirrored"


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=2), st.integers(0, 13))
def test_candidates_are_recognised(shares: list[float], number: int) -> None:
    """All lie in the box; an executed candidate is recognised even if another one was chosen."""
    candidates = LocalCandidates(LOW, HIGH)
    wanted = (LOW + np.array([shares], np.float32) * (HIGH - LOW)).astype(np.float32)
    every = candidates.all_of(wanted)
    assert (every >= LOW).all()
    assert (every <= HIGH).all()
    np.testing.assert_array_equal(every[:, 0], wanted)
    executed = candidates.take(wanted, np.array([number]))
    assert candidates.number_of(wanted, executed, np.array([number])) == number
    other = candidates.number_of(wanted, executed, np.array([(number + 5) % 14]))
    np.testing.assert_array_equal(candidates.take(wanted, other), executed)


def test_choice_names() -> None:
    """The choices of a principle: the actions of the domain, or the local candidates."""
    nothing = np.zeros(1)
    assert choice_names(DomainSpec(nothing, nothing, 2, 0, action_names=("LEFT", "RIGHT"))) == ("LEFT", "RIGHT")
    assert len(choice_names(DomainSpec(nothing, nothing, 0, 0, LOW, HIGH))) == 14


def close_to(target: NDArray[np.float32]) -> Score:
    """A score that rewards actions near a target; within 0.1 they are good."""
    return Score("near", lambda o, a, o2, r, end: -np.abs(a - target).sum(axis=1).astype(float), -0.1)


@pytest.mark.parametrize("rule", ["printed", "text", "revised", "fallback"])
@pytest.mark.parametrize(("target", "words"), [((1.5, 4.0), "mirrored"), ((0.5, 1.0), "minus 5 in dimension 1")])
def test_learns_an_alternative_action(rule: str, target: tuple[float, ...], words: str) -> None:
    """Where the wanted action fails, a good candidate is found, kept and named."""
    score = close_to(np.array(target, np.float32))
    agent = NappingAgent(constant_agent(0.5, 6.0), score=score, rule=rule, seed=1)
    here = np.array([0.3, -0.2], np.float32)
    for _ in range(40):
        action, _ = agent.predict(here)
        agent.observe(here, action, here, 0.0, False)
    np.testing.assert_allclose(agent.predict(here)[0], target)
    (rule_,) = agent.explain()
    assert words in str(rule_)
    assert "wanted as wanted" not in str(rule_)


def test_good_action_is_kept() -> None:
    """An action that does not fail is kept."""
    agent = NappingAgent(constant_agent(0.5, 6.0), score=close_to(np.array([0.5, 6.0])))
    here = np.array([0.3, -0.2], np.float32)
    for _ in range(9):
        action, _ = agent.predict(here)
        np.testing.assert_array_equal(action, [0.5, 6.0])
        agent.observe(here, action, here, 0.0, False)
    assert "still as wanted" in str(agent.explain()[0])


def test_predicts_like_sb3(tmp_path: Path) -> None:
    """Predict as SB3's before anything is learned, in a real environment, for one and many; saved and loaded."""
    env = gymnasium.make("Pendulum-v1")
    model: Any = SAC("MlpPolicy", env, policy_kwargs={"net_arch": [16]}, buffer_size=10, device="cpu", seed=0)
    model.save(tmp_path / "base.zip")
    agent = NappingAgent(tmp_path / "base.zip", n_envs=3, method="napping")
    three = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    for observation in (three[0], three):
        mine, theirs = agent.predict(observation)[0], model.predict(observation, deterministic=True)[0]
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
    agent.observe(three, agent.predict(three)[0], three, np.zeros(3), np.zeros(3, bool), np.zeros(3, bool))
    watched = agent.wrap(env)
    observation, _ = watched.reset(seed=0)
    for _ in range(30):
        action, _ = agent.predict(observation)
        assert env.action_space.contains(action)
        observation, *_ = watched.step(action)
    again = NappingAgent.load(agent.save(tmp_path / "adapted"))
    assert [str(rule) for rule in again.explain()] == [str(rule) for rule in agent.explain()]
    np.testing.assert_array_equal(again.predict(three)[0], agent.predict(three)[0])


@pytest.mark.parametrize("action", [1, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0], [1.0, 2.0]]])
def test_invalid_actions(action: Any) -> None:
    """Actions must be of the right shape."""
    agent = NappingAgent(constant_agent(0.5, 6.0), method="napping")
    with pytest.raises(BadSpecError, match="2 numbers each are needed"):
        agent.observe(np.zeros(2), action, np.zeros(2), 0.0, False)
    with pytest.raises(BadObservationError):
        agent.predict(np.zeros(3))


@pytest.mark.parametrize("method", ["online", "finetune", "switch-on-failure", "replay-success"])
def test_discrete_methods_refuse_continuous_agents(method: str) -> None:
    """The error is one line that names the allowed methods."""
    with pytest.raises(BadAgentError, match=r"needs discrete actions; those of agent constant.*napping") as caught:
        NappingAgent(constant_agent(0.5, 6.0), method=method)
    assert "\n" not in str(caught.value)
    assert methods.get(method).needs_discrete


def test_preference_order_needs_discrete_actions() -> None:
    """Continuous actions have no order of preference."""
    with pytest.raises(BadSpecError, match="choice=preference needs discrete"):
        NappingAgent(constant_agent(0.5, 6.0), choice="preference", method="napping")


def test_random_control_draws_from_the_box() -> None:
    """After detection, actions are uniform over the box."""
    agent = NappingAgent(constant_agent(0.5, 6.0), method="random", seed=3)
    here, drawn = np.zeros(2, np.float32), []
    for _ in range(200):
        action, _ = agent.predict(here)
        drawn.append(action)
        agent.observe(here, action, here, 0.0, False)
    np.testing.assert_array_equal(drawn[0], [0.5, 6.0])
    assert drawn[1].dtype == np.float32
    shares = (np.array(drawn[1:]) - LOW) / (HIGH - LOW)
    assert (shares >= 0).all()
    assert (shares <= 1).all()
    np.testing.assert_allclose(shares.mean(axis=0), 0.5, atol=0.08)
    np.testing.assert_allclose(shares.std(axis=0), 12**-0.5, atol=0.05)
