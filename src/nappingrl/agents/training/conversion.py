"""Conversion of a saved SB3 zip to a shipped agent: weights as .npz, and a card with source and licence."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nappingrl.agents import zoo
from nappingrl.agents.base import check_fit
from nappingrl.agents.continuous import BoxMlpAgent
from nappingrl.agents.mlp import MlpAgent
from nappingrl.agents.sb3.zip import MAX_BYTES, read_zip
from nappingrl.agents.training.cards import card
from nappingrl.agents.training.options import override
from nappingrl.errors import BadAgentError
from nappingrl.files import UnusableFileError, read_file, remove_temporaries
from nappingrl.files.lock import locked
from nappingrl.types import DomainSpec

MAX_LICENCE = 1 << 16
"""Bytes of a licence text."""
ALGORITHMS = {"q": "DQN", "actor-critic": "PPO"}
"""By the kind of networks."""
_NOT_HYPERPARAMETERS = {"verbose", "seed", "start_time", "num_timesteps", "n_envs", "exploration_rate"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an agent comes from."""

    about: str
    source: str
    licence: str
    """The text of its licence."""
    command: str
    """The command that converts it."""


def convert(
    file: Path, domain: DomainSpec, env: str, name: str, origin: Origin, options: Mapping[str, str], out: Path
) -> dict[str, Any]:
    """Write the agent of a zip as <domain>-<name>.npz with its card to `out`; returns the card.

    `env` is the gymnasium id of the domain, where the returns on the card are measured. `options` give the
    hyperparameters that are only in the zip's pickles, which are never loaded.
    """
    agent = read_zip(file)
    check_fit(agent, domain)
    recipe = _recipe(agent, env, origin.about, options)
    stem = f"{domain.name}-{name}"
    about = card(agent, recipe, name, domain.name, f"{stem}.npz", origin.source)
    about |= {
        "licence": origin.licence,
        "original": {"file": file.name, "sha256": hashlib.sha256(read_file(file, MAX_BYTES)).hexdigest()},
        "command": origin.command,
    }
    out.mkdir(parents=True, exist_ok=True)
    with locked(out, stem):
        remove_temporaries(out, stem)
        zoo.save(stem, agent.weights() | zoo.normaliser_arrays(agent.normaliser), about, out)
    return about


def read_licence(file: Path) -> str:
    """The text of a licence."""
    try:
        text = read_file(file, MAX_LICENCE).decode()
    except (UnusableFileError, UnicodeDecodeError) as error:
        raise BadAgentError(f"licence '{file}': {error}; give the text of the agent's licence") from None
    if not text.strip():
        raise BadAgentError(f"licence '{file}' is empty; give the text of the agent's licence")
    return text


def _recipe(agent: MlpAgent, env: str, about: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The values of the training that the zip tells, and those given as options."""
    if isinstance(agent, BoxMlpAgent):
        raise BadAgentError(f"agent file '{agent.source}' has continuous actions; only DQN and PPO are converted")
    known = agent.hyperparameters()
    kept = {key: value for key, value in known.items() if key not in _NOT_HYPERPARAMETERS}
    recipe = {
        "about": about,
        "algorithm": ALGORITHMS[agent.trainable().kind],
        "env": env,
        "seed": known.get("seed"),
        "total_steps": known.get("num_timesteps"),
        "n_envs": known.get("n_envs", 1),
        "normalise": kept.pop("normalise", False),
        "hyperparameters": kept,
    }
    recipe = override(recipe, options)
    unreadable = [key for key in kept.get("unreadable", ()) if key not in options]
    recipe["hyperparameters"] |= {"unreadable": unreadable}
    if not unreadable:
        del recipe["hyperparameters"]["unreadable"]
    del recipe["policy"]
    return recipe
