"""The agent's own critic: parity with SB3's, in the environment's rewards, and what is refused."""

import io
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DDPG, PPO, SAC, TD3
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from nappingrl import agents
from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.sb3 import vecnormalize
from nappingrl.agents.sb3.live import LiveSB3Agent
from nappingrl.errors import BadAgentError

KINDS = ("ppo", "a2c", "dqn", "qrdqn", "trpo")
SMALL: dict[str, Any] = {"policy_kwargs": {"net_arch": [32, 16]}}
CONTINUOUS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ppo": (PPO, {}),
    "sac": (SAC, SMALL),
    "sac-sde": (SAC, SMALL | {"use_sde": True}),
    "td3": (TD3, SMALL),
    "td3-tanh": (TD3, {"policy_kwargs": {"net_arch": [16], "activation_fn": torch.nn.Tanh, "n_critics": 3}}),
    "ddpg": (DDPG, SMALL),
}
BOX = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 0.5], np.float32))


def critic_of(model: Any, observations: Any) -> NDArray[Any]:
    """The values by SB3's own functions."""
    policy = model.policy
    policy.set_training_mode(False)
    tensors, _ = policy.obs_to_tensor(observations)
    with torch.no_grad():
        if hasattr(policy, "q_net"):
            values = policy.q_net(tensors).max(dim=1).values
        elif hasattr(policy, "quantile_net"):
            values = policy.quantile_net(tensors).mean(dim=1).max(dim=1).values
        elif hasattr(policy, "predict_values"):
            values = policy.predict_values(tensors)[:, 0]
        else:
            both = policy.critic(tensors, policy._predict(tensors, deterministic=True))
            values = torch.cat(both, dim=1).min(dim=1).values
    assert float(values.std()) > 1e-3, "a test in which values hardly differ"
    return np.asarray(values.numpy())


def assert_values(agent: Agent, wanted: NDArray[Any], observations: Any) -> None:
    """These values, with the same bits in any batch."""
    values = agent.values(observations)
    assert values is not None
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())
    if isinstance(observations, np.ndarray):
        np.testing.assert_array_equal(values[5:6], agent.values(observations[5:6]))
    assert agent.no_critic == ""


@pytest.mark.parametrize("kind", KINDS)
def test_discrete(kind: str, make_model: Any, observations: NDArray[np.float32], tmp_path: Path) -> None:
    """From a zip and live."""
    model = make_model(kind, gamma=0.97)
    model.save(tmp_path / "agent.zip")
    for agent in (agents.load(tmp_path / "agent.zip"), agents.load(model)):
        assert isinstance(agent, MlpAgent)
        assert_values(agent, critic_of(model, observations), observations)
        assert agent.gamma == 0.97
        none = agent.values(observations[:0])
        assert none is not None
        assert none.shape == (0,)


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous(kind: str, constant: Any, make_batch: Any, tmp_path: Path) -> None:
    """The least critic at the action that the actor wants."""
    algorithm, options = deepcopy(CONTINUOUS[kind])  # SB3 changes policy_kwargs
    options = options | ({} if kind == "ppo" else {"buffer_size": 10})
    space = spaces.Box(-9, 9, (3,), np.float32)
    model = algorithm("MlpPolicy", constant(space, BOX), seed=1, device="cpu", **options)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in model.policy.named_parameters():
            if "log_std" not in name:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    model.save(tmp_path / "agent.zip")
    observations = make_batch(space, 57)
    for agent in (agents.load(tmp_path / "agent.zip"), agents.load(model)):
        assert_values(agent, critic_of(model, observations), observations)


@pytest.mark.parametrize("kind", ["ppo", "dqn", "qrdqn"])
def test_models_that_torch_runs(kind: str, make_model: Any, observations: NDArray[np.float32]) -> None:
    """Networks that are no plain perceptrons."""
    model = make_model(kind, policy_kwargs={"activation_fn": torch.nn.ELU})
    agent = agents.load(model)
    assert isinstance(agent, LiveSB3Agent)
    assert_values(agent, critic_of(model, observations), observations)
    assert agent.gamma == model.gamma


def test_dictionaries(constant: Any, make_batch: Any) -> None:
    """A live SAC with dictionary observations."""
    space = spaces.Dict({"place": spaces.Box(-9, 9, (3,), np.float32), "speed": spaces.Box(-9, 9, (2,), np.float32)})
    model = SAC("MultiInputPolicy", constant(space, BOX), seed=1, device="cpu", buffer_size=10)
    observations = make_batch(space, 21)
    assert_values(agents.load(model), critic_of(model, observations), observations)


@pytest.fixture
def normalised() -> VecNormalize:
    """A CartPole whose rewards are normalised, after a while."""
    envs = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]), epsilon=1e-3)
    envs.seed(3)
    envs.reset()
    for _ in range(60):
        envs.step(np.array([1]))
    return envs


@pytest.mark.parametrize("is_array", [True, False])
def test_normalised_rewards(
    is_array: bool, normalised: VecNormalize, observations: NDArray[np.float32], tmp_path: Path
) -> None:
    """Values are in the environment's rewards: VecNormalize's scale is undone."""
    normalised.ret_rms.var = np.asarray(7.0) if is_array else np.float64(7.0)  # type: ignore[assignment]
    model = PPO("MlpPolicy", normalised, seed=1, device="cpu")
    model.save(tmp_path / "agent.zip")
    normalised.save(str(tmp_path / "vecnormalize.pkl"))
    scale = np.sqrt(7.0 + 1e-3)
    fed = normalised.normalize_obs(observations)
    assert_values(agents.load(tmp_path / "agent.zip"), scale * critic_of(model, fed), observations)
    assert_values(agents.load(model), scale * critic_of(model, observations), observations)
    by_path = agents.load(model, normaliser=tmp_path / "vecnormalize.pkl")
    assert_values(by_path, scale * critic_of(model, fed), observations)
    normalised.norm_reward = False
    normalised.save(str(tmp_path / "vecnormalize.pkl"))
    assert_values(agents.load(tmp_path / "agent.zip"), critic_of(model, fed), observations)


def test_statistics_of_returns_that_are_missing(
    normalised: VecNormalize, observations: NDArray[np.float32], tmp_path: Path
) -> None:
    """Values in unknown units are none, and the agent says why; the shipped PPO of MountainCar has them no more."""
    model = PPO("MlpPolicy", normalised, seed=1, device="cpu")
    model.save(tmp_path / "agent.zip")
    normalised.ret_rms = None  # type: ignore[assignment]
    normalised.save(str(tmp_path / "vecnormalize.pkl"))
    for agent in (agents.load(tmp_path / "agent.zip"), agents.load("mountaincar-ppo-strong")):
        shape = agent.observation_shape
        assert shape is not None
        assert agent.values(observations[:, : shape[0]]) is None
        assert "normalised in training" in agent.no_critic


def test_shipped_agents() -> None:
    """What PPO and DQN expect of a standing pole lies near the discounted sum of the rewards they would get."""
    for name in ("cartpole-ppo", "cartpole-dqn"):
        agent = agents.load(name)
        values = agent.values(np.zeros((1, 4), np.float32))
        assert values is not None
        assert agent.gamma is not None
        limit = 1 / (1 - agent.gamma)
        assert 0.5 * limit < values[0] < 1.5 * limit


@pytest.mark.parametrize(
    ("change", "why"),
    [({"value_net.weight": None, "value_net.bias": None}, "no critic"),
     ({"value_net.bias": None}, "no bias"),
     ({"value_net.weight": torch.zeros(2, 64), "value_net.bias": torch.zeros(2)}, "4 inputs and has 2 outputs"),
     ({"mlp_extractor.value_net.0.weight": torch.zeros(64, 5)}, "takes 5 inputs"),
     ({"value_net.bias": torch.full((1,), torch.nan)}, "NaN")],
)  # fmt: skip
def test_damaged_critics(change: dict[str, Any], why: str, make_model: Any, rewrite: Any, tmp_path: Path) -> None:
    """The agent acts without them, and says why there are no values."""
    model = make_model("ppo")
    model.save(tmp_path / "agent.zip")
    state = {key: value for key, value in (model.policy.state_dict() | change).items() if value is not None}
    content = io.BytesIO()
    torch.save(state, content)
    rewrite(tmp_path / "agent.zip", tmp_path / "bad.zip", policy__pth=content.getvalue(), policy__optimizer__pth=None)
    agent = agents.load(tmp_path / "bad.zip")
    assert agent.forward(np.zeros((1, 4), np.float32)).actions.shape == (1,)
    assert agent.values(np.zeros((1, 4), np.float32)) is None
    assert why in agent.no_critic
    assert "\n" not in agent.no_critic


@pytest.mark.parametrize("gamma", ["0.9", float("nan"), float("inf"), -0.1, 0, 2, None, [0.9]])
def test_impossible_gammas(gamma: Any, make_model: Any, rewrite: Any, tmp_path: Path) -> None:
    """A discount factor that is none is unknown."""
    make_model("dqn").save(tmp_path / "agent.zip")
    rewrite(tmp_path / "agent.zip", tmp_path / "odd.zip", lambda data: data.update(gamma=gamma))
    assert agents.load(tmp_path / "odd.zip").gamma is None


def test_agents_without_a_critic() -> None:
    """Scripted agents, and perceptrons of unknown training."""
    layers = [(np.zeros((4, 3), np.float32), np.zeros(3, np.float32)), (np.zeros((3, 2), "f4"), np.zeros(2, "f4"))]
    for agent in (agents.load("naive", "angrybirds"), MlpAgent("plain", layers, "relu")):
        assert agent.values(np.zeros((1, 4), np.float32)) is None
        assert agent.gamma is None
        assert agent.no_critic


@pytest.mark.parametrize("variance", [-1.0, float("nan"), float("inf"), np.ones(2), np.array(-1.0), "1", None, 10**400])
def test_impossible_variance_of_returns(variance: Any, normalised: VecNormalize, tmp_path: Path) -> None:
    """Refused in one line that names the file."""
    normalised.ret_rms.var = variance
    normalised.save(str(tmp_path / "v.pkl"))
    with pytest.raises(BadAgentError, match=r"^normaliser file '.*v\.pkl': [^\n]*$"):
        vecnormalize.read(tmp_path / "v.pkl")
