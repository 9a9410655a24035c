"""PPO's rollout and update are SB3's: the same steps and shuffles, the same parameters and moments."""

from typing import Any

import numpy as np
import pytest
from stable_baselines3.common.callbacks import CallbackList
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from learners.support import (
    N_ACTIONS,
    ROW,
    Scripted,
    assert_same,
    freeze,
    make,
    make_model,
    make_steps,
    permute_like,
    transition,
)
from nappingrl.learners.ppo import gae, shuffle

ONE = np.array([ROW])


def collect(model: Any) -> None:
    """One rollout of SB3."""
    if model._last_obs is None:
        model._setup_learn(10**6)
        model.set_logger(model.logger)
    callback = CallbackList([])
    callback.init_callback(model)
    model.collect_rollouts(model.env, callback, model.rollout_buffer, model.n_steps)


def both(
    monkeypatch: pytest.MonkeyPatch, rollouts: int = 1, last: bool = False, scaled: bool = False, scale: float = 1.0,
    **options: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """SB3 and the learner after the same rollouts, from the moments after one rollout of SB3 alone."""
    options = {"n_steps": 96, "batch_size": 32, "n_epochs": 3, "learning_rate": 1e-3} | options
    n_steps = options["n_steps"]
    steps = make_steps(n_steps, reward_scale=scale)
    steps["truncated"][-1] = steps["terminated"][-1] = False  # the script begins anew without an end of episode
    steps["next_observations"][-1] = steps["observations"][0]
    env: Any = DummyVecEnv([lambda: Scripted(steps)])
    model = make_model("ppo", VecNormalize(env, norm_obs=False) if scaled else env, **options)
    model.set_logger(model.logger)
    collect(model)
    model.train()
    if scaled:  # the learner's statistics start fresh
        model.env.ret_rms = type(model.env.ret_rms)(shape=())
        model.env.returns[:] = 0
    learner = make(model, is_last_only=last)
    if last:
        freeze(model)
    for _ in range(rollouts):
        permute_like(monkeypatch, learner)
        collect(model)
        actions = model.rollout_buffer.actions.ravel().astype(np.int64)
        model.train()
        for t in range(n_steps):
            learner.learn(ONE, transition(steps | {"actions": actions}, t))
    return learner, model


@pytest.mark.parametrize("rollouts", [1, 3])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("arch", [(64, 64), (256, 256)])
def test_updates_are_those_of_sb3(monkeypatch: Any, arch: Any, activation: str, rollouts: int) -> None:
    learner, model = both(monkeypatch, rollouts, arch=arch, activation=activation)
    assert_same(learner, model, atol=1e-5)
    assert learner.state.adam_steps[ROW] == 9 * (1 + rollouts)


OPTIONS: list[dict[str, Any]] = [
    {"batch_size": 40},
    {"batch_size": 1000},
    {"n_steps": 97, "batch_size": 48},
    {"ent_coef": 0.1},
    {"vf_coef": 2.0, "gamma": 0.9, "gae_lambda": 0.7},
    {"max_grad_norm": 0.01},
    {"max_grad_norm": 1e6},
    {"clip_range": 0.02, "learning_rate": 5e-3},
    {"clip_range_vf": 0.05},
    {"normalize_advantage": False},
    {"target_kl": 0.001},
    {"arch": {"pi": [16], "vf": [32, 8]}},
    {"last": True},
    {"scaled": True, "scale": 5.0},
]


@pytest.mark.filterwarnings("ignore:You have specified a mini-batch size")
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_updates_with_other_settings(monkeypatch: Any, options: dict[str, Any]) -> None:
    learner, model = both(monkeypatch, 2, **options)
    assert_same(learner, model, atol=1e-5)


def test_other_settings_make_a_difference(monkeypatch: Any) -> None:
    """So that the tests above compare something."""
    plain, _ = both(monkeypatch, 2)
    for options in OPTIONS[3:-3]:
        other, _ = both(monkeypatch, 2, **options)
        assert np.abs(plain.state.parameters[ROW] - other.state.parameters[ROW]).max() > 1e-4, options


def test_gae_by_its_definition() -> None:
    """The sum over all later steps of the same episode of (gamma * lambda)^k times their TD errors."""
    rng = np.random.default_rng(0)
    rewards, values = rng.normal(size=(2, 12)).astype(np.float32)
    ended = np.zeros(12, np.float32)
    ended[[3, 8]] = 1
    advantages = np.empty(12, np.float32)
    gae(rewards, values, ended, 0.7, 0.9, 0.8, advantages)
    following = np.append(values[1:], np.float32(0.7))
    errors = rewards + 0.9 * following * (1 - ended) - values
    last = [3] * 4 + [8] * 5 + [11] * 3
    wanted = [sum((0.9 * 0.8) ** (k - t) * errors[k] for k in range(t, last[t] + 1)) for t in range(12)]
    np.testing.assert_allclose(advantages, wanted, rtol=1e-5)


def test_shuffles_are_permutations_and_differ() -> None:
    order, seen = np.empty(5, np.int64), set()
    counter = np.uint64(0)
    for _ in range(2000):
        counter = np.uint64(shuffle(np.uint64(3), counter, order))
        assert sorted(order.tolist()) == [0, 1, 2, 3, 4]
        seen.add(tuple(order.tolist()))
    assert len(seen) == 120
    assert counter == 10_000


def test_exploration() -> None:
    """Actions come with the policy's probabilities."""
    learner = make(make_model("ppo", arch=(8,)), n=6000)
    rows = np.arange(6000)
    learner.start(rows, rows.astype(np.uint64))
    logits = np.array([0.3, -1.0, 1.2, 0.0], np.float32)
    actions = learner.explore(rows, np.zeros(6000, np.int64), np.tile(logits, (6000, 1)))
    shares = np.bincount(actions, minlength=N_ACTIONS) / 6000
    np.testing.assert_allclose(shares, np.exp(logits) / np.exp(logits).sum(), atol=0.025)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_exploration_without_finite_preferences(bad: float) -> None:
    learner = make(make_model("ppo", arch=(8,)))
    actions = learner.explore(ONE, np.array([1]), np.full((1, 4), bad, np.float32))
    assert actions[0] in range(4)
