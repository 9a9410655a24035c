"""Cards of trained agents: where they come from, what they are, and what they reach."""

import platform
from importlib.metadata import version
from typing import Any

from nappingrl.agents.base import Agent
from nappingrl.agents.continuous import BoxMlpAgent
from nappingrl.agents.training.evaluation import CARD_SEED, EPISODES, evaluate, summary

PACKAGES = ("nappingrl", "numpy", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")


def card(agent: Agent, recipe: dict[str, Any], name: str, domain: str, weights: str, source: str) -> dict[str, Any]:
    """The card of an agent that was trained by a recipe; `weights` names the file beside the card."""
    box = {"action_box": agent.box.to_card()} if isinstance(agent, BoxMlpAgent) else {}
    shape = agent.observation_shape
    return {
        "name": name,
        "domain": domain,
        **{key: recipe[key] for key in ("domain_options",) if key in recipe},
        "about": recipe["about"],
        "source": source,
        "algorithm": recipe["algorithm"],
        "policy": recipe.get("policy_class", "MlpPolicy"),
        "activation": getattr(agent, "activation", None),
        "n_actions": agent.n_actions,
        **box,
        "embedding_dim": agent.embedding_dim,
        "observation_shape": None if shape is None else list(shape),
        "weights": weights,
        "normaliser": getattr(agent, "normaliser", None) is not None,
        "sha256": agent.sha256,
        "recipe": recipe,
        "seed": recipe["seed"],
        "total_steps": recipe["total_steps"],
        "pre_novelty_return": summary(evaluate(agent, recipe, EPISODES, CARD_SEED)),
        "versions": {"python": platform.python_version()} | {package: version(package) for package in PACKAGES},
    }
