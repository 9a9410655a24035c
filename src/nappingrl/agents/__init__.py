"""What acts and embeds: agents from the shipped zoo, from SB3 zips, from live SB3 models and from torch modules."""

import os
from pathlib import Path
from typing import Any

from nappingrl.agents.base import Agent
from nappingrl.agents.zoo import card, zoo_names
from nappingrl.errors import MissingExtraError

__all__ = ["Agent", "card", "load", "zoo_names"]


def load(agent: Any, domain: str | None = None, normaliser: str | Path | None = "auto") -> Agent:
    """The agent behind a zoo name ("ppo", of `domain`), the path of an SB3 zip, a live SB3 model or an agent.

    The path of a card that `napping train` wrote (.json) is allowed too.

    `normaliser`: "auto" takes the observation statistics that belong to the agent, None leaves them out,
    a path names a vecnormalize.pkl. Without a domain, zoo names are full ones ("cartpole-ppo").
    """
    if isinstance(agent, Agent):
        return agent
    path = _path(agent, domain)
    if path is not None and path.suffix == ".json":
        from nappingrl.agents import zoo

        return zoo.read_card(path, normaliser)
    if path is None and isinstance(agent, str):
        from nappingrl.agents import zoo

        return zoo.read(agent, domain, normaliser)
    try:
        from nappingrl.agents.sb3 import live as sb3_live
        from nappingrl.agents.sb3 import zip as sb3
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"reading SB3 agents needs {error.name}, which is not installed; install nappingrl[sb3]"
        ) from None
    return sb3_live.from_model(agent, normaliser) if path is None else sb3.read_zip(path, normaliser)


def _path(agent: Any, domain: str | None) -> Path | None:
    """The file that `agent` names; None if it is a name of the zoo, or no name at all."""
    if isinstance(agent, str):
        if agent in zoo_names(domain):
            return None
        named = "." in agent or "/" in agent or os.sep in agent
        found = Path(agent).is_file() or Path(f"{agent}.zip").is_file()
        if not (named or found):
            return None
    elif not isinstance(agent, os.PathLike):
        return None
    path = Path(agent).expanduser()
    # As in SB3, the suffix may be left out.
    return path if path.exists() or not Path(f"{path}.zip").is_file() else Path(f"{path}.zip")
