"""How fast the batched learners are: against SB3's own training, on one core, on the same data.

`<kind>_<width>_speedup` compares gradient updates alone (batch 64, two hidden layers); DQN makes 128 in a row from 4096
steps, as the shipped CartPole agent does in the middle of a trial, and `dqn_256_single_speedup` is for one at a time.
`online_trial_speedup` compares whole trials (acting, stepping the world, learning) with SB3's learn() on the gymnasium
environment.
"""

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from threadpoolctl import threadpool_limits

from nappingrl.agents import load
from nappingrl.errors import MissingExtraError
from nappingrl.learners import Dqn, Learner, make_learner
from nappingrl.report.runs import run

OnProgress = Callable[[int, int], None]
_TRIALS, _PROTOCOL, _SB3_STEPS = 8, "0+30", 2048
_ROWS, _REPEATS, _BATCH = 2, 5, 64
_UPDATES, _STEPS = 128, {"dqn": 4096, "ppo": 512}


def measure_learners(on_progress: OnProgress | None = None) -> dict[str, float]:
    """All measures; times in microseconds per gradient update, or per step of a trial."""
    torch, _, _ = _sb3()
    threads = torch.get_num_threads()
    stages: list[Callable[[], dict[str, float]]] = [
        lambda: _measure_updates("dqn", 64),
        lambda: _measure_updates("dqn", 256),
        lambda: _measure_updates("ppo", 64),
        _measure_online,
    ]
    found: dict[str, float] = {}
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            for i, stage in enumerate(stages):
                if on_progress is not None:
                    on_progress(i, len(stages))
                found |= stage()
    finally:
        torch.set_num_threads(threads)
    if on_progress is not None:
        on_progress(len(stages), len(stages))
    return found


def _measure_updates(kind: str, width: int) -> dict[str, float]:
    """One gradient update of the learner and of SB3, the least of a few repeats in turn."""
    model = _make_model(kind, width)
    learner = make_learner(load(model).trainable(), _ROWS)
    rows = np.arange(_ROWS)
    learner.start(rows, rows.astype(np.uint64))
    _remember(learner, model.replay_buffer if kind == "dqn" else model.rollout_buffer, rows)
    learner.train(rows[:1])  # compile
    is_dqn = isinstance(learner, Dqn)
    updates = _UPDATES if is_dqn else model.n_epochs * (_STEPS["ppo"] // _BATCH)
    train = (lambda: model.train(_UPDATES, _BATCH)) if is_dqn else model.train
    ours = theirs = single = np.inf
    for _ in range(_REPEATS):
        ours = min(ours, _seconds(lambda: learner.train(rows)) / (_ROWS * updates))
        theirs = min(theirs, _seconds(train) / updates)
        if isinstance(learner, Dqn):
            learner.settings = learner.settings._replace(gradient_steps=1)
            single = min(single, _seconds(lambda: _repeat(_UPDATES, learner.train, rows)) / (_ROWS * updates))
            learner.settings = learner.settings._replace(gradient_steps=_UPDATES)
    name = f"{kind}_{width}"
    found = {f"{name}_update_us": ours * 1e6, f"{name}_sb3_update_us": theirs * 1e6, f"{name}_speedup": theirs / ours}
    return found | ({f"{name}_single_speedup": theirs / single} if is_dqn else {})


def _make_model(kind: str, width: int) -> Any:
    """An SB3 model with data to learn from."""
    _, dqn, ppo = _sb3()
    env = gymnasium.make("nappingrl/CartPole-v0")
    common: dict[str, Any] = {"batch_size": _BATCH, "policy_kwargs": {"net_arch": [width, width]}, "device": "cpu"}
    if kind == "ppo":
        return ppo("MlpPolicy", env, n_steps=_STEPS[kind], seed=0, **common).learn(_STEPS[kind])
    # With learning_starts beyond the last step it only collects.
    never = {"learning_starts": 10**9, "train_freq": 1, "gradient_steps": _UPDATES, "buffer_size": _STEPS[kind]}
    return dqn("MlpPolicy", env, seed=0, **never, **common).learn(_STEPS[kind])


def _remember(learner: Learner, buffer: Any, rows: Any) -> None:
    """What is in SB3's buffer, for every row."""
    n = len(buffer.rewards)
    x, ended = buffer.observations.reshape(n, -1), getattr(buffer, "dones", buffer.rewards < 0).astype(np.bool_)
    after = getattr(buffer, "next_observations", np.roll(buffer.observations, -1, axis=0)).reshape(n, -1)
    actions, rewards = buffer.actions.astype(np.int64), buffer.rewards.astype(np.float64)
    copies, none = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    for t in range(n):
        step = actions[t].ravel()[copies], rewards[t].ravel()[copies]
        learner.memory.add(rows, x[t : t + 1][copies], *step, after[t : t + 1][copies], ended[t].ravel()[copies], none)


def _measure_online() -> dict[str, float]:
    """A step of Online on CartPole with the shipped DQN, and a step of SB3 that trains the same agent."""
    run("cartpole", "dqn", "online", trials=1, protocol="0+1")  # compile
    started = time.perf_counter()
    rows = run("cartpole", "dqn", "online", trials=_TRIALS, protocol=_PROTOCOL).rows
    ours = (time.perf_counter() - started) / int(rows["length"].sum())
    model = _sb3_of_the_zoo()
    theirs = _seconds(lambda: model.learn(_SB3_STEPS)) / model.num_timesteps
    return {
        "online_step_us": ours * 1e6,
        "online_sb3_step_us": theirs * 1e6,
        "online_steps_per_trial": int(rows["length"].sum()) / _TRIALS,
        "online_trial_speedup": theirs / ours,
    }


def _sb3_of_the_zoo() -> Any:
    """SB3's DQN with the weights and hyper-parameters of the shipped agent, ready to go on training."""
    torch, dqn, _ = _sb3()
    agent = load("dqn", "cartpole")
    known = agent.hyperparameters()
    own = {name: known[name] for name in known if name not in ("algorithm", "n_envs", "normalise")}
    epsilon = {"exploration_initial_eps": known["exploration_final_eps"], "learning_starts": 0}
    weights = {name: torch.from_numpy(value) for name, value in agent.weights().items()}
    arch = {"net_arch": [len(value) for name, value in weights.items() if name.startswith("q_net.") and "bias" in name]}
    arch["net_arch"].pop()
    env = gymnasium.make("nappingrl/CartPole-v0")
    model = dqn("MlpPolicy", env, policy_kwargs=arch, seed=0, device="cpu", **(own | epsilon))
    model.policy.load_state_dict(weights)
    return model


def _repeat(times: int, work: Callable[[Any], None], given: Any) -> None:
    for _ in range(times):
        work(given)


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
