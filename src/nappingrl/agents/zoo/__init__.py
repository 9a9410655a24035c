"""The shipped agents: weights as <domain>-<name>.npz and a card as <domain>-<name>.json. Reading them needs numpy only.

The npz holds all tensors of the policy under SB3's names, and `normaliser.*` where observations were standardised.
"""

import json
import zipfile
import zlib
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError, MissingExtraError, UnknownNameError, check_name

if TYPE_CHECKING:
    from nappingrl.agents.base import Agent
    from nappingrl.agents.continuous import ActionBox
    from nappingrl.agents.mlp import Normaliser


def zoo_names(domain: str | None = None, folder: Path | None = None) -> list[str]:
    """Names of the shipped agents of a domain; of all domains, as <domain>-<name>, if none is given."""
    place = _folder(folder)
    files = place.iterdir() if place.is_dir() else ()
    stems = sorted(file.name.removesuffix(".json") for file in files if _is_card(file.name))
    if domain is None:
        return stems
    return [stem.removeprefix(f"{domain}-") for stem in stems if stem.startswith(f"{domain}-")]


def card(domain: str | None, name: str, folder: Path | None = None) -> dict[str, Any]:
    """What is known about a shipped agent: recipe, seed, pre-novelty returns, sha256, the command that made it."""
    names = zoo_names(domain, folder)
    also = "The path of an SB3 .zip is allowed too."
    if not names:
        raise UnknownNameError(f"unknown agent '{name}': no agent is shipped for the domain '{domain}'. {also}")
    try:
        check_name("agent", name, names)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error} {also}") from None
    content: dict[str, Any] = json.loads((_folder(folder) / f"{_stem(domain, name)}.json").read_text("utf-8"))
    return content


def recipes() -> dict[str, dict[str, Any]]:
    """How the shipped agents are trained, by <domain>-<name>."""
    content: dict[str, dict[str, Any]] = json.loads((_folder(None) / "recipes.json").read_text("utf-8"))
    return content


def recipe_domains() -> set[str]:
    """The domains that have recipes: own ones, and environments by their gymnasium id."""
    envs = {stem: str(recipe.get("env")) for stem, recipe in recipes().items()}
    return {env if stem.startswith(f"{env}-") else stem.split("-")[0] for stem, env in envs.items()}


def read(
    name: str, domain: str | None = None, normaliser: str | Path | None = "auto", folder: Path | None = None
) -> "Agent":
    """A shipped agent; its weights are compared with the card."""
    from nappingrl.agents.continuous import BoxMlpAgent
    from nappingrl.agents.mlp import MlpAgent, policy_layers

    about = card(domain, name, folder)
    file = _folder(folder) / about["weights"]
    repair = "reinstall nappingrl" if folder is None else "train it again"
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            content = {key: arrays[key] for key in arrays.files}
        weights = {key: value for key, value in content.items() if not key.startswith("normaliser.")}
        if "network" in about:
            return _network_agent(name, about, weights)
        _, layers = policy_layers(weights, about["n_actions"])
        own = _normaliser(content) if about["normaliser"] else None
        recipe = about["recipe"]
        about_training = {name: recipe[name] for name in ("algorithm", "n_envs", "normalise")}
        known = about_training | recipe["hyperparameters"]
        box = _box(about)

        def make(statistics: "Normaliser | None") -> MlpAgent:
            if box is None:
                return MlpAgent(name, layers, about["activation"], statistics, weights, known)
            return BoxMlpAgent(name, layers, about["activation"], box, statistics, weights, known)

        agent = make(own)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error, BadAgentError) as error:
        raise BadAgentError(f"the agent '{name}' ({file}) is missing or damaged: {error}; {repair}") from None
    if agent.sha256 != about["sha256"]:
        raise BadAgentError(f"the weights of '{name}' ({file}) do not match its card's sha256; {repair}")
    return agent if normaliser == "auto" else make(_given(normaliser))


def _box(about: dict[str, Any]) -> "ActionBox | None":
    """Where the actions of the agent of a card lie; None where they are discrete."""
    from nappingrl.agents.continuous import ActionBox

    return None if "action_box" not in about else ActionBox.of_card(about["action_box"])


def _network_agent(name: str, about: dict[str, Any], weights: dict[str, NDArray[np.float32]]) -> "Agent":
    """An agent whose network torch runs."""
    try:
        module = import_module("nappingrl.agents.object_networks")
    except ModuleNotFoundError as error:
        raise MissingExtraError(f'agent {name} needs {error.name}: pip install "nappingrl[sb3]"') from None
    agent: Agent = module.NetworkAgent(name, about["network"], weights)
    if agent.sha256 != about["sha256"]:
        raise BadAgentError(
            f"the weights of '{name}' do not match its card's sha256; reinstall nappingrl or train it again"
        )
    return agent


def read_card(path: Path, normaliser: str | Path | None = "auto") -> "Agent":
    """An agent that `napping train` put into a folder, by the path of its card."""
    if not path.is_file():
        raise BadAgentError(f"agent card '{path}' does not exist; give the .json that `napping train --out` wrote")
    try:
        return read(path.stem, None, normaliser, path.parent)
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise BadAgentError(f"'{path}' is no card of `napping train`: {error}") from None


def write(stem: str, arrays: dict[str, NDArray[Any]] | None, about: dict[str, Any], folder: Path) -> None:
    """Put an agent into a zoo folder: the card, and its weights unless it shares those of another agent."""
    folder.mkdir(parents=True, exist_ok=True)
    if arrays is not None:
        np.savez_compressed(folder / f"{stem}.npz", **arrays)  # type: ignore[arg-type]
    (folder / f"{stem}.json").write_text(json.dumps(about, indent=2) + "\n", "utf-8")


def normaliser_arrays(normaliser: "Normaliser | None") -> dict[str, NDArray[Any]]:
    """A normaliser as entries of an npz."""
    if normaliser is None:
        return {}
    parts = {"mean": normaliser.mean, "var": normaliser.var, "epsilon": normaliser.epsilon, "clip": normaliser.clip}
    return {f"normaliser.{key}": np.asarray(value, np.float64) for key, value in parts.items()}


def _normaliser(content: dict[str, NDArray[Any]]) -> "Normaliser":
    from nappingrl.agents.mlp import Normaliser

    mean, var, epsilon, clip = (content[f"normaliser.{key}"] for key in ("mean", "var", "epsilon", "clip"))
    return Normaliser(mean, var, float(epsilon), float(clip))


def _given(normaliser: str | Path | None) -> "Normaliser | None":
    from nappingrl.agents.sb3 import vecnormalize

    return None if normaliser is None else vecnormalize.read(Path(normaliser))


def _folder(folder: Path | None) -> Traversable:
    return resources.files(__name__) if folder is None else folder


def _is_card(name: str) -> bool:
    return name.endswith(".json") and name != "recipes.json"


def _stem(domain: str | None, name: str) -> str:
    return name if domain is None else f"{domain}-{name}"
