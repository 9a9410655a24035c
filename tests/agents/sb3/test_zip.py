"""Saved SB3 zips: parity with SB3, old gym, refusals in one line, and no pickle is ever run."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN, PPO
from torch import nn

from nappingrl import agents
from nappingrl.agents.sb3 import zip as sb3
from nappingrl.errors import BadAgentError, BadObservationError, UnknownNameError

KINDS = ["ppo", "dqn", "a2c", "qrdqn", "trpo"]


@pytest.mark.parametrize("kind", KINDS)
def test_parity_with_sb3(
    kind: str, make_model: Any, observations: NDArray[np.float32], tmp_path: Path, parity: Any
) -> None:
    """A zip read by us does what SB3's predict does."""
    model = make_model(kind)
    model.save(tmp_path / "agent")
    agent = agents.load(tmp_path / "agent.zip")
    parity(agent, model, observations)
    assert (agent.n_actions, agent.embedding_dim, agent.observation_shape) == (2, 64, (4,))
    assert agent.name == "agent"
    assert agent.source == str(tmp_path / "agent.zip")
    assert agent.hyperparameters()["gamma"] == 0.99
    assert agent.hyperparameters()["learning_rate"] == model.learning_rate
    for name, value in model.policy.state_dict().items():
        np.testing.assert_array_equal(agent.weights()[name], value.numpy())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", [nn.Tanh, nn.ReLU])
def test_activation_and_sizes(
    kind: str,
    activation: type[nn.Module],
    make_model: Any,
    observations: NDArray[np.float32],
    tmp_path: Path,
    parity: Any,
) -> None:
    """The activation is read from the readable fields, sizes from the tensors."""
    model = make_model(kind, policy_kwargs={"net_arch": [24, 40, 16], "activation_fn": activation})
    model.save(tmp_path / "agent.zip")
    parity(agents.load(str(tmp_path / "agent.zip")), model, observations)


def test_linear_policy(make_model: Any, observations: NDArray[np.float32], tmp_path: Path, parity: Any) -> None:
    """Without hidden layers the observation is the model state."""
    model = make_model("ppo", policy_kwargs={"net_arch": []})
    model.save(tmp_path / "agent.zip")
    agent = agents.load(tmp_path / "agent")
    parity(agent, model, observations)
    np.testing.assert_array_equal(agent.forward(observations).model_states, observations)


def test_box_of_two_dimensions(make_model: Any, tmp_path: Path, parity: Any) -> None:
    """A Box that is no image is flattened, as SB3 does."""
    env = gymnasium.wrappers.ReshapeObservation(gymnasium.make("CartPole-v1"), (2, 2))
    model = make_model("dqn", env)
    model.save(tmp_path / "agent.zip")
    agent = agents.load(tmp_path / "agent.zip")
    observations = np.random.default_rng(1).normal(size=(70, 2, 2)).astype(np.float32)
    assert agent.observation_shape == (2, 2)
    parity(agent, model, observations)
    with pytest.raises(BadObservationError, match="shape"):
        agent.forward(observations.reshape(70, 4))


def as_old_gym(data: dict[str, Any]) -> None:
    """What SB3 of 2021 wrote for the spaces of gym; its pickles need a package that is not installed."""
    for key, name in (("action_space", "discrete.Discrete"), ("observation_space", "box.Box")):
        space = data[key]
        space[":type:"] = f"<class 'gym.spaces.{name}'>"
        space[":serialized:"] = "gASVIAAAAAAAAACMCmd5bS5zcGFjZXOUjAhEaXNjcmV0ZZSTlC4="
        space["shape"] = space.pop("_shape")
    data["action_space"]["n"] = int(data["action_space"]["n"])
    data["learning_rate"] = {":type:": "<class 'function'>", ":serialized:": "gASV"}


@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_zip_of_old_gym(
    kind: str, make_model: Any, observations: NDArray[np.float32], rewrite: Any, tmp_path: Path, parity: Any
) -> None:
    """Zips saved with gym are read though gym is not installed."""
    model = make_model(kind)
    model.save(tmp_path / "new.zip")
    agent = agents.load(rewrite(tmp_path / "new.zip", tmp_path / "old.zip", as_old_gym))
    parity(agent, model, observations)
    assert "learning_rate" not in agent.hyperparameters()


def test_shared_layers_of_old_sb3(
    make_model: Any, observations: NDArray[np.float32], rewrite: Any, tmp_path: Path, parity: Any
) -> None:
    """SB3 before 2.0 could put layers in front that actor and critic share."""
    model = make_model("ppo", policy_kwargs={"net_arch": [32, 16]})
    model.save(tmp_path / "new.zip")
    state = {
        name.replace("policy_net.0", "shared_net.0").replace("policy_net.2", "policy_net.0"): value
        for name, value in model.policy.state_dict().items()
    }
    buffer = io.BytesIO()
    torch.save(state, buffer)
    old = rewrite(tmp_path / "new.zip", tmp_path / "old.zip", policy__pth=buffer.getvalue())
    parity(agents.load(old), model, observations)


def refused(path: Any, *words: str) -> str:
    """The one line with which a file is refused; it names the file."""
    with pytest.raises(BadAgentError) as caught:
        agents.load(path, domain="cartpole")
    text = str(caught.value)
    assert "\n" not in text
    assert Path(path).name in text
    for word in words:
        assert word in text, text
    return text


def test_bad_files(tmp_path: Path, make_model: Any) -> None:
    """Each wrong file is refused in one line that says what is allowed."""
    text = tmp_path / "agent.txt"
    text.write_text("not an agent")
    refused(text, "no zip file", "allowed")
    refused(str(text), "no zip file", "allowed")
    refused(tmp_path, "is a folder", "allowed")
    refused(str(tmp_path / "missing.zip"), "does not exist", "allowed")
    make_model("ppo").save(tmp_path / "agent.zip")
    content = (tmp_path / "agent.zip").read_bytes()
    for size in (3, 1000, len(content) // 2, len(content) - 10):
        (tmp_path / "short.zip").write_bytes(content[:size])
        refused(tmp_path / "short.zip", "truncated", "allowed")
    middle = len(content) // 2
    (tmp_path / "flipped.zip").write_bytes(content[:middle] + bytes(200) + content[middle + 200 :])
    refused(tmp_path / "flipped.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    refused(tmp_path / "other.zip", "without", "allowed")


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    """Devices, pipes, links to them and endless files are refused before they are read."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.zip").symlink_to("/dev/zero")
    with (tmp_path / "sparse.zip").open("wb") as file:
        file.truncate(1 << 40)
    refused("/dev/zero", "a device", "allowed")
    refused(tmp_path / "link.zip", "a device")
    refused(tmp_path / "pipe", "a named pipe")
    refused(tmp_path / "sparse.zip", "at most 268,435,456")


@pytest.mark.parametrize("data", [b"[]", b"{", b"\xff", b"[" * 100_000, b"{}"])
def test_bad_json(data: bytes, tmp_path: Path) -> None:
    """A damaged `data` is refused."""
    with zipfile.ZipFile(tmp_path / "json.zip", "w") as archive:
        archive.writestr("data", data)
        archive.writestr("policy.pth", b"")
    refused(tmp_path / "json.zip")


def test_zip_bomb(tmp_path: Path, make_model: Any, rewrite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Declared sizes are looked at before anything is unpacked, those inside policy.pth too."""
    make_model("ppo").save(tmp_path / "agent.zip")
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(3 << 20))
    path = rewrite(tmp_path / "agent.zip", tmp_path / "bomb.zip", policy__pth=inner.getvalue())
    monkeypatch.setattr(sb3, "MAX_BYTES", 1 << 20)
    refused(path, "unpacked")
    monkeypatch.setattr(sb3, "MAX_BYTES", 1 << 10)
    refused(path, "at most 1,024")


def test_tensor_that_is_larger_than_its_file(tmp_path: Path, make_model: Any, rewrite: Any) -> None:
    """A stride of zero makes a huge tensor out of one number."""
    make_model("ppo").save(tmp_path / "agent.zip")
    buffer = io.BytesIO()
    torch.save({"action_net.weight": torch.zeros(1).expand(1 << 30)}, buffer)
    refused(rewrite(tmp_path / "agent.zip", tmp_path / "big.zip", policy__pth=buffer.getvalue()), "larger")


FLAT = spaces.Box(-1, 1, (3,), np.float32)


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 3]), spaces.MultiBinary(3)])
def test_other_action_spaces(space: spaces.Space[Any], tmp_path: Path, constant: Any) -> None:
    """MultiDiscrete and MultiBinary are refused by name."""
    PPO("MlpPolicy", constant(FLAT, space), device="cpu").save(tmp_path / "agent.zip")
    refused(tmp_path / "agent.zip", type(space).__name__, "only Discrete")


@pytest.mark.parametrize(
    ("space", "policy"),
    [
        (spaces.Dict({"a": FLAT}), "MultiInputPolicy"),
        (spaces.Box(0, 255, (36, 36, 3), np.uint8), "CnnPolicy"),
        (spaces.Box(0, 255, (36, 36, 3), np.uint8), "MlpPolicy"),
        (spaces.MultiDiscrete([5, 2]), "MlpPolicy"),
    ],
)
def test_observations_that_need_the_live_model(
    space: spaces.Space[Any], policy: str, tmp_path: Path, constant: Any
) -> None:
    """A zip cannot serve dictionaries, images or several whole numbers; the message says what can."""
    DQN(policy, constant(space, spaces.Discrete(2)), buffer_size=1, device="cpu").save(tmp_path / "agent.zip")
    refused(tmp_path / "agent.zip", "live model")


def test_policies_that_need_the_live_model(make_model: Any, rewrite: Any, tmp_path: Path) -> None:
    """Unknown activations, foreign policy classes and foreign feature extractors are refused, not guessed."""
    make_model("ppo", policy_kwargs={"activation_fn": nn.ELU}).save(tmp_path / "elu.zip")
    refused(tmp_path / "elu.zip", "'elu'", "live model")

    def foreign_policy(data: dict[str, Any]) -> None:
        data["policy_class"]["__module__"] = "my_project.policies"

    def foreign_extractor(data: dict[str, Any]) -> None:
        data["policy_kwargs"] = {"features_extractor_class": "<class '__main__.Scale'>"}

    make_model("ppo").save(tmp_path / "agent.zip")
    refused(rewrite(tmp_path / "agent.zip", tmp_path / "policy.zip", foreign_policy), "my_project.policies")
    refused(rewrite(tmp_path / "agent.zip", tmp_path / "extractor.zip", foreign_extractor), "'Scale'")


def test_wrong_tensors(make_model: Any, rewrite: Any, tmp_path: Path) -> None:
    """Tensors that make no network, or are not finite, are refused."""
    model = make_model("ppo")
    model.save(tmp_path / "agent.zip")
    good = model.policy.state_dict()
    broken = {
        "NaN": good | {"action_net.bias": torch.tensor([0.0, float("nan")])},
        "inputs": good | {"mlp_extractor.policy_net.2.weight": torch.zeros(64, 63)},
        "linear": good | {"mlp_extractor.policy_net.1.weight": torch.zeros(64), "mlp_extractor.policy_net.1.bias": 0},
        "outputs": good | {"action_net.weight": torch.zeros(3, 64), "action_net.bias": torch.zeros(3)},
        "known": {"weight": torch.zeros(2, 2)},
        "integers": good | {"action_net.bias": torch.tensor([1, 2])},
        "sparse": good | {"action_net.weight": torch.zeros(2, 64).to_sparse()},
        "NaN or infinity": good | {"action_net.bias": torch.tensor([0.0, 1e300], dtype=torch.float64)},
    }
    for word, state in broken.items():
        buffer = io.BytesIO()
        torch.save(state, buffer)
        refused(rewrite(tmp_path / "agent.zip", tmp_path / "bad.zip", policy__pth=buffer.getvalue()), word)


def test_pickles_in_data_are_never_decoded(
    make_model: Any, trap: Any, rewrite: Any, observations: NDArray[np.float32], tmp_path: Path, parity: Any
) -> None:
    """Every pickled field of `data` is a trap: the agent is loaded, nothing happens."""
    marker, _, encoded = trap

    def poison(data: dict[str, Any]) -> None:
        for value in data.values():
            if isinstance(value, dict):
                value[":serialized:"] = encoded
        data["learning_rate"] = {":type:": "<class 'function'>", ":serialized:": encoded}

    model = make_model("ppo", policy_kwargs={"activation_fn": nn.ReLU})
    model.save(tmp_path / "agent.zip")
    path = rewrite(tmp_path / "agent.zip", tmp_path / "poisoned.zip", poison)
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("data"))["action_space"][":serialized:"] == encoded
    parity(agents.load(path), model, observations)
    assert not marker.exists()


def test_pickles_in_policy_are_refused(make_model: Any, trap: Any, rewrite: Any, tmp_path: Path) -> None:
    """A policy.pth that is, or holds, a pickle of code is refused unrun."""
    marker, content, _ = trap
    make_model("ppo").save(tmp_path / "agent.zip")
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/version", "3\n")
    for member in (content, inner.getvalue()):
        refused(rewrite(tmp_path / "agent.zip", tmp_path / "bad.zip", policy__pth=member), "policy.pth")
    poisoned = rewrite(tmp_path / "agent.zip", tmp_path / "other.zip", pytorch_variables__pth=content)
    agents.load(poisoned)
    assert not marker.exists()


def test_unknown_names_get_a_hint() -> None:
    """A name that is neither in the zoo nor a file: did-you-mean, and the other thing that is allowed."""
    with pytest.raises(UnknownNameError, match=r"'zzz'.*\.zip"):
        agents.load("zzz", domain="cartpole")
    with pytest.raises(BadAgentError, match="object of type dict"):
        agents.load({"a": 1})
