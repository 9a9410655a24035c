"""Domains: environments with their novelties, scores and oracles; `find_domain` finds one by name."""

import re
from collections.abc import Mapping
from typing import Any

from nappingrl.errors import BadSpecError, shown
from nappingrl.registry import domains
from nappingrl.types import DomainSpec

_ENV_ID = re.compile(r".+-v[0-9]+(\+.*)?")


def imports_module(name: str) -> bool:
    """Whether `find_domain` imports the module in "module:Env-v0"; a name that a file gives must not do that.

    Packages that registered an entry point were installed on purpose: a file may name their domains.
    """
    return ":" in name and name not in domains


def trusted_domain(saved: str | None, given: str | None) -> str | None:
    """The domain that a file names, if it imports no module, or if the caller gives the same name."""
    if given is not None and given != saved:
        raise BadSpecError(f"it was saved with domain={shown(str(saved))!r}, not {shown(given)!r}")
    if saved and given is None and imports_module(saved):
        module, name = shown(saved.rpartition(":")[0]), shown(saved)
        raise BadSpecError(f"its domain {name!r} imports the module {module!r}; if you trust it, give domain={name!r}")
    return saved


def find_domain(name: str, options: Mapping[str, Any] | None = None) -> DomainSpec:
    """A registered domain, or the domain of a gymnasium environment by its id; see `imports_module`.

    `options` are those of the domain itself (`DomainSpec.options`).
    """
    if name not in domains and _ENV_ID.fullmatch(name):
        from nappingrl.domains.from_env import domain_from_env

        return domain_from_env(name).with_options(options or {})
    from nappingrl.domains.described import registered_domain

    return registered_domain(domains.entry(name), tuple((options or {}).items()))
