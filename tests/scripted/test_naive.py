"""Naive shoots at any pig; Naive Adaptation, too, until the novelty, then searches for a triplet and keeps it."""

import numpy as np
import pytest

from nappingrl.domains.angrybirds.actions import split
from nappingrl.domains.angrybirds.layout import possible_actions
from nappingrl.scripted.base import ScriptedPolicy
from nappingrl.scripted.naive import NaivePolicy
from nappingrl.scripted.naive_adaptation import DELAYS, NaiveAdaptationPolicy
from scripted.birds_views import PIG, observe, pass_rates, shoot

TNT = ("tnt", 341.0, 204.0, 12.0, 12.0)
LEDGE = ("platform", 320.0, 244.0, 26.0, 6.0)
SCENE = observe(PIG, TNT, LEDGE)
CIRCLE = (78.0, 247.0, 40.0, 40.0)


def adaptive(seed: int = 0) -> NaiveAdaptationPolicy:
    return NaiveAdaptationPolicy(np.random.default_rng(seed))


def told(policy: ScriptedPolicy) -> ScriptedPolicy:
    """A policy that heard of the novelty with a shot that worked at a slot no later scene has."""
    other = observe(*[None] * 8, PIG)
    shoot(policy, other, is_hit=True)
    return policy


def test_naive_takes_pigs_low_and_high() -> None:
    policy = NaivePolicy(np.random.default_rng(1))
    shots = {split(policy.act(observe(TNT, PIG, PIG))) for _ in range(60)}
    assert shots == {(slot, trajectory, 0) for slot in (1, 2) for trajectory in (0, 1)}


def test_naive_takes_anything_where_no_pig_is_left() -> None:
    policy = NaivePolicy(np.random.default_rng(1))
    assert {split(policy.act(observe(None, TNT, LEDGE)))[0] for _ in range(60)} == {1, 2}


def test_adaptation_is_naive_until_told() -> None:
    naive, policy = NaivePolicy(np.random.default_rng(3)), adaptive(3)
    for _ in range(20):
        assert shoot(policy, SCENE, is_hit=False, detected=False) == split(naive.act(SCENE))


def test_search_goes_by_object_then_trajectory_then_delay() -> None:
    policy = told(adaptive())
    one_round = [(slot, trajectory, 0) for trajectory in (0, 1) for slot in (0, 1, 2)]
    tried = [shoot(policy, SCENE, is_hit=False) for _ in range(len(one_round) * (len(DELAYS) + 1))]
    assert tried == one_round * (len(DELAYS) + 1)  # a delay is no other shot in a world where nothing moves


def test_triplet_is_kept_while_it_works() -> None:
    policy = told(adaptive())
    shoot(policy, SCENE, is_hit=False)
    assert shoot(policy, SCENE, is_hit=True) == (1, 0, 0)
    assert [shoot(policy, SCENE, is_hit=True) for _ in range(5)] == [(1, 0, 0)] * 5
    assert shoot(policy, SCENE, is_hit=False) == (1, 0, 0)
    assert shoot(policy, SCENE, is_hit=False) == (2, 0, 0)


def test_the_shot_at_which_it_is_told_counts() -> None:
    policy = adaptive()
    slot, trajectory, _ = shoot(policy, SCENE, is_hit=True)
    assert shoot(policy, SCENE, is_hit=True) == (slot, trajectory, 0)


def test_a_pig_destroyed_counts_as_working_without_a_win() -> None:
    policy = told(adaptive())
    before = observe(PIG, TNT, PIG)
    policy.learn(before, policy.act(before), observe(PIG, TNT), 0.0, False, True)
    assert split(policy.act(before)) == (0, 0, 0)


def test_searches_on_where_the_kept_object_is_gone() -> None:
    policy = told(adaptive())
    shoot(policy, SCENE, is_hit=True)
    assert shoot(policy, observe(None, TNT, LEDGE), is_hit=True) == (1, 0, 0)


@pytest.mark.parametrize("detected", [False, True])
def test_a_slingshot_given_as_a_circle_cannot_be_read(detected: bool) -> None:
    policy = told(adaptive())
    for _ in range(10):
        seen = observe(TNT, PIG, sling=CIRCLE)
        action = policy.act(seen)
        assert not possible_actions(seen[None])[0, action], "its bird is wasted"
        policy.learn(seen, action, seen, 0.0, True, detected)


def test_an_empty_scene_is_shot_at_blindly() -> None:
    assert told(adaptive()).act(observe()) == 0


def test_in_the_world_one_triplet_is_not_enough_and_circumcircle_stops_it() -> None:
    before, after = pass_rates(adaptive(), "taller-slingshot", 12, 24)
    assert 0.1 <= before <= 0.5
    assert after <= 0.5
    before, after = pass_rates(adaptive(), "circumcircle", 12, 8)
    assert 0.1 <= before <= 0.5
    assert after == 0.0
