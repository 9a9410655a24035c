"""NappingAgent: SB3's interface, and the same method as in the engine."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from adapted_agents import FAILING, HARD, Env, adapted, cartpole, play, tables, waits
from nappingrl import NappingAgent
from nappingrl.agents.base import Agent
from nappingrl.detectors import RollingMean
from nappingrl.domains.as_env import DomainEnv
from nappingrl.errors import BadAgentError, BadObservationError, BadSpecError, UnknownNameError
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec, TrialSpec

# ---- predict ------------------------------------------------------------------------------------------------------


def test_predict_has_sb3_s_signature() -> None:
    base = pytest.importorskip("stable_baselines3.common.base_class").BaseAlgorithm
    ours, theirs = inspect.signature(NappingAgent.predict), inspect.signature(base.predict)
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


@waits
def test_one_observation_gives_a_number_as_in_sb3(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", method="napping")
    for observation in (np.zeros(4, np.float32), np.zeros(4), [0.0, 0.0, 0.0, 0.0]):
        action, state = made.predict(observation)  # type: ignore[arg-type]
        assert isinstance(action, np.ndarray)
        assert (action.shape, action.dtype) == ((), np.int64)
        assert state is None


@waits
@pytest.mark.parametrize("n", [1, 3])
def test_a_batch_gives_a_batch(agent: Agent, n: int) -> None:
    made = NappingAgent(agent, domain="cartpole", n_envs=3, method="napping")
    observations = np.array([[0, 0, 0.1, 0], [0, 0, -0.1, 0], [0, 0, 0.1, 0]], np.float32)[:n]
    actions, _ = made.predict(observations, deterministic=True)
    assert (actions.shape, actions.dtype) == ((n,), np.int64)
    assert actions.tolist() == [1, 0, 1][:n]


@waits
def test_predict_agrees_with_sb3_in_shape_and_dtype() -> None:
    ppo = pytest.importorskip("stable_baselines3").PPO
    model = ppo("MlpPolicy", "CartPole-v1", device="cpu", seed=0)
    made = NappingAgent(model, domain="cartpole", method="napping")
    for observation in (np.zeros(4, np.float32), np.zeros((1, 4), np.float32)):
        ours, theirs = made.predict(observation)[0], model.predict(observation, deterministic=True)[0]
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_array_equal(ours, theirs)


def test_the_state_is_handed_back(agent: Agent) -> None:
    state = (np.ones(2),)
    assert NappingAgent(agent, method="napping").predict(np.zeros(4), state=state, episode_start=np.ones(1))[1] is state


def test_an_action_given_out_is_the_caller_s(agent: Agent) -> None:
    made = NappingAgent(agent, n_envs=2, method="napping")
    observations = np.full((2, 4), 0.1, np.float32)
    actions, _ = made.predict(observations)
    actions[:] = -7
    assert (made.predict(observations)[0] >= 0).all()


@pytest.mark.parametrize(
    ("observation", "text"),
    [
        ((np.zeros(4, np.float32), {}), r"tuple \(observation, info\).*unpack"),
        (np.zeros(3, np.float32), r"shape \(3,\) given, the agent was trained on \(4,\)"),
        (np.zeros((1, 5), np.float32), r"shape \(5,\) given"),
        (np.zeros((2, 4), np.float32), "batch of 2 observations.*n_envs=2"),
    ],
)
def test_bad_observations_are_refused_in_one_line(agent: Agent, observation: Any, text: str) -> None:
    with pytest.raises(BadObservationError, match=text) as caught:
        NappingAgent(agent, domain="cartpole", method="napping").predict(observation)
    assert "\n" not in str(caught.value)


def test_a_refused_observation_changes_nothing(agent: Agent) -> None:
    made = adapted(agent, episodes=2)
    before = tables(made)
    with pytest.raises(BadObservationError):
        made.predict(np.full(5, np.nan, np.float32))
    assert tables(made) == before
    made.predict(np.zeros(4, np.float32))


# ---- adapting -----------------------------------------------------------------------------------------------------


def evaluate(player: Any, env: Env, episodes: int) -> list[float]:
    evaluate_policy = pytest.importorskip("stable_baselines3.common.evaluation").evaluate_policy
    returns, _ = evaluate_policy(player, env, n_eval_episodes=episodes, return_episode_rewards=True, warn=False)
    return list(returns)


@pytest.mark.parametrize("params", [HARD, FAILING])
def test_evaluate_policy_adapts(agent: Agent, params: dict[str, float]) -> None:
    frozen, learner = (
        NappingAgent(agent, domain="cartpole", detector="given", method=method) for method in ("frozen", "napping")
    )
    without = evaluate(frozen, frozen.wrap(cartpole(**params)), 10)
    with_it = evaluate(learner, learner.wrap(cartpole(**params)), 10)
    assert np.mean(without) < 50
    assert np.mean(with_it[3:]) > 130
    assert learner.detected.all()


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_shipped_agents_adapt(name: str) -> None:
    means = []
    for method in ("frozen", "napping"):
        made = NappingAgent(name, domain="cartpole", detector="given", method=method)
        means.append(np.mean(evaluate(made, made.wrap(cartpole(force=70.0, length=2.0, gravity=30.0)), 8)))
    assert means[0] < 60
    assert means[1] > 150


def test_without_attach_nothing_is_learned(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", detector="given", method="napping")
    evaluate(made, cartpole(**HARD), 3)
    assert made.explain() == []


def test_observe_by_hand_is_what_attach_does(agent: Agent) -> None:
    wrapped = adapted(agent)
    made, env = NappingAgent(agent, domain="cartpole", detector="given", method="napping"), cartpole(**HARD)
    seed: int | None = 1
    for _ in range(8):
        observation, _ = env.reset(seed=seed)
        seed, over = None, False
        while not over:
            action, _ = made.predict(observation)
            following, reward, terminated, truncated, _ = env.step(action)
            made.observe(observation, action, following, reward, terminated, truncated)
            observation, over = following, terminated or truncated
    assert tables(made) == tables(wrapped)
    assert len(tables(made)["visits"]) > 10


def test_observe_without_predict_asks_the_agent_itself(agent: Agent) -> None:
    """Steps that another program executed can be told too."""
    told, asked = (NappingAgent(agent, domain="cartpole", detector="given", method="napping") for _ in range(2))
    rng = np.random.default_rng(0)
    for _ in range(60):
        before, after = (rng.normal(size=4).astype(np.float32) * 0.1 for _ in range(2))
        action = int(rng.integers(2))
        asked.predict(before)
        for made in (told, asked):
            made.observe(before, action, after, 1.0, False)
            made.observe(before, 1 - action, -after, 1.0, False)
    assert tables(told) == tables(asked)
    assert len(tables(told)["visits"]) > 3


@waits
def test_detection_is_latched_and_begins_with_episode_5(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", method="napping")
    env = made.wrap(cartpole(**FAILING))
    returns = play(made, env, 5, seed=0)
    assert np.mean(returns) < 150
    assert made.detected.tolist() == [True]
    assert made.explain() == []
    play(made, env, 10)
    assert made.explain() != []
    env.reset(options={"params": {}})
    play(made, env, 6)
    assert made.detected.tolist() == [True]


def test_the_detector_is_told_the_return_of_each_episode(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", method="napping")
    nowhere = np.zeros(4, np.float32)
    for episode in range(5):
        assert made.detected.tolist() == [False]
        made.observe(nowhere, 0, nowhere, 100.0, False)
        # Half of the episodes are cut, half of them end.
        made.observe(nowhere, 0, nowhere, 40.0, episode % 2 == 0, episode % 2 == 1)
    assert made.detected.tolist() == [True], "five returns of 140 are below 150; their sum is not"


@waits
def test_an_agent_that_still_works_is_left_alone(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", method="napping")
    assert play(made, made.wrap(cartpole()), 8, seed=0) == [200.0] * 8
    assert made.detected.tolist() == [False]
    assert made.explain() == []


def test_the_reward_is_the_score_where_nothing_is_named(agent: Agent) -> None:
    made = NappingAgent(agent, method="napping")
    assert made.score.name == "reward"
    assert made.detected.tolist() == [True], "without a domain adaptation begins at once"


@pytest.mark.filterwarnings("ignore:.*no action has failed:nappingrl.AdaptationWarning")
def test_a_score_function_of_your_own(agent: Agent) -> None:
    calls = []

    def survive(obs: NDArray[Any], action: NDArray[Any], obs2: NDArray[Any], reward: NDArray[Any], end: Any) -> Any:
        calls.append((obs.shape, action.shape, obs2.shape, reward.shape, end.shape))
        return np.where(end, -1.0, 1.0)

    made = NappingAgent(agent, score=survive)
    assert made.score.name == "survive"
    play(made, made.wrap(cartpole()), 1, seed=0)
    assert set(calls) == {((1, 4), (1,), (1, 4), (1,), (1,))}


# ---- the same as the engine ---------------------------------------------------------------------------------------


def same_resets(trial: TrialSpec, params: dict[str, float]) -> Env:
    """gymnasium's environment with the worlds and the starts of a trial."""
    env = DomainEnv(trial.run.domain)
    env.np_random = trial.stream("reset")
    env.set_params(**params)
    return TimeLimit(env, env.domain.spec.horizon)


@waits
@pytest.mark.parametrize("detector", ["given", "rolling-mean", "never"])
@pytest.mark.parametrize(
    ("options", "score"), [({}, ""), ({"rule": "fallback", "space": "raw"}, ""), ({}, "lean-drop-0.2")]
)
def test_a_trial_gives_what_the_engine_gives(agent: Agent, detector: str, options: dict[str, Any], score: str) -> None:
    run = RunSpec(
        "cartpole", "a", detector=detector, protocol="0+8", trials=4, seed=3, score=score, options=options
    ).complete()
    trials = run.trial_specs()
    for trial, rows in zip(trials, Engine(run, agent).run_trials(trials).partition_by("trial"), strict=True):
        made = NappingAgent(
            agent, domain="cartpole", detector=detector, score=score or None, method="napping", **options
        )
        returns = play(made, made.wrap(same_resets(trial, trial.parameters() or {})), 8)
        assert returns == rows["return"].to_list()
        assert len(tables(made)["visits"]) == rows["regions"].to_list()[-1]


def test_several_environments_side_by_side_are_separate_agents(agent: Agent) -> None:
    worlds = [HARD, FAILING, HARD | {"gravity": 20.0, "force": 70.0}]
    together = NappingAgent(agent, domain="cartpole", detector="given", n_envs=3, method="napping")
    envs = [together.wrap(cartpole(**params), index) for index, params in enumerate(worlds)]
    observations = np.stack([env.reset(seed=i)[0] for i, env in enumerate(envs)])
    lengths: list[list[int]] = [[0], [0], [0]]
    for _ in range(900):
        actions, _ = together.predict(observations)
        for i, env in enumerate(envs):
            observations[i], _, terminated, truncated, _ = env.step(actions[i])
            lengths[i][-1] += 1
            if terminated or truncated:
                observations[i], _ = env.reset()
                lengths[i].append(0)
    for i, params in enumerate(worlds):
        alone = NappingAgent(agent, domain="cartpole", detector="given", method="napping")
        returns = play(alone, alone.wrap(cartpole(**params)), len(lengths[i]) - 1, seed=i)
        assert returns == lengths[i][:-1]
        assert len(returns) > 1
    assert len({str(tables(together, i)) for i in range(3)}) == 3


def test_a_vec_env_of_attached_environments_adapts_each(agent: Agent) -> None:
    vec = pytest.importorskip("stable_baselines3.common.vec_env")
    made = NappingAgent(agent, domain="cartpole", detector="given", n_envs=2, method="napping")
    makers: list[Callable[[], Env]] = [
        lambda: made.wrap(TimeLimit(changed(HARD), 200), 0),
        lambda: made.wrap(TimeLimit(changed(FAILING), 200), 1),
    ]
    returns = evaluate(made, vec.DummyVecEnv(makers), 12)
    assert len(returns) == 12
    assert made.explain(0) != made.explain(1) != []


def changed(params: dict[str, float]) -> DomainEnv:
    env = DomainEnv("cartpole")
    env.set_params(**params)
    return env


def test_batches_can_be_observed_at_once(agent: Agent) -> None:
    """predict and observe over a gymnasium vector environment."""
    made = NappingAgent(agent, domain="cartpole", detector="given", n_envs=2, method="napping")
    env = gymnasium.make_vec("nappingrl/CartPole-v0", num_envs=2)
    observations, _ = env.reset(seed=0, options={"params": HARD})
    for _ in range(100):
        actions, _ = made.predict(observations)
        following, rewards, terminated, truncated, _ = env.step(actions)
        made.observe(observations, actions, following, rewards, terminated, truncated)
        observations = following
    assert made.explain(0)
    assert made.explain(1)


# ---- explain ------------------------------------------------------------------------------------------------------


def test_explain_in_the_words_of_the_domain(agent: Agent) -> None:
    rules = adapted(agent).explain()
    assert rules
    assert [rule.visits for rule in rules] == sorted((rule.visits for rule in rules), reverse=True)
    assert all(re.search(r"(pole|cart) \w.* (rad|m)(/s)?[:,]", str(rule)) for rule in rules)
    assert sum(rule.coverage for rule in rules) == pytest.approx(1.0)
    assert any(rule.now != (rule.wanted,) for rule in rules), "something was learned"


def test_explain_without_a_domain(agent: Agent) -> None:
    made = NappingAgent(agent, score=lambda o, a, o2, r, end: np.where(end, -1.0, 1.0))
    play(made, made.wrap(cartpole(**HARD)), 3, seed=0)
    assert "pole ang" in " ".join(map(str, made.explain()))
    assert {action for rule in made.explain() for action in rule.now} == {"LEFT", "RIGHT"}


def test_explain_of_a_frozen_agent_is_empty(agent: Agent) -> None:
    assert NappingAgent(agent, method="frozen").explain() == []


# ---- bad settings -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"domain": "cartpol"}, UnknownNameError, "unknown domain.*Did you mean 'cartpole'"),
        ({"method": "naping"}, UnknownNameError, "unknown method.*Did you mean 'napping'"),
        ({"method": "oracle", "domain": "cartpole"}, BadSpecError, "true parameters"),
        ({"rule": "reviced"}, UnknownNameError, "unknown rule.*Did you mean 'revised'"),
        ({"space": "embeddng"}, UnknownNameError, "unknown space.*Did you mean 'embedding'"),
        ({"choice": "randm"}, UnknownNameError, "unknown choice.*Did you mean 'random'"),
        ({"score": "termina", "domain": "cartpole"}, UnknownNameError, "unknown score.*Did you mean 'terminal'"),
        ({"score": "terminal"}, BadSpecError, "names need domain="),
        ({"detector": "gven"}, UnknownNameError, "unknown detector.*Did you mean 'given'"),
        ({"detector": "rolling-mean"}, BadSpecError, "cannot alarm here"),
        ({"n_envs": 0}, BadSpecError, "n_envs"),
    ],
)
def test_bad_settings_are_refused_in_one_line(
    agent: Agent, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        NappingAgent(agent, **{"method": "napping"} | options)
    assert "\n" not in str(caught.value)


def test_a_shipped_agent_in_an_unknown_domain_names_the_domain() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown domain 'cartpol'.*Did you mean 'cartpole'"):
        NappingAgent("ppo", domain="cartpol", method="napping")


def test_an_agent_of_another_world_is_refused(agent: Agent) -> None:
    with pytest.raises(BadAgentError, match="mountaincar"):
        NappingAgent(agent, domain="mountaincar", method="napping")


def test_wrap_takes_the_environments_that_the_agent_serves(agent: Agent) -> None:
    made = NappingAgent(agent, domain="cartpole", method="napping")
    with pytest.raises(BadSpecError, match="2 copies given, the agent serves 1"):
        made.wrap(gymnasium.make_vec("nappingrl/CartPole-v0", num_envs=2))
    with pytest.raises(BadSpecError, match="n_envs"):
        made.wrap(cartpole(), index=1)


def test_attached_environment_is_the_environment(agent: Agent) -> None:
    env = cartpole()
    attached = NappingAgent(agent, method="napping").wrap(env)
    assert attached.unwrapped is env.unwrapped
    assert attached.observation_space == env.observation_space
    assert attached.reset(seed=3)[0].tolist() == env.reset(seed=3)[0].tolist()


# ---- observe ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"action": 2}, "0 to 1"),
        ({"action": -1}, "0 to 1"),
        ({"action": 10**10}, "0 to 1"),
        ({"env": 1}, "n_envs=1"),
        ({"env": -1}, "n_envs=1"),
        ({"reward": [1.0, 2.0]}, "reward of shape"),
        ({"action": [0, 1]}, "action of shape"),
    ],
)
def test_observe_refuses_what_does_not_fit(agent: Agent, change: dict[str, Any], text: str) -> None:
    made = NappingAgent(agent, detector="given", method="napping")
    step = {"observation": np.zeros(4, np.float32), "action": 0, "next_observation": np.ones(4, np.float32)}
    with pytest.raises(BadSpecError, match=text):
        made.observe(**(step | {"reward": 1.0, "terminated": False} | change))


def test_observe_wants_one_of_each_for_a_batch(agent: Agent) -> None:
    made = NappingAgent(agent, detector="given", n_envs=2, method="napping")
    batch = np.zeros((2, 4), np.float32)
    with pytest.raises(BadSpecError, match="action of shape"):
        made.observe(batch, 0, batch, [1.0, 1.0], [False, False], [False, False])


@pytest.mark.parametrize("value", [1.0, np.ones(3), np.ones((1, 1)), [np.nan]])
def test_a_score_must_give_one_number_for_each(agent: Agent, value: Any) -> None:
    made = NappingAgent(agent, score=lambda o, a, o2, r, end: value, detector="given")
    with pytest.raises(BadSpecError, match="score"):
        made.observe(np.zeros(4, np.float32), 0, np.ones(4, np.float32), 1.0, False)


class OneBuffer(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Writes every observation into the same array, as some environments do."""

    buffer = np.zeros(4, np.float32)

    def observation(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        self.buffer[:] = observation
        return self.buffer


def test_environments_may_reuse_their_observation_array(agent: Agent) -> None:
    plain, reused = (NappingAgent(agent, domain="cartpole", detector="given", method="napping") for _ in range(2))
    expected = play(plain, plain.wrap(cartpole(**HARD)), 5, seed=0)
    assert play(reused, reused.wrap(OneBuffer(cartpole(**HARD))), 5, seed=0) == expected


@waits
def test_an_early_reset_forgets_the_running_return(agent: Agent) -> None:
    """Else the detector would judge the sum of two episodes."""
    made = NappingAgent(agent, detector=RollingMean(1, low=50, window=1, first=0), method="napping")
    env = made.wrap(cartpole())
    observation, _ = env.reset(seed=0)
    for _ in range(100):
        observation, *_ = env.step(made.predict(observation)[0])
    env.unwrapped.set_params(**FAILING)  # type: ignore[attr-defined]
    play(made, env, 1, seed=0)
    assert made.detected.tolist() == [True]
