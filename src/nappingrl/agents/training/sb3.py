"""Training of the shipped agents, by the recipes in zoo/recipes.json."""

import shlex
from pathlib import Path
from typing import Any

from nappingrl.agents import zoo
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.training.cards import card
from nappingrl.agents.training.learning import OnEvaluation, learn
from nappingrl.agents.training.recipes import check_limits
from nappingrl.errors import check_name
from nappingrl.files import remove_temporaries
from nappingrl.files.lock import locked
from nappingrl.types import OnProgress

SOURCE = "trained for this package; the best checkpoint of the evaluations during training, by mean return"


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
    check_limits(total_steps, seed)
    out.mkdir(parents=True, exist_ok=True)
    with locked(out, f"{domain}-{agent}"):
        remove_temporaries(out, f"{domain}-{agent}")
        return _train(domain, agent, out, seed, total_steps, on_progress, on_evaluation, tensorboard)


def _train(
    domain: str, agent: str, out: Path, seed: int | None, total_steps: int | None,
    on_progress: OnProgress | None, on_evaluation: OnEvaluation | None, tensorboard: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """Train and write, as the only process that writes this agent; returns the card."""
    recipe = zoo.recipes()[f"{domain}-{agent}"]
    changed = {"seed": seed, ("episodes" if "episodes" in recipe else "total_steps"): total_steps}
    if "reads" in recipe:
        if any(value is not None for value in changed.values()) or recipe["reads"] not in zoo.zoo_names(domain, out):
            train(domain, recipe["reads"], out, seed, total_steps, on_progress, on_evaluation, tensorboard)
        return _without_normaliser(domain, agent, recipe, out)
    recipe = recipe | {key: value for key, value in changed.items() if value is not None}
    options = {"--seed": seed, "--steps": total_steps}
    words = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    command = shlex.join(["napping", "train", domain, agent, *words])
    if recipe["algorithm"] == "MaskedDQN":
        from nappingrl.agents.training.masked import train_masked

        return train_masked(domain, agent, recipe, out, command, on_progress, on_evaluation, tensorboard)
    learned = learn(recipe, None, on_progress, on_evaluation, tensorboard)
    assert isinstance(learned.agent, MlpAgent)
    about = card(learned.agent, recipe, agent, domain, f"{domain}-{agent}.npz", SOURCE)
    about |= {"checkpoint_step": learned.step, "command": command}
    arrays = learned.agent.weights() | zoo.normaliser_arrays(learned.agent.normaliser)
    zoo.save(f"{domain}-{agent}", arrays, about, out)
    return about


def _without_normaliser(domain: str, agent: str, recipe: dict[str, Any], out: Path) -> dict[str, Any]:
    """Write the card of an agent that has the weights of another one, without its normaliser."""
    other = zoo.card(domain, recipe["reads"], out)
    blind = zoo.load(recipe["reads"], domain, None, out)
    about = card(blind, other["recipe"] | recipe, agent, domain, other["weights"], SOURCE)
    command = other["command"].replace(f" {recipe['reads']}", f" {agent}", 1)
    about |= {"checkpoint_step": other["checkpoint_step"], "command": command}
    zoo.save(f"{domain}-{agent}", None, about, out)
    return about
