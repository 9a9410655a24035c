"""Settings that must precede all imports of the package, and small agents that need neither torch nor the zoo."""

import json
import os
import signal
import zipfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]


signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore Ctrl-C, and its tests hang
os.environ["SDL_VIDEODRIVER"] = "dummy"
os.environ["SDL_AUDIODRIVER"] = "dummy"
os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
os.environ["MPLBACKEND"] = "Agg"

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from command_line import napping  # noqa: E402, F401
from nappingrl.agents.base import Agent  # noqa: E402
from nappingrl.agents.mlp import Layer, MlpAgent  # noqa: E402
from nappingrl.domains import find_domain  # noqa: E402

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # a busy machine is no failure

HIDDEN = 8
BALANCE = (0.05, 0.1, 1.0, 0.3)
"""Gains of a switching line that balances the default CartPole for all 200 steps and fails in most changed ones."""


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, so that it works under --strict-markers."""
    config.addinivalue_line("markers", "slow: takes more than 20 s; deselect with -m 'not slow'")


def line_layers(gains: tuple[float, ...], n_actions: int, seed: int = 3, bias: float = 0.0) -> list[Layer]:
    """A network that wants its last action where gains * observation + bias > 0, and its first one elsewhere.

    One hidden unit carries the line; the others only make the model states richer.
    """
    first = np.random.default_rng(seed).normal(size=(len(gains), HIDDEN)).astype(np.float32) * np.float32(0.5)
    first[:, 0] = gains
    first_bias = np.zeros(HIDDEN, np.float32)
    first_bias[0] = bias
    last = np.zeros((HIDDEN, n_actions), np.float32)
    last[0, 0], last[0, -1] = -1.0, 1.0
    last_bias = np.zeros(n_actions, np.float32)
    last_bias[1:-1] = -10.0  # actions between the first and the last are never wanted
    return [(first, first_bias), (last, last_bias)]


def _cartpole_agent() -> MlpAgent:
    return MlpAgent("balance", line_layers(BALANCE, 2), "tanh")


def _mountaincar_agent() -> MlpAgent:
    """Pumps energy, but only after it rolls left with some speed: slow in the default world."""
    return MlpAgent("pump", line_layers((0.0, 50.0), 3, bias=0.1), "tanh")


def _birds_agent() -> MlpAgent:
    """Aims at the first object, low: passes own levels before the novelty."""
    spec = find_domain("angrybirds")
    return MlpAgent(
        "first-low", line_layers((0.0,) * len(spec.observation_names), len(spec.action_names), bias=-1.0), "tanh"
    )


_HAND_MADE: dict[str, Callable[[], MlpAgent]] = {
    "cartpole": _cartpole_agent, "mountaincar": _mountaincar_agent, "angrybirds": _birds_agent,
}  # fmt: skip


def make_agent(domain: str) -> Agent:
    """A deterministic agent for any registered domain: hand-made where there is one, else of random weights."""
    if domain in _HAND_MADE:
        return _HAND_MADE[domain]()
    spec = find_domain(domain)
    rng = np.random.default_rng(7)
    sizes = (int(np.prod(spec.observation_low.shape)), HIDDEN, len(spec.action_names))
    layers = [
        (rng.normal(size=(a, b)).astype(np.float32), rng.normal(size=b).astype(np.float32)) for a, b in pairwise(sizes)
    ]
    return MlpAgent("random", layers, "tanh", observation_shape=spec.observation_low.shape)


@pytest.fixture
def agent() -> Agent:
    """Balances the default CartPole."""
    return _cartpole_agent()


@pytest.fixture
def other_agent() -> Agent:
    """Another CartPole agent: other wishes, other model states, other size."""
    return MlpAgent("other", line_layers((0.0, 0.0, 1.0, 0.02), 2, seed=4), "relu")


@pytest.fixture
def car_agent() -> Agent:
    """Reaches the goal of the default MountainCar."""
    return _mountaincar_agent()


@pytest.fixture
def agent_for() -> Callable[[str], Agent]:
    """An agent for any registered domain."""
    return make_agent


@pytest.fixture(scope="session")
def agent_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The CartPole agent in the file format of SB3's PPO, for the command line."""
    return write_zip(tmp_path_factory.mktemp("agents") / "balance.zip", line_layers(BALANCE, 2))


@pytest.fixture
def make_zip() -> Callable[[Path, list[Layer]], Path]:
    """A writer of such files."""
    return write_zip


def write_zip(path: Path, layers: list[Layer]) -> Path:
    """Write what SB3's model.save() writes, as far as nappingrl reads it."""
    torch = pytest.importorskip("torch")

    def tensor(array: NDArray[np.float32]) -> object:
        return torch.from_numpy(np.ascontiguousarray(array))

    (first, first_bias), (last, last_bias) = layers
    weights = {
        "mlp_extractor.policy_net.0.weight": tensor(first.T),
        "mlp_extractor.policy_net.0.bias": tensor(first_bias),
        "action_net.weight": tensor(last.T),
        "action_net.bias": tensor(last_bias),
    }
    discrete = {":type:": "<class 'gymnasium.spaces.discrete.Discrete'>", "n": str(last.shape[1])}
    box = {":type:": "<class 'gymnasium.spaces.box.Box'>", "_shape": [first.shape[0]], "dtype": "float32"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps({"action_space": discrete, "observation_space": box}))
        with archive.open("policy.pth", "w") as file:
            torch.save(weights, file)
    return path
