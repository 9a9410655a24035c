"""An agent that does not adapt says so at once, and why."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import polars as pl
import pytest

from nappingrl import NappingAgent
from nappingrl.detectors import RollingMean
from nappingrl.errors import AdaptationWarning
from nappingrl.registry import detectors, methods
from nappingrl.score import reward_score
from nappingrl.trials.notes import notes_of, suspect

CARTPOLE = "nappingrl/CartPole-v0"
ZEROS = np.zeros(4, np.float32)
WAITING = {
    "never": "never alarms",
    "rolling-mean": "needs 5 episodes first: 0 so far",
    "residual": "is calibrating: 0 of 40 episodes",
    "ks": "is calibrating: 0 of 40 episodes",
    "cusum": "is calibrating: 0 of 40 episodes",
    "page-hinkley": "is calibrating: 0 of 40 episodes",
    "adwin": "is calibrating: 0 of 40 episodes",
    "auto": "is calibrating: 0 of 40 episodes",
    "critic": "",
    "given": "",
}


def play(agent: NappingAgent, episodes: int, **params: float) -> list[float]:
    env, returns = agent.wrap(gymnasium.make(CARTPOLE)), []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed, options={"params": params})
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(agent.predict(observation)[0])
            total, is_over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


@pytest.mark.parametrize("detector", detectors.names())
def test_every_detector_says_when_it_cannot_alarm(detector: str) -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector=detector)
    if not WAITING[detector]:
        agent.predict(ZEROS)
        assert agent.notes() == []
        return
    advice = "stays frozen unless" if detector == "never" else "detector='given'"
    with pytest.warns(AdaptationWarning, match=f"detector '{detector}' {WAITING[detector]}.*{advice}"):
        agent.predict(ZEROS)
    agent.predict(ZEROS)  # a second warning would be an error
    assert WAITING[detector] in agent.notes()[0]
    for _ in range(6):
        agent.observe(ZEROS, 0, ZEROS, 200.0, True)
    assert agent.notes() == ([] if detector == "rolling-mean" else [agent.notes()[0]])
    if "calibrating" in WAITING[detector]:
        assert "6 of 40" in agent.notes()[0]


@pytest.mark.parametrize("method", ["frozen", "online"])
def test_methods_that_need_no_alarm_do_not_wait(method: str) -> None:
    NappingAgent("ppo", domain="cartpole", method=method, detector="cusum").predict(ZEROS)


def test_the_default_in_a_changed_environment_warns() -> None:
    agent = NappingAgent("ppo", domain="cartpole")
    with pytest.warns(AdaptationWarning, match="waits for an alarm.*use detector='given'"):
        play(agent, 1, force=-10.0)


def test_a_detector_without_limits_is_told() -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector=RollingMean(1))
    with pytest.warns(AdaptationWarning, match="'RollingMean' cannot alarm: it has no limits"):
        agent.predict(ZEROS)


def test_loading_warns_of_what_is_left_to_calibrate(tmp_path: Any) -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector="cusum")
    for _ in range(12):
        agent.observe(ZEROS, 0, ZEROS, 1.0, True)
    again = NappingAgent.load(agent.save(tmp_path / "agent"))
    with pytest.warns(AdaptationWarning, match="12 of 40 episodes"):
        again.predict(ZEROS)


@pytest.mark.parametrize("method", ["napping", "napping-no-memory", "switch-on-failure"])
def test_a_score_that_never_fails_warns(method: str) -> None:
    agent = NappingAgent("ppo", domain="cartpole", method=method, score=reward_score(), detector="given")
    with pytest.warns(
        AdaptationWarning, match="acts as the frozen agent: no action has failed: score 'reward'"
    ) as told:
        play(agent, 6, force=-10.0)
    assert len(told) == 1
    assert "score 'reward' was never below 0" in str(told[0].message)


def test_an_endless_episode_warns_too() -> None:
    agent = NappingAgent("ppo", domain="cartpole", score=reward_score(), detector="given")
    for _ in range(199):
        agent.observe(ZEROS, 0, ZEROS, 1.0, False)
    with pytest.warns(AdaptationWarning, match="no action has failed: score 'reward'"):
        agent.observe(ZEROS, 0, ZEROS, 1.0, False)


def test_a_method_that_adapts_does_not_warn() -> None:
    play(NappingAgent("ppo", domain="cartpole", method="napping", detector="given"), 6, force=-10.0)


def test_foresight_adapts_in_an_environment_that_has_changed_before() -> None:
    """The line in the docs; with its default detector it would take the change for normal."""
    given = play(NappingAgent("ppo", domain="cartpole", method="foresight", detector="given"), 12, force=-10.0)
    assert np.mean(given[-4:]) >= 190
    agent = NappingAgent("ppo", domain="cartpole", method="foresight")
    with pytest.warns(AdaptationWarning, match="residual.*takes as unchanged"):
        assert max(play(agent, 12, force=-10.0)) < 20


def test_the_guard_says_that_it_stopped_the_method() -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="random", detector="given", guard=True)
    with pytest.warns(AdaptationWarning, match="the guard has stopped it 1 times"):
        play(agent, 4)


def test_bad_numbers_warn_once() -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector="given", n_envs=2)
    with pytest.warns(AdaptationWarning, match="environment 1: 1 observed steps were left out"):
        agent.observe(ZEROS, 0, ZEROS, np.nan, False, env=1)
    agent.observe(ZEROS, 0, ZEROS, np.nan, False, env=1)
    with pytest.warns(AdaptationWarning, match="an observation holds bad numbers"):
        assert agent.predict(np.full(4, np.nan, np.float32))[0] == agent.agent.forward(ZEROS[None]).actions[0]
    agent.predict(np.full(4, np.nan, np.float32))


def test_only_the_environments_of_a_step_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look may read all that a method has learned: with many environments, all of them at each end is slow."""
    agent = NappingAgent("ppo", domain="cartpole", score=reward_score(), detector="given", n_envs=8)
    looks: list[int] = []
    monkeypatch.setattr(agent.method, "status", lambda env: looks.append(env) or "")
    for _ in range(20):
        for env in range(8):
            agent.observe(ZEROS, 0, ZEROS, 1.0, False, env=env)
    agent.observe(ZEROS, 0, ZEROS, 1.0, True, env=3)
    assert looks == [3]


def test_predict_judges_an_observation_once(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = NappingAgent("ppo", domain="cartpole", detector="given")
    judge, judged = agent.adaptation.filter.are_usable, []
    monkeypatch.setattr(agent.adaptation.filter, "are_usable", lambda *batch: judged.append(batch) or judge(*batch))
    agent.predict(ZEROS)
    assert len(judged) == 1


def test_every_method_and_detector_has_a_status() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdaptationWarning)
        for method in methods.names():
            if not methods.get(method).is_privileged:
                agent = NappingAgent("ppo", domain="cartpole", method=method, detector="given")
                play(agent, 2)
                assert isinstance(agent.method.status(0), str)


# ---- runs ---------------------------------------------------------------------------------------------------------


def rows(detected: bool, n_open: int = 0) -> pl.DataFrame:
    return pl.DataFrame(
        {"trial": ["a", "b"], "phase": ["pre", "novel"], "status": ["ok", "ok"], "detected": [False, detected],
         "open_regions": [0, n_open]}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("method", "detected", "text"),
    [
        ("napping", False, "napping acted as the frozen agent in all 2 trials: detector 'd' raised no alarm"),
        ("finetune", False, "raised no alarm"),
        ("napping", True, ""),
        ("frozen", False, ""),
        ("online", False, ""),
        ("somebody-else-s", False, ""),
    ],
)
def test_a_run_says_that_there_was_no_alarm(method: str, detected: bool, text: str) -> None:
    spec = {"method": method, "novelty": "n", "detector": "d", "score": "s"}
    found = notes_of(spec, rows(detected))
    assert [text in note for note in found] == [True] * bool(text)
    assert notes_of(spec | {"novelty": "none"}, rows(detected)) == []


def test_a_trial_is_suspect_if_nothing_was_ever_open() -> None:
    assert suspect({"method": "napping"}, rows(True)) == "b"
    assert suspect({"method": "napping"}, rows(True, n_open=2)) == ""
    assert suspect({"method": "napping"}, rows(False)) == ""
    assert suspect({"method": "finetune"}, rows(True)) == ""


def test_napping_ucb_warns_where_its_score_prefers_no_other_action() -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="napping-ucb", score=reward_score(), detector="given")
    with pytest.warns(AdaptationWarning, match=r"is kept in all \d+ cells: score 'reward' prefers no other"):
        play(agent, 3, force=-10.0)
