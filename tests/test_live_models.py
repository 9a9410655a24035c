"""Live SB3 models inside NappingAgent: dictionary and image observations; agents that cannot serve, by command line."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from nappingrl import NappingAgent
from nappingrl.cli import main

PARTS = spaces.Dict({"near": spaces.Box(-1, 1, (3,), np.float32), "far": spaces.Box(-1, 1, (2,), np.float32)})
IMAGE = spaces.Box(0, 255, (36, 36, 1), np.uint8)


class Guess(gymnasium.Env[Any, np.int64]):
    """Ten random observations; action 2 is rewarded, all others punished."""

    max_steps = 10

    def __init__(self, space: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = space, spaces.Discrete(3)
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self._steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: np.int64) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        return self.observation_space.sample(), 1.0 if action == 2 else -1.0, self._steps == self.max_steps, False, {}


@pytest.mark.parametrize(("policy", "space"), [("MultiInputPolicy", PARTS), ("CnnPolicy", IMAGE)])
def test_adapts_to_the_reward(policy: str, space: spaces.Space[Any]) -> None:
    env = Guess(space)
    model = PPO(policy, env, n_steps=8, batch_size=8, seed=0, device="cpu")
    model.policy.action_net.bias.data[:] = model.policy.action_net.bias.data.new_tensor([9.0, 0.0, 0.0])
    frozen, _ = evaluate_policy(model, Monitor(Guess(space)), n_eval_episodes=3)
    assert frozen == -10, "the untouched model always takes action 0"
    agent = NappingAgent(model, rule="fallback", seed=1)
    attached = agent.wrap(Monitor(Guess(space)))
    evaluate_policy(agent, attached, n_eval_episodes=20)
    after, _ = evaluate_policy(agent, attached, n_eval_episodes=5)
    assert after > frozen + 10
    assert agent.explain()


def test_batches_of_dictionaries() -> None:
    model = PPO("MultiInputPolicy", Guess(PARTS), n_steps=8, batch_size=8, seed=0, device="cpu")
    agent = NappingAgent(model, n_envs=3)
    batch: dict[str, NDArray[Any]] = {
        name: np.stack([part.sample() for _ in range(3)]) for name, part in PARTS.spaces.items()
    }
    actions, _ = agent.predict(batch)
    expected, _ = model.predict(batch, deterministic=True)
    assert actions.tolist() == expected.tolist()
    one, _ = agent.predict({name: part[0] for name, part in batch.items()})
    assert one.shape == ()


def test_continuous_agent_by_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PPO("MlpPolicy", "Pendulum-v1", n_steps=8, batch_size=8, device="cpu").save(tmp_path / "pendulum")
    with pytest.raises(SystemExit) as stopped:
        main(["run", "cartpole", "--agent", str(tmp_path / "pendulum.zip"), "--out", str(tmp_path / "run")])
    err = capsys.readouterr().err
    assert stopped.value.code == 2
    assert err.count("\n") == 1
    assert "Box" in err or "continuous" in err
    assert not (tmp_path / "run").exists()
