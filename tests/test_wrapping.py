"""`wrap` tells an agent without a domain what it must know: spaces, time limit and names."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit

from nappingrl import AdaptationWarning, NappingAgent, load_agent
from nappingrl.errors import BadAgentError, BadSpecError

pytestmark = pytest.mark.filterwarnings("ignore::nappingrl.AdaptationWarning")  # agents that wait
CARTPOLE = "nappingrl/CartPole-v0"
ZEROS = np.zeros(4, np.float32)


def play(agent: NappingAgent, env: gymnasium.Env[Any, Any], episodes: int, **params: float) -> list[float]:
    returns = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed, options={"params": params})
        total, is_over = 0.0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(agent.predict(observation)[0])
            total, is_over = total + float(reward), terminated or truncated
        returns.append(total)
    return returns


def made(**options: Any) -> NappingAgent:
    return NappingAgent("cartpole-ppo", **options)


def test_bounds_time_limit_and_names() -> None:
    agent = made(method="foresight", detector="given")
    agent.wrap(gymnasium.make("CartPole-v1"))
    domain = agent.domain
    assert (domain.name, domain.horizon, domain.n_actions) == ("CartPole-v1", 500, 2)
    np.testing.assert_allclose(domain.observation_high[2], 0.418, atol=1e-3)
    assert domain.observation_names[2] == "pole angle"
    assert domain.action_names == ("LEFT", "RIGHT")


def test_environments_without_a_spec() -> None:
    """An instance of a class; the time limit is that of the wrapper."""
    from gymnasium.envs.classic_control import CartPoleEnv

    agent = made(method="foresight", detector="given")
    agent.wrap(TimeLimit(CartPoleEnv(), 77))
    assert (agent.domain.name, agent.domain.horizon) == ("CartPoleEnv", 77)
    assert agent.domain.observation_names[0] == "observation 0"


class Endless(gymnasium.Env[Any, Any]):
    """An environment without a spec; `max_steps` is set by some."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,))
    action_space = gymnasium.spaces.Discrete(2)


def test_an_environment_without_a_time_limit_is_told_once() -> None:
    agent = made(detector="given")
    with pytest.warns(AdaptationWarning, match=r"Endless has no time limit.*gymnasium\.wrappers\.TimeLimit") as caught:
        agent.wrap(Endless())
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings(action="error"):
        agent.wrap(Endless())
    with pytest.warns(AdaptationWarning, match="no time limit"):
        made(detector="given", n_envs=2).wrap(gymnasium.vector.SyncVectorEnv([Endless, Endless]))


@pytest.mark.filterwarnings("error")
def test_where_a_time_limit_is_found() -> None:
    """In a wrapper, in the environment itself as in MiniGrid, and in the copies of vector environments."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Limited(Endless):
        max_steps = 33

    def wrapped() -> gymnasium.Env[Any, Any]:
        return TimeLimit(Endless(), 44)

    known = {33: Limited(), 44: wrapped(), 500: gymnasium.make("CartPole-v1")}
    for limit, env in known.items():
        agent = made(detector="given")
        agent.wrap(env)
        assert agent.domain.horizon == limit
    for vector in (gymnasium.vector.SyncVectorEnv([wrapped]), DummyVecEnv([wrapped])):
        agent = made(detector="given")
        agent.wrap(vector)
        assert agent.domain.horizon == 44


@pytest.mark.parametrize("options", [{"method": "foresight", "detector": "given"}, {"detector": "residual"}])
def test_the_same_as_with_the_domain_given(options: dict[str, Any]) -> None:
    """Methods and detectors that need a domain work as if `domain` had been given."""
    waiting, told = made(**options), NappingAgent("ppo", domain="cartpole", **options)
    assert "waiting for wrap(env)" in repr(waiting)
    assert "waits for agent.wrap(env)" in waiting.notes()[0]
    changed = [play(agent, agent.wrap(gymnasium.make(CARTPOLE)), 4, force=-10.0) for agent in (waiting, told)]
    assert changed[0] == changed[1]
    assert type(waiting.detector) is type(told.detector)


@pytest.mark.parametrize(
    ("options", "who"),
    [({"method": "foresight"}, "method 'foresight'"), ({"detector": "residual"}, "detector 'residual'")],
)
def test_too_early(options: dict[str, Any], who: str, tmp_path: Path) -> None:
    """One clear line for all that cannot be done before an environment is known."""
    agent = made(**options)
    for use in (
        lambda: agent.predict(ZEROS),
        lambda: agent.observe(ZEROS, 0, ZEROS, 1.0, False),
        agent.explain,
        lambda: agent.save(tmp_path / "a"),
    ):
        with pytest.raises(BadSpecError, match=rf"^{who} must know the environment: call agent.wrap\(env\) first, or"):
            use()
    agent.wrap(gymnasium.make(CARTPOLE))
    agent.adaptation.act(np.array([0]), ZEROS[None])


def test_other_spaces_are_refused() -> None:
    for agent in (made(), NappingAgent("ppo", domain="cartpole"), made(method="foresight", n_envs=2)):
        for env in ("MountainCar-v0", "Acrobot-v1", "Pendulum-v1"):
            with pytest.raises(
                BadAgentError, match=rf"\(4,\) and has 2 actions; {env} has .* wrap an environment with"
            ):
                agent.wrap(gymnasium.make(env))
        agent.wrap(gymnasium.make("CartPole-v1"))
        with pytest.raises(BadAgentError, match="MountainCar-v0 has"):
            agent.wrap(gymnasium.make("MountainCar-v0"))


def test_several_environments() -> None:
    """The first one tells; all are served."""
    agent = made(method="foresight", detector="given", n_envs=2)
    envs = [agent.wrap(gymnasium.make(CARTPOLE), index) for index in range(2)]
    observations = [env.reset(seed=i, options={"params": {"force": -10.0}})[0] for i, env in enumerate(envs)]
    for _ in range(30):
        actions, _ = agent.predict(np.array(observations))
        for i, env in enumerate(envs):
            observations[i], _, terminated, truncated, _ = env.step(actions[i])
            if terminated or truncated:
                observations[i], _ = env.reset()
    assert agent.detected.all()


def test_what_was_learned_before_is_kept() -> None:
    """An agent that observed steps by hand does not start anew when it is wrapped."""
    agent = NappingAgent(load_agent("cartpole-ppo"), score=lambda o, a, o2, r, end: np.full(len(o), -1.0))
    for _ in range(5):
        agent.observe(ZEROS, 0, ZEROS, 1.0, False)
    regions = agent.contexts()["novelty 1"]
    assert regions > 0
    agent.wrap(gymnasium.make(CARTPOLE))
    assert agent.contexts()["novelty 1"] == regions


def test_a_saved_agent_knows_its_environment(tmp_path: Path) -> None:
    """Bounds (infinite ones too), time limit and names are in the file."""
    agent = made(method="foresight", detector="residual")
    play(agent, agent.wrap(gymnasium.make(CARTPOLE)), 2)
    path = agent.save(tmp_path / "agent")
    loaded = NappingAgent.load(path)
    for name in ("name", "horizon", "observation_names", "action_names"):
        assert getattr(loaded.domain, name) == getattr(agent.domain, name)
    np.testing.assert_array_equal(loaded.domain.observation_low, agent.domain.observation_low)
    assert loaded.notes() == agent.notes()
    both = [play(one, one.wrap(gymnasium.make(CARTPOLE)), 2, force=-10.0) for one in (agent, loaded)]
    assert both[0] == both[1]
    with pytest.raises(BadAgentError, match="Acrobot"):
        loaded.wrap(gymnasium.make("Acrobot-v1"))


MODES = [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP]


class Recorder(NappingAgent):
    """Notes what it observes, by environment."""

    def __init__(self, n_envs: int) -> None:
        super().__init__("cartpole-ppo", n_envs=n_envs, detector="given", method="napping")
        self.steps: list[list[tuple[Any, ...]]] = [[] for _ in range(n_envs)]

    def observe(self, *step: Any, env: int | None = None) -> None:
        *parts, index = step
        for row in range(self.n_envs) if index is None else [index]:
            chosen = [part[row] if index is None else part for part in parts]
            self.steps[row].append(tuple(np.asarray(part).tolist() for part in chosen))
        super().observe(*parts, env=index)


def single_steps(seed: int, n_steps: int) -> list[tuple[Any, ...]]:
    """What an agent observes in one environment that is reset by hand."""
    agent, made_env = Recorder(1), gymnasium.make("CartPole-v1", max_episode_steps=30)
    env = agent.wrap(made_env)
    observation, _ = env.reset(seed=seed)
    for _ in range(n_steps):
        observation, _, terminated, truncated, _ = env.step(agent.predict(observation)[0])
        if terminated or truncated:
            observation, _ = env.reset()
    return agent.steps[0]


@pytest.mark.parametrize("mode", MODES)
def test_vector_environments_of_gymnasium(mode: AutoresetMode) -> None:
    """Every copy is observed as a single environment would be, and no step leads from one episode into the next."""
    envs = gymnasium.make_vec(
        "CartPole-v1", num_envs=3, vectorization_mode="sync", vector_kwargs={"autoreset_mode": mode},
        max_episode_steps=30,
    )  # fmt: skip
    agent = Recorder(3)
    wrapped = agent.wrap(envs)
    assert (agent.domain.name, agent.domain.n_actions) == ("CartPole-v1", 2)
    observations, _ = wrapped.reset(seed=5)
    for _ in range(100):
        observations, *_ = wrapped.step(agent.predict(observations)[0])
    for row, steps in enumerate(agent.steps):
        assert steps == single_steps(5 + row, len(steps))
    assert agent.episodes.min() >= 3


def test_vector_environments_of_this_package() -> None:
    agent = NappingAgent("ppo", domain="cartpole", n_envs=4, detector="given", method="napping")
    wrapped = agent.wrap(gymnasium.make_vec(CARTPOLE, num_envs=4))
    observations, _ = wrapped.reset(seed=0, options={"params": {"force": -10.0}})
    for _ in range(220):
        observations, *_ = wrapped.step(agent.predict(observations)[0])
    assert agent.contexts(3)["novelty 1"] > 0
    assert agent.episodes.min() > 0


@pytest.mark.parametrize("n_envs", [1, 3])
def test_vector_environments_of_sb3(n_envs: int) -> None:
    """evaluate_policy works as it is, and terminal observations are those of the episode."""
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    def make() -> Any:
        return gymnasium.make("CartPole-v1", max_episode_steps=30)

    agent = Recorder(n_envs)
    venv = DummyVecEnv([make] * n_envs)
    venv.seed(5)
    wrapped = agent.wrap(VecMonitor(venv))
    mean, _ = evaluate_policy(agent, wrapped, n_eval_episodes=2 * n_envs)
    assert mean == 30
    for row, steps in enumerate(agent.steps):
        assert steps == single_steps(5 + row, len(steps))
        assert steps[29][-2:] == (False, True), "truncated, not terminated"
    assert agent.domain.name == "CartPole-v1"


def test_the_number_of_copies_must_fit() -> None:
    with pytest.raises(BadSpecError, match="3 copies given, the agent serves 1; make it with n_envs="):
        made().wrap(gymnasium.make_vec("CartPole-v1", num_envs=3))
    with pytest.raises(BadSpecError, match=r"wrap takes a gymnasium\.Env.*, not str"):
        made().wrap("CartPole-v1")
