"""Scripted agents: hand-written opponents without a network, each for one domain."""

from typing import Any

from nappingrl import agents
from nappingrl.agents.base import Agent
from nappingrl.errors import BadAgentError
from nappingrl.registry import agents as registered


def names(domain: str) -> list[str]:
    """All agents of a domain: first those with shipped weights, then the scripted ones."""
    prefix = f"{domain}-"
    scripted = [name.removeprefix(prefix) for name in registered.names() if name.startswith(prefix)]
    return agents.zoo_names(domain) + scripted


def load(agent: Any, domain: str) -> Agent:
    """Load a scripted agent of the domain by name, or anything that `agents.load` accepts."""
    if isinstance(agent, str) and f"{domain}-{agent}" in registered.names():
        scripted: Agent = registered.get(f"{domain}-{agent}")()
        return scripted
    if agent == "":
        raise BadAgentError(f"no agent is shipped for {domain}; give one with --agent, the path of an SB3 .zip")
    return agents.load(agent, domain)
