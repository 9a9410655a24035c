"""Foresight outside of trials: saved it goes on as if nothing had happened; unfinished episodes do not count."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from nappingrl import NappingAgent
from nappingrl.methods.foresight import Foresight

CALM: dict[str, float] = {}
STORM = {"force": 30.0, "length": 2.0, "gravity": 30.0}


class Player:
    """Plays an agent step by step, so that it can be stopped anywhere."""

    def __init__(self, agent: NappingAgent, seed: int = 3) -> None:
        self.agent, self.env = agent, agent.wrap(gymnasium.make("nappingrl/CartPole-v0"))
        self.seed: int | None = seed
        self.params = CALM
        self.observation: Any = None

    def enter(self, params: dict[str, float]) -> None:
        self.params, self.observation = params, None

    def play(self, steps: int) -> list[int]:
        """The actions of some steps."""
        actions = []
        for _ in range(steps):
            if self.observation is None:
                self.observation, _ = self.env.reset(seed=self.seed, options={"params": self.params})
                self.seed = None
            actions.append(int(self.agent.predict(self.observation)[0]))
            self.observation, _, terminated, truncated, _ = self.env.step(actions[-1])
            if terminated or truncated:
                self.observation = None
        return actions


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("steps", [20, 60, 500])
def test_it_goes_on_identically(tmp_path: Path, steps: int, guard: bool) -> None:
    """Saved between the first plans, and when rules have proved themselves."""
    options: dict[str, Any] = {"domain": "cartpole", "method": "foresight", "detector": "given", "guard": guard}
    made = Player(NappingAgent("dqn", **options))
    made.enter(STORM)
    made.play(steps)
    path = made.agent.save(tmp_path / "saved")
    loaded = NappingAgent.load(path)
    assert loaded.describe_policy() == made.agent.describe_policy()
    assert loaded.contexts() == made.agent.contexts()
    players = Player(made.agent, 8), Player(loaded, 8)
    for player in players:
        player.enter(STORM)
    assert players[0].play(400) == players[1].play(400)
    assert loaded.describe_policy() == made.agent.describe_policy() != ""


@pytest.mark.filterwarnings("ignore:.*waits for an alarm:nappingrl.AdaptationWarning")
def test_worlds_that_were_left_are_kept(tmp_path: Path) -> None:
    """By its own detector, which has known forty episodes before the storm and the calm after it."""
    made = Player(NappingAgent("ppo", domain="cartpole", method="foresight"))
    made.play(40 * 200)
    made.enter(STORM)
    made.play(600)
    rule = made.agent.describe_policy()
    assert rule
    made.enter(CALM)
    made.play(800)
    assert (made.agent.describe_policy(), made.agent.detected.tolist()) == ("", [False])
    players = made, Player(NappingAgent.load(made.agent.save(tmp_path / "saved")))
    for player in players:
        player.seed = 5
        player.enter(STORM)
    assert players[0].play(300) == players[1].play(300)
    assert players[1].agent.describe_policy()
    assert players[1].agent.contexts() == players[0].agent.contexts()
    assert set(players[1].agent.contexts()) == {"as trained", "novelty 1"}


def test_what_an_unfinished_episode_earned_does_not_count() -> None:
    """A user who resets after ten steps, over and over, does not make the rule look bad."""
    made = Player(NappingAgent("ppo", domain="cartpole", method="foresight", detector="given"))
    made.enter(STORM)
    made.play(600)
    method = made.agent.method
    assert isinstance(method, Foresight)
    planner = method.trials[0].planner
    assert planner is not None
    before = [list(policy.returns) for policy in [planner.frozen, *planner.policies]]
    for _ in range(5):
        made.enter(STORM)
        made.play(10)
    after = [list(policy.returns) for policy in [planner.frozen, *planner.policies]]
    assert after == before
    assert np.allclose(method._episodes.total, 10)
