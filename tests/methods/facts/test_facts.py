"""The method `facts` through the public interface."""

from itertools import pairwise
from typing import Any, ClassVar

import gymnasium
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from methods.facts.worlds import LAKE, OPEN, SLIPPERY, lake_agent, register_lakes
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.errors import NappingError
from nappingrl.methods.facts.trial import FactsTrial
from nappingrl.types import DomainSpec
from nappingrl.world_model.transitions import Transitions

register_lakes()


def rows_of(env: str, method: str, novelty: str, detector: str = "", protocol: str = "15+30") -> pl.DataFrame:
    """The episodes after the change of one trial."""
    run = nappingrl.run(
        env, lake_agent(env), method, novelty=novelty, detector=detector, protocol=protocol, trials=1, seed=1
    )
    return run.rows.filter(pl.col("episode") >= 0)


@pytest.mark.parametrize("remap", ["3,2,1,0", "0,2,1,3", "1,2,3,0"])
def test_remapped_actions_of_a_deterministic_lake_are_learned(remap: str) -> None:
    rows = rows_of(LAKE, "facts", f"action-remap={remap}", "given")
    assert rows["return"].tail(10).to_list() == [1.0] * 10


@pytest.mark.parametrize(("env", "remap"), [(LAKE, "3,2,1,0"), (OPEN, "2,1,0,3")])
def test_auto_alarms_and_recovers(env: str, remap: str) -> None:
    """In the second one an adapted agent still executes actions that act as before."""
    rows = rows_of(env, "auto", f"action-remap={remap}")
    assert rows["detected"].head(3).any()
    assert rows["detected"].tail(20).all()
    assert rows["return"].tail(10).to_list() == [1.0] * 10


@pytest.mark.filterwarnings("ignore:method .facts. acts as the frozen agent:nappingrl.errors.AdaptationWarning")
def test_a_slippery_lake_is_left_to_the_agent_and_it_says_why() -> None:
    walker, env = lake_agent(SLIPPERY), gymnasium.make(SLIPPERY)
    agent = nappingrl.NappingAgent(walker, domain=SLIPPERY, method="facts", detector="given")
    agent.calibrate(env, episodes=40, seed=1)
    env = agent.wrap(nappingrl.apply_novelty(env, "action-remap=3,2,1,0"))
    for episode in range(10):
        observation, _ = env.reset(seed=episode)
        is_over = False
        while not is_over:
            action = agent.predict(observation)[0]
            assert action == walker.forward(np.eye(16, dtype=np.float32)[[observation]]).actions[0]
            observation, _, terminated, truncated, _ = env.step(int(action))
            is_over = terminated or truncated
    assert agent.detected.all()
    assert agent.method.status(0) == "outcomes do not repeat, and no observation follows from itself and the action"


def test_observations_that_never_repeat_are_left_to_the_agent() -> None:
    options = {"novelty": "force=-10", "protocol": "10+6", "trials": 2, "seed": 2, "detector": "given"}
    facts, frozen = (nappingrl.run("cartpole", "ppo", method, **options).rows for method in ("facts", "frozen"))
    columns = ["episode", "return", "length"]
    assert_frame_equal(facts.select(columns), frozen.select(columns))
    agent = nappingrl.NappingAgent("ppo", domain="cartpole", method="facts", detector="given")
    env = "nappingrl/CartPole-v0"
    agent.calibrate(gymnasium.make(env), episodes=3, seed=1)
    changed = agent.wrap(gymnasium.make(env))
    changed.step(agent.predict(changed.reset(seed=0)[0])[0])
    assert agent.method.status(0) == "observations hardly ever repeat: 0 of 200 were met before"


def test_continuous_actions_are_refused_in_one_line() -> None:
    rng, low, high = np.random.default_rng(0), np.full(1, -2, np.float32), np.full(1, 2, np.float32)
    layers = [(rng.normal(size=size).astype(np.float32), np.zeros(size[1], np.float32)) for size in ((3, 4), (4, 1))]
    agent = BoxMlpAgent("push", layers, "tanh", ActionBox(low, high, False))
    with pytest.raises(NappingError, match="'facts' needs discrete actions") as raised:
        nappingrl.run("Pendulum-v1", agent, "facts", novelty="g=5", trials=1, protocol="1+1")
    assert "\n" not in str(raised.value)


def test_crossroad_is_crossed_again_whatever_changed() -> None:
    run = nappingrl.run(
        "crossroad", method="facts", novelty="all", trials=1, seed=11, protocol="40+40", detector="given"
    )
    assert run.n_trials == 9
    assert run.summary().last10_mean >= 0.7


class Alike(gymnasium.Env[np.ndarray, int]):
    """Three steps, of which the second has no effect; every episode ends in the same observation."""

    observation_space: ClassVar[gymnasium.Space[Any]] = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space: ClassVar[gymnasium.Space[Any]] = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.n_left = 3
        self.place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.place, {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.n_left -= 1
        if self.n_left != 1:
            self.place = (np.zeros(2) if not self.n_left else self.np_random.uniform(-1, 1, 2)).astype(np.float32)
        return self.place.copy(), float(not self.n_left), not self.n_left, False, {}


def test_endings_that_look_alike_and_steps_without_effect_are_no_repeats() -> None:
    weights = np.eye(2, dtype=np.float32), np.zeros(2, np.float32)
    gymnasium.register("toys/Alike-v0", entry_point=Alike, max_episode_steps=3)
    agent = nappingrl.NappingAgent(
        MlpAgent("any", [weights, weights], "tanh"), domain="toys/Alike-v0", method="facts", detector="given"
    )
    env = gymnasium.make("toys/Alike-v0")
    agent.calibrate(env, episodes=120, seed=1)
    changed = agent.wrap(env)
    changed.step(agent.predict(changed.reset(seed=0)[0])[0])
    assert agent.method.status(0) == "observations hardly ever repeat: 0 of 200 were met before"


NOTHING = Transitions(
    np.zeros((0, 1)), np.zeros((0, 2)), np.zeros((0, 1)), np.zeros(0), np.zeros(0, np.bool_), np.zeros(0, np.int64)
)


def line_trial() -> FactsTrial:
    """A trial on a line, in its first changed context."""
    trial = FactsTrial(DomainSpec(np.zeros(1), np.full(1, 99.0), n_actions=2, horizon=300))
    trial.enter(1, NOTHING)
    return trial


def test_what_the_agent_earned_is_known_again_after_a_wrong_return_to_the_original_world() -> None:
    trial = line_trial()
    trial.end_episode(-5.0, is_agents=True)
    trial.enter(0, NOTHING)
    trial.enter(1, NOTHING)
    assert trial.returns.latest == [-5.0]
    trial.enter(2, NOTHING)
    assert trial.returns.latest == []


def test_an_agent_that_is_stuck_for_an_episode_does_not_end_the_plan() -> None:
    """It bumps into one wall again and again, in a place that no earlier episode has met."""
    trial = line_trial()

    def walk(places: list[int]) -> None:
        trial.begin_episode()
        for time, (here, there) in enumerate(pairwise(places)):
            trial.learn(time, np.float32([here]), int(there > here), np.float32([there]), -1.0, False)

    for _ in range(2):
        walk(list(range(20)))
    walk([50] * 301)
    assert trial.is_active
    assert trial.why_not == ""
