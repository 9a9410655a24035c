"""Which domains, agents and methods a visitor may choose."""

from dataclasses import dataclass
from pathlib import Path

from nappingrl.agents import load as load_agent
from nappingrl.agents.base import Agent, check_fit
from nappingrl.agents.zoo import agent_names
from nappingrl.errors import check_name
from nappingrl.play.commands import Begin
from nappingrl.play.match import MatchSpec, method_names
from nappingrl.play.watched import read_address
from nappingrl.play.world import World
from nappingrl.registry import domains


@dataclass(frozen=True, slots=True)
class Choices:
    """Which domains and agents a visitor may choose: registered names, and what the command line named."""

    domain: str = "cartpole"
    agent: str = ""
    """The agent of the command line, a path or a name; shown as `own_name`."""
    method: str = ""
    watch: str = ""
    """The address of a server of Angry Birds whose agent is shown on the left; empty: the frozen agent."""

    @property
    def own_name(self) -> str:
        """What the agent of the command line is called on the page."""
        return Path(self.agent).stem if self.agent else ""

    def domain_names(self) -> list[str]:
        """Domains by name."""
        return list(dict.fromkeys([self.domain, *domains.names()]))

    def agents_of(self, domain: str) -> list[str]:
        """Agents by name: that of the command line first."""
        own = [self.own_name] if self.agent and domain == self.domain else []
        return list(dict.fromkeys([*own, *agent_names(domain)]))

    def resolve(self, begin: Begin) -> MatchSpec:
        """What a visitor asked for, as a match; raise in one line where it is not on the list."""
        domain = check_name("domain", begin.domain or self.domain, self.domain_names())
        names = self.agents_of(domain)
        name = check_name("agent", begin.agent, names) if begin.agent else ""
        if not name and domain == self.domain:
            name = self.own_name
        agent = self.agent if domain == self.domain and name == self.own_name else name
        return MatchSpec(domain, agent, begin.method, begin.seed, begin.changes)

    def check(self, novelty: str = "") -> tuple[World, Agent]:
        """World and agent; raise in one line where one of them does not exist, or does not fit another."""
        if self.watch:
            read_address(self.watch)
        world = World(self.domain, novelty, self.agent)
        agent = load_agent(world.agent, self.domain)
        check_fit(agent, world.plain)
        if self.method:
            check_name("method", self.method, method_names(world, agent))
        return world, agent
