"""DQN's update is SB3's: the same data, the same draws, the same parameters and moments."""

from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from learners.support import (
    ROW,
    assert_same,
    draw_like,
    fill_replay,
    flat_of,
    freeze,
    make,
    make_model,
    make_steps,
    remember,
    transition,
)
from nappingrl.learners import Dqn

ONE = np.array([ROW])


def both(steps: Any, n_updates: int, last: bool = False, warm: int = 30, **options: Any) -> tuple[Any, Any]:
    """SB3 and the learner after the same updates, from Adam's moments after some updates of SB3 alone."""
    options = {"batch_size": 32, "learning_rate": 1e-3} | options
    model = make_model("dqn", gradient_steps=n_updates, **options)
    fill_replay(model, steps)
    if warm:
        model.train(warm, 32)
    learner = make(model, is_last_only=last)
    if last:
        freeze(model)
    assert isinstance(learner, Dqn)
    remember(learner, steps)
    draw_like(model, learner)
    model.train(n_updates, model.batch_size)
    learner.train(ONE)
    return model, learner


@pytest.mark.parametrize("n_updates", [1, 7])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("arch", [(64, 64), (256, 256), (17,), ()])
def test_updates_are_those_of_sb3(arch: Any, activation: str, n_updates: int) -> None:
    steps = make_steps(100)
    assert steps["terminated"].any()
    assert steps["truncated"].any()
    model, learner = both(steps, n_updates, arch=arch, activation=activation)
    assert_same(learner, model)
    assert learner.state.adam_steps[ROW] == 30 + n_updates


@pytest.mark.parametrize("max_grad_norm", [0.05, 1e6])
def test_clipping_of_the_gradient(max_grad_norm: float) -> None:
    assert_same(*reversed(both(make_steps(100, reward_scale=20), 5, max_grad_norm=max_grad_norm)))


def test_clipping_makes_a_difference() -> None:
    """So that the test above compares something."""
    _, clipped = both(make_steps(100, reward_scale=20), 5, max_grad_norm=0.05)
    _, free = both(make_steps(100, reward_scale=20), 5, max_grad_norm=1e6)
    assert not np.allclose(clipped.state.first_moments[ROW], free.state.first_moments[ROW], rtol=0.1, atol=1e-6)


def test_large_batches() -> None:
    assert_same(*reversed(both(make_steps(100), 3, batch_size=300)))


def test_a_fresh_adam() -> None:
    """Its first steps are as long where the gradient is nothing but rounding, so a few numbers may differ."""
    model, learner = both(make_steps(100), 3, warm=0)
    first_moments = learner.state.first_moments[ROW]
    np.testing.assert_allclose(first_moments, flat_of(model, learner, "exp_avg"), rtol=1e-3, atol=1e-6)
    apart = np.abs(learner.state.parameters[ROW] - flat_of(model, learner, "weights")) > 1e-5
    assert apart.mean() < 0.001


def test_last_layer_only() -> None:
    model, learner = both(make_steps(100), 5, last=True, max_grad_norm=0.05)
    assert_same(learner, model)
    changed = np.flatnonzero(learner.state.parameters[ROW] != learner.state.parameters[0])
    assert changed.min() >= learner.state.parameters.shape[1] - 65 * 4
    assert len(changed) > 100


def test_the_ring_wraps_as_in_sb3() -> None:
    """250 steps in a buffer of 100: the last 100 are left."""
    model, learner = both(make_steps(250), 5, buffer_size=100)
    assert_same(learner, model)
    assert learner.replay.records.shape[1] == 100
    np.testing.assert_array_equal(learner.replay.records[ROW, 49, :3], make_steps(250)["observations"][249])
    np.testing.assert_array_equal(learner.replay.records[ROW, 50, :3], make_steps(250)["observations"][150])


def test_memory_grows_and_keeps_what_it_has() -> None:
    model = make_model("dqn", buffer_size=10_000)
    learner, steps = make(model), make_steps(700)
    remember(learner, steps)
    assert learner.replay.records.shape[1] == 1024
    np.testing.assert_array_equal(learner.replay.records[ROW, :700, :3], steps["observations"])
    np.testing.assert_array_equal(learner.replay.records[ROW, :700, 7], steps["rewards"])


def test_scaled_rewards() -> None:
    """Sampled rewards are divided by the deviation of the moment and clipped, as by VecNormalize."""
    steps = make_steps(100, reward_scale=8)
    model = make_model("dqn", batch_size=32, learning_rate=1e-3, gradient_steps=5)
    envs = VecNormalize(DummyVecEnv([lambda: model.env.envs[0]]), norm_obs=False)
    envs.ret_rms.var = np.float64(0.5)
    model._vec_normalize_env = envs
    fill_replay(model, steps)
    model.train(30, 32)
    learner = make(model)
    assert learner.reward_scale.is_active
    learner.reward_scale.deviation[ROW] = np.sqrt(0.5 + 1e-8)
    remember(learner, steps)
    draw_like(model, learner)
    model.train(5, 32)
    learner.train(ONE)
    assert_same(learner, model)


@pytest.mark.parametrize("tau", [1.0, 0.3])
def test_when_it_trains_and_when_the_target_follows(tau: float) -> None:
    """Train every 4 steps, 2 updates each; the target follows every 6, before the training of the same step."""
    model = make_model("dqn", train_freq=4, gradient_steps=2, target_update_interval=6, tau=tau)
    learner, steps = make(model), make_steps(20)
    assert isinstance(learner, Dqn)
    target = learner.targets[ROW].copy()
    for t in range(20):
        before = learner.state.parameters[ROW].copy()
        learner.learn(ONE, transition(steps, t))
        if (t + 1) % 6 == 0:
            target = (1 - tau) * target + tau * before
        np.testing.assert_allclose(learner.targets[ROW], target, atol=1e-6)
        assert learner.state.adam_steps[ROW] == 2 * ((t + 1) // 4)
        assert (learner.state.parameters[ROW] != before).any() == ((t + 1) % 4 == 0)


def test_gradient_steps_of_minus_one_are_as_many_as_steps() -> None:
    learner = make(make_model("dqn", train_freq=5, gradient_steps=-1))
    for t in range(10):
        learner.learn(ONE, transition(make_steps(10), t))
    assert learner.state.adam_steps[ROW] == 10


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_exploration(epsilon: float) -> None:
    learner = make(make_model("dqn", arch=(8,), exploration_final_eps=epsilon), n=4000)
    rows = np.arange(4000)
    learner.start(rows, rows.astype(np.uint64))
    wanted = np.full(4000, 1)
    actions = learner.explore(rows, wanted, np.zeros((4000, 4), np.float32))
    assert (actions != wanted).mean() == pytest.approx(0.75 * epsilon, abs=0.03)
    assert set(actions.tolist()) == ({1} if epsilon == 0 else {0, 1, 2, 3})
