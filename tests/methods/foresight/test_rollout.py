"""Rollouts, against slow and literal ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from methods.foresight.scenes import (
    HORIZON,
    KIND,
    SEEDS,
    TERMINATION,
    Array,
    literal_path,
    literal_rollout,
    literal_terminal_reward,
    rollouts_of,
    weights_of,
)
from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.methods.foresight.agent_rollouts import evaluate_with_agent, imagine
from nappingrl.methods.foresight.policies import LINEAR, REMAP, SimplePolicy, frozen_policy, remaps
from nappingrl.methods.foresight.rollout import (
    COVERAGE,
    RETURN,
    Rollouts,
    evaluate,
    make_scratch,
    max_return,
    rollout,
)
from nappingrl.methods.foresight.terminations import Terminations
from nappingrl.world_model.action_encoding import ActionEncoding
from world_model.toy_domains import domain_of, literal_step


@given(SEEDS, KIND, st.booleans(), st.sampled_from([RETURN, COVERAGE]), TERMINATION)
@settings(max_examples=60, deadline=None)
def test_a_rollout_is_the_literal_loop(
    seed: int, kind: int, is_discrete: bool, goal: int, terminations: Terminations
) -> None:
    n_outputs, action_size = (3, 3) if is_discrete else (2, 5)
    rollouts = rollouts_of(seed, terminations, 1, goal, is_discrete=is_discrete, action_size=action_size)
    weights = weights_of(seed, kind, n_outputs)
    found = rollout(rollouts, 0, kind, weights, -np.inf, np.empty((0, 0)), make_scratch(rollouts))
    assert found == pytest.approx(literal_rollout(rollouts, 0, kind, weights), abs=1e-9)


@given(SEEDS, KIND, TERMINATION, st.integers(1, HORIZON))
@settings(max_examples=30, deadline=None)
def test_the_imagined_states_are_those_of_a_rollout_without_noise(
    seed: int, kind: int, terminations: Terminations, n_steps: int
) -> None:
    rollouts = rollouts_of(seed, terminations, 1)
    policy = SimplePolicy(kind, weights_of(seed, kind, 2))
    calm = rollouts._replace(noise=np.zeros_like(rollouts.noise))
    _, expected = literal_path(calm, 0, kind, policy.weights)
    encoding = ActionEncoding(domain_of([-3, -3], [3, 3], 2))
    found = imagine(rollouts, line_agent(), encoding, policy, rollouts.starts[0], n_steps)
    np.testing.assert_allclose(found, expected[1 : n_steps + 1], atol=1e-9)


@given(SEEDS, KIND, TERMINATION)
@settings(max_examples=20, deadline=None)
def test_a_value_is_the_mean_over_the_rollouts(seed: int, kind: int, terminations: Terminations) -> None:
    rollouts, weights = rollouts_of(seed, terminations), weights_of(seed, kind, 2)
    each = [literal_rollout(rollouts, number, kind, weights) for number in range(3)]
    assert evaluate(rollouts, kind, weights, -np.inf) == pytest.approx(np.mean(each), abs=1e-9)


def test_the_most_that_steps_can_earn() -> None:
    assert max_return(1.0, 0.0, 5) == 5.0
    assert max_return(1.0, 10.0, 5) == 14.0
    assert max_return(-1.0, -1.0, 5) == 0.0  # it may be over at once
    assert max_return(-1.0, 3.0, 5) == 3.0
    assert max_return(1.0, 10.0, 0) == 0.0


@given(
    SEEDS,
    KIND,
    st.sampled_from([(0.2, 1.0), (1.0, 1.0), (-1.0, -0.2), (-1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)]),
    TERMINATION,
    st.floats(-3, 3) | st.sampled_from([-1e-3, 1e-3]),
)
@settings(max_examples=200, deadline=None)
def test_early_stopping_never_changes_what_is_accepted(
    seed: int, kind: int, rewards: tuple[float, float], terminations: Terminations, offset: float
) -> None:
    rollouts, weights = rollouts_of(seed, terminations, rewards=rewards), weights_of(seed, kind, 2)
    full = evaluate(rollouts, kind, weights, -np.inf)
    least = full + offset if abs(offset) > 1e-9 else full - 1e-9
    found = evaluate(rollouts, kind, weights, least)
    if full >= least:
        assert found == full
    else:
        assert found < least


@given(SEEDS, st.sampled_from([(1.0, 1.0), (0.0, 0.0), (-1.0, -1.0)]), TERMINATION)
@settings(max_examples=40, deadline=None)
def test_a_policy_of_exactly_the_least_value_is_accepted(
    seed: int, rewards: tuple[float, float], terminations: Terminations
) -> None:
    """Sums of whole numbers have no rounding that could hide it."""
    rollouts = rollouts_of(seed, terminations, 4, rewards=rewards)._replace(max_terminal_reward=4.0)
    weights = weights_of(seed, LINEAR, 2)
    full = evaluate(rollouts, LINEAR, weights, -np.inf)
    assert evaluate(rollouts, LINEAR, weights, full) == full


# ---- with the agent


def line_agent() -> Agent:
    """Wants action 1 where x + y > 0."""
    return MlpAgent("line", [(np.array([[-1, 1], [-1, 1]], np.float32), np.zeros(2, np.float32))], "tanh")


def literal_with_agent(rollouts: Rollouts, order: list[int]) -> float:
    return literal_path_with_agent(rollouts, order)[0]


def literal_path_with_agent(rollouts: Rollouts, order: list[int]) -> tuple[float, list[Array]]:
    """The mean return, and the states of all rollouts one after the other."""
    model, total, states = rollouts.model, 0.0, []
    for start, noise in zip(rollouts.starts, rollouts.noise, strict=True):
        state: Array = start
        for row in noise:
            wanted = int(line_agent().forward(state[None].astype(np.float32)).actions[0])
            after, reward = literal_step(model, state, np.eye(2)[order[wanted]])
            state = np.clip(after + model.noise * row, model.low, model.high)
            states.append(state)
            last = literal_terminal_reward(rollouts.terminations, state)
            total += reward if last is None else last
            if last is not None:
                break
    return total / len(rollouts.starts), states


@given(SEEDS, TERMINATION, st.sampled_from([[0, 1], [1, 0]]))
@settings(max_examples=20, deadline=None)
def test_the_imagined_states_of_a_remap_are_those_of_the_agents_rollout(
    seed: int, terminations: Terminations, order: list[int]
) -> None:
    rollouts = rollouts_of(seed, terminations, 1)
    _, expected = literal_path_with_agent(rollouts._replace(noise=np.zeros_like(rollouts.noise)), order)
    policy = SimplePolicy(REMAP, np.array([order], np.float64))
    encoding = ActionEncoding(domain_of([-3, -3], [3, 3], 2))
    found = imagine(rollouts, line_agent(), encoding, policy, rollouts.starts[0], HORIZON)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@given(SEEDS, TERMINATION, st.floats(-4, 1))
@settings(max_examples=25, deadline=None)
def test_rollouts_with_the_agent_are_the_literal_loop(seed: int, terminations: Terminations, offset: float) -> None:
    """For the agent and for a remap of its actions; one that is stopped earns less than the value returned."""
    rollouts = rollouts_of(seed, terminations, rewards=(-1.0, -0.1))
    policies = [frozen_policy(), SimplePolicy(REMAP, np.array([[1.0, 0.0]]))]
    full = [literal_with_agent(rollouts, order) for order in ([0, 1], [1, 0])]
    asked = line_agent(), ActionEncoding(domain_of([-3, -3], [3, 3], 2)), policies
    unbounded = rollouts._replace(max_reward=1.0)
    np.testing.assert_allclose(evaluate_with_agent(unbounded, *asked, np.full(2, np.inf)), full, atol=1e-9)
    if terminations.max_reward <= 0:
        least = float(np.mean(full)) + offset
        values = evaluate_with_agent(rollouts._replace(max_reward=0.0), *asked, np.full(2, least))
        for found, expected in zip(values, full, strict=True):
            if expected >= least:
                assert found == pytest.approx(expected, abs=1e-9)
            else:
                assert expected - 1e-9 <= found < least


class WithoutKernel(MlpAgent):
    """Is only asked from Python."""

    def network(self) -> None:
        return None


@given(
    SEEDS, TERMINATION, st.sampled_from([(-1.0, -0.1), (0.2, 1.0)]), st.floats(-4, 1), st.sampled_from(["tanh", "relu"])
)
@settings(max_examples=40, deadline=None)
def test_the_kernel_rolls_out_like_the_python_composition(
    seed: int, terminations: Terminations, rewards: tuple[float, float], least: float, activation: str
) -> None:
    rollouts = rollouts_of(seed, terminations, 4, rewards=rewards, action_size=3)
    rng = np.random.default_rng(seed)
    layers = [
        (rng.normal(size=(a, b)).astype(np.float32), rng.normal(size=b).astype(np.float32))
        for a, b in ((2, 8), (8, 5), (5, 3))
    ]
    policies = [frozen_policy(), *(SimplePolicy(REMAP, order) for order in remaps(3))]
    encoding = ActionEncoding(domain_of([-3, -3], [3, 3], 3))
    found = [
        evaluate_with_agent(rollouts, kind("net", layers, activation), encoding, policies, np.full(6, least * HORIZON))
        for kind in (MlpAgent, WithoutKernel)
    ]
    assert found[0] == found[1]
