"""`calibrate`: the frozen agent in the unchanged environment is the reference for what comes later."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from nappingrl import NappingAgent
from nappingrl.agent import calibration
from nappingrl.errors import BadAgentError, BadSpecError

pytestmark = pytest.mark.filterwarnings("ignore::nappingrl.AdaptationWarning")  # agents that wait
CARTPOLE = "nappingrl/CartPole-v0"
Env = gymnasium.Env[Any, Any]


def cartpole(**params: float) -> Env:
    """A CartPole with these parameters, seeded."""
    env = gymnasium.make(CARTPOLE)
    env.reset(seed=0, options={"params": params})
    return env


def made(**options: Any) -> NappingAgent:
    return NappingAgent(
        "ppo" if "domain" in options else "cartpole-ppo", **{"method": "foresight", "detector": "residual"} | options
    )


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


def record(agent: NappingAgent, episodes: int) -> list[tuple[Any, ...]]:
    """Steps of the frozen agent."""
    env, steps = cartpole(), []
    for _ in range(episodes):
        observation, _ = env.reset()
        is_over = False
        while not is_over:
            action = int(agent.agent.forward(observation[None]).actions[0])
            following, reward, terminated, truncated, _ = env.step(action)
            steps.append((observation, action, following, reward, terminated, truncated))
            observation, is_over = following, terminated or truncated
    return steps


def test_the_detector_watches_at_once() -> None:
    """Without calibration it would take forty episodes of the changed world for normal."""
    agent = made()
    known = agent.calibrate(cartpole(), episodes=5)
    assert known.returns == (200.0,) * 5
    assert known.steps == 1000
    assert str(known) == "5 episodes, 1000 steps, mean return 200"
    assert agent.notes() == []
    assert not agent.detected.any()
    assert play(agent, agent.wrap(cartpole()), 2) == [200, 200]
    assert not agent.detected.any()
    changed = play(agent, agent.wrap(cartpole(force=-10.0)), 1)
    assert agent.detected.all(), changed


@pytest.mark.parametrize("detector", ["ks", "cusum", "page-hinkley", "adwin", "rolling-mean"])
def test_other_detectors_are_calibrated_too(detector: str) -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector=detector)
    agent.calibrate(cartpole(), episodes=8)
    assert agent.notes() == []
    assert not agent.detected.any()


def test_given_alarms_after_the_calibration() -> None:
    agent = made(detector="given")
    agent.calibrate(cartpole(), episodes=2)
    assert agent.detected.all()
    assert agent.contexts()["as trained"] == 0


def test_recorded_steps_do_as_well() -> None:
    """The same agent as by playing: what was learned is equal, bit for bit."""
    by_playing, by_reading = made(domain="cartpole", method="foresight"), made(domain="cartpole", method="foresight")
    known = by_playing.calibrate(cartpole(), episodes=4)
    steps = record(by_reading, 4)
    assert by_reading.calibrate([step[:5] if not step[5] else step for step in steps]) == known
    a, b = by_playing.adaptation.state(), by_reading.adaptation.state()
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_a_seed_repeats_it() -> None:
    """The seed is that of the first reset: two agents learn the same, with another seed something else."""
    first, again, other = (made(domain="cartpole", method="foresight") for _ in range(3))
    for agent, seed in ((first, 5), (again, 5), (other, 6)):
        agent.calibrate(gymnasium.make(CARTPOLE), episodes=2, seed=seed)
    states = [agent.adaptation.state() for agent in (first, again, other)]
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])
    assert not all(np.array_equal(states[0][name], states[2][name]) for name in states[0])


def test_an_unfinished_episode_is_discarded() -> None:
    agent = made(domain="cartpole")
    known = agent.calibrate(record(agent, 3)[:-50])
    assert len(known.returns) == 2
    assert agent.adaptation.returns.tolist() == [0.0]


def test_all_environments_share_it() -> None:
    agent = made(n_envs=2)
    agent.calibrate(cartpole(), episodes=4)
    assert [agent.notes(env) for env in range(2)] == [[], []]
    env = agent.wrap(cartpole(force=-10.0), 1)
    observation, _ = env.reset()
    for _ in range(40):
        both = np.stack([np.zeros(4, np.float32), observation])
        observation, _, terminated, _, _ = env.step(agent.predict(both)[0][1])
        if terminated:
            observation, _ = env.reset()
    assert agent.detected.tolist() == [False, True]


def test_a_saved_agent_carries_it(tmp_path: Path) -> None:
    agent = made()
    agent.calibrate(cartpole(), episodes=5)
    loaded = NappingAgent.load(agent.save(tmp_path / "agent"))
    assert loaded.calibration == agent.calibration
    assert loaded.notes() == []
    lengths = [play(one, one.wrap(cartpole(force=-10.0)), 3) for one in (agent, loaded)]
    assert lengths[0] == lengths[1]
    assert loaded.detected.all()


def test_not_twice_and_not_too_late() -> None:
    agent = made()
    agent.calibrate(cartpole(), episodes=2)
    with pytest.raises(BadSpecError, match=r"calibrated already \(2 episodes, 400 steps.*make a new agent"):
        agent.calibrate(cartpole())
    agent = made(detector="given")
    play(agent, agent.wrap(cartpole()), 1)
    with pytest.raises(BadSpecError, match=r"before the first step.*1 episodes so far, and its detector has raised an"):
        agent.calibrate(cartpole())


def test_bad_arguments() -> None:
    """One line each; the agent can still be calibrated."""
    agent = made()
    with pytest.raises(BadAgentError, match="MountainCar-v0 has"):
        agent.calibrate(gymnasium.make("MountainCar-v0"))
    with pytest.raises(BadSpecError, match="episodes"):
        agent.calibrate(cartpole(), episodes=0)
    with pytest.raises(BadSpecError, match="seed"):
        agent.calibrate(cartpole(), seed=-1)
    with pytest.raises(BadSpecError, match="no effect on recorded transitions"):
        agent.calibrate(record(agent, 1), seed=1)
    steps = record(agent, 1)
    for bad, why in (
        ("text", "not str"), (7, "not int"), ([], "0 complete episodes"), (steps[:-1], "0 complete episodes"),
        ([*steps, (1, 2)], "step 200 is"), (None, "not NoneType"),
    ):  # fmt: skip
        with pytest.raises(BadSpecError, match=why):
            agent.calibrate(bad)
    agent.wrap(cartpole())
    odd = [(*step[:1], 5, *step[2:]) for step in steps]
    with pytest.raises(BadSpecError, match="action 5 given"):
        agent.calibrate(odd)
    with pytest.raises(BadSpecError, match=r"before agent\.wrap"):
        agent.calibrate(TimeLimit(agent.wrap(cartpole()), 100))
    assert agent.calibrate(agent.wrap(cartpole()), episodes=2).returns == (200.0, 200.0)


def test_steps_alone_do_not_tell_the_domain() -> None:
    agent = made()
    with pytest.raises(BadSpecError, match=r"must know the environment: call agent.wrap\(env\) first"):
        agent.calibrate(record(agent, 1))


def test_endless_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "MAX_STEPS", 150)
    with pytest.raises(BadSpecError, match=r"did not end within 150 steps.*TimeLimit"):
        made().calibrate(cartpole())


def test_a_bar_appears_if_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, after a moment; never elsewhere."""
    shown: list[int] = []

    class Bar(calibration.Progress):
        def start(self) -> None:
            shown.append(1)

        def stop(self) -> None:
            shown.append(-1)

    monkeypatch.setattr(calibration, "Progress", Bar)
    for is_terminal, after, wanted in ((True, 1e9, []), (False, -1.0, []), (True, -1.0, [1, -1])):
        monkeypatch.setattr(calibration, "BAR_AFTER", after)
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal)
        shown.clear()
        made().calibrate(cartpole(), episodes=2)
        assert shown == wanted
