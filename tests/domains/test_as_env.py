"""Worlds as gymnasium environments: the libraries' own checkers, options, rendering, vector environments."""

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from nappingrl.domains import find_domain
from nappingrl.domains.as_env import DomainEnv, DomainVectorEnv
from nappingrl.errors import BadSpecError, UnknownNameError
from nappingrl.reproduction.evaluation import PAPER
from nappingrl.types import DomainSpec

IDS = [find_domain(name).env_id for name in PAPER]
VectorAny = VectorEnv[Any, Any, Any]
CARTPOLE = "nappingrl/CartPole-v0"
GYMNASIUM = {CARTPOLE: "CartPole-v1", "nappingrl/MountainCar-v0": "MountainCar-v0"}


def domain_from_env(env_id: str) -> DomainSpec:
    return next(spec for name in PAPER if (spec := find_domain(name)).env_id == env_id)


def make(env_id: str, **options: Any) -> Any:
    return gymnasium.make(env_id, **options)


# ---- checkers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_check_env(env_id: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Velocities have no bound, as in gymnasium's own CartPole.
        warnings.filterwarnings("ignore", message=".*Box observation space m..imum value is -?infinity.*")
        check_env(make(env_id, render_mode="rgb_array").unwrapped)


@pytest.mark.parametrize("env_id", IDS)
def test_sb3_check_env(env_id: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checker.check_env(make(env_id), warn=True)


@pytest.mark.parametrize("env_id", IDS)
def test_made_by_id(env_id: str) -> None:
    spec, env = domain_from_env(env_id), make(env_id)
    assert isinstance(env.unwrapped, DomainEnv)
    assert env.observation_space.shape == spec.observation_low.shape
    assert env.action_space.n == len(spec.action_names)
    observation, info = env.reset(seed=3)
    assert observation in env.observation_space
    assert ("action_mask" in info) == (spec.action_mask is not None)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(observation, again)


@pytest.mark.parametrize("env_id", [env_id for env_id in IDS if "AngryBirds" not in env_id])  # ends with its birds
def test_episode_is_cut_at_the_horizon(env_id: str) -> None:
    spec, env = domain_from_env(env_id), make(env_id)
    expert = spec.make_oracle()
    observation, _ = env.reset(seed=0)
    plans = None if expert is None else expert.plan(env.unwrapped.domain.parameters_of(np.zeros(1, np.int64)))
    rest = {"mountaincar": 1, "crossroad": 4}
    for t in range(1, spec.horizon + 1):
        # CartPole lasts as long as it is balanced, the others as long as nobody moves.
        action = rest[spec.name] if spec.name in rest else expert.act(plans, observation[None], np.array([t - 1]))[0]
        observation, _, terminated, truncated, _ = env.step(action)
        # In CrossRoad being late is a failure, an end of the world's own.
        assert terminated == (t == spec.horizon and spec.name == "crossroad")
        assert truncated == (t == spec.horizon)


# ---- parameters ---------------------------------------------------------------------------------------------------


def test_reset_option_params_stays_until_the_next_such_reset() -> None:
    env = make(CARTPOLE)
    defaults = dict(env.unwrapped.params)
    env.reset(seed=0, options={"params": {"gravity": 30.0, "force": 5.0}})
    assert env.unwrapped.params == defaults | {"gravity": 30.0, "force": 5.0}
    env.reset()
    assert env.unwrapped.params == defaults | {"gravity": 30.0, "force": 5.0}
    env.reset(options={"params": {"length": 2.0}})
    assert env.unwrapped.params == defaults | {"length": 2.0}
    env.reset(options={"params": {}})
    assert env.unwrapped.params == defaults == dict(find_domain("cartpole").parameters)


def test_set_params_takes_effect_at_once() -> None:
    changed, plain = make(CARTPOLE), make(CARTPOLE)
    for env in (changed, plain):
        env.reset(seed=0)
        env.step(1)
    changed.unwrapped.set_params(force=-10.0)
    assert changed.unwrapped.params["force"] == -10.0
    # A reversed push to the right is a push to the left.
    np.testing.assert_array_equal(changed.step(1)[0], plain.step(0)[0])


def test_params_do_not_change_the_start() -> None:
    first = make(CARTPOLE).reset(seed=4)[0]
    np.testing.assert_array_equal(make(CARTPOLE).reset(seed=4, options={"params": {"length": 3.0}})[0], first)


@pytest.mark.parametrize("make_env", [make, gymnasium.make_vec])
@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"paramz": {"gravity": 1.0}}, BadSpecError, "unknown reset option 'paramz'.*params"),
        ({"params": {"gravity": 1.0}, "paramz": {}}, BadSpecError, "unknown reset option 'paramz'.*params"),
        ({"params": {"gravty": 1.0}}, UnknownNameError, "unknown parameter.*Did you mean 'gravity'"),
        ({"params": {"gravity": float("nan")}}, BadSpecError, "gravity=nan.*not a finite number"),
    ],
)
def test_bad_reset_options_are_refused(
    make_env: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make_env(CARTPOLE).reset(seed=0, options=options)


def test_unknown_parameter_of_set_params_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'masspole'"):
        make(CARTPOLE).unwrapped.set_params(maspole=1.0)


# ---- rendering ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS)
def test_render_rgb_array(env_id: str) -> None:
    env = make(env_id, render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    kept = before.copy()
    size = (480, 640) if "AngryBirds" in env_id else (400, 600)
    assert (before.shape, before.dtype) == ((*size, 3), np.uint8)
    assert len(np.unique(before.reshape(-1, 3), axis=0)) > 2, "not blank"
    for _ in range(8):
        env.step(0)
    assert (env.render() != before).any(), "the picture follows the world"
    np.testing.assert_array_equal(before, kept)
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_render_human(env_id: str) -> None:
    pygame = pytest.importorskip("pygame")
    env = make(env_id, render_mode="human")
    env.reset(seed=0)
    env.step(0)
    assert pygame.display.get_surface().get_size() == (600, 400)
    assert env.render() is None
    env.close()
    assert not pygame.display.get_init()
    env.close()


def test_render_without_a_mode_warns() -> None:
    env = DomainEnv("cartpole")
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_frames_per_second_are_the_domain_s() -> None:
    assert {id_: make(id_).metadata["render_fps"] for id_ in IDS} == {
        id_: domain_from_env(id_).frames_per_second for id_ in IDS
    }


# ---- vector environments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS)
def test_make_vec_gives_the_batched_world(env_id: str) -> None:
    spec = domain_from_env(env_id)
    env = gymnasium.make_vec(env_id, num_envs=3)
    assert isinstance(env.unwrapped, DomainVectorEnv)
    assert env.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space
    assert observations.shape == (3, *spec.observation_low.shape)
    assert len(np.unique(observations, axis=0)) == (3 if spec.n_reset_draws else 1)
    observations, rewards, terminated, truncated, info = env.step(env.action_space.sample())
    assert observations in env.observation_space
    assert [part.shape for part in (rewards, terminated, truncated)] == [(3,)] * 3
    assert terminated.dtype == truncated.dtype == np.bool_
    masks = None if spec.action_mask is None else spec.action_mask(observations)
    assert set(info) == (set() if masks is None else {"action_mask", "_action_mask"})
    np.testing.assert_array_equal(env.reset(seed=0)[0], env.reset(seed=0)[0])


def assert_same_vectors(ours: VectorAny, theirs: VectorAny, steps: int) -> tuple[int, int]:
    """Compare every step; returns the numbers of terminations and truncations."""
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(ours.reset(seed=5)[0], theirs.reset(seed=5)[0])
    ends = [0, 0]
    for _ in range(steps):
        actions = rng.integers(2, size=ours.num_envs)
        for mine, yours in zip(ours.step(actions)[:4], theirs.step(actions)[:4], strict=True):
            np.testing.assert_array_equal(mine, yours)
            assert mine.dtype == yours.dtype
            last = mine
        ends[0] += int(ours.unwrapped._ended.sum() - last.sum())  # type: ignore[attr-defined]
        ends[1] += int(last.sum())
    return ends[0], ends[1]


@pytest.mark.parametrize("env_id", list(GYMNASIUM))
@pytest.mark.parametrize("cut", [9, 25])
def test_autoreset_as_in_gymnasium(env_id: str, cut: int) -> None:
    """With one world the random stream is the same, so that resets can be compared too."""
    ours = gymnasium.make_vec(env_id, num_envs=1, max_episode_steps=cut)
    theirs = gymnasium.make_vec(GYMNASIUM[env_id], num_envs=1, vectorization_mode="sync", max_episode_steps=cut)
    assert isinstance(theirs, SyncVectorEnv)
    terminations, truncations = assert_same_vectors(ours, theirs, 300)
    assert truncations > 3
    if env_id == CARTPOLE and cut == 25:
        assert terminations > 3


def test_worlds_of_a_vector_end_and_begin_on_their_own() -> None:
    env = gymnasium.make_vec(CARTPOLE, num_envs=4)
    observations, _ = env.reset(seed=1)
    rng = np.random.default_rng(2)
    alone = [DomainEnv("cartpole") for _ in range(4)]
    ended, n_ended = np.zeros(4, np.bool_), 0
    for single, observation in zip(alone, observations, strict=True):
        single.reset(seed=0)
        single.domain._state[0] = observation
    # Restart both sides from float32 values, so that they begin with the same bits.
    env.unwrapped.domain._state[:] = observations  # type: ignore[attr-defined]
    for _ in range(120):
        actions = rng.integers(2, size=4)
        observations, rewards, terminated, truncated, _ = env.step(actions)
        assert not truncated.any()
        for i, single in enumerate(alone):
            if ended[i]:
                n_ended += 1
                assert (np.abs(observations[i]) <= 0.05).all(), "the start of a new episode"
                assert (rewards[i], terminated[i]) == (0.0, False)
                single.domain._state[0] = env.unwrapped.domain._state[i]  # type: ignore[attr-defined]
            else:
                observation, reward, end, _, _ = single.step(actions[i])
                np.testing.assert_array_equal(observations[i], observation)
                assert (rewards[i], terminated[i]) == (reward, end)
        ended = terminated
    assert n_ended > 8


def test_vector_horizon_and_params() -> None:
    env = gymnasium.make_vec("nappingrl/MountainCar-v0", num_envs=2)
    env.reset(seed=0, options={"params": {"force": 0.0001, "gravity": 0.0001}})
    assert env.unwrapped.domain.parameters_of(np.arange(2)).tolist() == [[0.0001, 0.0001]] * 2  # type: ignore[attr-defined]
    for t in range(1, 501):
        _, rewards, terminated, truncated, _ = env.step(np.ones(2, np.int64))
        assert not terminated.any()
        assert (truncated == (t == 500)).all()
        assert (rewards == -1).all()
    _, rewards, _, truncated, _ = env.step(np.ones(2, np.int64))
    assert (rewards == 0).all()
    assert not truncated.any()


def test_vector_reset_in_the_middle_begins_every_world_anew() -> None:
    env = gymnasium.make_vec(CARTPOLE, num_envs=3)
    first, _ = env.reset(seed=2)
    for _ in range(15):
        env.step(np.ones(3, np.int64))
    np.testing.assert_array_equal(env.reset(seed=2)[0], first)
    assert (env.step(np.ones(3, np.int64))[1] == 1.0).all(), "no world waits for a reset"


def test_vector_refuses_a_list_of_seeds() -> None:
    with pytest.raises(BadSpecError, match="one seed"):
        gymnasium.make_vec(CARTPOLE, num_envs=2).reset(seed=[1, 2])


def test_vector_render_gives_a_picture_per_world() -> None:
    env = gymnasium.make_vec(CARTPOLE, num_envs=2, render_mode="rgb_array")
    env.reset(seed=0)
    pictures = env.render()
    assert isinstance(pictures, tuple)
    assert [picture.shape for picture in pictures] == [(400, 600, 3)] * 2
    assert (pictures[0] != pictures[1]).any()
    assert gymnasium.make_vec(CARTPOLE, num_envs=2).render() is None
