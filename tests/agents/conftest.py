"""Small SB3 models with perturbed weights, and a tampering tool for their zips."""

import base64
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from sb3_contrib import QRDQN, TRPO
from stable_baselines3 import A2C, DQN, PPO

from nappingrl.agents.base import Agent

torch.set_num_threads(1)  # more are slower at these sizes, and much slower beside other work

ALGORITHMS: dict[str, Any] = {"ppo": PPO, "dqn": DQN, "a2c": A2C, "qrdqn": QRDQN, "trpo": TRPO}
MakeModel = Callable[..., Any]
Rewrite = Callable[..., Path]


def batch(space: spaces.Space[Any], m: int, seed: int = 0) -> Any:
    """m observations of a space: normal where it is a Box of floats, else samples of the space."""
    if isinstance(space, spaces.Dict):
        return {key: batch(part, m, seed + i) for i, (key, part) in enumerate(space.spaces.items())}
    if isinstance(space, spaces.Box) and space.dtype == np.float32:
        return np.random.default_rng(seed).normal(size=(m, *space.shape)).astype(np.float32) * 1.5
    space.seed(seed)
    return np.stack([space.sample() for _ in range(m)])


def last_layer(policy: Any) -> torch.nn.Module:
    """The layer whose input is the model state, found independently of the package."""
    if hasattr(policy, "action_net"):
        return policy.action_net
    return (policy.q_net.q_net if hasattr(policy, "q_net") else policy.quantile_net.quantile_net)[-1]


def shake(model: Any, seed: int = 0) -> Any:
    """Random weights with balanced outputs: untrained SB3 policies prefer one action nearly everywhere."""
    generator = torch.Generator().manual_seed(seed)
    last, outputs = last_layer(model.policy), []
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
        handle = last.register_forward_hook(lambda _, __, output: outputs.append(output))
        model.predict(batch(model.observation_space, 64, seed), deterministic=True)
        handle.remove()
        last.bias.sub_(outputs[0].mean(dim=0))
    return model


@pytest.fixture
def make_model() -> MakeModel:
    """A model of a named algorithm on CartPole, or on the environment given."""

    def make(kind: str, env: gymnasium.Env[Any, Any] | None = None, policy: str = "MlpPolicy", **options: Any) -> Any:
        if kind in ("dqn", "qrdqn"):
            options.setdefault("buffer_size", 100)
        env = gymnasium.make("CartPole-v1") if env is None else env
        return shake(ALGORITHMS[kind](policy, env, seed=1, device="cpu", **options))

    return make


@pytest.fixture
def observations() -> NDArray[np.float32]:
    """(257, 4): four full blocks and one row."""
    return np.asarray(batch(spaces.Box(-9, 9, (4,), np.float32), 257, seed=5))


@pytest.fixture
def rewrite() -> Rewrite:
    """Writes a copy of a zip with its JSON changed by a function, or members replaced."""

    def change(path: Path, out: Path, data: Callable[[dict[str, Any]], None] | None = None, **members: Any) -> Path:
        replaced = {name.replace("__", "."): content for name, content in members.items()}
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
            for name in old.namelist():
                content = replaced.get(name, old.read(name))
                if name == "data" and data is not None:
                    parsed = json.loads(content)
                    data(parsed)
                    content = json.dumps(parsed).encode()
                if content is not None:
                    new.writestr(name, content)
        return out

    return change


def assert_parity(agent: Agent, model: Any, observations: Any, fed: Any = None, varied: bool = True) -> None:
    """Same greedy actions, embedding and preferences as SB3 computes (on `fed`, if SB3 is to see something else)."""
    seen: list[Any] = []
    handle = last_layer(model.policy).register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    wanted, _ = model.predict(observations if fed is None else fed, deterministic=True)
    handle.remove()
    states, outputs = (tensor.detach().numpy() for tensor in seen[0])
    decision = agent.forward(observations)
    assert decision.actions.dtype == np.int64
    assert decision.model_states.dtype == decision.preferences.dtype == np.float32
    np.testing.assert_allclose(decision.model_states, states, rtol=1e-5, atol=1e-5)
    preferences = outputs.reshape(len(wanted), -1, agent.n_actions).mean(axis=1)
    np.testing.assert_allclose(decision.preferences, preferences, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(decision.actions, wanted)
    assert not varied or len(set(wanted.tolist())) > 1, "a test in which one action always wins shows little"


@pytest.fixture
def parity() -> Callable[..., None]:
    """The comparison with SB3."""
    return assert_parity


class Constant(gymnasium.Env[Any, Any]):
    """An environment with any spaces, which is never stepped."""

    def __init__(self, observation_space: spaces.Space[Any], action_space: spaces.Space[Any] | None = None) -> None:
        self.observation_space = observation_space
        self.action_space = spaces.Discrete(3) if action_space is None else action_space


@pytest.fixture
def constant() -> Callable[..., Constant]:
    """A maker of such environments."""
    return Constant


@pytest.fixture
def make_batch() -> Callable[..., Any]:
    """A maker of observations."""
    return batch


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        """What a pickle would run."""
        return Path.touch, (self.marker,)


@pytest.fixture
def trap(tmp_path: Path) -> tuple[Path, bytes, str]:
    """A marker file, a pickle that makes it, and the same in base64; checked to be live ammunition."""
    marker = tmp_path / "marker"
    content = pickle.dumps(Trap(marker), protocol=2)
    pickle.loads(content)
    assert marker.exists()
    marker.unlink()
    return marker, content, base64.b64encode(content).decode()
