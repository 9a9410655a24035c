"""Agents whose actions are numbers in a box: parity with SB3 from zips and live, the card, and refusals in one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import A2C, DDPG, PPO, SAC, TD3

from nappingrl import agents
from nappingrl.agents.base import Agent, check_fit
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.agents.sb3.live import LiveSB3Agent
from nappingrl.errors import BadAgentError
from nappingrl.types import DomainSpec

FLAT = spaces.Box(-1, 1, (3,), np.float32)
TWO = spaces.Box(np.array([-1.0, -2.5], np.float32), np.array([3.0, 1 / 3], np.float32))
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ppo": (PPO, {}),
    "a2c": (A2C, {"policy_kwargs": {"net_arch": [24]}}),
    "ppo-sde": (PPO, {"use_sde": True}),
    "ppo-squashed": (PPO, {"use_sde": True, "policy_kwargs": {"squash_output": True}}),
    "sac": (SAC, {"policy_kwargs": {"net_arch": [32, 16]}}),
    "sac-sde": (SAC, {"use_sde": True, "policy_kwargs": {"net_arch": [32, 16]}}),
    "sac-sde-clip": (SAC, {"use_sde": True, "policy_kwargs": {"net_arch": [32, 16], "clip_mean": 0.7}}),
    "sac-sde-free": (SAC, {"use_sde": True, "policy_kwargs": {"net_arch": [32, 16], "clip_mean": 0.0}}),
    "td3": (TD3, {"policy_kwargs": {"net_arch": [32, 16]}}),
    "td3-tanh": (TD3, {"policy_kwargs": {"net_arch": [32, 16], "activation_fn": torch.nn.Tanh}}),
    "ddpg": (DDPG, {"policy_kwargs": {"net_arch": [32, 16]}}),
}


def make(
    kind: str, constant: Any, make_batch: Any, observations: spaces.Space[Any] = FLAT, policy: str = "MlpPolicy"
) -> Any:
    """A small model whose actions are all over the box."""
    algorithm, options = KINDS[kind]
    if algorithm not in (PPO, A2C):
        options = options | {"buffer_size": 10}
    model = algorithm(policy, constant(observations, TWO), seed=1, device="cpu", **options)
    generator, outputs = torch.Generator().manual_seed(2), []
    mean = model.policy.action_net if hasattr(model.policy, "action_net") else model.policy.actor.mu
    last = [layer for layer in mean.modules() if isinstance(layer, torch.nn.Linear)][-1]
    handle = last.register_forward_hook(lambda _, __, output: outputs.append(output))
    with torch.no_grad():
        for name, parameter in model.policy.named_parameters():
            if "log_std" not in name:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
        model.predict(make_batch(observations, 64), deterministic=True)
        last.bias.sub_(outputs[0].mean(dim=0))
    handle.remove()
    return model


@pytest.fixture
def three() -> NDArray[np.float32]:
    """(257, 3) observations."""
    return np.random.default_rng(0).normal(size=(257, 3)).astype(np.float32)


def assert_same(agent: Agent, model: Any, observations: Any) -> None:
    """The actions of SB3's predict, all over the box."""
    wanted, _ = model.predict(observations, deterministic=True)
    decision = agent.forward(observations)
    assert (decision.actions.dtype, decision.preferences.shape) == (np.float32, (len(wanted), 0))
    np.testing.assert_allclose(decision.actions, wanted, rtol=1e-5, atol=2e-6)
    assert (np.ptp(wanted, axis=0) > 0.3 * (TWO.high - TWO.low)).all(), "a test in which actions hardly differ"
    assert (decision.actions >= TWO.low).all()
    assert (decision.actions <= TWO.high).all()


@pytest.mark.parametrize("kind", KINDS)
def test_parity_with_sb3(kind: str, constant: Any, make_batch: Any, three: NDArray[np.float32], tmp_path: Path) -> None:
    """From a zip and live, the actions of predict(deterministic=True); limits are read without unpickling."""
    model = make(kind, constant, make_batch)
    model.save(tmp_path / "agent.zip")
    saved, live = agents.load(tmp_path / "agent.zip"), agents.load(model)
    for agent in (saved, live):
        assert isinstance(agent, BoxMlpAgent)
        assert_same(agent, model, three)
        assert agent.n_actions == 0
        assert agent.action_low is not None
        assert agent.action_high is not None
        np.testing.assert_array_equal(agent.action_low, TWO.low)
        np.testing.assert_array_equal(agent.action_high, TWO.high)
    assert saved.sha256 == live.sha256
    rows = np.concatenate([saved.forward(three[i : i + 1]).actions for i in range(9)])
    np.testing.assert_array_equal(rows, saved.forward(three[:9]).actions)


@pytest.mark.parametrize("kind", ["ppo", "sac", "td3"])
def test_policies_that_torch_runs(kind: str, constant: Any, make_batch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dictionary observations run in torch, with the same actions."""
    monkeypatch.setitem(KINDS, kind, (KINDS[kind][0], {}))
    space = spaces.Dict({"place": FLAT, "speed": spaces.Box(-1, 1, (2,), np.float32)})
    model = make(kind, constant, make_batch, space, "MultiInputPolicy")
    agent = agents.load(model)
    assert isinstance(agent, LiveSB3Agent)
    assert_same(agent, model, make_batch(space, 21))
    empty = agent.forward(make_batch(space, 21) | {key: np.zeros((0, n), np.float32) for key, n in SIZES})
    assert empty.actions.shape == (0, 2)


SIZES = (("place", 3), ("speed", 2))


def test_box_by_hand() -> None:
    """Clipped or spread: numbers computed by hand."""
    clipped = ActionBox.make("gaussian", [-2.0], [2.0], {})
    np.testing.assert_array_equal(clipped.to_actions(np.array([[-3.0], [0.5], [9.0]], np.float32)), [[-2], [0.5], [2]])
    spread = ActionBox.make("sac", [0.0], [10.0], {})
    np.testing.assert_allclose(spread.to_actions(np.array([[0.0], [50.0]], np.float32)), [[5.0], [10.0]], rtol=1e-6)
    limited = ActionBox.make("sac-sde", [-1.0], [1.0], {})
    assert limited.to_actions(np.array([[50.0]], np.float32)).item() == pytest.approx(np.tanh(2.0), rel=1e-6)
    for box in (clipped, spread, limited):
        again = ActionBox.from_card(box.to_card())
        assert (again.is_squashed, again.clip_mean) == (box.is_squashed, box.clip_mean)
        np.testing.assert_array_equal([again.low, again.high], [box.low, box.high])


def unreadable(text: Any) -> Any:
    """Changes the limits in a zip's JSON."""

    def change(data: dict[str, Any]) -> None:
        data["action_space"]["low"] = text

    return change


@pytest.mark.parametrize("text", [None, 7, "", "[-1. ... 2.]", "[[1. 2.]]", "[nan 1.]", "[1. 2. 3.]", "[]"])
def test_limits_that_cannot_be_read(text: Any, constant: Any, make_batch: Any, rewrite: Any, tmp_path: Path) -> None:
    """Strange limits are refused in one line that says what to do."""
    make("ppo", constant, make_batch).save(tmp_path / "agent.zip")
    path = rewrite(tmp_path / "agent.zip", tmp_path / "strange.zip", unreadable(text))
    with pytest.raises(BadAgentError, match=r"strange\.zip.*limits of its actions cannot be read.*live model"):
        agents.load(path)


def test_wrong_boxes(constant: Any, make_batch: Any, rewrite: Any, tmp_path: Path) -> None:
    """Limits that are no box or no limits at all, and a network of another size."""
    make("sac", constant, make_batch).save(tmp_path / "agent.zip")
    for text, words in (("[-inf -inf]", "unbounded"), ("[9. 9.]", "lie between")):
        with pytest.raises(BadAgentError, match=words):
            agents.load(rewrite(tmp_path / "agent.zip", tmp_path / "bad.zip", unreadable(text)))
    with pytest.raises(BadAgentError, match="2 outputs for actions of 1 numbers"):
        agents.load(rewrite(tmp_path / "agent.zip", tmp_path / "bad.zip", one_number))
    shaped = spaces.Box(-1, 1, (2, 2), np.float32)
    PPO("MlpPolicy", constant(FLAT, shaped), device="cpu").save(tmp_path / "matrix.zip")
    with pytest.raises(BadAgentError, match="one row of numbers"):
        agents.load(tmp_path / "matrix.zip")
    with pytest.raises(BadAgentError, match="one row of numbers"):
        agents.load(PPO("MlpPolicy", constant(FLAT, shaped), device="cpu"))


def one_number(data: dict[str, Any]) -> None:
    """Limits of one number."""
    data["action_space"] |= {"low": "[-1.]", "high": "[1.]"}


def test_pickles_are_never_decoded(
    constant: Any, make_batch: Any, three: NDArray[np.float32], rewrite: Any, trap: Any, tmp_path: Path
) -> None:
    """The pickle of the action space is a trap: the agent is loaded, nothing happens."""
    marker, _, encoded = trap

    def poison(data: dict[str, Any]) -> None:
        for value in data.values():
            if isinstance(value, dict):
                value[":serialized:"] = encoded

    model = make("td3", constant, make_batch)
    model.save(tmp_path / "agent.zip")
    assert_same(agents.load(rewrite(tmp_path / "agent.zip", tmp_path / "trap.zip", poison)), model, three)
    assert not marker.exists()


def test_fit(constant: Any, make_batch: Any) -> None:
    """An agent fits its own domain: the same number of actions, and the same bounds."""
    agent = agents.load(make("ppo", constant, make_batch))

    def domain(n_inputs: int, n_actions: int, low: Any = (), high: Any = ()) -> DomainSpec:
        bounds = {"action_low": np.array(low), "action_high": np.array(high)}
        return DomainSpec(np.zeros(n_inputs), np.ones(n_inputs), n_actions, 0, name="there", **bounds)

    check_fit(agent, domain(3, 0))
    check_fit(agent, domain(3, 0, TWO.low, TWO.high))
    with pytest.raises(BadAgentError, match=r"between \[-1.0, -2.5\].*there gives \(3,\) and has 2 actions"):
        check_fit(agent, domain(3, 2))
    with pytest.raises(BadAgentError, match=r"has continuous actions between \[-2.0\] and \[2.0\]"):
        check_fit(agent, domain(3, 0, [-2.0], [2.0]))
    with pytest.raises(BadAgentError, match=r"2 actions; there gives .4,. and has continuous actions"):
        check_fit(agents.load("ppo", "cartpole"), domain(4, 0, TWO.low, TWO.high))


def test_no_further_training(constant: Any, make_batch: Any) -> None:
    """Learners need discrete actions."""
    with pytest.raises(BadAgentError, match="cannot be trained further: its actions are continuous"):
        agents.load(make("ppo", constant, make_batch)).trainable()
