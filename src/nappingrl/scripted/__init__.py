"""Agents that play by rules of their own, beside those with a network; each knows its domain."""

from typing import Any

from nappingrl import agents
from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError
from nappingrl.registry import agents as registered


def names(domain: str) -> list[str]:
    """All agents there are for a domain: those with shipped weights, then the players."""
    prefix = f"{domain}-"
    own = [name.removeprefix(prefix) for name in registered.names() if name.startswith(prefix)]
    return agents.zoo_names(domain) + own


def load(agent: Any, domain: str) -> Agent:
    """A player of the domain by its name, else whatever `agents.load` finds."""
    if isinstance(agent, str) and f"{domain}-{agent}" in registered.names():
        player: Agent = registered.get(f"{domain}-{agent}")()
        return player
    if agent == "":
        raise BadAgentError(f"no agent is shipped for {domain}; give one with --agent, the path of an SB3 .zip")
    return agents.load(agent, domain)
