"""The method `recall` through the public interface."""

from pathlib import Path

import gymnasium
import numpy as np
import polars as pl
import pytest

import nappingrl
from methods.recall.stalls import LONG_STALLS, STALLS, register_stalls, thrower
from nappingrl.methods.recall.outcomes import CONFIG, Outcomes, Recollection, prior_values, split_name

register_stalls()


def returns_of(env: str, method: str, shift: int = 2, detector: str = "given") -> list[float]:
    """Of the episodes after the change of one trial."""
    run = nappingrl.run(
        env, thrower(), method, novelty=f"shift={shift}", detector=detector, protocol="20+40", trials=1, seed=1
    )
    returns: list[float] = run.rows.filter(pl.col("episode") >= 0)["return"].to_list()
    return returns


@pytest.mark.parametrize("shift", [1, 2])
def test_it_finds_the_throw_of_every_stall(shift: int) -> None:
    frozen, recalled = (returns_of(STALLS, method, shift) for method in ("frozen", "recall"))
    assert sum(frozen) == 0
    assert recalled[0] == 0
    assert recalled[-10:] == [1.0] * 10


def test_a_throw_that_works_is_never_left() -> None:
    """Whatever other stalls need: `shift` of 6 throws is none."""
    assert returns_of(STALLS, "recall", 6) == [1.0] * 40


def test_auto_alarms_by_returns_and_recalls() -> None:
    """Episodes of one step leave nothing to predict."""
    assert sum(returns_of(STALLS, "frozen", 2)) == 0
    assert sum(returns_of(STALLS, "auto", 2, "auto")[-10:]) >= 5


def test_long_episodes_are_left_to_the_agent_and_it_says_so() -> None:
    assert returns_of(LONG_STALLS, "recall") == returns_of(LONG_STALLS, "frozen")
    agent = nappingrl.NappingAgent(thrower(), domain=LONG_STALLS, method="recall", detector="given")
    agent.calibrate(gymnasium.make(LONG_STALLS), episodes=2, seed=1)
    with pytest.warns(nappingrl.AdaptationWarning, match="episodes may have 30 steps"):
        _play(agent, LONG_STALLS, 6)
    assert agent.method.status(0) == "episodes may have 30 steps; at most 20 are remembered"


def _play(agent: nappingrl.NappingAgent, env: str, n_episodes: int) -> np.ndarray:
    world = agent.wrap(nappingrl.apply_novelty(gymnasium.make(env), "shift=2"))
    for episode in range(n_episodes):
        observation, _ = world.reset(seed=episode)
        is_over = False
        while not is_over:
            observation, _, terminated, truncated, _ = world.step(agent.predict(observation)[0])
            is_over = terminated or truncated
    observation, _ = world.reset(seed=n_episodes)
    return np.asarray(observation)


def test_a_saved_agent_remembers_and_describes_the_same(tmp_path: Path) -> None:
    model = thrower()
    agent = nappingrl.NappingAgent(model, domain=STALLS, method="recall", detector="given")
    agent.calibrate(gymnasium.make(STALLS), episodes=10, seed=1)
    observation = _play(agent, STALLS, 30)
    assert "the best of 30 remembered outcomes" in agent.describe_policy()
    agent.save(tmp_path / "agent.zip")
    loaded = nappingrl.NappingAgent.load(tmp_path / "agent.zip", model=model)
    assert loaded.predict(observation)[0] == agent.predict(observation)[0]
    assert loaded.describe_policy() == agent.describe_policy()


# ---- the estimate, by its definition -------------------------------------------------------------------------------


def test_values_are_kernel_means_of_outcomes_and_the_prior() -> None:
    states = np.array([[0, 0], [1, 0], [0, 3]], np.float32)
    outcomes = Outcomes(states, np.array([0, 1, 2]), np.array([1.0, 0.0, 5.0]), np.ones(3, np.bool_))
    words = ("pig, low", "pig, high, 15", "tnt, low")
    known = Recollection(outcomes, lambda observations: observations, lambda _, action: words[action])
    state, prior = np.array([0, 1], np.float32), np.array([0.5, 0.5, 0.5])
    names = np.array([split_name(name) for name in ("pig, low", "pig, high", "tnt, high")])
    distances = np.array([1.0, 2.0, 4.0])
    closeness = np.exp(-distances / (CONFIG.width * 2.0))
    shared = np.array([[1.0, 0.1, 0], [0.1, 0.5, 0], [0, 0, 0.1]])
    weights = shared * closeness
    expected = (0.5 + weights @ outcomes.returns) / (1 + weights.sum(axis=1))
    np.testing.assert_allclose(known.values(state, names, prior), expected)


def test_the_prior_keeps_the_agents_order_whatever_its_unit() -> None:
    preferences = np.array([3.0, 1.0, 2.0, -4.0], np.float32)
    values = prior_values(preferences, -2.0, 10.0)
    assert values.argsort().tolist() == preferences.argsort().tolist()
    assert values.max() == pytest.approx(10.0)
    assert values.min() > -2.0
    np.testing.assert_allclose(prior_values(preferences * 50, -2.0, 10.0), values)


def test_the_oldest_outcomes_are_forgotten() -> None:
    def step(i: int) -> Outcomes:
        return Outcomes(np.full((1, 1), i, np.float32), np.array([0]), np.array([float(i)]), np.ones(1, np.bool_))

    known = Recollection(Outcomes.none(1), lambda observations: observations, lambda _, action: "it")
    for i in range(CONFIG.max_outcomes + 3):
        known.add(step(i))
    assert known.outcomes.n == len(known.names) == len(known.model_states) == CONFIG.max_outcomes
    assert known.outcomes.returns[0] == 3.0
