"""The shipped agents: weights in <domain>-<name>.npz, a card in <domain>-<name>.json.

The npz holds all tensors of the policy under SB3's names, and `normaliser.*` if observations were normalised. Loading
needs neither torch nor SB3, except for networks over objects.
"""

import io
import json
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError, MissingExtraError, UnknownNameError, check_name, shown
from nappingrl.files import UnusableFileError, read_arrays, read_file, write_whole
from nappingrl.registry import agents as registered
from nappingrl.registry import domains

if TYPE_CHECKING:
    from nappingrl.agents.base import Agent
    from nappingrl.agents.mlp import Normaliser


MAX_BYTES = 1 << 28
"""Of a card, and of an agent's weights."""


def zoo_names(domain: str | None = None, folder: Path | None = None) -> list[str]:
    """The names of a domain's shipped agents; without a domain all, as <domain>-<name>."""
    place = _folder(folder)
    files = place.iterdir() if place.is_dir() else ()
    stems = sorted(file.name.removesuffix(".json") for file in files if _is_card(file.name))
    if domain is None:
        return stems
    return [stem.removeprefix(f"{domain}-") for stem in stems if stem.startswith(f"{domain}-")]


def agent_names(domain: str) -> list[str]:
    """All agents of a domain by name: those with shipped weights, then the scripted ones."""
    scripted = [name.removeprefix(f"{domain}-") for name in registered.names() if name.startswith(f"{domain}-")]
    return zoo_names(domain) + scripted


def card(domain: str | None, name: str, folder: Path | None = None) -> dict[str, Any]:
    """The card of a shipped agent: recipe, seed, returns before the novelty, sha256, training command."""
    names = zoo_names(domain, folder) if domain is None or folder is not None else agent_names(domain)
    hint = "The path of an SB3 .zip is allowed too."
    if not names:
        own = f"Register one of yours as '{domain}-{name}'. " if domain is not None and domain in domains else ""
        raise UnknownNameError(f"unknown agent '{name}': the domain '{domain}' has none. {own}{hint}")
    try:
        check_name("agent", name, names)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error} {hint}") from None
    content: dict[str, Any] = json.loads(_read(folder, f"{_stem(domain, name)}.json"))
    return content


def find_domain_options(agent: str, domain: str) -> dict[str, Any]:
    """The options of the domain that an agent plays with, such as what it observes; an SB3 zip says nothing of them.

    `agent` is the name of a scripted or shipped agent, or the path of a card.
    """
    if f"{domain}-{agent}" in registered:
        return dict(getattr(registered.get(f"{domain}-{agent}"), "domain_options", {}))
    if agent in zoo_names(domain):
        return _domain_options(card(domain, agent))
    if not agent.endswith(".json"):
        return {}
    try:
        about = json.loads(read_file(Path(agent), MAX_BYTES))
    except (UnusableFileError, ValueError, RecursionError):
        return {}  # `load` says what is wrong with it
    return _domain_options(about) if isinstance(about, dict) else {}


def _domain_options(about: dict[str, Any]) -> dict[str, Any]:
    """The options of the domain that the agent of a card was trained with."""
    options = about.get("domain_options", {})
    if not isinstance(options, dict):
        raise BadAgentError(f"domain_options of a card are {shown(str(options))}; allowed: names with values")
    return options


def recipes() -> dict[str, dict[str, Any]]:
    """Training recipes of the shipped agents, by <domain>-<name>."""
    content: dict[str, dict[str, Any]] = json.loads(_read(None, "recipes.json"))
    return content


def recipe_domains() -> set[str]:
    """Domains with recipes; environments of gymnasium by their id."""
    envs = {stem: str(recipe.get("env")) for stem, recipe in recipes().items()}
    return {env if stem.startswith(f"{env}-") else stem.split("-")[0] for stem, env in envs.items()}


def load(
    name: str, domain: str | None = None, normaliser: str | Path | None = "auto", folder: Path | None = None
) -> "Agent":
    """Load a shipped agent, or one in a folder, and check its weights against its card."""
    about = card(domain, name, folder)
    file = f"{_folder(folder)}/{shown(str(about['weights']))}"
    repair = "reinstall nappingrl" if folder is None else "train it again"
    try:
        arrays = read_arrays(_read(folder, about["weights"]), MAX_BYTES)
        agent = _make_agent(name, about, arrays, _own_normaliser(arrays) if about.get("normaliser") else None)
        agent.domain_options = _domain_options(about)
    except (OSError, ValueError, KeyError, BadAgentError) as error:
        why = shown(str(error), 300)
        raise BadAgentError(f"the agent '{name}' ({file}) is missing or damaged: {why}; {repair}") from None
    if agent.sha256 != about["sha256"]:
        raise BadAgentError(f"the weights of '{name}' ({file}) do not match its card's sha256; {repair}")
    if normaliser == "auto":
        return agent
    other = _make_agent(name, about, arrays, _read_normaliser(normaliser))
    other.domain_options = agent.domain_options
    return other


def load_card(path: Path, normaliser: str | Path | None = "auto") -> "Agent":
    """Load an agent that `napping train` wrote to a folder, by the path of its card."""
    try:
        read_file(path, MAX_BYTES)
    except UnusableFileError as error:
        hint = "give the .json that `napping train --out` wrote"
        raise BadAgentError(f"agent card '{path}': {error}; {hint}") from None
    try:
        return load(path.stem, None, normaliser, path.parent)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadAgentError(f"'{path}' is no card of `napping train`: {shown(str(error))}") from None


def save(stem: str, arrays: dict[str, NDArray[Any]] | None, about: dict[str, Any], folder: Path) -> None:
    """Write an agent's card to a folder, and its weights unless it shares those of another agent.

    An agent is whole or absent: an earlier card is removed first, the new one is written last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{stem}.json"
    file.unlink(missing_ok=True)
    if arrays is not None:
        content = io.BytesIO()
        np.savez_compressed(content, **arrays)  # type: ignore[arg-type]
        write_whole(folder / f"{stem}.npz", content.getvalue())
    write_whole(file, (json.dumps(about, indent=2) + "\n").encode())


def _make_agent(
    name: str, about: dict[str, Any], arrays: dict[str, NDArray[Any]], normaliser: "Normaliser | None"
) -> "Agent":
    """The agent of a card, with these arrays."""
    from nappingrl.agents.continuous import ActionBox, BoxMlpAgent
    from nappingrl.agents.mlp import MlpAgent
    from nappingrl.agents.state_dict import policy_layers

    weights = {key: value for key, value in arrays.items() if not key.startswith("normaliser.")}
    if "network" in about:
        return _make_network_agent(name, about, weights)
    _, layers = policy_layers(weights, about["n_actions"])
    recipe = about["recipe"]
    known = {key: recipe[key] for key in ("algorithm", "n_envs", "normalise")} | recipe["hyperparameters"]
    reward_scale = None if recipe["normalise"] else 1.0  # an npz has no statistics of returns
    if "action_box" in about:
        box = ActionBox.from_card(about["action_box"])
        return BoxMlpAgent(
            name, layers, about["activation"], box, normaliser, weights, known, reward_scale=reward_scale
        )
    return MlpAgent(name, layers, about["activation"], normaliser, weights, known, reward_scale=reward_scale)


def _make_network_agent(name: str, about: dict[str, Any], weights: dict[str, NDArray[np.float32]]) -> "Agent":
    """An agent whose network runs in torch."""
    try:
        module = import_module("nappingrl.agents.object_networks")
    except ModuleNotFoundError as error:
        raise MissingExtraError(f'agent {name} needs {error.name}: pip install "nappingrl[sb3]"') from None
    agent: Agent = module.NetworkAgent(name, about["network"], weights)
    return agent


def normaliser_arrays(normaliser: "Normaliser | None") -> dict[str, NDArray[Any]]:
    """The entries of a normaliser in an npz."""
    if normaliser is None:
        return {}
    parts = {"mean": normaliser.mean, "var": normaliser.var, "epsilon": normaliser.epsilon, "clip": normaliser.clip}
    return {f"normaliser.{key}": np.asarray(value, np.float64) for key, value in parts.items()}


def _own_normaliser(arrays: dict[str, NDArray[Any]]) -> "Normaliser":
    from nappingrl.agents.mlp import Normaliser

    mean, var, epsilon, clip = (arrays[f"normaliser.{key}"] for key in ("mean", "var", "epsilon", "clip"))
    return Normaliser(mean, var, float(epsilon), float(clip))


def _read_normaliser(normaliser: str | Path | None) -> "Normaliser | None":
    from nappingrl.agents.sb3 import vecnormalize

    return None if normaliser is None else vecnormalize.read(Path(normaliser))


def _folder(folder: Path | None) -> Traversable:
    return resources.files(__name__) if folder is None else folder


def _read(folder: Path | None, name: str) -> bytes:
    """The content of a file of this package, or of a folder that may be hostile."""
    if folder is None:
        return (_folder(None) / name).read_bytes()
    if Path(name).name != name:
        raise UnusableFileError(f"'{name[:60]}' is not in the folder of its card")
    return read_file(folder / name, MAX_BYTES)


def _is_card(name: str) -> bool:
    return name.endswith(".json") and name != "recipes.json"


def _stem(domain: str | None, name: str) -> str:
    return name if domain is None else f"{domain}-{name}"
