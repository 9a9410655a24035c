"""The fit recovers hand-made worlds from their transitions."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nappingrl.world_model.action_encoding import ActionEncoding
from nappingrl.world_model.bounds import is_unclipped
from nappingrl.world_model.fit import fit
from nappingrl.world_model.model import Model, predict, predict_steps
from nappingrl.world_model.transitions import Transitions
from world_model.toy_domains import BOX, LinearWorld, baseline_of, domain_of, roll, transitions_of, unbounded

OLD = LinearWorld(
    np.array([[0.0, 0.1], [-0.2, -0.05]]), np.array([[0.0, -0.3], [0.0, 0.3]]), np.array([0.5, -0.2, 1.0])
)
NEW = LinearWorld(
    np.array([[0.0, 0.1], [-0.2, -0.05]]), np.array([[0.1, 0.5], [0.1, -0.4]]), np.array([0.5, -0.2, -1.0])
)


def rewards_of(model: Model, transitions: Transitions) -> NDArray[np.float64]:
    next_states, rewards = np.empty_like(transitions.next_states), np.empty(len(transitions.rewards))
    predict_steps(model, transitions.states, transitions.actions, next_states, rewards)
    return rewards


def error_of(model: Model, transitions: Transitions) -> float:
    """The greatest error of a next observation or a reward."""
    wrong = np.column_stack(
        [predict(model, transitions) - transitions.next_states, rewards_of(model, transitions) - transitions.rewards]
    )
    return float(np.abs(wrong).max())


# ---- the fit


def test_a_linear_world_is_recovered() -> None:
    """Next observations and rewards, to a thousandth, of steps that the fit was not given; noise is a small share."""
    model = fit(baseline_of(OLD.see(400, seed=0), unbounded(2)))
    fresh = OLD.see(100, seed=1, size=0.9)
    assert error_of(model, fresh) < 1e-3
    typical = np.sqrt(((fresh.next_states - fresh.states) ** 2).mean(axis=0))
    np.testing.assert_allclose(model.noise / typical, 0.02, rtol=0.2)


def test_the_affine_part_extrapolates() -> None:
    model = fit(baseline_of(OLD.see(400, seed=0), unbounded(2)))
    assert error_of(model, OLD.see(50, seed=1, size=3.0)) < 0.02


def test_a_few_steps_of_the_new_world_correct_the_fit() -> None:
    baseline = baseline_of(OLD.see(400, seed=0), unbounded(2))
    fresh = NEW.see(100, seed=1, size=0.9)
    assert error_of(fit(baseline), fresh) > 1.9  # the reward fell by 2
    assert error_of(fit(baseline, NEW.see(20, seed=2)), fresh) < 0.19
    assert error_of(fit(baseline, NEW.see(100, seed=2)), fresh) < 2e-3


def test_no_transitions_leave_the_baseline() -> None:
    baseline, nothing = baseline_of(OLD.see(200, seed=0), unbounded(2)), OLD.see(0, seed=0)
    for mine, theirs in zip(fit(baseline, nothing)[1:], fit(baseline)[1:], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_an_action_not_tried_again_keeps_its_effect() -> None:
    """Only the first action was tried in the new world: the second one keeps its old effect."""
    baseline, transitions = baseline_of(OLD.see(400, seed=0), unbounded(2)), NEW.see(60, seed=1)
    model = fit(baseline, transitions.at(transitions.actions[:, 0] == 1))
    second = OLD.see(100, seed=2, size=0.9)
    second = second.at(second.actions[:, 1] == 1)
    assert np.abs(predict(model, second) - second.next_states).max() < 0.1


def test_the_reward_is_that_of_steps_that_end_nothing() -> None:
    transitions = OLD.see(400, seed=0)
    terminated = np.arange(400) % 10 == 9
    rewards = np.where(terminated, -100.0, transitions.rewards)
    model = fit(baseline_of(transitions._replace(terminated=terminated, rewards=rewards), unbounded(2)))
    fresh = OLD.see(100, seed=1, size=0.9)
    np.testing.assert_allclose(rewards_of(model, fresh), fresh.rewards, atol=1e-3)


def test_curves_are_found() -> None:
    """x changes by a polynomial of degree four."""
    rng = np.random.default_rng(0)
    x, actions = rng.uniform(-1, 1, (600, 1)), np.eye(2)[rng.integers(2, size=600)]
    transitions = transitions_of(x, actions, x + 0.3 * x**4 - 0.5 * x**3 + 0.1 * actions[:, :1])
    model = fit(baseline_of(transitions.at(slice(0, 500)), unbounded(1)))
    assert error_of(model, transitions.at(slice(500, 600))) < 2e-3


def test_a_world_with_continuous_actions_is_recovered() -> None:
    """x changes by the first number, the square of the second, and the first number times x."""
    rng, encoding = np.random.default_rng(0), ActionEncoding(BOX)
    x, actions = rng.uniform(-1, 1, (400, 1)), rng.uniform([-2, 0], [2, 10], (400, 2))
    a, b = actions[:, :1] / 2, (actions[:, 1:] - 5) / 5
    transitions = transitions_of(x, encoding(actions), x + 0.1 * a - 0.2 * b**2 + 0.05 * a * x, 3 * b[:, 0])
    model = fit(baseline_of(transitions.at(slice(0, 300)), BOX))
    assert error_of(model, transitions.at(slice(300, 400))) < 2e-3


# ---- integrated observations


def integrating(n: int, seed: int, noise: float = 0.05) -> Transitions:
    """v is changed by the action, with noise, and x moves by the new v: x' = x + 0.1 v'."""
    rng = np.random.default_rng(seed)
    states, actions = rng.uniform(-1, 1, (n, 2)), rng.integers(2, size=n)
    v = states[:, 1] + np.array([-0.2, 0.2])[actions] + noise * rng.normal(size=n)
    return transitions_of(states, np.eye(2)[actions], np.column_stack([states[:, 0] + 0.1 * v, v]))


@pytest.mark.parametrize("n_since", [0, 12, 100])
def test_a_position_that_moves_by_the_new_velocity_integrates_it(n_since: int) -> None:
    baseline = baseline_of(integrating(300, seed=0), unbounded(2))
    model = fit(baseline, integrating(n_since, seed=1))
    assert model.depends_on_next.tolist() == [1, -1]
    fresh = integrating(50, seed=2)
    after = predict(model, fresh)
    np.testing.assert_allclose(after[:, 0], fresh.states[:, 0] + 0.1 * after[:, 1], atol=1e-4)
    assert model.noise[0] == pytest.approx(0.02 * 0.1 * 0.6, rel=0.5)  # nothing is left: the least share of a step
    if n_since != 12:
        assert 0.03 < model.noise[1] < 0.07


def test_seven_steps_are_too_few_to_find_integration() -> None:
    baseline = baseline_of(integrating(300, seed=0), unbounded(2))
    assert fit(baseline, integrating(7, seed=1)).depends_on_next.tolist() == [-1, -1]


@pytest.mark.parametrize(("d", "n_actions", "n"), [(2, 2, 8), (2, 2, 40), (4, 2, 8), (4, 2, 16), (6, 3, 8), (6, 3, 40)])
def test_independent_observations_are_not_integrated(d: int, n_actions: int, n: int) -> None:
    """However few the steps are: as many weights as steps explain anything."""
    world = LinearWorld(-0.1 * np.eye(d), np.zeros((n_actions, d)), np.zeros(d + 1), noise=0.1)
    baseline = baseline_of(world.see(300, seed=0), unbounded(d, n_actions))
    found = [fit(baseline, world.see(n, seed=seed)).depends_on_next.tolist() for seed in range(1, 6)]
    assert found == [[-1] * d] * 5


# ---- bounds


def walled(n: int, seed: int, bias: float = 0.0) -> Transitions:
    """A ball between two walls at -1 and 1 that take all its speed; speed at most 0.5."""
    rng = np.random.default_rng(seed)

    def step(state: NDArray[np.float64], action: int) -> NDArray[np.float64]:
        v = float(np.clip(state[1] + (0.1 if action else -0.1) + bias, -0.5, 0.5))
        x = float(np.clip(state[0] + v, -1, 1))
        return np.array([x, 0.0 if abs(x) == 1 else v])

    starts = np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-0.5, 0.5, n)])
    actions = np.repeat(rng.integers(2, size=(n, 1)), 10, axis=1)
    states, next_states = roll(step, starts, actions)
    return transitions_of(states, np.eye(2)[actions.ravel()], next_states)


WALLS = domain_of([-1, -0.5], [1, 0.5])


def test_steps_that_touch_bounds_do_not_disturb_the_fit() -> None:
    """With and without them the same weights, before the novelty and after it; unclipped steps are explained."""
    transitions = walled(40, seed=0)
    unclipped = is_unclipped(transitions.next_states, np.array([-1, -0.5]), np.array([1, 0.5])).all(axis=1)
    assert 0.2 < unclipped.mean() < 0.8
    model = fit(baseline_of(transitions, WALLS))
    fresh = walled(10, seed=1)
    inside = (np.abs(fresh.next_states) < [1, 0.5]).all(axis=1)
    np.testing.assert_allclose(predict(model, fresh)[inside], fresh.next_states[inside], atol=2e-3)
    since = walled(10, seed=2, bias=0.03)
    unclipped = np.asarray((np.abs(since.next_states) < [1, 0.5]).all(axis=1))
    all_of_it, some_of_it = (
        fit(baseline_of(transitions, WALLS), since),
        fit(baseline_of(transitions, WALLS), since.at(unclipped)),
    )
    assert unclipped.sum() < len(unclipped)
    np.testing.assert_allclose(all_of_it.affine, some_of_it.affine, atol=1e-12)
    np.testing.assert_allclose(all_of_it.shared, some_of_it.shared, atol=1e-12)


def test_predictions_stop_at_the_bounds() -> None:
    model = fit(baseline_of(walled(40, seed=0), WALLS))
    out = transitions_of([[0.9, 0.45], [-0.9, -0.45]], [[0, 1], [1, 0]], np.zeros((2, 2)))
    np.testing.assert_array_equal(predict(model, out), [[1, 0.5], [-1, -0.5]])


def test_a_diverging_model_stays_finite() -> None:
    """Each step trebles the state: after 200 of them it would be beyond what a float32 holds."""
    states = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    actions = np.eye(2)[np.arange(200) % 2]
    transitions = transitions_of(states, actions, 3 * states)
    model = fit(baseline_of(transitions, unbounded(2)), transitions)
    one = transitions.at(slice(0, 1))
    for _ in range(200):
        one = one._replace(states=predict(model, one))
    assert np.abs(one.states).max() > 100
    assert np.abs(one.states).max() <= 1100 * np.abs(transitions.next_states).max()


def test_a_flag_that_always_lies_at_a_bound_does_not_hide_the_others() -> None:
    """It is 0 or 1, its bounds are 0 and 1 (a lander's leg): the others' dynamics can be transitions all the same."""
    transitions = OLD.see(400, seed=0)
    flag = (np.arange(400) % 10 > 6).astype(np.float64)

    def with_flag(part: Transitions) -> Transitions:
        mine = flag[: len(part.rewards)]
        return part._replace(
            states=np.column_stack([part.states, mine]), next_states=np.column_stack([part.next_states, mine])
        )

    facts = domain_of([-np.inf, -np.inf, 0], [np.inf, np.inf, 1])
    model = fit(baseline_of(with_flag(transitions), facts))
    fresh = with_flag(OLD.see(100, seed=1, size=0.9))
    np.testing.assert_allclose(predict(model, fresh)[:, :2], fresh.next_states[:, :2], atol=1e-2)


# ---- products


def product_world(share: float, n: int = 600, noise: float = 0.0) -> Transitions:
    """x changes by a mixture of y z and y^2; y and z by themselves."""
    rng = np.random.default_rng(0)
    s, actions = rng.uniform(-1, 1, (n, 3)), np.eye(2)[rng.integers(2, size=n)]
    change = np.column_stack([share * s[:, 1] * s[:, 2] + 0.5 * s[:, 1] ** 2, 0.3 * actions[:, 0], -0.2 * s[:, 2]])
    return transitions_of(s, actions, s + change + noise * rng.normal(size=s.shape))


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize(("share", "expected"), [(0.0, False), (0.5, True), (-1.0, True)])
def test_products_are_used_exactly_when_the_world_has_them(share: float, expected: bool, noise: float) -> None:
    transitions = product_world(share, noise=noise)
    baseline = baseline_of(transitions.at(slice(0, 500)), unbounded(3))
    assert baseline.has_products is expected
    if not noise:
        fresh = transitions.at(slice(500, 600))
        np.testing.assert_allclose(predict(fit(baseline), fresh), fresh.next_states, atol=5e-3)


def test_a_noisy_observation_does_not_hide_that_another_needs_products() -> None:
    transitions = product_world(0.5)
    rng = np.random.default_rng(5)
    states, next_states = rng.normal(size=(2, 600, 1))
    transitions = transitions._replace(
        states=np.hstack([transitions.states, states]), next_states=np.hstack([transitions.next_states, next_states])
    )
    assert baseline_of(transitions, unbounded(4)).has_products


def test_products_can_be_forced() -> None:
    assert baseline_of(OLD.see(300, seed=0), unbounded(2), has_products=True).has_products
    assert not baseline_of(product_world(1.0), unbounded(3), has_products=False).has_products
    assert not baseline_of(product_world(1.0, n=40), unbounded(3)).has_products  # too few to tell
