"""Domains: environments with their novelties, scores and oracles; `find_domain` finds one by name."""

import re

from nappingrl.registry import domains
from nappingrl.types import DomainSpec

_ENV_ID = re.compile(r".+-v[0-9]+")


def find_domain(name: str) -> DomainSpec:
    """A registered domain, or the domain of a gymnasium environment by its id."""
    if name not in domains and _ENV_ID.fullmatch(name):
        from nappingrl.domains.from_env import domain_from_env

        return domain_from_env(name)
    entry = domains.entry(name)
    spec: DomainSpec = entry.load().spec
    return spec.renamed(name, entry.title, entry.env_id)
