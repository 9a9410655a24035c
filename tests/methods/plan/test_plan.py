"""The method `plan` through the public interface."""

from pathlib import Path

import gymnasium
import polars as pl
import pytest

import nappingrl
from methods.plan.carts import BLIND_CART, CART, SWITCHED_CART, cart_agent, register_carts
from nappingrl.errors import NappingError

register_carts()


def returns_of(env: str, method: str, push: float = 0.5, **options: str) -> list[float]:
    """Of the episodes after the change of one trial."""
    run = nappingrl.run(
        env, cart_agent(env), method, novelty=f"push={push}", detector="given", protocol="6+16", trials=1, seed=1,
        options=options,
    )  # fmt: skip
    returns: list[float] = run.rows.filter(pl.col("episode") >= 0)["return"].to_list()
    return returns


@pytest.mark.parametrize("env", [CART, SWITCHED_CART])
def test_it_compensates_what_the_agent_cannot(env: str) -> None:
    """Without a critic, too, and with continuous and discrete actions."""
    frozen, plan = (returns_of(env, method) for method in ("frozen", "plan"))
    assert plan[0] == frozen[0]
    assert sum(plan[-6:]) > 0.5 * sum(frozen[-6:])


def test_auto_tries_it_and_keeps_it() -> None:
    frozen = returns_of(CART, "frozen", push=0.9)
    adapted = returns_of(CART, "auto", push=0.9, candidates="plan")
    assert adapted[:3] == frozen[:3]
    assert sum(adapted[-6:]) > 0.5 * sum(frozen[-6:])


def test_a_world_that_cannot_be_predicted_is_left_to_the_agent() -> None:
    assert returns_of(BLIND_CART, "plan") == returns_of(BLIND_CART, "frozen")


@pytest.mark.filterwarnings("ignore:method .plan. acts as the frozen agent:nappingrl.errors.AdaptationWarning")
@pytest.mark.parametrize(("env", "is_good"), [(CART, True), (BLIND_CART, False)])
def test_it_says_what_it_does_or_why_it_does_not(env: str, is_good: bool) -> None:
    agent = nappingrl.NappingAgent(cart_agent(env), domain=env, method="plan", detector="given")
    agent.calibrate(gymnasium.make(env), episodes=4, seed=1)
    world = agent.wrap(nappingrl.apply_novelty(gymnasium.make(env), "push=0.5"))
    for episode in range(12):
        observation, _ = world.reset(seed=episode)
        for _ in range(60):
            observation, *_ = world.step(agent.predict(observation)[0])
    world.reset(seed=9)
    assert ("plan 16 steps ahead" in agent.describe_policy()) == is_good
    assert agent.method.status(0).startswith("its model of the changed world misses a step by") == (not is_good)


@pytest.mark.parametrize("env", [CART, SWITCHED_CART])
def test_a_saved_agent_goes_on_within_an_episode(env: str, tmp_path: Path) -> None:
    model = cart_agent(env)
    agent = nappingrl.NappingAgent(model, domain=env, method="plan", detector="given", max_relative_error=1.0)
    agent.calibrate(gymnasium.make(env), episodes=4, seed=1)
    world = agent.wrap(nappingrl.apply_novelty(gymnasium.make(env), "push=0.5"))
    for episode in range(4):
        observation, _ = world.reset(seed=episode)
        for _ in range(60 if episode < 3 else 5):
            observation, *_ = world.step(agent.predict(observation)[0])
    assert agent.describe_policy()
    agent.save(tmp_path / "agent.zip")
    loaded = nappingrl.NappingAgent.load(tmp_path / "agent.zip", model=model)
    assert loaded.predict(observation)[0] == agent.predict(observation)[0]
    assert loaded.describe_policy() == agent.describe_policy()


def test_a_search_without_end_is_refused() -> None:
    with pytest.raises(NappingError, match="lower n_rounds"):
        returns_of(CART, "plan", n_sequences="3000", horizon="1000")
