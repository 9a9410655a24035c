"""`status` says what an agent does now, and the log has one line per change."""

import logging
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from nappingrl import NappingAgent
from nappingrl.agent.status import MAX_ALARMS, Status
from nappingrl.registry import methods

pytestmark = pytest.mark.filterwarnings("ignore::nappingrl.AdaptationWarning")  # agents that wait
CARTPOLE = "nappingrl/CartPole-v0"
ZEROS = np.zeros(4, np.float32)
Env = gymnasium.Env[Any, Any]


def cartpole(**params: float) -> Env:
    env = gymnasium.make(CARTPOLE)
    env.reset(seed=0, options={"params": params})
    return env


def play(agent: NappingAgent, env: Env, episodes: int) -> list[float]:
    returns = []
    for _ in range(episodes):
        observation, _ = env.reset()
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(agent.predict(observation)[0])
            total, is_over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The lines of the package's logger so far."""
    texts = [record.getMessage() for record in caplog.records if record.name == "nappingrl"]
    caplog.clear()
    assert all("\n" not in text for text in texts)
    return texts


def test_from_waiting_to_adapted(caplog: pytest.LogCaptureFixture) -> None:
    """Every state in turn, each with its log line."""
    caplog.set_level(logging.INFO, "nappingrl")
    agent = NappingAgent("cartpole-ppo", method="foresight", detector="residual")
    assert agent.status().state == "waiting"
    assert "method 'foresight' must know the environment" in str(agent.status())
    agent.calibrate(cartpole(), episodes=5)
    assert str(agent.status()) == "watching; the frozen agent acts"
    assert lines(caplog) == ["calibrated on 5 episodes, 1000 steps, mean return 200", "watching"]
    play(agent, agent.wrap(cartpole()), 2)
    assert agent.status() == Status("watching", "watching", acted={"agent": 2})
    assert lines(caplog) == []
    play(agent, agent.wrap(cartpole(force=-10.0)), 4)
    status = agent.status()
    assert status.state == "changed"
    assert status.detector == f"alarm at {status.alarms[-1]}"
    assert status.alarms[-1].startswith("step")
    assert status.n_alarms == 1
    assert "so far" not in str(status), "the only alarm is told already"
    assert status.acting == "foresight"
    assert status.rule == agent.describe_policy() != ""
    assert sum(status.acted.values()) == 6
    assert status.acted["foresight"] > 0
    assert "; foresight acts: " in str(status)
    alarm, *others = lines(caplog)
    assert alarm == status.detector
    assert others[-1] == f"foresight acts: {status.rule}"
    assert len(set(others)) == len(others)


def test_calibrating_counts_episodes(caplog: pytest.LogCaptureFixture) -> None:
    """One line when it begins, one when it ends."""
    caplog.set_level(logging.INFO, "nappingrl")
    agent = NappingAgent("ppo", domain="cartpole", detector="cusum")
    for _ in range(41):
        agent.observe(ZEROS, 0, ZEROS, 1.0, False)
        assert agent.status().state == "calibrating"
        assert f"{agent.episodes[0]} of 40 episodes" in agent.status().detector
        agent.observe(ZEROS, 0, ZEROS, 1.0, True)
        if agent.episodes[0] == 40:
            break
    assert agent.status().state == "watching"
    texts = lines(caplog)
    assert len(texts) == 2
    assert "is calibrating: 0 of 40 episodes" in texts[0]
    assert texts[1] == "watching"


def test_detectors_that_cannot_alarm_and_those_that_are_told() -> None:
    never = NappingAgent("ppo", domain="cartpole", detector="never").status()
    assert (never.state, never.detector) == ("cannot alarm", "the detector never alarms")
    told = NappingAgent("ppo", domain="cartpole", detector="given").status()
    assert (told.state, told.detector) == ("changed", "told that the environment has changed")


def test_alarms_at_the_end_of_an_episode(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nappingrl")
    agent = NappingAgent("ppo", domain="cartpole", detector="rolling-mean")
    for _ in range(6):
        agent.observe(ZEROS, 0, ZEROS, 1.0, True)
    assert agent.status().detector == "alarm at the end of episode 4"
    assert "alarm at the end of episode 4" in lines(caplog)


def test_all_alarms_are_counted_and_the_latest_remembered() -> None:
    """An environment that changes again and again."""
    agent = NappingAgent("ppo", domain="cartpole", method="napping", detector="rolling-mean")
    for alarm in range(1, 9):
        while not agent.detected[0]:
            agent.observe(ZEROS, 0, ZEROS, 1.0, True)
        status = agent.status()
        assert status.n_alarms == alarm
        assert len(status.alarms) == min(alarm, MAX_ALARMS)
        assert status.detector == f"alarm at {status.alarms[-1]}"
        agent.switch_to("as trained")
    assert len(set(status.alarms)) == MAX_ALARMS
    assert f"; 8 alarms so far, the ones before at {status.alarms[-2]}, {status.alarms[-3]}" in str(status)
    back = str(agent.status())
    assert f"; 8 alarms so far, the latest at {status.alarms[-1]}, {status.alarms[-2]}" in back
    assert len(back) < 400


def test_back_to_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    """A guard that stops its method says so; a context that is left is told, too."""
    caplog.set_level(logging.INFO, "nappingrl")
    agent = NappingAgent("ppo", domain="cartpole", method="random", detector="given", guard=True)
    env = agent.wrap(cartpole())
    play(agent, env, 2)
    stopped = "the guard has stopped it 1 times, as it did not pay; it will be tried again"
    assert lines(caplog) == [
        "told that the environment has changed", "random acts", f"back to the agent because {stopped}",
    ]  # fmt: skip
    assert str(agent.status()).endswith(f"the frozen agent acts: {stopped}; episodes: agent 1, random 1")
    agent.switch_to("as trained")
    play(agent, env, 1)
    assert lines(caplog) == ["the original environment is back; watching"]


def test_several_environments_are_numbered(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nappingrl")
    agent = NappingAgent("ppo", domain="cartpole", detector="rolling-mean", n_envs=2)
    for _ in range(6):
        agent.observe(ZEROS, 0, ZEROS, 1.0, True, env=1)
    assert [agent.status(env).state for env in range(2)] == ["calibrating", "changed"]
    assert all(text.startswith("environment 1: ") for text in lines(caplog))
    assert agent.status(0).acted == {}
    assert sum(agent.status(1).acted.values()) == 6


def test_a_saved_agent_remembers(tmp_path: Path) -> None:
    agent = NappingAgent("cartpole-ppo", method="foresight", detector="residual")
    agent.calibrate(cartpole(), episodes=5)
    play(agent, agent.wrap(cartpole(force=-10.0)), 4)
    loaded = NappingAgent.load(agent.save(tmp_path / "agent"))
    assert loaded.status() == agent.status()


def test_nothing_is_logged_unless_asked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "nappingrl")
    agent = NappingAgent("ppo", domain="cartpole", method="napping", detector="rolling-mean")
    for _ in range(6):
        agent.observe(ZEROS, 0, ZEROS, 1.0, True)
    assert lines(caplog) == []
    assert agent.status().acted == {"agent": 5, "napping": 1}


@pytest.mark.parametrize("method", [name for name in methods.names() if not methods.get(name).is_privileged])
def test_every_method_has_a_status(method: str) -> None:
    """What acts is its own name or that of a part; a method that acts says no reason why the agent would."""
    agent = NappingAgent("ppo", domain="cartpole", method=method, detector="given")
    assert agent.status().acting == ("online" if method == "online" else "")
    play(agent, agent.wrap(cartpole(force=-10.0)), 6)
    status = agent.status()
    assert status.state == "changed"
    assert sum(status.acted.values()) == 6
    assert not (status.acting and status.why)
    assert status.acting in ("", *methods.names())
    assert set(status.acted) <= {"agent", *methods.names()}
    if method in ("random", "controller", "online", "finetune", "napping", "napping-ucb", "foresight"):
        assert status.acting == method
    if method == "frozen":
        assert status.acted == {"agent": 6}
