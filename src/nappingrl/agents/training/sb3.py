"""Training of the shipped agents, by the recipes in zoo/recipes.json."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    domain_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Train an agent by its recipe, write <domain>-<agent>.npz and its card to `out`, and return the card.

    `total_steps` counts episodes for recipes that do; `tensorboard` is a folder for training curves; `domain_options`
    (checked) take the place of the recipe's.
    """
    recipes = zoo.recipes()
    names = [stem.removeprefix(f"{domain}-") for stem in recipes if stem.startswith(f"{domain}-")]
    check_name("domain with training recipes", domain, zoo.recipe_domains())
    check_name("training recipe", agent, names)
    check_limits(total_steps, seed)
    out.mkdir(parents=True, exist_ok=True)
    with locked(out, f"{domain}-{agent}"):
        remove_temporaries(out, f"{domain}-{agent}")
        changed = Changed(seed, total_steps, dict(domain_options or {}))
        return _train(domain, agent, out, changed, on_progress, on_evaluation, tensorboard)


@dataclass(frozen=True, slots=True)
class Changed:
    """What takes the place of a recipe's values; None and empty: nothing does."""

    seed: int | None = None
    steps: int | None = None
    domain_options: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, recipe: dict[str, Any]) -> dict[str, Any]:
        """The recipe with these values."""
        counted = "episodes" if "episodes" in recipe else "total_steps"
        values = {"seed": self.seed, counted: self.steps, "domain_options": dict(self.domain_options) or None}
        return recipe | {key: value for key, value in values.items() if value is not None}

    def words(self) -> list[str]:
        """As on the command line."""
        options = [f"{name}={value}" for name, value in self.domain_options.items()]
        words = {"--seed": self.seed, "--steps": self.steps}
        given = [word for name, value in words.items() if value is not None for word in (name, str(value))]
        return given + (["--domain-option", *options] if options else [])


def _train(
    domain: str, agent: str, out: Path, changed: Changed,
    on_progress: OnProgress | None, on_evaluation: OnEvaluation | None, tensorboard: Path | None,
) -> dict[str, Any]:  # fmt: skip
    """Train and write, as the only process that writes this agent; returns the card."""
    recipe = zoo.recipes()[f"{domain}-{agent}"]
    if "reads" in recipe:
        if changed.words() or recipe["reads"] not in zoo.zoo_names(domain, out):
            train(
                domain, recipe["reads"], out, changed.seed, changed.steps, on_progress, on_evaluation, tensorboard,
                changed.domain_options,
            )  # fmt: skip
        return _without_normaliser(domain, agent, recipe, out)
    recipe = changed.apply(recipe)
    command = shlex.join(["napping", "train", domain, agent, *changed.words()])
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
