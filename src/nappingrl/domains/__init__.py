"""Domains: environments with their novelties, scores and oracles; `find_domain` finds one by name."""

import re
from typing import Any

from nappingrl.registry import domains

_ENV_ID = re.compile(r".+-v[0-9]+")


def find_domain(name: str) -> Any:
    """A registered domain, or the domain of a gymnasium environment by its id."""
    if name in domains or not _ENV_ID.fullmatch(name):
        return domains.get(name)
    from nappingrl.domains.from_env import domain_from_env

    return domain_from_env(name)
