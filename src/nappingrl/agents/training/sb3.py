"""Training of the shipped agents with SB3, by the recipes in zoo/recipes.json.

Training is deterministic for a seed and a CPU type: it uses one torch thread and evaluates on fixed seeds. It keeps the
best checkpoint of those evaluations, the later one of equals.
"""

import platform
import shlex
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import DQN, PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from nappingrl.agents import zoo
from nappingrl.agents.base import Agent
from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
from nappingrl.agents.mlp import MlpAgent, Normaliser
from nappingrl.agents.sb3.zip import DEFAULT_ACTIVATION
from nappingrl.agents.state_dict import policy_layers
from nappingrl.agents.torch_agent import one_thread, to_numpy
from nappingrl.errors import BadSpecError, check_name
from nappingrl.types import OnProgress

ALGORITHMS: dict[str, type[PPO | DQN | SAC | TD3]] = {"PPO": PPO, "DQN": DQN, "SAC": SAC, "TD3": TD3}
EPISODES = 100
CHECKPOINT_SEED, CARD_SEED = 1_000_003, 2_000_003
"""Seeds of the evaluations that choose the checkpoint, and of the evaluation on the card."""
OnEvaluation = Callable[[int, float], None]
"""Called with the number of steps done and the mean return of the checkpoint."""
PACKAGES = ("nappingrl", "numpy", "gymnasium", "torch", "stable-baselines3")


def train(
    domain: str,
    agent: str,
    out: Path,
    seed: int | None = None,
    total_steps: int | None = None,
    on_progress: OnProgress | None = None,
    on_evaluation: OnEvaluation | None = None,
    tensorboard: Path | None = None,
) -> dict[str, Any]:
    """Train an agent by its recipe, write <domain>-<agent>.npz and its card to `out`, and return the card.

    `total_steps` counts episodes for recipes that do; `tensorboard` is a folder for training curves.
    """
    recipes = zoo.recipes()
    names = [stem.removeprefix(f"{domain}-") for stem in recipes if stem.startswith(f"{domain}-")]
    check_name("domain with training recipes", domain, zoo.recipe_domains())
    check_name("training recipe", agent, names)
    if total_steps is not None and total_steps < 1:
        raise BadSpecError(f"total_steps is {total_steps}; at least 1 is needed")
    recipe = recipes[f"{domain}-{agent}"]
    changed = {"seed": seed, ("episodes" if "episodes" in recipe else "total_steps"): total_steps}
    if "reads" in recipe:
        if any(value is not None for value in changed.values()) or recipe["reads"] not in zoo.zoo_names(domain, out):
            train(domain, recipe["reads"], out, seed, total_steps, on_progress, on_evaluation, tensorboard)
        return _without_normaliser(domain, agent, recipe, out)
    recipe = recipe | {key: value for key, value in changed.items() if value is not None}
    options = {"--seed": seed, "--total-steps": total_steps}
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    command = shlex.join(["napping", "train", domain, agent, *words])
    if recipe["algorithm"] == "MaskedDQN":
        from nappingrl.agents.training.masked import train_masked

        return train_masked(domain, agent, recipe, out, command, on_progress, on_evaluation, tensorboard)
    weights, normaliser, step = _learn(recipe, on_progress, on_evaluation, tensorboard)
    about = _card(domain, agent, recipe, weights, normaliser)
    about |= {"checkpoint_step": step, "command": command}
    zoo.save(f"{domain}-{agent}", weights | zoo.normaliser_arrays(normaliser), about, out)
    return about


def evaluate(agent: Agent, env_id: str, episodes: int, seed: int) -> NDArray[np.float64]:
    """Returns of greedy episodes, played in parallel."""
    envs = gymnasium.make_vec(env_id, num_envs=episodes)
    observations, _ = envs.reset(seed=seed)
    returns, running = np.zeros(episodes), np.ones(episodes, np.bool_)
    while running.any():
        actions = agent.forward(np.asarray(observations, np.float32)).actions
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        returns[running] += rewards[running]
        running &= ~(terminated | truncated)
    envs.close()
    return returns


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


class _KeepBest(BaseCallback):
    """Evaluates regularly and keeps the best weights, with their normaliser."""

    def __init__(
        self, recipe: dict[str, Any], on_progress: OnProgress | None, on_evaluation: OnEvaluation | None
    ) -> None:
        super().__init__()
        self.recipe = recipe
        self.on_progress = on_progress
        self.on_evaluation = on_evaluation
        self.best_mean = -np.inf
        self.best_step = 0
        self._next_evaluation = recipe["evaluate_every"]
        self.weights: dict[str, NDArray[np.float32]] = {}
        self.normaliser: Normaliser | None = None

    def _on_step(self) -> bool:
        if self.num_timesteps >= self._next_evaluation:
            self._next_evaluation += self.recipe["evaluate_every"]
            self._evaluate()
        return True

    def _on_training_end(self) -> None:
        self._evaluate()

    def _evaluate(self) -> None:
        weights = to_numpy(self.model.policy.state_dict())
        normaliser = _statistics(self.model)
        agent = _agent("checkpoint", self.recipe, weights, normaliser)
        mean = float(evaluate(agent, self.recipe["env"], EPISODES, CHECKPOINT_SEED).mean())
        if mean >= self.best_mean:
            self.best_mean = mean
            self.best_step = self.num_timesteps
            self.weights = weights
            self.normaliser = normaliser
        if self.on_evaluation is not None:
            self.on_evaluation(self.num_timesteps, mean)
        if self.on_progress is not None:
            self.on_progress(min(self.num_timesteps, self.recipe["total_steps"]), self.recipe["total_steps"])


def _learn(
    recipe: dict[str, Any],
    on_progress: OnProgress | None,
    on_evaluation: OnEvaluation | None,
    tensorboard: Path | None,
) -> tuple[dict[str, NDArray[np.float32]], Normaliser | None, int]:
    """Train, and return the best checkpoint: weights, normaliser, step."""
    options = {key: _schedule(value) for key, value in recipe["hyperparameters"].items()}
    keep = _KeepBest(recipe, on_progress, on_evaluation)
    with one_thread():
        envs: VecEnv = make_vec_env(
            recipe["env"],
            n_envs=recipe["n_envs"],
            seed=recipe["seed"],
            wrapper_class=(lambda env: _Shaped(env, **recipe["shaping"])) if "shaping" in recipe else None,
        )
        if recipe["normalise"]:
            envs = VecNormalize(envs, gamma=recipe["hyperparameters"]["gamma"])
        model = ALGORITHMS[recipe["algorithm"]](
            "MlpPolicy",
            envs,
            policy_kwargs={"net_arch": recipe["net_arch"], **recipe.get("policy", {})},
            seed=recipe["seed"],
            device="cpu",
            tensorboard_log=None if tensorboard is None else str(tensorboard),
            **options,
        )
        model.learn(recipe["total_steps"], callback=keep)
        envs.close()
    return keep.weights, keep.normaliser, keep.best_step


def _schedule(value: Any) -> Any:
    """A number unchanged; {"from": a, "to": b} as SB3's function of the remaining progress."""
    if not isinstance(value, dict):
        return value
    first, last = value["from"], value["to"]
    return lambda remaining: last + (first - last) * remaining


def _statistics(model: BaseAlgorithm) -> Normaliser | None:
    """A copy of the current observation statistics."""
    envs = model.get_vec_normalize_env()
    if envs is None or not envs.norm_obs:
        return None
    assert isinstance(envs.obs_rms, RunningMeanStd)
    return Normaliser(envs.obs_rms.mean.copy(), envs.obs_rms.var.copy(), envs.epsilon, envs.clip_obs)


def _agent(
    name: str, recipe: dict[str, Any], weights: dict[str, NDArray[np.float32]], normaliser: Normaliser | None
) -> MlpAgent:
    kind, layers = policy_layers(weights)
    activation = DEFAULT_ACTIVATION.get(kind, "relu")
    space = gymnasium.make(recipe["env"]).action_space
    if not isinstance(space, gymnasium.spaces.Box):
        return MlpAgent(name, layers, activation, normaliser, weights)
    box = ActionBox.make(kind, space.low, space.high, recipe.get("policy", {}))
    return BoxMlpAgent(name, layers, activation, box, normaliser, weights)


def _without_normaliser(domain: str, agent: str, recipe: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write the card of an agent that has the weights of another one, without its normaliser."""
    other = zoo.card(domain, recipe["reads"], out)
    weights = zoo.load(recipe["reads"], domain, None, out).weights()
    about = _card(domain, agent, other["recipe"] | recipe, weights, None)
    command = other["command"].replace(f" {recipe['reads']}", f" {agent}", 1)
    about |= {"weights": other["weights"], "checkpoint_step": other["checkpoint_step"], "command": command}
    zoo.save(f"{domain}-{agent}", None, about, out)
    return about


def _card(
    domain: str,
    name: str,
    recipe: dict[str, Any],
    weights: dict[str, NDArray[np.float32]],
    normaliser: Normaliser | None,
) -> dict[str, Any]:
    agent = _agent(name, recipe, weights, normaliser)
    box = {"action_box": agent.box.to_card()} if isinstance(agent, BoxMlpAgent) else {}
    returns = evaluate(agent, recipe["env"], EPISODES, CARD_SEED)
    return {
        "name": name,
        "domain": domain,
        "about": recipe["about"],
        "source": "trained for this package; the best checkpoint of the evaluations during training, by mean return",
        "algorithm": recipe["algorithm"],
        "policy": "MlpPolicy",
        "activation": agent.activation,
        "n_actions": agent.n_actions,
        **box,
        "embedding_dim": agent.embedding_dim,
        "observation_shape": agent.observation_shape,
        "weights": f"{domain}-{name}.npz",
        "normaliser": normaliser is not None,
        "sha256": agent.sha256,
        "recipe": recipe,
        "seed": recipe["seed"],
        "total_steps": recipe["total_steps"],
        "pre_novelty_return": {
            "episodes": len(returns),
            "mean": round(float(returns.mean()), 3),
            "min": float(returns.min()),
            "max": float(returns.max()),
        },
        "versions": {"python": platform.python_version()} | {package: version(package) for package in PACKAGES},
    }
