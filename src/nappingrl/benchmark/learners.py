"""The speed of the batched learners, compared with SB3's training on one core and on the same data.

`<algorithm>_<width>_speedup` compares gradient updates alone (batch 64, two hidden layers); DQN takes 128 in a row from
4096 steps, as the shipped CartPole agent does in the middle of a trial; `dqn_256_single_speedup` is for one at a time.
`over_products` is the time of an update over that of its bare matrix products. `online_trial_speedup` compares whole
trials (acting, stepping the environment, learning) with SB3's learn() on the gymnasium environment.
"""

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import gymnasium
import numpy as np
from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.errors import MissingExtraError
from nappingrl.learners import Dqn, Learner, make_learner
from nappingrl.report.runs import run
from nappingrl.types import OnProgress

_TRIALS, _PROTOCOL, _SB3_STEPS = 8, "0+30", 2048
_ROWS, _REPEATS, _BATCH_SIZE = 2, 5, 64
_UPDATES, _STEPS = 128, {"dqn": 4096, "ppo": 512}


def measure_learners(on_progress: OnProgress | None = None) -> dict[str, float]:
    """All measurements; times are in microseconds per gradient update, or per step of a trial."""
    torch, _, _ = _sb3()
    threads = torch.get_num_threads()
    stages: list[Callable[[], dict[str, float]]] = [
        lambda: _measure_updates("dqn", 64),
        lambda: _measure_updates("dqn", 256),
        lambda: _measure_updates("ppo", 64),
        _measure_online,
    ]
    measured: dict[str, float] = {}
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            for i, stage in enumerate(stages):
                if on_progress is not None:
                    on_progress(i, len(stages))
                measured |= stage()
    finally:
        torch.set_num_threads(threads)
    if on_progress is not None:
        on_progress(len(stages), len(stages))
    return measured


def _measure_updates(algorithm: str, width: int) -> dict[str, float]:
    """A gradient update of the learner and of SB3; alternating repeats, minimum of each."""
    model = _make_model(algorithm, width)
    learner = make_learner(load(model).trainable(), _ROWS)
    rows = np.arange(_ROWS)
    learner.start(rows, rows.astype(np.uint64))
    _copy_buffer(learner, model.replay_buffer if algorithm == "dqn" else model.rollout_buffer, rows)
    learner.train(rows[:1])  # compile
    is_dqn = isinstance(learner, Dqn)
    updates = _UPDATES if is_dqn else model.n_epochs * (_STEPS["ppo"] // _BATCH_SIZE)
    sb3_train = (lambda: model.train(_UPDATES, _BATCH_SIZE)) if is_dqn else model.train
    ours = sb3 = single = np.inf
    for _ in range(_REPEATS):
        ours = min(ours, _seconds(lambda: learner.train(rows)) / (_ROWS * updates))
        sb3 = min(sb3, _seconds(sb3_train) / updates)
        if isinstance(learner, Dqn):
            learner.hyperparameters = learner.hyperparameters._replace(gradient_steps=1)
            single = min(single, _seconds(lambda: _repeat(_UPDATES, learner.train, rows)) / (_ROWS * updates))
            learner.hyperparameters = learner.hyperparameters._replace(gradient_steps=_UPDATES)
    name = f"{algorithm}_{width}"
    sizes = (4, width, width, 2)
    products = _time_products(sizes, _STEPS["dqn"] // _UPDATES) if is_dqn else 2 * _time_products(sizes, 0)
    measured = {
        f"{name}_update_us": ours * 1e6, f"{name}_sb3_update_us": sb3 * 1e6, f"{name}_speedup": sb3 / ours,
        f"{name}_over_products": ours / products,
    }  # fmt: skip
    if is_dqn:
        measured[f"{name}_single_speedup"] = sb3 / single
    return measured


def _time_products(sizes: tuple[int, ...], n_targets: int) -> float:
    """Seconds of the matrix products (BLAS) of an update of one network: forwards, backwards, and target values."""
    random = np.random.default_rng(0)
    layers = []
    for n_in, n_out in pairwise(sizes):
        shapes = ((n_in, n_out), (_BATCH_SIZE, n_in), (_BATCH_SIZE, n_out))
        layers.append([random.random(shape, np.float32) for shape in shapes])

    def update(times: int) -> None:
        for _ in range(times):
            for number, (weights, inputs, outputs) in enumerate(layers):
                np.matmul(inputs, weights)
                np.matmul(inputs[:n_targets], weights)
                np.matmul(inputs.T, outputs)
                if number:
                    np.matmul(outputs, weights.T)

    return min(_seconds(lambda: update(_UPDATES)) for _ in range(_REPEATS)) / _UPDATES


def _make_model(algorithm: str, width: int) -> Any:
    """An SB3 model with a full buffer."""
    _, dqn, ppo = _sb3()
    env = gymnasium.make("nappingrl/CartPole-v0")
    n_steps = _STEPS[algorithm]
    common: dict[str, Any] = {
        "batch_size": _BATCH_SIZE,
        "policy_kwargs": {"net_arch": [width, width]},
        "seed": 0,
        "device": "cpu",
    }
    if algorithm == "ppo":
        return ppo("MlpPolicy", env, n_steps=n_steps, **common).learn(n_steps)
    # With learning_starts beyond the last step it only collects.
    collect = {"learning_starts": 10**9, "train_freq": 1, "gradient_steps": _UPDATES, "buffer_size": n_steps}
    return dqn("MlpPolicy", env, **collect, **common).learn(n_steps)


def _copy_buffer(learner: Learner, buffer: Any, rows: Any) -> None:
    """Copy SB3's buffer to every row of the learner."""
    n = len(buffer.rewards)
    observations = buffer.observations.reshape(n, -1)
    next_observations = getattr(buffer, "next_observations", np.roll(buffer.observations, -1, axis=0)).reshape(n, -1)
    actions = buffer.actions.astype(np.int64)
    rewards = buffer.rewards.astype(np.float64)
    terminated = getattr(buffer, "dones", buffer.rewards < 0).astype(np.bool_)
    copies = np.zeros(len(rows), np.int64)
    for t in range(n):
        learner.replay.add(
            rows=rows,
            observations=observations[t : t + 1][copies],
            actions=actions[t].ravel()[copies],
            rewards=rewards[t].ravel()[copies],
            next_observations=next_observations[t : t + 1][copies],
            terminated=terminated[t].ravel()[copies],
            truncated=np.zeros(len(rows), np.bool_),
        )


def _measure_online() -> dict[str, float]:
    """A step of the method `online` on CartPole with the shipped DQN, and a step of SB3 training the same agent."""
    run("cartpole", "dqn", "online", trials=1, protocol="0+1")  # compile
    started = time.perf_counter()
    rows = run("cartpole", "dqn", "online", trials=_TRIALS, protocol=_PROTOCOL).rows
    ours = (time.perf_counter() - started) / int(rows["length"].sum())
    model = _shipped_model()
    sb3 = _seconds(lambda: model.learn(_SB3_STEPS)) / model.num_timesteps
    return {
        "online_step_us": ours * 1e6,
        "online_sb3_step_us": sb3 * 1e6,
        "online_steps_per_trial": int(rows["length"].sum()) / _TRIALS,
        "online_trial_speedup": sb3 / ours,
    }


def _shipped_model() -> Any:
    """SB3's DQN with the weights and hyperparameters of the shipped agent, ready for further training."""
    torch, dqn, _ = _sb3()
    agent = load("dqn", "cartpole")
    known = agent.hyperparameters()
    options = {name: known[name] for name in known if name not in ("algorithm", "n_envs", "normalise")}
    options |= {"exploration_initial_eps": known["exploration_final_eps"], "learning_starts": 0}
    weights = {name: torch.from_numpy(value) for name, value in agent.weights().items()}
    widths = [len(value) for name, value in weights.items() if name.startswith("q_net.") and "bias" in name]
    policy = {"net_arch": widths[:-1]}
    env = gymnasium.make("nappingrl/CartPole-v0")
    model = dqn("MlpPolicy", env, policy_kwargs=policy, seed=0, device="cpu", **options)
    model.policy.load_state_dict(weights)
    return model


def _repeat(times: int, work: Callable[[Any], None], argument: Any) -> None:
    for _ in range(times):
        work(argument)


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _sb3() -> tuple[Any, Any, Any]:
    try:
        import torch
        from stable_baselines3 import DQN, PPO
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"the measurement against SB3 needs {error.name}, which is not installed; install nappingrl[sb3]"
        ) from None
    return torch, DQN, PPO
