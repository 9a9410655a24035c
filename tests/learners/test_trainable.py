"""What an SB3 file tells of its training: networks, Adam's moments, hyper-parameters; and nothing in it is run."""

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import A2C
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from learners.support import (
    ROW,
    Scripted,
    assert_same,
    draw_like,
    fill_replay,
    flat_of,
    make,
    make_model,
    make_steps,
    named_arrays,
    remember,
)
from nappingrl import agents
from nappingrl.agents.base import Trainable
from nappingrl.errors import BadAgentError
from nappingrl.learners import make_learner
from nappingrl.learners.network import flatten

OPTIMISER = "policy.optimizer.pth"


def trained(kind: str, tmp_path: Path, **options: Any) -> tuple[Any, Path]:
    """A model that has trained a little, and its zip."""
    options = (
        {"n_steps": 32, "batch_size": 32} if kind == "ppo" else {"learning_starts": 8, "train_freq": 8}
    ) | options
    model = make_model(kind, Scripted(make_steps(50)), **options)
    model.learn(64)
    model.save(tmp_path / "agent.zip")
    return model, tmp_path / "agent.zip"


def replace(path: Path, member: str, content: bytes | None) -> Path:
    """A copy of a zip with one member replaced, or left out."""
    out = path.with_name(f"changed-{path.name}")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            kept = content if name == member else old.read(name)
            if kept is not None:
                new.writestr(name, kept)
    return out


def saved(state: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["dqn", "ppo"])
def test_a_zip_gives_what_the_live_model_gives(kind: str, tmp_path: Path) -> None:
    model, path = trained(kind, tmp_path)
    live, read = agents.load(model).trainable(), agents.load(path).trainable()
    learner = make(model)
    for agent in (live, read):
        assert agent.kind == {"dqn": "q", "ppo": "actor-critic"}[kind]
        assert agent.moments is not None
        own = make_learner(agent, 1)
        own.start(np.array([0]), np.array([1], np.uint64))
        for what, values in named_arrays(own).items():
            np.testing.assert_array_equal(values[0], flat_of(model, learner, what))
        assert own.state.adam_steps[0] == next(iter(model.policy.optimizer.state.values()))["step"] > 0
        assert own.hyperparameters == learner.hyperparameters  # type: ignore[attr-defined]
    if kind == "dqn":
        np.testing.assert_array_equal(flatten(read.networks["target"]), make(model).targets[0])  # type: ignore[attr-defined]


def test_training_goes_on_from_a_zip_as_in_sb3(tmp_path: Path) -> None:
    model, path = trained("dqn", tmp_path)
    steps = make_steps(60, seed=3)
    learner = make_learner(agents.load(path).trainable(), 4)
    learner.start(np.array([ROW]), np.array([5], np.uint64))
    model.replay_buffer.reset()
    fill_replay(model, steps)
    remember(learner, steps)
    draw_like(model, learner)
    model.train(1, model.batch_size)
    learner.train(np.array([ROW]))
    assert_same(learner, model)


@pytest.mark.parametrize("kind", ["dqn", "ppo"])
def test_a_zip_without_the_optimiser(kind: str, tmp_path: Path) -> None:
    _, path = trained(kind, tmp_path)
    agent = agents.load(replace(path, OPTIMISER, None)).trainable()
    assert (agent.moments, agent.adam_steps) == (None, 0)
    learner = make_learner(agent, 1)
    learner.start(np.array([0]), np.array([1], np.uint64))
    assert not learner.state.first_moments.any()


def test_hyperparameters_of_a_zip(tmp_path: Path) -> None:
    _, path = trained("dqn", tmp_path, train_freq=8, target_update_interval=7, learning_rate=0.01)
    known = agents.load(path).hyperparameters()
    assert (known["train_freq"], known["target_update_interval"], known["learning_rate"]) == (8, 7, 0.01)
    assert "unreadable" not in known
    schedules = {"learning_rate": LinearSchedule(1e-3, 1e-5, 1.0), "clip_range": LinearSchedule(0.3, 0, 1.0)}
    for options, wanted in (
        (schedules, {"learning_rate": {"from": 1e-3, "to": 1e-5}, "clip_range": {"from": 0.3, "to": 0.0}}),
        ({"clip_range": 0.125, "clip_range_vf": 0.5}, {"clip_range": 0.125, "clip_range_vf": 0.5}),
    ):
        model, path = trained("ppo", tmp_path, **options)  # type: ignore[arg-type]
        for agent in (agents.load(path), agents.load(model)):
            for name, value in wanted.items():
                assert agent.hyperparameters()[name] == pytest.approx(value)


def test_what_a_zip_does_not_tell(tmp_path: Path) -> None:
    """A schedule that is a function of the user is only in the pickle."""
    _, path = trained("ppo", tmp_path, learning_rate=lambda remaining: 0.01 * remaining)
    agent = agents.load(path)
    assert agent.hyperparameters()["unreadable"] == ["learning_rate"]
    notes = make_learner(agent.trainable(), 1).notes
    assert notes == ["uses SB3's defaults for values that cannot be read: learning_rate"]
    _, path = trained("dqn", tmp_path, train_freq=(1, "episode"))
    assert agents.load(path).hyperparameters()["unreadable"] == ["train_freq"]


@pytest.mark.parametrize("norm_reward", [True, False])
def test_rewards_are_scaled_where_vecnormalize_did(norm_reward: bool, tmp_path: Path) -> None:
    envs = VecNormalize(DummyVecEnv([lambda: Scripted(make_steps(50))]), norm_reward=norm_reward)
    model = make_model("ppo", envs, n_steps=32, batch_size=32)
    model.learn(32)
    model.save(tmp_path / "agent.zip")
    envs.save(str(tmp_path / "vecnormalize.pkl"))
    for agent in (agents.load(tmp_path / "agent.zip"), agents.load(model)):
        assert make_learner(agent.trainable(), 1).reward_scale.is_active is norm_reward
    assert agents.load(tmp_path / "agent.zip").trainable().normalise is not None


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def bad_optimisers(model: Any, marker: Path) -> dict[str, bytes]:
    state = model.policy.optimizer.state_dict()
    first = state["state"][0]
    return {
        "pickle": pickle.dumps(Trap(marker), protocol=2),
        "torch": saved({"state": {0: Trap(marker)}}),
        "garbage": b"not a pickle",
        "list": saved([1, 2]),
        "shape": saved(state | {"state": state["state"] | {0: first | {"exp_avg": torch.zeros(2, 2)}}}),
        "nan": saved(state | {"state": state["state"] | {0: first | {"exp_avg": first["exp_avg"] * np.nan}}}),
        "negative": saved(state | {"state": state["state"] | {0: first | {"exp_avg_sq": first["exp_avg_sq"] - 1}}}),
    }


def test_a_bad_optimiser_runs_nothing_and_gives_one_line(tmp_path: Path) -> None:
    model, path = trained("dqn", tmp_path)
    marker = tmp_path / "marker"
    for name, content in bad_optimisers(model, marker).items():
        with pytest.raises(BadAgentError, match=r"its 'policy.optimizer.pth'") as caught:
            agents.load(replace(path, OPTIMISER, content))
        assert "\n" not in str(caught.value), name
        assert not marker.exists(), name


def test_a_trap_in_train_freq_is_not_run(tmp_path: Path) -> None:
    import base64
    import json

    _, path = trained("dqn", tmp_path)
    marker = tmp_path / "marker"
    data = json.loads(zipfile.ZipFile(path).read("data"))
    data["train_freq"][":serialized:"] = base64.b64encode(pickle.dumps(Trap(marker))).decode()
    known = agents.load(replace(path, "data", json.dumps(data).encode())).hyperparameters()
    assert not marker.exists()
    assert known["unreadable"] == ["train_freq"]


def trainable(model: Any) -> Trainable:
    return agents.load(model).trainable()


def test_a2c_is_trained_as_ppo() -> None:
    agent = trainable(A2C("MlpPolicy", Scripted(make_steps(8)), n_steps=5, device="cpu"))
    assert make_learner(agent, 1).notes[0].startswith("uses PPO, although another algorithm made the agent")
    assert agent.moments is None


def test_quantile_networks_are_refused() -> None:
    model = QRDQN("MlpPolicy", Scripted(make_steps(8)), buffer_size=10, device="cpu")
    with pytest.raises(BadAgentError, match="cannot be trained further: its network is not a plain perceptron"):
        trainable(model)


def test_shared_layers_are_refused(tmp_path: Path) -> None:
    """SB3 before 2.0 could put layers in front that actor and critic share."""
    model, path = trained("ppo", tmp_path, arch=(32, 16))
    state = {
        name.replace("policy_net.0", "shared_net.0").replace("policy_net.2", "policy_net.0"): value
        for name, value in model.policy.state_dict().items()
    }
    agent = agents.load(replace(replace(path, OPTIMISER, None), "policy.pth", saved(state)))
    with pytest.raises(BadAgentError, match="its actor and critic share layers") as caught:
        agent.trainable()
    assert "\n" not in str(caught.value)


def test_n_step_returns_are_told() -> None:
    learner = make(make_model("dqn", n_steps=3))
    assert learner.notes == ["uses 1-step returns; the agent was trained with 3-step returns"]


def test_networks_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    model, path = trained("dqn", tmp_path, arch=(8,))
    state = model.policy.state_dict()
    without = {name: value for name, value in state.items() if not name.startswith("q_net_target.")}
    smaller = state | {
        "q_net_target.q_net.0.weight": torch.zeros(5, 3),
        "q_net_target.q_net.0.bias": torch.zeros(5),
        "q_net_target.q_net.2.weight": torch.zeros(4, 5),
    }
    for changed, text in ((without, "its file has no target network"), (smaller, "do not fit each other")):
        agent = agents.load(replace(path, "policy.pth", saved(changed)))
        with pytest.raises(BadAgentError, match=text) as caught:
            agent.trainable()
        assert "\n" not in str(caught.value)
