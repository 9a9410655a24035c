"""Learning by a recipe with SB3: segments, checkpoints, and the best of the evaluations.

Training is deterministic for a seed and a CPU type: it uses one torch thread and evaluates on fixed seeds. It keeps the
best weights of those evaluations, the later of equals. A recipe with `checkpoint_every` is trained in segments of that
many steps and can be resumed after each of them, to the same bits; the others are trained in one go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import QRDQN
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from nappingrl.agents.base import Agent
from nappingrl.agents.mlp import Normaliser
from nappingrl.agents.sb3.live import from_model
from nappingrl.agents.torch_agent import one_thread
from nappingrl.agents.training import checkpoint
from nappingrl.agents.training.checkpoint import State
from nappingrl.agents.training.evaluation import CHECKPOINT_SEED, EPISODES, evaluate
from nappingrl.env_wrappers import with_wrappers
from nappingrl.errors import BadSpecError
from nappingrl.types import OnProgress

ALGORITHMS: dict[str, Any] = {"PPO": PPO, "DQN": DQN, "SAC": SAC, "QRDQN": QRDQN, "TD3": TD3}
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU}
OnEvaluation = Callable[[int, float], None]
"""Called with the number of steps done and the mean return of the checkpoint."""
PROGRESS_EVERY = 20
"""Steps of the environments between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A trained model with the best weights of its evaluations, and the same as an agent."""

    model: BaseAlgorithm
    agent: Agent
    step: int


def learn(
    recipe: dict[str, Any],
    folder: Path | None,
    on_progress: OnProgress | None = None,
    on_evaluation: OnEvaluation | None = None,
    tensorboard: Path | None = None,
) -> Learned:
    """Train by a recipe; checkpoints are kept in the folder, and a training that has one is resumed."""
    state = None if folder is None else checkpoint.read(folder, recipe)
    with one_thread():
        while True:
            model = make_model(recipe, _segment_seed(recipe["seed"], state), tensorboard)
            watch = _Watch(recipe, on_progress, on_evaluation, state)
            if state is not None:
                _restore(model, state, folder)
            is_finished = _run_segment(model, watch, recipe["total_steps"])
            if is_finished:
                checkpoint.set_parameters(model, watch.best)
                return Learned(model, as_agent(model, "trained"), watch.best["step"])
            state = checkpoint.training_state(model) | watch.state()
            if folder is not None:
                checkpoint.write(folder, recipe, state)
            _close(model)


def _restore(model: BaseAlgorithm, state: State, folder: Path | None) -> None:
    """Continue from a state, which may come from a file that was tampered with."""
    try:
        checkpoint.restore(model, state)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError):  # of torch, with many lines
        raise BadSpecError(
            f"the checkpoint '{folder}' does not fit the model of its recipe; delete it to start anew"
        ) from None


def as_agent(model: BaseAlgorithm, name: str) -> Agent:
    """The agent of a model, with its observation statistics."""
    return from_model(model, _normaliser(model), name)


def make_model(recipe: dict[str, Any], seed: int, tensorboard: Path | None = None) -> BaseAlgorithm:
    """A new model with its environments."""
    options = {key: _schedule(value) for key, value in recipe["hyperparameters"].items()}
    wrapper = (lambda env: _Shaped(env, **recipe["shaping"])) if "shaping" in recipe else None
    made = with_wrappers(recipe["env"])
    make = made if isinstance(made, str) else partial(gymnasium.make, made)
    envs: VecEnv = make_vec_env(
        make, n_envs=recipe["n_envs"], seed=seed, wrapper_class=wrapper, env_kwargs=recipe.get("domain_options")
    )
    if recipe["normalise"]:
        envs = VecNormalize(envs, gamma=options.get("gamma", 0.99))
    policy = dict(recipe.get("policy", {}))
    if "net_arch" in recipe:
        policy = {"net_arch": recipe["net_arch"], **policy}
    if "activation_fn" in policy:
        policy["activation_fn"] = ACTIVATIONS[policy["activation_fn"]]
    algorithm = ALGORITHMS[recipe["algorithm"]]
    log = None if tensorboard is None else str(tensorboard)
    try:
        model: BaseAlgorithm = algorithm(
            policy_class(envs.observation_space), envs, policy_kwargs=policy, seed=seed, device="cpu",
            tensorboard_log=log, **options,
        )  # fmt: skip
    except (AssertionError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise BadSpecError(f"{recipe['algorithm']} refuses these hyperparameters: {reason}") from error
    return model


def policy_class(space: gymnasium.Space[Any]) -> str:
    """SB3's name of the policy class for an observation space."""
    if isinstance(space, gymnasium.spaces.Dict):
        return "MultiInputPolicy"
    return "CnnPolicy" if is_image_space(space) else "MlpPolicy"


class _SegmentEndError(Exception):
    """Leaves SB3's `learn` between two rollouts, when a segment is complete."""


class _Watch(BaseCallback):
    """Evaluates regularly, keeps the best weights with their statistics, and ends segments."""

    def __init__(
        self,
        recipe: dict[str, Any],
        on_progress: OnProgress | None,
        on_evaluation: OnEvaluation | None,
        state: State | None,
    ) -> None:
        super().__init__()
        self.recipe = recipe
        self.on_progress = on_progress
        self.on_evaluation = on_evaluation
        self.best: State = {"mean": -np.inf, "step": 0} if state is None else state["best"]
        self._next_evaluation: int = recipe["evaluate_every"] if state is None else state["next_evaluation"]
        first = 0 if state is None else state["counters"]["num_timesteps"]
        self._end = first + recipe.get("checkpoint_every", recipe["total_steps"])

    def state(self) -> State:
        """What the next segment needs of this one."""
        return {"best": self.best, "next_evaluation": self._next_evaluation}

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._end:
            raise _SegmentEndError

    def _on_step(self) -> bool:
        if self.n_calls % PROGRESS_EVERY == 0:
            self._report()
        if self.num_timesteps >= self._next_evaluation:
            self._next_evaluation += self.recipe["evaluate_every"]
            self._evaluate()
        return True

    def _on_training_end(self) -> None:
        self._evaluate()

    def _evaluate(self) -> None:
        agent = as_agent(self.model, "checkpoint")
        episodes = self.recipe.get("evaluation_episodes", EPISODES)
        mean = float(evaluate(agent, self.recipe, episodes, CHECKPOINT_SEED).mean())
        if mean >= self.best["mean"]:
            self.best = checkpoint.parameters(self.model) | {"mean": mean, "step": self.num_timesteps}
        if self.on_evaluation is not None:
            self.on_evaluation(self.num_timesteps, mean)
        self._report()

    def _report(self) -> None:
        if self.on_progress is not None:
            self.on_progress(min(self.num_timesteps, self.recipe["total_steps"]), self.recipe["total_steps"])


class _Shaped(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds `weight` times the change of one entry of the observation to the reward, during training only."""

    def __init__(self, env: gymnasium.Env[Any, Any], observation: int, weight: float) -> None:
        super().__init__(env)
        self._observation, self._weight, self._last = observation, weight, 0.0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        self._last = float(observation[self._observation])
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        current = float(observation[self._observation])
        shaped = float(reward) + self._weight * (current - self._last)
        self._last = current
        return observation, shaped, terminated, truncated, info


def _run_segment(model: BaseAlgorithm, watch: _Watch, total: int) -> bool:
    """Learn until the segment or the training ends; whether the training ended."""
    done = model.num_timesteps
    try:
        model.learn(total - done, callback=watch, reset_num_timesteps=done == 0)
    except _SegmentEndError:
        return False
    except ValueError as error:
        if _is_finite(model):
            raise
        raise BadSpecError(
            f"the training diverged before step {model.num_timesteps}: weights are no longer finite; "
            "try a smaller learning_rate"
        ) from error
    _close(model)
    return True


def _is_finite(model: BaseAlgorithm) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in model.policy.state_dict().values())


def _close(model: BaseAlgorithm) -> None:
    envs = model.get_env()
    assert envs is not None
    envs.close()


def _segment_seed(seed: int, state: State | None) -> int:
    """The recipe's seed for the first segment; later ones derive theirs from it and the number of steps done."""
    if state is None:
        return seed
    words = np.random.SeedSequence([seed, state["counters"]["num_timesteps"]]).generate_state(1)
    return int(words[0]) >> 1


def _schedule(value: Any) -> Any:
    """A number unchanged; {"from": a, "to": b} as SB3's function of the remaining progress."""
    if not isinstance(value, dict):
        return value
    first, last = value["from"], value["to"]
    return lambda remaining: last + (first - last) * remaining  # shipped agents have the bits of this formula


def _normaliser(model: BaseAlgorithm) -> Normaliser | None:
    """A copy of the current observation statistics."""
    envs = model.get_vec_normalize_env()
    if envs is None or not envs.norm_obs:
        return None
    assert isinstance(envs.obs_rms, RunningMeanStd)
    return Normaliser(envs.obs_rms.mean.copy(), envs.obs_rms.var.copy(), envs.epsilon, envs.clip_obs)
