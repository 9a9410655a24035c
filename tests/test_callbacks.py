"""Live callbacks: every ended episode is told once, with its numbers."""

import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from nappingrl import NappingAgent
from nappingrl.agent.callbacks import Episode, TensorBoard, WeightsAndBiases
from nappingrl.errors import BadSpecError, MissingExtraError

CARTPOLE = "nappingrl/CartPole-v0"


def play(agent: NappingAgent, episodes: int) -> list[tuple[float, int]]:
    """Returns and lengths of episodes with reversed controls."""
    env, found = agent.wrap(gymnasium.make(CARTPOLE)), []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed, options={"params": {"force": -10.0}})
        total, length, is_over = 0.0, 0, False
        while not is_over:
            observation, reward, terminated, truncated, _ = env.step(agent.predict(observation)[0])
            total, length, is_over = total + float(reward), length + 1, terminated or truncated
        found.append((total, length))
    return found


def made() -> NappingAgent:
    return NappingAgent("ppo", domain="cartpole", detector="given", method="napping")


def test_every_episode_is_told() -> None:
    agent, told = made(), list[Episode]()
    agent.on_episode(told.append)
    played = play(agent, 3)
    assert [(one.total, one.length) for one in told] == played
    assert [(one.env, one.number) for one in told] == [(0, 0), (0, 1), (0, 2)]
    assert {(one.detected, one.context, one.acting) for one in told} == {(True, "novelty 1", "napping")}
    assert 0 < told[0].regions <= told[2].regions
    with pytest.raises(BadSpecError, match="on_episode takes a function"):
        agent.on_episode("logs")  # type: ignore[arg-type]


def test_tensorboard(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    agent, board = made(), TensorBoard(tmp_path)
    agent.on_episode(board)
    played = play(agent, 2)
    board.close()
    events = EventAccumulator(str(tmp_path / "env-0")).Reload()
    tensors = events.Tensors("episode/return")
    assert [tensor.step for tensor in tensors] == [0, 1]
    assert [tensor.tensor_proto.float_val[0] for tensor in tensors] == [total for total, _ in played]


def test_weights_and_biases() -> None:
    class Run:
        """As wandb.init() returns it."""

        def __init__(self) -> None:
            self.logged: list[dict[str, Any]] = []

        def log(self, numbers: dict[str, Any]) -> None:
            self.logged.append(numbers)

    agent, run = made(), Run()
    agent.on_episode(WeightsAndBiases(run))
    played = play(agent, 2)
    assert [numbers["episode/return"] for numbers in run.logged] == [total for total, _ in played]
    assert [numbers["episode/number"] for numbers in run.logged] == [0, 1]


def test_without_the_extras(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("tensorboard", "tensorboard.summary", "wandb"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install \"nappingrl\[tensorboard\]\""):
        TensorBoard(tmp_path)
    with pytest.raises(MissingExtraError, match=r"pip install \"nappingrl\[wandb\]\""):
        WeightsAndBiases()
