"""Training of agents with networks over objects: recipe, checkpoints and card."""

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nappingrl.agents import zoo
from nappingrl.agents.object_networks import NetworkAgent
from nappingrl.agents.torch_agent import one_thread
from nappingrl.agents.training.masked_dqn import OnEvaluation, Trainer
from nappingrl.types import OnProgress

CARD_SEED = 2_000_003
EPISODES = 700
"""Episodes of each pass rate on the card; fewer if the training has fewer."""
PACKAGES = ("nappingrl", "numpy", "gymnasium", "torch", "Box2D")


def train_masked(
    domain: str, name: str, recipe: dict[str, Any], out: Path, command: str,
    on_progress: OnProgress | None, on_evaluation: OnEvaluation | None, tensorboard: Path | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Train by a recipe, resume an interrupted run, write weights and card to `out`, and return the card."""
    with one_thread():
        trainer = Trainer(recipe, recipe["seed"], tensorboard and tensorboard / f"{domain}-{name}")
        trainer.run(out / f"{domain}-{name}-training", on_progress, on_evaluation)
        trainer.load_best()
        episodes = min(EPISODES, recipe["episodes"])
        held_out = {"levels": [recipe["env_options"]["levels"][1], recipe["env_options"]["levels"][1] + 70]}
        rates = {
            which: round(trainer.pass_rate({"episodes": episodes, "seed": CARD_SEED, "env_options": options}), 3)
            for which, options in (("training levels", {}), ("held-out levels", held_out))
        }
    agent = NetworkAgent(name, recipe["network"], trainer.best_weights)
    about = {
        "name": name,
        "domain": domain,
        **{key: recipe[key] for key in ("domain_options",) if key in recipe},
        "about": recipe["about"],
        "source": "trained for this package; the best checkpoint of the evaluations during training, by pass rate",
        "algorithm": recipe["algorithm"],
        "network": recipe["network"],
        "n_actions": agent.n_actions,
        "embedding_dim": agent.embedding_dim,
        "observation_shape": agent.observation_shape,
        "weights": f"{domain}-{name}.npz",
        "sha256": agent.sha256,
        "recipe": recipe,
        "seed": recipe["seed"],
        "episodes": recipe["episodes"],
        "steps": trainer.steps,
        "checkpoint_episode": trainer.best_episode,
        "pass_rate": {"episodes": episodes} | rates,
        "versions": {"python": platform.python_version()} | {package: version(package) for package in PACKAGES},
        "command": command,
    }
    zoo.save(f"{domain}-{name}", dict(trainer.best_weights), about, out)
    return about
