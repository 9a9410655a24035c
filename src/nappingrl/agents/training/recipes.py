"""The recipe of a training in any gymnasium environment: tuned values if there are any, otherwise SB3's defaults."""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

import gymnasium
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

from nappingrl.agents import zoo
from nappingrl.agents.training.learning import policy_class
from nappingrl.agents.training.options import override
from nappingrl.errors import BadSpecError, check_name, check_whole

ALGORITHMS = {"ppo": (Discrete, Box), "dqn": (Discrete,), "qrdqn": (Discrete,), "sac": (Box,)}
"""The algorithms, with the action spaces that they can learn in."""
STEPS = 100_000
"""Training steps without tuned values."""
SEGMENTS, EVALUATIONS, EVALUATION_EPISODES = 20, 10, 20
"""Checkpoints of a training, its evaluations, and their episodes."""
MAX_STEPS, MAX_SEED = 10**10, 2**31 - 1
Spaces = tuple[gymnasium.Space[Any], gymnasium.Space[Any]]
"""Of observations and actions."""


def check_limits(steps: int | None, seed: int | None) -> None:
    """Raise in one line if a training would be too long, or its seed is out of range."""
    if steps is not None:
        check_whole("--steps", steps, 1, MAX_STEPS)
    if seed is not None:
        check_whole("--seed", seed, 0, MAX_SEED)


def make_recipe(
    env_id: str,
    spaces: Spaces,
    algorithm: str,
    steps: int | None = None,
    seed: int = 0,
    options: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The complete recipe of a training; one line of complaint where the algorithm or an option does not fit.

    `spaces` are the environment's observation and action space.
    """
    check_name("algorithm", algorithm, ALGORITHMS)
    check_spaces(env_id, spaces, algorithm)
    observations, _ = spaces
    base, about = _tuned(env_id, algorithm.upper())
    steps = base.get("total_steps", STEPS) if steps is None else steps
    check_limits(steps, seed)
    recipe: dict[str, Any] = {
        "about": about,
        "algorithm": algorithm.upper(),
        "policy_class": policy_class(observations),
        "env": env_id,
        "seed": seed,
        "total_steps": steps,
        "n_envs": base.get("n_envs", 1),
        "normalise": base.get("normalise", False),
        **{key: base[key] for key in ("net_arch", "policy", "shaping") if key in base},
        "hyperparameters": base.get("hyperparameters", {}),
        "evaluate_every": max(steps // EVALUATIONS, 1),
        "evaluation_episodes": EVALUATION_EPISODES,
        "checkpoint_every": max(steps // SEGMENTS, 1),
    }
    recipe = override(recipe, options or {})
    if recipe["normalise"] and not isinstance(observations, Box):
        raise BadSpecError(f"option normalise=true needs Box observations; {env_id} has {observations}")
    if algorithm != "ppo":  # no larger than the training, so that it takes no memory for nothing
        size = recipe["hyperparameters"].get("buffer_size", 1_000_000)
        recipe["hyperparameters"]["buffer_size"] = min(size, steps + recipe["n_envs"])
    return recipe


def check_spaces(env_id: str, spaces: Spaces, algorithm: str) -> None:
    """Raise where the algorithm cannot learn in the environment."""
    observations, actions = spaces
    fitting = [name for name, spaces in ALGORITHMS.items() if isinstance(actions, spaces)]
    if not fitting or (isinstance(actions, Discrete) and actions.start != 0) or len(actions.shape or ()) > 1:
        raise BadSpecError(
            f"{env_id} has actions {actions}; allowed: Discrete from 0, or one row of numbers (a flat Box)"
        )
    if algorithm not in fitting:
        raise BadSpecError(
            f"{algorithm} cannot learn actions {actions} of {env_id}; allowed there: {', '.join(fitting)}"
        )
    if not isinstance(observations, Box | Discrete | MultiBinary | MultiDiscrete | Dict):
        raise BadSpecError(f"{env_id} has observations {observations}; allowed: Box, Discrete, MultiDiscrete, Dict")


def _tuned(env_id: str, algorithm: str) -> tuple[dict[str, Any], str]:
    """The values known for an environment, and where they come from; of a shipped agent's recipe where there is one."""
    known = json.loads((resources.files(__package__) / "tuned.json").read_text("utf-8"))
    name = env_id.rpartition(":")[2]
    if name in known.get(algorithm, {}):
        return known[algorithm][name], f"{algorithm} with the values of {known['source']}."
    for stem, recipe in zoo.recipes().items():
        if recipe.get("algorithm") == algorithm and recipe["env"] in (name, known["same_task"].get(name)):
            return recipe, f"{algorithm} with the values of the shipped recipe {stem}."
    return {}, f"{algorithm} with SB3's default values."
