"""One trial of foresight: its contexts, its plans, and its saved state."""

import numpy as np
import pytest

from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.methods.foresight.config import ForesightConfig
from nappingrl.methods.foresight.trial import ForesightTrial, TrialState
from nappingrl.snapshot import flatten, unflatten
from nappingrl.world_model.transitions import Transitions
from world_model.toy_domains import LinearWorld, unbounded

ORIGINAL = LinearWorld(-0.1 * np.eye(2), np.array([[0.0, -0.3], [0.0, 0.3]]), np.array([1.0, 0.0, 0.0]))
CHANGED = LinearWorld(-0.1 * np.eye(2), np.array([[0.3, 0.0], [-0.3, 0.0]]), np.array([1.0, 0.0, 0.0]))
NOW = 1000
"""An episode after all of those."""


def left_agent() -> Agent:
    """Always wants the second action, which lowers the reward in the changed world."""
    return MlpAgent("left", [(np.zeros((2, 2), np.float32), np.array([0, 1], np.float32))], "tanh")


def make_trial(**settings: float) -> ForesightTrial:
    config = ForesightConfig(**settings)  # type: ignore[arg-type]
    trial = ForesightTrial(left_agent(), unbounded(2), config, key=3)
    trial.begin_episode(np.zeros(2))
    return trial


def enter(trial: ForesightTrial, context: int) -> Transitions | None:
    return trial.enter(context, ORIGINAL.see(200, seed=0), NOW, is_between_episodes=False)


def test_it_plans_in_the_changed_world_and_recalls_its_policy() -> None:
    trial, since = make_trial(), CHANGED.see(60, seed=1)
    assert not trial.has_left
    enter(trial, 1)
    assert trial.has_left
    assert trial.policy is None
    trial.plan(since)
    policy = trial.policy
    assert policy is not None
    assert trial.enter(0, since, NOW, is_between_episodes=True) is None
    assert trial.policy is None
    kept = enter(trial, 1)
    assert kept is not None
    np.testing.assert_array_equal(kept.states, since.states)
    assert trial.policy is policy


def test_a_new_context_begins_with_the_agents_own_policy() -> None:
    """Also straight from another changed one."""
    trial, since = make_trial(), CHANGED.see(60, seed=1)
    enter(trial, 1)
    trial.plan(since)
    trial.enter(2, since, NOW, is_between_episodes=False)
    assert trial.policy is None
    sizes = trial.context_sizes()
    assert sizes[1] > 0
    assert sizes[2] == 0


@pytest.mark.parametrize(("least", "expected"), [(0, []), (2, [1, 1]), (3, [1, 1, 1])])
def test_actions_rarely_executed_are_probed(least: int, expected: list[int]) -> None:
    trial = make_trial(min_action_count=least)
    enter(trial, 1)
    since = CHANGED.see(60, seed=1)
    trial.plan(since.at(since.actions[:, 0] == 1), now=np.zeros(2))
    assert trial.probes == expected


def test_a_full_episode_is_judged_and_a_mixed_one_is_not() -> None:
    trial = make_trial()
    enter(trial, 1)
    trial.plan(CHANGED.see(60, seed=1))
    assert trial.policy is not None
    trial.end_episode(NOW, 5.0, is_mixed=True)
    assert trial.policy.returns == []
    trial.end_episode(NOW + 1, 7.0, is_mixed=False)
    assert trial.policy.returns == [7.0]


@pytest.mark.parametrize(("push", "is_enough"), [(0.1, True), (0.01, False)])
def test_it_plans_no_more_where_nothing_is_to_be_gained(push: float, is_enough: bool) -> None:
    """A step earns 1; the state moves away from the centre, and the episode ends far from it if the push is weak."""
    world = LinearWorld(0.1 * np.eye(2), np.array([[push, 0.0], [-push, 0.0]]), np.array([0.0, 0.0, 1.0]))
    before, since = (world.see(300, seed=seed, size=0.5) for seed in (0, 1))
    since = since._replace(terminated=np.abs(since.next_states[:, 0]) > 0.5)
    trial = make_trial()
    trial.begin_episode(np.array([0.4, 0.0]))
    trial.enter(1, before.at(np.abs(before.next_states[:, 0]) < 0.5), NOW, is_between_episodes=False)
    trial.plan(since)
    assert trial.planner is not None
    expected = trial.planner.current.expected
    assert trial.planner.is_content == is_enough
    assert trial.end_episode(NOW, expected, is_mixed=False) != is_enough
    assert trial.end_episode(NOW + 1, expected - 9.0, is_mixed=False), "a surprise"


@pytest.mark.parametrize("is_mixed", [True, False])
def test_episodes_of_others_cause_fewer_plans_while_no_policy_is_known(is_mixed: bool) -> None:
    """All these returns are surprising; those of others say nothing of the agent's own policy."""
    trial = make_trial(n_planning_episodes=2)
    enter(trial, 1)
    assert trial.planner is not None
    assert trial.policy is None
    trial.planner.frozen.expected = 100.0
    plans = [number for number in range(1, 13) if trial.end_episode(NOW + number, -100.0, is_mixed)]
    assert plans == ([1, 2, 3, 4, 6, 10] if is_mixed else list(range(1, 13)))


def test_only_the_latest_returns_count() -> None:
    trial = make_trial(max_returns=3)
    for episode in range(0, 900, 3):  # the others were discarded
        trial.end_episode(episode, float(episode), is_mixed=False)
    assert sorted(trial.state().original_returns) == [888, 891, 894, 897]
    enter(trial, 1)
    trial.plan(CHANGED.see(60, seed=1))
    assert trial.policy is not None
    for number in range(50):
        trial.end_episode(NOW + number, float(number), is_mixed=False)
    assert trial.policy.returns == [47.0, 48.0, 49.0]


def test_a_restored_trial_plans_identically() -> None:
    trial, other = make_trial(), make_trial()
    enter(trial, 1)
    trial.plan(CHANGED.see(30, seed=1))
    sizes = {"d": 2, "b": 2, "capacity": 9999, "n_actions": 2, "n_outputs": 2, "max_starts": 64, "max_policies": 6}
    sizes["min_baseline_transitions"] = 1
    other.restore(unflatten(TrialState, flatten(trial.state(), "trial"), "trial", sizes))
    for each in (trial, other):
        each.plan(CHANGED.see(60, seed=2))
    assert trial.policy is not None
    assert other.policy is not None
    np.testing.assert_array_equal(other.policy.weights, trial.policy.weights)
    assert other.policy.expected == trial.policy.expected


def test_contexts_share_the_model_of_the_original_world() -> None:
    """One each would hold most of what is remembered of a context."""
    trial = make_trial()
    models = []
    for context in (1, 2, 3):
        enter(trial, context)
        assert trial.planner is not None
        models.append(trial.planner.baseline)
        trial.enter(0, ORIGINAL.see(50, seed=context), NOW + context, is_between_episodes=True)
    assert models[0] is models[1] is models[2]
    restored = make_trial()
    restored.restore(trial.state())
    planners = [planner for planner, _ in restored._others.values() if planner is not None]
    assert len(planners) == 3
    assert len({id(planner.baseline) for planner in planners}) == 1
