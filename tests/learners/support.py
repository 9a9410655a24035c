"""SB3 models as oracles: what they train on, how they draw, and the comparison of all parameters and moments."""

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.logger import Logger

from nappingrl import agents
from nappingrl.agents.base import Layer
from nappingrl.learners import Learner, make_learner
from nappingrl.learners.network import Sizes
from nappingrl.learners.ppo import shuffle
from nappingrl.rng import Streams
from nappingrl.types import Decision, Transition

torch.set_num_threads(1)
N_INPUTS, N_ACTIONS = 3, 4
ROW, N_ROWS, KEY = 2, 4, 99
Steps = dict[str, NDArray[Any]]


def make_steps(n: int, seed: int = 0, reward_scale: float = 1.0, ends: float = 0.15) -> Steps:
    """A stream of n steps whose episodes are terminated or truncated at random."""
    rng = np.random.default_rng(seed)
    observations = rng.normal(size=(n + 1, N_INPUTS)).astype(np.float32)
    terminated = rng.random(n) < ends
    truncated = (rng.random(n) < ends) & ~terminated
    next_observations = observations[1:].copy()
    ended = terminated | truncated
    next_observations[ended] = rng.normal(size=(int(ended.sum()), N_INPUTS))
    return {
        "observations": observations[:-1],
        "actions": rng.integers(0, N_ACTIONS, n),
        "rewards": rng.normal(size=n).astype(np.float32) * reward_scale,
        "next_observations": next_observations,
        "terminated": terminated,
        "truncated": truncated,
    }


class Scripted(gymnasium.Env[Any, Any]):
    """Gives the steps of a script, whatever is done."""

    observation_space = spaces.Box(-np.inf, np.inf, (N_INPUTS,), np.float32)
    action_space = spaces.Discrete(N_ACTIONS)

    def __init__(self, steps: Steps) -> None:
        self.steps, self.at = steps, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.steps["observations"][self.at % len(self.steps["rewards"])], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        s, t = self.steps, self.at % len(self.steps["rewards"])
        self.at += 1
        ends = bool(s["terminated"][t]), bool(s["truncated"][t])
        return s["next_observations"][t], float(s["rewards"][t]), *ends, {}


def make_model(kind: str, env: Any = None, arch: Any = (64, 64), activation: str | None = None, **options: Any) -> Any:
    """An SB3 model."""
    env = Scripted(make_steps(8)) if env is None else env
    policy: dict[str, Any] = {"net_arch": arch if isinstance(arch, dict) else list(arch)}
    if activation is not None:
        policy["activation_fn"] = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}[activation]
    if kind == "dqn":
        options = {"buffer_size": 1000} | options
    model: Any = {"dqn": DQN, "ppo": PPO}[kind]("MlpPolicy", env, policy_kwargs=policy, seed=0, device="cpu", **options)
    model.set_logger(Logger(folder=None, output_formats=[]))
    if kind == "dqn":  # or the target network would be the same
        with torch.no_grad():
            for parameter in model.q_net_target.parameters():
                parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)) * 0.05)
    return model


def freeze(model: Any) -> None:
    """Take the gradients from all but the output layers."""
    outputs = ("action_net", "value_net.", "q_net.q_net.4")
    for name, parameter in model.policy.named_parameters():
        parameter.requires_grad_(name.startswith(outputs))


def make(model: Any, n: int = N_ROWS, **options: Any) -> Learner:
    """A learner of the model's agent, all rows begun."""
    learner = make_learner(agents.load(model).trainable(), n, **options)
    learner.start(np.arange(n), np.arange(n).astype(np.uint64))
    learner.start(np.array([ROW % n]), np.array([KEY], np.uint64))
    return learner


def transition(steps: Steps, t: int, copies: int = 1) -> Transition:
    """Step t of a script, in some rows."""
    s = {name: np.repeat(values[t : t + 1], copies, axis=0) for name, values in steps.items()}
    decision = Decision(s["actions"], s["observations"], s["observations"])
    return Transition(
        s["observations"], decision, s["actions"], s["next_observations"], s["rewards"].astype(np.float64),
        s["terminated"], s["truncated"],
    )  # fmt: skip


def remember(learner: Learner, steps: Steps, row: int = ROW) -> None:
    """Put a script into the memory of one row."""
    for t in range(len(steps["rewards"])):
        learner.remember(np.array([row]), transition(steps, t))


def fill_replay(model: Any, steps: Steps) -> None:
    """Put a script into SB3's replay buffer."""
    for t in range(len(steps["rewards"])):
        s = {name: values[t : t + 1] for name, values in steps.items()}
        done, infos = s["terminated"] | s["truncated"], [{"TimeLimit.truncated": bool(s["truncated"][0])}]
        model.replay_buffer.add(
            s["observations"], s["next_observations"], s["actions"][:, None], s["rewards"], done, infos
        )


def draw_like(model: Any, learner: Learner, row: int = ROW) -> None:
    """Let SB3's replay buffer draw what the learner's row is going to draw."""
    streams = Streams(1)
    streams.start(np.array([0]), learner.streams.keys[row : row + 1])
    streams.draws[0] = learner.streams.draws[row]

    def sample(batch_size: int, env: Any = None) -> Any:
        size = model.replay_buffer.size()
        return model.replay_buffer._get_samples(
            np.array([streams.integers(np.array([0]), size)[0] for _ in range(batch_size)]), env=env
        )

    model.replay_buffer.sample = sample


def permute_like(monkeypatch: Any, learner: Learner, row: int = ROW) -> None:
    """Let SB3's rollout buffer shuffle as the learner's row is going to."""
    key, counter = learner.streams.keys[row], learner.streams.draws[row]

    def permutation(n: int) -> NDArray[np.int64]:
        nonlocal counter
        order = np.empty(n, np.int64)
        counter = np.uint64(shuffle(key, counter, order))
        return order

    monkeypatch.setattr(np.random, "permutation", permutation)


def flat_of(model: Any, learner: Learner, what: str) -> NDArray[np.float32]:
    """SB3's weights, or one of Adam's moments, in the learner's order."""
    policy = model.policy
    nets = (
        [[policy.q_net.q_net]] if hasattr(policy, "q_net") else
        [[policy.mlp_extractor.policy_net, policy.action_net], [policy.mlp_extractor.value_net, policy.value_net]]
    )  # fmt: skip
    linears = [m for net in nets for p in net for m in p.modules() if isinstance(m, torch.nn.Linear)]
    state = policy.optimizer.state

    def read(parameter: Any) -> NDArray[np.float32]:
        if what == "weights":
            return np.asarray(parameter.detach().numpy())
        found = state[parameter].get(what) if parameter in state else None
        return np.zeros(parameter.shape, np.float32) if found is None else np.asarray(found.numpy())

    parts = [part for linear in linears for part in (read(linear.weight).T.ravel(), read(linear.bias))]
    return np.concatenate(parts)


def assert_same(learner: Learner, model: Any, row: int = ROW, rtol: float = 2e-4, atol: float = 2e-6) -> None:
    """All parameters and both moments are SB3's."""
    for what, values in named_arrays(learner).items():
        np.testing.assert_allclose(values[row], flat_of(model, learner, what), rtol=rtol, atol=atol, err_msg=what)


def named_arrays(learner: Learner) -> dict[str, NDArray[np.float32]]:
    """Parameters and Adam's moments, by torch's names."""
    state = learner.state
    return {"weights": state.parameters, "exp_avg": state.first_moments, "exp_avg_sq": state.second_moments}


def layers_of(learner: Learner, row: int = ROW) -> list[Layer]:
    """The layers of the network that acts."""
    return unflatten(learner.state.parameters[row], learner.networks[0].sizes)


def unflatten(flat: NDArray[np.float32], sizes: Sizes) -> list[Layer]:
    """The layers in a vector."""
    layers, at = [], 0
    for n_in, n_out in zip(sizes[:-1].tolist(), sizes[1:].tolist(), strict=True):
        last = at + n_in * n_out
        layers.append((flat[at:last].reshape(n_in, n_out), flat[last : last + n_out]))
        at = last + n_out
    return layers
