"""The replanner: changes of features, costs of operators, and its reactions to novelties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nappingrl.scripted.replanner import MIN_SPREADS, ReplannerPolicy
from nappingrl.scripted.replanner_changes import FeatureTest, Monitor
from scripted.birds_views import PIG, SLING, observe, pass_rates, shoot

TNT = ("tnt", 341.0, 204.0, 12.0, 12.0)
NEAR, FAR = ("platform", 320.0, 244.0, 26.0, 6.0), ("platform", 450.0, 236.0, 15.0, 6.0)
EGG = ("pig", 290.0, 270.0, 8.0, 15.0)
SCENE = observe(PIG, TNT, NEAR, FAR)


def at_home(scene: np.ndarray = SCENE, n: int = 10) -> ReplannerPolicy:
    """A policy that has passed some usual levels."""
    policy = ReplannerPolicy(np.random.default_rng(0))
    for _ in range(n):
        assert shoot(policy, scene, is_hit=True, detected=False) == (0, 0, 0)
    return policy


def test_cusum_hears_a_step_up_and_a_step_down() -> None:
    for value, change in ((3.0, 1), (-3.0, -1)):
        test = FeatureTest(1.0)
        assert [test.add(0.0, is_reference=True) for _ in range(5)] == [0] * 5
        assert [test.add(value, is_reference=False) for _ in range(3)] == [0, 0, change]  # 2.5 each, more than 5


def test_cusum_takes_the_new_for_usual_after_a_change() -> None:
    test = FeatureTest(1.0)
    for _ in range(5):
        test.add(0.0, is_reference=True)
    changes = [test.add(9.0, is_reference=False) for _ in range(20)]
    assert changes == [1] + [0] * 19


@given(st.lists(st.floats(-0.5, 0.5), max_size=40))
def test_cusum_is_silent_within_its_slack(values: list[float]) -> None:
    test = FeatureTest(1.0)
    for _ in range(3):
        test.add(0.0, is_reference=True)
    assert not any(test.add(value, is_reference=False) for value in values)


def test_a_feature_that_fires_before_the_novelty_is_dropped() -> None:
    monitor = Monitor({"restless": 0.1, "calm": 0.1})
    for value in (0.0, 0.0, 0.0, 5.0):
        assert monitor.add({"restless": value, "calm": 1.0}, is_novel=False) == {}
    assert monitor.features == ("calm",)
    assert monitor.add({"restless": 0.0, "calm": 9.0}, is_novel=True) == {"calm": 1}


def test_costs_follow_success() -> None:
    policy = at_home()
    assert policy.cost(("pig", 0, 0)) < policy.cost(("pig", 0, 1)) < policy.cost(("tnt", 0, 0))
    assert policy.cost(("tnt", 0, 0)) < policy.cost(("platform", 0, 0)) == policy.cost(("platform", 1, 0))
    before = policy.cost(("pig", 0, 0))
    shoot(policy, SCENE, is_hit=False)
    assert policy.cost(("pig", 0, 0)) > before


def test_one_failure_is_forgiven_and_all_operators_are_tried_in_the_end() -> None:
    policy = at_home()
    assert shoot(policy, SCENE, is_hit=False) == (0, 0, 0)
    assert shoot(policy, SCENE, is_hit=False) == (0, 0, 0)
    tried = {shoot(policy, SCENE, is_hit=False)[:2] for _ in range(14)}
    assert tried == {(slot, trajectory) for slot in range(4) for trajectory in range(2)}


def test_what_works_is_kept_through_a_failure() -> None:
    policy = at_home()
    shots = []
    for _ in range(20):
        is_far = policy.act(SCENE) // 14 == 3
        shots.append(shoot(policy, SCENE, is_hit=is_far))
    assert shots[-5:] == [(3, 0, 0)] * 5
    shoot(policy, SCENE, is_hit=False)
    assert shoot(policy, SCENE, is_hit=True) == (3, 0, 0)


def test_another_slingshot_casts_doubt_at_once() -> None:
    tall = observe(PIG, TNT, NEAR, FAR, sling=(92.0, 211.0, 12.0, 75.0))
    calm, doubtful = at_home(), at_home()
    shoot(calm, SCENE, is_hit=False)
    shoot(doubtful, tall, is_hit=False)
    assert doubtful.cost(("pig", 0, 0)) > calm.cost(("pig", 0, 0))


def test_what_has_a_pigs_colour_but_not_its_size_is_no_pig() -> None:
    policy = at_home(observe(PIG, NEAR))
    assert shoot(policy, observe(EGG, PIG, NEAR), is_hit=True) == (1, 0, 0)


def test_a_goal_that_is_no_pig_must_be_something_unfamiliar() -> None:
    policy = at_home(observe(PIG, NEAR))
    bone = ("other", 280.0, 280.0, 16.0, 5.0)
    assert shoot(policy, observe(PIG, NEAR, bone), is_hit=True)[0] == 0
    assert shoot(policy, observe(None, NEAR, bone), is_hit=True)[0] == 2


def test_restless_sizes_of_the_slingshot_are_not_listened_to() -> None:
    policy = at_home(n=9)
    assert set(policy.monitor.features) == set(MIN_SPREADS)
    left, top, width, height = SLING
    shoot(policy, observe(PIG, TNT, NEAR, FAR, sling=(left, top, width, height + 9)), is_hit=True, detected=False)
    assert set(MIN_SPREADS) - set(policy.monitor.features) == {"sling height"}


def test_an_empty_scene_is_no_reason_to_stop() -> None:
    policy = at_home()
    assert shoot(policy, observe(), is_hit=False) == (0, 0, 0)


@pytest.mark.parametrize("novelty", ["taller-slingshot", "floating-wood"])
def test_in_the_world_it_passes_some_levels(novelty: str) -> None:
    """Success rates by class, rank and trajectory do not tell variants of levels apart."""
    before, after = pass_rates(ReplannerPolicy(np.random.default_rng(0)), novelty, 12, 24)
    assert 0.2 <= before <= 0.7
    assert 0.0 < after <= 0.7
