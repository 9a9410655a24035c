"""Agents: from the shipped zoo, from SB3 zips, from live SB3 models and from torch modules."""

import os
from pathlib import Path
from typing import Any

from nappingrl.agents import hub, zoo
from nappingrl.agents.base import Agent
from nappingrl.agents.zoo import agent_names, card, zoo_names
from nappingrl.errors import BadAgentError, MissingExtraError
from nappingrl.registry import agents as registered

__all__ = ["Agent", "agent_names", "card", "load", "load_agent", "zoo_names"]


def load_agent(model: Any, domain: str | None = None, normaliser: str | Path | None = "auto") -> Agent:
    """Load a frozen agent.

    Args:
        model: the name of a shipped agent ("ppo"), the path of an SB3 zip or of a card that `napping train` wrote
            (.json), the name of an agent of the Hugging Face Hub ("hf:sb3/ppo-CartPole-v1"), a live SB3 model, or an
            `Agent`, which is returned as it is.
        domain: the domain of a shipped agent; without it, give the full name ("cartpole-ppo").
        normaliser: "auto" uses the agent's own observation statistics, None uses none, a path names a
            vecnormalize.pkl.
    """
    return load(model, domain, normaliser, may_download=True)


def load(
    model: Any, domain: str | None = None, normaliser: str | Path | None = "auto", may_download: bool = False
) -> Agent:
    """The same, but an agent of the Hub is downloaded only if the caller knows that the user named it."""
    if isinstance(model, Agent):
        return model
    if hub.is_hub_name(model):
        file, statistics = hub.fetch(model, may_download)
        return _read_sb3(file, statistics if normaliser == "auto" and statistics else normaliser)
    if isinstance(model, str) and f"{domain}-{model}" in registered:
        scripted: Agent = registered.get(f"{domain}-{model}")()
        return scripted
    if model == "":
        raise BadAgentError(f"no agent is shipped for {domain}; give one with --agent, the path of an SB3 .zip")
    path = _find_file(model, domain)
    if path is None and isinstance(model, str):
        return zoo.load(model, domain, normaliser)
    if path is not None and path.suffix == ".json" and path.with_suffix(".zip").is_file():
        path = path.with_suffix(".zip")  # the card of an SB3 zip
    if path is not None and path.suffix == ".json":
        return zoo.load_card(path, normaliser)
    return _read_sb3(model if path is None else path, normaliser)


def _read_sb3(model: Any, normaliser: str | Path | None) -> Agent:
    """The agent in a zip, or of a live model."""
    try:
        from nappingrl.agents.sb3.live import from_model
        from nappingrl.agents.sb3.zip import read_zip
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"reading SB3 agents needs {error.name}, which is not installed; install nappingrl[sb3]"
        ) from None
    return read_zip(model, normaliser) if isinstance(model, Path) else from_model(model, normaliser)


def _find_file(model: Any, domain: str | None) -> Path | None:
    """The file that `model` names; None for the name of a shipped agent and for objects."""
    if isinstance(model, str):
        looks_like_path = "." in model or "/" in model or os.sep in model
        exists = os.path.isfile(model) or os.path.isfile(f"{model}.zip")  # Path raises for long names
        if model in zoo_names(domain) or not (looks_like_path or exists):
            return None
    elif not isinstance(model, os.PathLike):
        return None
    path = os.path.expanduser(model)  # Path raises for unknown users
    # As in SB3, the suffix is optional.
    is_short = os.path.isfile(f"{path}.zip") and not os.path.exists(path)
    return Path(f"{path}.zip" if is_short else path)
