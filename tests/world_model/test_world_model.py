"""A world's dynamics, fitted from what was seen: hand-made worlds are found again."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from nappingrl.world_model.action_encoding import Pushes
from nappingrl.world_model.basis import design, make_frame
from nappingrl.world_model.model import Model, Prior, fit, imagine, imagine_each, is_free, predict
from nappingrl.world_model.transitions import Memory, Seen
from world_model.toy_worlds import LinearWorld, facts_of, literal_step, make_model, roll, seen_of, unbounded

OLD = LinearWorld(
    np.array([[0.0, 0.1], [-0.2, -0.05]]), np.array([[0.0, -0.3], [0.0, 0.3]]), np.array([0.5, -0.2, 1.0])
)
NEW = LinearWorld(
    np.array([[0.0, 0.1], [-0.2, -0.05]]), np.array([[0.1, 0.5], [0.1, -0.4]]), np.array([0.5, -0.2, -1.0])
)


def rewards_of(model: Model, seen: Seen) -> NDArray[np.float64]:
    nexts, rewards = np.empty_like(seen.nexts), np.empty(len(seen.rewards))
    imagine_each(model, seen.states, seen.pushes, nexts, rewards)
    return rewards


def error_of(model: Model, seen: Seen) -> float:
    """The greatest error of a next observation or a reward."""
    wrong = np.column_stack([predict(model, seen) - seen.nexts, rewards_of(model, seen) - seen.rewards])
    return float(np.abs(wrong).max())


# ---- the fit ------------------------------------------------------------------------------------------------------


def test_a_linear_world_is_recovered() -> None:
    """Next observations and rewards, to a thousandth, of steps that the fit has not seen; noise is a small share."""
    model = fit(Prior(OLD.see(400, seed=0), unbounded(2)))
    fresh = OLD.see(100, seed=1, size=0.9)
    assert error_of(model, fresh) < 1e-3
    typical = np.sqrt(((fresh.nexts - fresh.states) ** 2).mean(axis=0))
    np.testing.assert_allclose(model.noise / typical, 0.02, rtol=0.2)


def test_the_affine_part_extrapolates() -> None:
    model = fit(Prior(OLD.see(400, seed=0), unbounded(2)))
    assert error_of(model, OLD.see(50, seed=1, size=3.0)) < 0.02


def test_a_few_steps_of_the_new_world_correct_the_fit() -> None:
    prior = Prior(OLD.see(400, seed=0), unbounded(2))
    fresh = NEW.see(100, seed=1, size=0.9)
    assert error_of(fit(prior), fresh) > 1.9  # the reward fell by 2
    assert error_of(fit(prior, NEW.see(20, seed=2)), fresh) < 0.19
    assert error_of(fit(prior, NEW.see(100, seed=2)), fresh) < 2e-3


def test_nothing_seen_since_leaves_the_prior() -> None:
    prior, nothing = Prior(OLD.see(200, seed=0), unbounded(2)), OLD.see(0, seed=0)
    for mine, theirs in zip(fit(prior, nothing)[1:], fit(prior)[1:], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_what_was_not_seen_again_stays_as_it_was() -> None:
    """Only the first action was tried in the new world: the second one keeps its old effect."""
    prior, seen = Prior(OLD.see(400, seed=0), unbounded(2)), NEW.see(60, seed=1)
    model = fit(prior, seen.at(seen.pushes[:, 0] == 1))
    second = OLD.see(100, seed=2, size=0.9)
    second = second.at(second.pushes[:, 1] == 1)
    assert np.abs(predict(model, second) - second.nexts).max() < 0.1


def test_the_reward_is_that_of_steps_that_end_nothing() -> None:
    seen = OLD.see(400, seed=0)
    ended = np.arange(400) % 10 == 9
    rewards = np.where(ended, -100.0, seen.rewards)
    model = fit(Prior(seen._replace(ended=ended, rewards=rewards), unbounded(2)))
    fresh = OLD.see(100, seed=1, size=0.9)
    np.testing.assert_allclose(rewards_of(model, fresh), fresh.rewards, atol=1e-3)


def test_curves_are_found() -> None:
    """x changes by a polynomial of degree four."""
    rng = np.random.default_rng(0)
    x, pushes = rng.uniform(-1, 1, (600, 1)), np.eye(2)[rng.integers(2, size=600)]
    seen = seen_of(x, pushes, x + 0.3 * x**4 - 0.5 * x**3 + 0.1 * pushes[:, :1])
    model = fit(Prior(seen.at(slice(0, 500)), unbounded(1)))
    assert error_of(model, seen.at(slice(500, 600))) < 2e-3


# ---- followers ----------------------------------------------------------------------------------------------------


def with_followers(n: int, seed: int, noise: float = 0.05) -> Seen:
    """v is pushed, with noise, and x moves by the new v: x' = x + 0.1 v'."""
    rng = np.random.default_rng(seed)
    states, actions = rng.uniform(-1, 1, (n, 2)), rng.integers(2, size=n)
    v = states[:, 1] + np.array([-0.2, 0.2])[actions] + noise * rng.normal(size=n)
    return seen_of(states, np.eye(2)[actions], np.column_stack([states[:, 0] + 0.1 * v, v]))


@pytest.mark.parametrize("n_since", [0, 12, 100])
def test_a_position_that_moves_by_the_new_velocity_follows_it(n_since: int) -> None:
    prior = Prior(with_followers(300, seed=0), unbounded(2))
    model = fit(prior, with_followers(n_since, seed=1))
    assert model.follows.tolist() == [1, -1]
    fresh = with_followers(50, seed=2)
    after = predict(model, fresh)
    np.testing.assert_allclose(after[:, 0], fresh.states[:, 0] + 0.1 * after[:, 1], atol=1e-4)
    assert model.noise[0] == pytest.approx(0.02 * 0.1 * 0.6, rel=0.5)  # nothing is left: the least share of a step
    if n_since != 12:
        assert 0.03 < model.noise[1] < 0.07


def test_seven_steps_are_too_few_to_find_a_follower() -> None:
    prior = Prior(with_followers(300, seed=0), unbounded(2))
    assert fit(prior, with_followers(7, seed=1)).follows.tolist() == [-1, -1]


@pytest.mark.parametrize(("d", "n_actions", "n"), [(2, 2, 8), (2, 2, 40), (4, 2, 8), (4, 2, 16), (6, 3, 8), (6, 3, 40)])
def test_observations_that_have_nothing_to_do_with_each_other_do_not_follow(d: int, n_actions: int, n: int) -> None:
    """However few the steps are: as many weights as steps explain anything."""
    world = LinearWorld(-0.1 * np.eye(d), np.zeros((n_actions, d)), np.zeros(d + 1), noise=0.1)
    prior = Prior(world.see(300, seed=0), unbounded(d, n_actions))
    found = [fit(prior, world.see(n, seed=seed)).follows.tolist() for seed in range(1, 6)]
    assert found == [[-1] * d] * 5


# ---- bounds -------------------------------------------------------------------------------------------------------


def walled(n: int, seed: int, bias: float = 0.0) -> Seen:
    """A ball between two walls at -1 and 1 that take all its speed; speed at most 0.5."""
    rng = np.random.default_rng(seed)

    def step(state: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        v = float(np.clip(state[1] + (0.1 if action else -0.1) + bias, -0.5, 0.5))
        x = float(np.clip(state[0] + v, -1, 1))
        return np.array([x, 0.0 if abs(x) == 1 else v])

    starts = np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-0.5, 0.5, n)])
    actions = np.repeat(rng.integers(2, size=(n, 1)), 10, axis=1)
    states, nexts = roll(step, starts, actions)
    return seen_of(states, np.eye(2)[actions.ravel()], nexts)


WALLS = facts_of([-1, -0.5], [1, 0.5])


def test_steps_that_touch_bounds_do_not_disturb_the_fit() -> None:
    """With and without them the same weights, before the novelty and after it; and the free steps are explained."""
    seen = walled(40, seed=0)
    free = is_free(seen.nexts, np.array([-1, -0.5]), np.array([1, 0.5])).all(axis=1)
    assert 0.2 < free.mean() < 0.8
    model = fit(Prior(seen, WALLS))
    fresh = walled(10, seed=1)
    inside = (np.abs(fresh.nexts) < [1, 0.5]).all(axis=1)
    np.testing.assert_allclose(predict(model, fresh)[inside], fresh.nexts[inside], atol=2e-3)
    since = walled(10, seed=2, bias=0.03)
    free = np.asarray((np.abs(since.nexts) < [1, 0.5]).all(axis=1))
    all_of_it, some_of_it = fit(Prior(seen, WALLS), since), fit(Prior(seen, WALLS), since.at(free))
    assert free.sum() < len(free)
    np.testing.assert_allclose(all_of_it.affine, some_of_it.affine, atol=1e-12)
    np.testing.assert_allclose(all_of_it.shared, some_of_it.shared, atol=1e-12)


def test_predictions_stop_at_the_bounds() -> None:
    model = fit(Prior(walled(40, seed=0), WALLS))
    out = seen_of([[0.9, 0.45], [-0.9, -0.45]], [[0, 1], [1, 0]], np.zeros((2, 2)))
    np.testing.assert_array_equal(predict(model, out), [[1, 0.5], [-1, -0.5]])


def test_a_world_that_explodes_stays_one_of_numbers() -> None:
    """Each step trebles the state: after 200 of them it would be beyond what a float32 holds."""
    states = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    pushes = np.eye(2)[np.arange(200) % 2]
    seen = seen_of(states, pushes, 3 * states)
    model = fit(Prior(seen, unbounded(2)), seen)
    one = seen.at(slice(0, 1))
    for _ in range(200):
        one = one._replace(states=predict(model, one))
    assert np.abs(one.states).max() > 100
    assert np.abs(one.states).max() <= 1100 * np.abs(seen.nexts).max()


def test_which_observations_touch_their_bounds() -> None:
    nexts = np.array([[0.0, 5.0], [2.0, 5.0], [1.0, -1e9], [1e-9, 0.0]])
    free = is_free(nexts, np.array([0.0, -np.inf]), np.array([2.0, np.inf]))
    np.testing.assert_array_equal(free, [[False, True], [False, True], [True, True], [False, True]])


def test_a_flag_that_always_lies_at_a_bound_does_not_hide_the_others() -> None:
    """It is 0 or 1, its bounds are 0 and 1 (a lander's leg): the others' dynamics can be seen all the same."""
    seen = OLD.see(400, seed=0)
    flag = (np.arange(400) % 10 > 6).astype(np.float64)

    def with_flag(part: Seen) -> Seen:
        mine = flag[: len(part.rewards)]
        return part._replace(states=np.column_stack([part.states, mine]), nexts=np.column_stack([part.nexts, mine]))

    facts = facts_of([-np.inf, -np.inf, 0], [np.inf, np.inf, 1])
    model = fit(Prior(with_flag(seen), facts))
    fresh = with_flag(OLD.see(100, seed=1, size=0.9))
    np.testing.assert_allclose(predict(model, fresh)[:, :2], fresh.nexts[:, :2], atol=1e-2)


# ---- products -----------------------------------------------------------------------------------------------------


def product_world(share: float, n: int = 600, noise: float = 0.0) -> Seen:
    """x changes by a mixture of y z and y^2; y and z by themselves."""
    rng = np.random.default_rng(0)
    s, pushes = rng.uniform(-1, 1, (n, 3)), np.eye(2)[rng.integers(2, size=n)]
    change = np.column_stack([share * s[:, 1] * s[:, 2] + 0.5 * s[:, 1] ** 2, 0.3 * pushes[:, 0], -0.2 * s[:, 2]])
    return seen_of(s, pushes, s + change + noise * rng.normal(size=s.shape))


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize(("share", "expected"), [(0.0, False), (0.5, True), (-1.0, True)])
def test_products_are_asked_for_exactly_when_the_world_has_them(share: float, expected: bool, noise: float) -> None:
    seen = product_world(share, noise=noise)
    prior = Prior(seen.at(slice(0, 500)), unbounded(3))
    assert prior.has_products is expected
    if not noise:
        fresh = seen.at(slice(500, 600))
        np.testing.assert_allclose(predict(fit(prior), fresh), fresh.nexts, atol=5e-3)


def test_an_observation_of_mere_noise_does_not_hide_that_another_needs_products() -> None:
    seen = product_world(0.5)
    rng = np.random.default_rng(5)
    states, nexts = rng.normal(size=(2, 600, 1))
    seen = seen._replace(states=np.hstack([seen.states, states]), nexts=np.hstack([seen.nexts, nexts]))
    assert Prior(seen, unbounded(4)).has_products


def test_products_can_be_decreed() -> None:
    assert Prior(OLD.see(300, seed=0), unbounded(2), has_products=True).has_products
    assert not Prior(product_world(1.0), unbounded(3), has_products=False).has_products
    assert not Prior(product_world(1.0, n=40), unbounded(3)).has_products  # too few to tell


# ---- pushes -------------------------------------------------------------------------------------------------------

BOX = facts_of([-np.inf], [np.inf], 0, action_low=np.array([-2.0, 0.0]), action_high=np.array([2.0, 10.0]))


def test_actions_as_vectors() -> None:
    choices = Pushes(unbounded(1, 3))
    assert (choices.size, choices.is_continuous) == (3, False)
    np.testing.assert_array_equal(choices(np.array([2, 0])), [[0, 0, 1], [1, 0, 0]])
    numbers = Pushes(BOX)
    assert (numbers.size, numbers.is_continuous) == (5, True)
    found = numbers(np.array([[-2.0, 5.0], [1.0, 10.0]], np.float32))
    np.testing.assert_allclose(found, np.array([[1, -1, 0, 1, 0], [1, 0.5, 1, 0.25, 1]]))
    np.testing.assert_array_equal(numbers.to_actions(np.array([[-3.0, 3.0]])), [[-2, 10]])
    assert numbers.to_actions(np.zeros((1, 2))).dtype == np.float32


@given(st.floats(-2, 2), st.floats(0, 10))
@settings(max_examples=50, deadline=None)
def test_shares_and_actions_are_each_others_inverse(first: float, second: float) -> None:
    pushes, action = Pushes(BOX), np.array([[first, second]])
    shares = pushes.to_shares(action)
    assert (np.abs(shares) <= 1).all()
    np.testing.assert_allclose(pushes.to_actions(shares), action, rtol=1e-6, atol=1e-6)


def test_a_world_with_continuous_pushes_is_recovered() -> None:
    """x changes by the first number, the square of the second, and the first number times x."""
    rng, pushes = np.random.default_rng(0), Pushes(BOX)
    x, actions = rng.uniform(-1, 1, (400, 1)), rng.uniform([-2, 0], [2, 10], (400, 2))
    a, b = actions[:, :1] / 2, (actions[:, 1:] - 5) / 5
    seen = seen_of(x, pushes(actions), x + 0.1 * a - 0.2 * b**2 + 0.05 * a * x, 3 * b[:, 0])
    model = fit(Prior(seen.at(slice(0, 300)), BOX))
    assert error_of(model, seen.at(slice(300, 400))) < 2e-3


# ---- one imagined step --------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 3), st.booleans(), st.booleans(), st.floats(0.5, 4))
@settings(max_examples=50, deadline=None)
def test_imagine_is_the_literal_computation(
    seed: int, d: int, n_pushes: int, has_products: bool, has_followers: bool, size: float
) -> None:
    rng = np.random.default_rng(seed)
    model = make_model(rng, d, n_pushes, has_products)
    if has_followers and d > 1:
        model.follows[0] = d - 1
    state, push = size * rng.normal(size=d), rng.normal(size=n_pushes)
    state = np.clip(state, model.low, model.high)
    z, shared, after = np.empty(d), np.empty(model.frame.n_shared), np.empty(d)
    reward = imagine(model, state, push, -1, z, shared, after)
    expected, expected_reward = literal_step(model, state, push)
    np.testing.assert_allclose(after, expected, atol=1e-9)
    assert reward == pytest.approx(expected_reward, abs=1e-9)
    action = seed % n_pushes
    reward = imagine(model, state, push, action, z, shared, after)
    expected, expected_reward = literal_step(model, state, np.eye(n_pushes)[action])
    np.testing.assert_allclose(after, expected, atol=1e-9)
    assert reward == pytest.approx(expected_reward, abs=1e-9)


def test_features_by_hand() -> None:
    """T2..T6 of both, the product, then [z, 1] for each push; beyond the scale only z itself goes on."""
    frame = make_frame(np.array([1.0, 0.0]), np.array([2.0, 1.0]), True)
    found = design(frame, np.array([[2.0, 3.0]]), np.array([[0.0, 2.0]]))[0]
    x = 0.5
    curves: list[float] = [2 * x**2 - 1, 4 * x**3 - 3 * x, 8 * x**4 - 8 * x**2 + 1, 16 * x**5 - 20 * x**3 + 5 * x]
    curves += [32 * x**6 - 48 * x**4 + 18 * x**2 - 1]
    expected: list[float] = [*curves, *[1.0] * 5, 0.5, 0, 0, 0, 1.0, 6.0, 2.0]
    np.testing.assert_allclose(found, expected)


# ---- memory -------------------------------------------------------------------------------------------------------


def fill(memory: Memory, row: int, times: range) -> None:
    for time in times:
        one = np.array([row])
        value = np.full((1, 1), time, np.float32)
        memory.add(one, value, value + 0.25, value + 0.5, np.array([float(time)]), np.array([time % 3 == 0]), one * 0)


@given(st.sampled_from([(4, 4), (8, 8), (16, 4), (64, 16)]), st.integers(0, 200))
@settings(max_examples=50, deadline=None)
def test_memory_is_bounded_keeps_order_and_the_newest_half(sizes: tuple[int, int], n: int) -> None:
    most, size = sizes
    memory = Memory(2, 1, 1, most=most, size=size)
    fill(memory, 1, range(n))
    seen = memory.read(1)
    times = seen.rewards.astype(int).tolist()
    assert len(times) <= most
    assert times == sorted(set(times))
    half = min(n, most // 2)
    assert times[len(times) - half :] == list(range(n - half, n))
    assert times[:1] == [0][:n]  # the oldest is kept, too
    if n <= most:
        assert len(times) == n
    else:
        assert len(times) >= most // 2
    np.testing.assert_array_equal(seen.states[:, 0], times)
    np.testing.assert_array_equal(seen.pushes[:, 0], seen.rewards + 0.25)
    np.testing.assert_array_equal(seen.nexts[:, 0], seen.rewards + 0.5)
    np.testing.assert_array_equal(seen.ended, seen.rewards % 3 == 0)
    assert len(memory.read(0).rewards) == 0


def test_a_memory_that_grows_by_doubling_never_holds_more_than_it_may() -> None:
    memory = Memory(1, 1, 1, most=12, size=4)
    fill(memory, 0, range(16))
    assert memory.count[0] <= 12


@given(st.lists(st.sampled_from([(0,), (2,), (0, 1), (2, 0, 1)]), max_size=60))
@settings(max_examples=50, deadline=None)
def test_rows_of_a_memory_are_apart(turns: list[tuple[int, ...]]) -> None:
    together, alone = Memory(3, 1, 1, most=16, size=8), [Memory(1, 1, 1, most=16, size=8) for _ in range(3)]
    for time, rows in enumerate(turns):
        values = np.array([[100.0 * row + time] for row in rows], np.float32)
        rewards, ended = values[:, 0].astype(np.float64), np.zeros(len(rows), np.bool_)
        episodes = np.full(len(rows), time)
        together.add(np.array(rows), values, values, values, rewards, ended, episodes)
        for i, row in enumerate(rows):
            part = values[i : i + 1]
            alone[row].add(np.array([0]), part, part, part, rewards[i : i + 1], ended[:1], episodes[:1])
    for row in range(3):
        same_seen(together.read(row), alone[row].read(0))


@given(st.integers(0, 80), st.integers(0, 80))
@settings(max_examples=50, deadline=None)
def test_what_was_read_can_be_written(n: int, more: int) -> None:
    """And it goes on as if nothing had happened."""
    first, second = Memory(1, 1, 1, most=32, size=8), Memory(2, 1, 1, most=32, size=8)
    fill(first, 0, range(n))
    second.write(1, first.read(0))
    same_seen(first.read(0), second.read(1))
    fill(first, 0, range(n, n + more))
    fill(second, 1, range(n, n + more))
    same_seen(first.read(0), second.read(1))
    second.clear(np.array([1]))
    assert len(second.read(1).rewards) == 0


def test_what_was_read_is_a_copy() -> None:
    memory = Memory(1, 1, 1)
    fill(memory, 0, range(3))
    for array in memory.read(0):
        array[:] = 1
    assert memory.read(0).rewards.tolist() == [0, 1, 2]


def same_seen(mine: Seen, theirs: Seen) -> None:
    pairs: Any = zip(mine, theirs, strict=True)
    for a, b in pairs:
        np.testing.assert_array_equal(a, b)
