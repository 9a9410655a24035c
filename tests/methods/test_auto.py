"""auto through the public interface: it adapts by default, says what it does, and does no harm."""

import gymnasium
import numpy as np
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from nappingrl import NappingAgent
from nappingrl.errors import NappingError

CARTPOLE = "nappingrl/CartPole-v0"


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


def test_reversed_pushes_are_re_grounded_within_the_first_episodes() -> None:
    rows = nappingrl.run("cartpole", "ppo", "auto", novelty="force=-10", protocol="10+6", trials=3, seed=2).rows
    last = rows.filter(rows["episode"] >= 3)["return"]
    assert last.min() == 200.0


def test_without_a_change_the_returns_are_those_of_the_frozen_agent() -> None:
    options = {"novelty": "none", "protocol": "10+5", "trials": 4, "seed": 3}
    auto, frozen = (nappingrl.run("cartpole", "ppo", method, **options).rows for method in ("auto", "frozen"))
    assert not auto["detected"].any()
    columns = ["episode", "return", "length"]
    assert_frame_equal(auto.select(columns), frozen.select(columns))


@pytest.mark.filterwarnings("ignore::nappingrl.errors.AdaptationWarning")
def test_it_adapts_in_a_world_that_changed_before_it_was_attached() -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="auto")
    returns = play(agent, 16, force=-10.0)
    assert max(returns[:3]) < 20.0
    assert min(returns[-3:]) == 200.0


@pytest.mark.filterwarnings("ignore::nappingrl.errors.AdaptationWarning")
def test_it_keeps_an_unchanged_world_as_it_is_without_a_reference() -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="auto")
    assert play(agent, 5) == [200.0] * 5
    assert not agent.detected.any()


def test_what_a_grounding_earned_is_kept_while_numbers_are_refined_and_where_it_is_recalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    auto, rows = NappingAgent("ppo", domain="cartpole", method="auto").method, np.array([0])
    reground = auto.candidates["reground"]
    monkeypatch.setattr(reground, "is_certain", lambda rows: np.ones(len(rows), np.bool_))

    def earn(context: int, signature: str, description: str) -> list[float]:
        monkeypatch.setattr(reground, "signature", lambda row: signature)
        monkeypatch.setattr(reground, "describe", lambda row: description)
        auto.on_context_change(rows, np.array([context]))
        auto._begin_episode(rows)
        auto._episodes.total[rows] = 100.0
        auto.end_episode(rows)
        returns: list[float] = auto._arbiters[0][context].players[1].returns
        return returns

    assert earn(1, "gain", "gain 0.52") == [100.0]
    assert earn(1, "gain", "gain 0.51") == [100.0] * 2
    assert earn(2, "reversed", "reversed") == [100.0]
    assert earn(1, "gain", "gain 0.51") == [100.0] * 3


def test_candidates_can_be_chosen() -> None:
    agent = NappingAgent("ppo", domain="cartpole", method="auto", candidates="foresight, napping-ucb")
    assert list(agent.method.candidates) == ["foresight", "napping-ucb"]


def test_too_many_observations_for_a_candidate_leave_the_others() -> None:
    """Angry Birds has 322: foresight's model of them took 12 GB and minutes."""
    method = NappingAgent("dqn", domain="angrybirds").method
    assert list(method.candidates) == ["reground", "facts", "recall", "napping-ucb"]
    assert "at most 64 observations" in method.refused["foresight"]


@pytest.mark.parametrize(
    ("candidates", "text"),
    [
        ("forsight", "unknown candidate 'forsight'.*foresight"),
        ("auto", "unknown candidate"),
        ("napping,napping", "twice"),
    ],
)
def test_candidates_that_cannot_be_are_refused_in_one_line(candidates: str, text: str) -> None:
    with pytest.raises(NappingError, match=text) as raised:
        NappingAgent("ppo", domain="cartpole", method="auto", candidates=candidates)
    assert "\n" not in str(raised.value)
