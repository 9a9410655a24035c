"""Agents play in real time as in the domain."""

import numpy as np
import pytest

from domains.angrybirds.play.plays import SHORT, make_play
from nappingrl.domains.angrybirds.domain import AngryBirds
from nappingrl.domains.angrybirds.levels.templates import TEMPLATES, make_level
from nappingrl.domains.angrybirds.physics.world import World
from nappingrl.domains.angrybirds.play.autoplay import Autoplay
from nappingrl.scripted.base import Observation, ScriptedPolicy
from nappingrl.scripted.naive import NaivePolicy


class Recording(NaivePolicy):
    """Remembers what it is asked and told."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.default_rng(seed))
        self.acts: list[tuple[bytes, int]] = []
        self.lessons: list[tuple[bytes, int, bytes, float, bool, bool]] = []

    def act(self, observation: Observation) -> int:
        action = super().act(observation)
        self.acts.append((observation.tobytes(), action))
        return action

    def learn(
        self, observation: Observation, action: int, following: Observation, reward: float, ended: bool, detected: bool
    ) -> None:
        self.lessons.append((observation.tobytes(), action, following.tobytes(), reward, ended, detected))


def play_in_domain(template: str, number: int, policy: ScriptedPolicy) -> float:
    """Play one level as a trial does; returns the reward."""
    domain, row = AngryBirds(1), np.array([0])
    domain.levels = (number, number + 1)
    domain.apply(row, {"template": 1.0 + list(TEMPLATES).index(template)})
    domain.reset(row, np.zeros((1, 2)))
    ended, reward = False, 0.0
    while not ended:
        observation = domain.observe(row)[0].copy()
        action = policy.act(observation)
        rewards, terminated = domain.step(row, np.array([action]))
        reward, ended = float(rewards[0]), bool(terminated[0])
        policy.learn(observation, action, domain.observe(row)[0].copy(), reward, ended, False)
    return reward


@pytest.mark.parametrize(("template", "number", "seed"), [("bone", 3, 0), ("green-egg", 3, 1), ("pig-color", 0, 2)])
def test_a_policy_sees_and_learns_the_same_as_in_the_domain(template: str, number: int, seed: int) -> None:
    live, batch = Recording(seed), Recording(seed)
    play = make_play(make_level(template, number))
    for _ in Autoplay(live).play_level(play):
        pass
    reward = play_in_domain(template, number, batch)
    assert live.acts == batch.acts
    assert [lesson[:2] + lesson[3:] for lesson in live.lessons] == [lesson[:2] + lesson[3:] for lesson in batch.lessons]
    assert (play.n_played, play.n_won) == (1, int(reward))


@pytest.mark.parametrize("preset", ["phyq", "sailon"])
def test_live_play_ends_like_whole_shots(preset: str) -> None:
    play, world = make_play(SHORT, preset), World(SHORT, preset)
    releases: list[tuple[float, float]] = []
    launch = play.world.launch

    def record(release: tuple[float, float], tap_ms: int = 0) -> bool:
        releases.append(release)
        return launch(release, tap_ms)

    play.world.launch = record  # type: ignore[method-assign]
    for _ in Autoplay(NaivePolicy(np.random.default_rng(1))).play_level(play):
        pass
    for release in releases:
        world.shoot(release)
    assert play.world.status in ("won", "lost")
    assert (play.world.status, play.world.score) == (world.status, world.score)


def test_a_policy_is_told_of_the_novelty() -> None:
    policy = Recording(0)
    for _ in Autoplay(policy, detected=True).play_level(make_play(SHORT)):
        pass
    assert [lesson[-1] for lesson in policy.lessons] == [True] * len(policy.acts)
    assert policy.acts
