"""Imagined episodes and the search among rules, against slow and literal ones."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.methods.foresight.policies import (
    FROZEN,
    LINEAR,
    QUADRATIC,
    REMAP,
    RESIDUAL,
    Rule,
    act_each,
    choose,
    n_terms,
    remaps,
    score,
    shares_of,
)
from nappingrl.methods.foresight.quadric import Surface, no_surface
from nappingrl.methods.foresight.rollout import imagine_with_agent
from nappingrl.methods.foresight.search import REACH, RETURN, greatest, play, search, worth
from nappingrl.methods.foresight.terminations import Endings
from nappingrl.world_model.action_encoding import Pushes
from nappingrl.world_model.model import Model
from world_model.toy_worlds import facts_of, literal_step, make_model

Array = NDArray[np.float64]
D, HORIZON = 2, 12
SEEDS = st.integers(0, 10**6)


def make_endings(*rows: tuple[list[tuple[int, int, float]], float], bad: Surface | None = None) -> Endings:
    """Endings by their conditions (observation, side, limit) and rewards."""
    shape = len(rows), D
    dims, sides, limits = np.full(shape, -1), np.zeros(shape, np.int64), np.zeros(shape)
    for k, (conditions, _) in enumerate(rows):
        for q, (dim, side, limit) in enumerate(conditions):
            dims[k, q], sides[k, q], limits[k, q] = dim, side, limit
    rewards = np.array([reward for _, reward in rows], np.float64)
    return Endings(dims, sides, limits, rewards, bad or no_surface(), no_surface(), 0)


def circle(reward: float) -> Surface:
    """Ends beyond x^2 + y^2 = 4."""
    return Surface(np.zeros(2), np.ones(2), np.array([0.0, 0.0, 1.0, 0.0, 1.0]), 4.0, reward)


def world_of(seed: int, n_pushes: int = 2, rewards: tuple[float, float] = (-1.0, 1.0)) -> Model:
    """A world of random weights whose steps all earn something between these two rewards: by the action alone."""
    rng = np.random.default_rng(seed)
    model = make_model(rng, D, n_pushes, has_products=bool(seed % 2), size=0.2)
    model.shared[D] = 0.0
    model.affine[D] = 0.0
    model.affine[D, :, D] = rng.uniform(*rewards, n_pushes)
    return model


def literal_play(
    model: Model, endings: Endings, kind: int, theta: Array, is_discrete: bool, start: Array, noise: Array, goal: int
) -> float:
    """One imagined episode, as it is described."""
    state, states, total = start, [start], 0.0
    for row in noise:
        z = (state - model.frame.centre) / model.frame.scale
        terms = [*z, 1.0]
        if kind == QUADRATIC:
            terms += [z[i] * z[j] for i in range(D) for j in range(i, D)]
        scores = theta @ np.array(terms)
        if is_discrete:
            push = np.eye(len(theta))[int(np.argmax(scores))]
        else:
            shares = np.clip(scores, -1, 1)
            push = np.concatenate([[1.0], shares, shares**2])
        after, reward = literal_step(model, state, push)
        state = np.clip(after + model.noise * row, model.low, model.high)
        states.append(state)
        last = literal_ending(endings, state)
        total += reward if last is None else last
        if last is not None:
            break
    if goal == REACH:
        return float((np.ptp(states, axis=0) / model.frame.scale).sum())
    return total


def literal_ending(endings: Endings, state: Array) -> float | None:
    """The reward of the first ending that holds."""
    for dims, sides, limits, reward in zip(*endings[:4], strict=True):
        if all(
            side * state[dim] > side * limit for dim, side, limit in zip(dims, sides, limits, strict=True) if dim >= 0
        ):
            return float(reward)
    if len(endings.bad.weights) and state @ state > endings.bad.limit:
        return endings.bad.reward
    return None


def rule_of(seed: int, kind: int, n_outputs: int) -> Array:
    return np.random.default_rng([seed, 1]).normal(size=(n_outputs, n_terms(kind, D)))


ENDINGS = {
    "none": make_endings(),
    "bad": make_endings(([(0, 1, 1.0)], -5.0), ([(1, -1, -1.5)], -0.5)),
    "wanted": make_endings(([(0, 1, 0.7), (1, 1, 0.0)], 4.0)),
    "both": make_endings(([(0, -1, -1.0)], -2.0), ([(0, 1, 1.2)], 3.0)),
    "circle": make_endings(bad=circle(-1.0)),
}
KIND = st.sampled_from([LINEAR, QUADRATIC])
ENDING = st.sampled_from(list(ENDINGS.values()))


def scene(seed: int, n: int = 3) -> tuple[Array, Array]:
    """Starts and noise."""
    rng = np.random.default_rng([seed, 2])
    return rng.uniform(-0.5, 0.5, (n, D)), rng.normal(size=(n, HORIZON, D))


# ---- imagined episodes --------------------------------------------------------------------------------------------


@given(SEEDS, KIND, st.booleans(), st.sampled_from([RETURN, REACH]), ENDING)
@settings(max_examples=60, deadline=None)
def test_play_is_the_literal_loop(seed: int, kind: int, is_discrete: bool, goal: int, endings: Endings) -> None:
    n_outputs = 3 if is_discrete else 2
    model = world_of(seed, 3 if is_discrete else 5)
    theta, (starts, noise) = rule_of(seed, kind, n_outputs), scene(seed, 1)
    found = play(model, endings, kind, theta, is_discrete, starts[0], noise[0], goal, 9.0, 9.0, -np.inf)
    expected = literal_play(model, endings, kind, theta, is_discrete, starts[0], noise[0], goal)
    assert found == pytest.approx(expected, abs=1e-9)


@given(SEEDS, KIND, ENDING)
@settings(max_examples=20, deadline=None)
def test_worth_is_the_mean_over_the_starts(seed: int, kind: int, endings: Endings) -> None:
    model, theta, (starts, noise) = world_of(seed), rule_of(seed, kind, 2), scene(seed)
    found = worth(model, endings, kind, theta, True, starts, noise, RETURN, 9.0, 9.0, -np.inf)
    each = [literal_play(model, endings, kind, theta, True, s, e, RETURN) for s, e in zip(starts, noise, strict=True)]
    assert found == pytest.approx(np.mean(each), abs=1e-9)


def test_the_greatest_that_steps_can_earn() -> None:
    assert greatest(1.0, 0.0, 5) == 5.0
    assert greatest(1.0, 10.0, 5) == 14.0
    assert greatest(-1.0, -1.0, 5) == 0.0  # it may be over at once
    assert greatest(-1.0, 3.0, 5) == 3.0
    assert greatest(1.0, 10.0, 0) == 0.0


@given(
    SEEDS,
    KIND,
    st.sampled_from([(0.2, 1.0), (1.0, 1.0), (-1.0, -0.2), (-1.0, -1.0), (-1.0, 1.0), (0.0, 0.0)]),
    ENDING,
    st.floats(-3, 3) | st.sampled_from([-1e-3, 1e-3]),
)
@settings(max_examples=200, deadline=None)
def test_giving_up_early_never_changes_what_is_accepted(
    seed: int, kind: int, rewards: tuple[float, float], endings: Endings, offset: float
) -> None:
    """With the tightest bounds that are right."""
    model, theta, (starts, noise) = world_of(seed, rewards=rewards), rule_of(seed, kind, 2), scene(seed)
    per_step = float(model.affine[D, :, D].max())
    at_end = max([*endings.rewards.tolist(), *[endings.bad.reward] * bool(len(endings.bad.weights))], default=0.0)
    bounds = (RETURN, per_step, at_end)
    full = worth(model, endings, kind, theta, True, starts, noise, *bounds, -np.inf)
    least = full + offset if abs(offset) > 1e-9 else full - 1e-9
    found = worth(model, endings, kind, theta, True, starts, noise, *bounds, least)
    if full >= least:
        assert found == full
    else:
        assert found < least


@given(SEEDS, st.sampled_from([(1.0, 1.0), (0.0, 0.0), (-1.0, -1.0)]), ENDING)
@settings(max_examples=40, deadline=None)
def test_a_rule_that_is_worth_just_as_much_is_accepted(
    seed: int, rewards: tuple[float, float], endings: Endings
) -> None:
    """Sums of whole numbers have no rounding that could hide it."""
    model, theta, (starts, noise) = world_of(seed, rewards=rewards), rule_of(seed, LINEAR, 2), scene(seed, 4)
    bounds = (RETURN, rewards[1], 4.0)
    full = worth(model, endings, LINEAR, theta, True, starts, noise, *bounds, -np.inf)
    assert worth(model, endings, LINEAR, theta, True, starts, noise, *bounds, full) == full


# ---- search -------------------------------------------------------------------------------------------------------


def find(
    seed: int,
    endings: Endings,
    known: Array,
    key: int,
    goal: int = RETURN,
    kind: int = LINEAR,
    n: tuple[int, int, int] = (20, 2, 10),
) -> tuple[float, Array, tuple[Any, ...]]:
    """What the search returns, the rule, and the arguments of `worth` for it."""
    model, (starts, noise) = world_of(seed), scene(seed)
    best = np.full((2, n_terms(kind, D)), np.nan)
    bounds = (goal, float(model.affine[D, :, D].max()), max(endings.rewards.tolist(), default=0.0))
    found = search(model, endings, kind, True, starts, noise, *bounds, known, *n, np.uint64(key), best)
    return found, best, (model, endings, kind, best, True, starts, noise, *bounds, -np.inf)


NOTHING = np.zeros((0, 2, D + 1))


@given(SEEDS, st.sampled_from([RETURN, REACH]), st.sampled_from(["none", "bad", "wanted", "both"]), KIND)
@settings(max_examples=25, deadline=None)
def test_a_found_rule_is_worth_what_is_said(seed: int, goal: int, name: str, kind: int) -> None:
    nothing = np.zeros((0, 2, n_terms(kind, D)))
    found, best, arguments = find(seed, ENDINGS[name], nothing, seed, goal, kind)
    assert np.isfinite(best).all()
    assert found == worth(*arguments)


@given(SEEDS, st.integers(0, 2**64 - 1))
@settings(max_examples=10, deadline=None)
def test_the_search_is_decided_by_its_key(seed: int, key: int) -> None:
    (found, best, _), (again, same, _) = (find(seed, ENDINGS["both"], NOTHING, key) for _ in range(2))
    assert found == again
    np.testing.assert_array_equal(best, same)
    assert not np.array_equal(best, find(seed, ENDINGS["both"], NOTHING, key ^ 1)[1])


@given(SEEDS, st.integers(1, 12), st.sampled_from(list(ENDINGS)))
@settings(max_examples=30, deadline=None)
def test_the_search_is_never_worse_than_the_known_rules(seed: int, n_known: int, name: str) -> None:
    """More of them than it lets mutate, too; and without any search the best of them is it."""
    known = np.random.default_rng(seed).normal(size=(n_known, 2, D + 1))
    found, _, arguments = find(seed, ENDINGS[name], known, seed)
    model, endings, kind, _, *rest = arguments
    worths = [worth(model, endings, kind, theta, *rest) for theta in known]
    assert found >= max(worths)
    alone, best, _ = find(seed, ENDINGS[name], known, seed, n=(0, 0, 0))
    assert alone == max(worths)
    assert any(np.array_equal(best, theta) for theta, value in zip(known, worths, strict=True) if value == alone)


def test_more_search_finds_more() -> None:
    few = [find(seed, ENDINGS["both"], NOTHING, 1, n=(3, 0, 0))[0] for seed in range(20)]
    many = [find(seed, ENDINGS["both"], NOTHING, 1, n=(30, 3, 20))[0] for seed in range(20)]
    assert all(a <= b for a, b in zip(few, many, strict=True))  # the same first rules
    assert np.mean(many) > np.mean(few) + 0.1


# ---- rules --------------------------------------------------------------------------------------------------------

RATIOS = st.lists(st.floats(0.25, 4), min_size=D, max_size=D).map(np.array)


@given(SEEDS, KIND, RATIOS)
@settings(max_examples=50, deadline=None)
def test_a_rescaled_rule_does_the_same(seed: int, kind: int, ratio: Array) -> None:
    """Where the frame's scale grows z shrinks, and all scores, so all choices, stay what they were."""
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(3, n_terms(kind, D)))
    z = rng.normal(size=D)
    before = [score(kind, row, z) for row in theta]
    rule = Rule(kind, theta.copy(), [3.0], 4.0, 5.0).rescaled(ratio)
    after = [score(kind, row, z / ratio) for row in rule.theta]
    np.testing.assert_allclose(after, before, atol=1e-9)
    if np.diff(np.sort(before))[-1] > 1e-9:
        assert choose(kind, rule.theta, z / ratio) == choose(kind, theta, z) == int(np.argmax(before))
    assert (rule.kind, rule.returns, rule.expected, rule.estimate) == (kind, [3.0], 4.0, 5.0)


@given(SEEDS, st.sampled_from([LINEAR, QUADRATIC, RESIDUAL]), RATIOS)
@settings(max_examples=50, deadline=None)
def test_a_rescaled_rule_of_continuous_actions_does_the_same(seed: int, kind: int, ratio: Array) -> None:
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=(2, n_terms(kind, D) + (kind == RESIDUAL)))
    z, wanted = rng.normal(size=(4, D)), rng.uniform(-1, 1, (4, 2))
    before = shares_of(Rule(kind, theta.copy()), z, wanted)
    after = shares_of(Rule(kind, theta.copy()).rescaled(ratio), z / ratio, wanted)
    np.testing.assert_allclose(after, before, atol=1e-9)
    assert (np.abs(before) <= 1).all()


@pytest.mark.parametrize(("kind", "theta"), [(REMAP, [[1.0, 0.0]]), (FROZEN, [[0.0]])])
def test_rules_that_do_not_look_at_the_state_are_not_rescaled(kind: int, theta: list[list[float]]) -> None:
    rule = Rule(kind, np.array(theta)).rescaled(np.array([2.0, 3.0]))
    assert rule.theta.tolist() == theta


def test_other_meanings_of_the_actions() -> None:
    assert [order.tolist() for order in remaps(2)] == [[[1, 0]]]
    assert len(remaps(3)) == 5
    assert len(remaps(4)) == 23
    six = [tuple(order[0].astype(int).tolist()) for order in remaps(6)]
    assert six[0] == (5, 4, 3, 2, 1, 0)
    assert len(set(six)) == 1 + 15
    assert (0, 1, 2, 3, 4, 5) not in six
    assert all(sorted(order) == list(range(6)) for order in six)


def test_rules_act_row_by_row() -> None:
    """Frozen as wanted, a remap of what is wanted, a line through the standardised state."""
    kinds = np.array([FROZEN, REMAP, LINEAR])
    thetas = np.zeros((3, 2, 4))
    thetas[1, 0, :2] = [1, 0]
    thetas[2, 1, :3] = [1.0, 0.0, -0.5]  # action 1 where z0 > 0.5
    centres, scales = np.tile([1.0, 0.0], (3, 1)), np.tile([2.0, 1.0], (3, 1))
    for x, expected in ((1.9, [1, 1, 0]), (2.1, [1, 1, 1])):  # z0 = 0.45, 0.55
        observations = np.tile(np.array([x, 7.0], np.float32), (3, 1))
        actions = np.array([1, 0, 0])
        act_each(kinds, thetas, centres, scales, np.arange(3), observations, actions)
        assert actions.tolist() == expected


def test_the_first_of_equal_actions_is_chosen() -> None:
    assert choose(LINEAR, np.zeros((3, D + 1)), np.ones(D)) == 0


# ---- with the agent -----------------------------------------------------------------------------------------------

FACTS = facts_of([-3, -3], [3, 3], 2)


def line_agent() -> Agent:
    """Wants action 1 where x + y > 0."""
    return MlpAgent("line", [(np.array([[-1, 1], [-1, 1]], np.float32), np.zeros(2, np.float32))], "tanh")


def literal_with_agent(model: Model, endings: Endings, order: list[int], starts: Array, noise: Array) -> float:
    total = 0.0
    for state, rows in zip(starts, noise, strict=True):
        for row in rows:
            wanted = int(line_agent().forward(state[None].astype(np.float32)).actions[0])
            after, reward = literal_step(model, state, np.eye(2)[order[wanted]])
            state = np.clip(after + model.noise * row, model.low, model.high)
            last = literal_ending(endings, state)
            total += reward if last is None else last
            if last is not None:
                break
    return total / len(starts)


@given(SEEDS, ENDING, st.floats(-4, 1))
@settings(max_examples=25, deadline=None)
def test_episodes_with_the_agent_are_the_literal_loop(seed: int, endings: Endings, offset: float) -> None:
    """For the agent and for a remap of its actions; one that is given up earns less than what is returned."""
    model, (starts, noise) = world_of(seed, rewards=(-1.0, -0.1)), scene(seed)
    rules = [Rule(FROZEN, np.zeros((1, 1))), Rule(REMAP, np.array([[1.0, 0.0]]))]
    full = [literal_with_agent(model, endings, order, starts, noise) for order in ([0, 1], [1, 0])]
    arguments = (model, endings, line_agent(), Pushes(FACTS), rules, starts, noise)
    np.testing.assert_allclose(imagine_with_agent(*arguments, 1.0, np.full(len(rules), np.inf)), full, atol=1e-9)
    if max(endings.rewards.tolist(), default=0.0) <= 0:
        least = float(np.mean(full)) + offset
        for found, expected in zip(imagine_with_agent(*arguments, 0.0, np.full(len(rules), least)), full, strict=True):
            if expected >= least:
                assert found == pytest.approx(expected, abs=1e-9)
            else:
                assert expected - 1e-9 <= found < least
