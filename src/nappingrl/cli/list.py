"""`napping list`."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from nappingrl.agents.zoo import agent_names
from nappingrl.domains import find_domain
from nappingrl.env_wrappers import known_wrappers
from nappingrl.methods.napping.rules import RULES
from nappingrl.methods.napping.space import SPACES
from nappingrl.methods.scores import GENERAL_SCORES
from nappingrl.novelties.terms import OTHER, TERMS
from nappingrl.options import Option
from nappingrl.registry import Entry, detectors, domains, methods
from nappingrl.types import Defaults

ANY_ENV = (
    "any gymnasium environment: napping run --env ID --agent PATH.zip --novelty 'NAME=VALUE; action-delay=1', "
    "see docs/any-environment.md"
)

DESCRIBED = (
    "novelties in words: napping run DOMAIN --novelty 'NAME=VALUE; NAME=LOW..HIGH; TERM=VALUE', with a parameter of "
    f"the domain as NAME; terms: {', '.join(term for term in TERMS if term != OTHER)}"
)

MAX_OPTIONS = 8
"""A method with more options is listed with a few of them; `--json` lists all."""
MAX_PARAMETERS = 8
"""The same for the parameters of a domain."""


@dataclass(frozen=True)
class List:
    """List domains, agents, methods and detectors.

    Shows the novelties and scores of each domain and the options of each method. What an installed package registers
    is marked with the name of that package.

    Example: napping list
    """

    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Print the tables."""
        if self.json:
            print(json.dumps(_list_all()))
            return
        console = Console()
        for entry in domains.entries():
            console.print(_domain_table(entry), "")
        console.print(DESCRIBED, ANY_ENV, "", sep="\n", soft_wrap=True)
        console.print(_score_table(), "")
        console.print(_wrapper_table(), "")
        console.print(_method_table(methods.entries()), "")
        console.print(_detector_table(detectors.entries()), "")
        console.print(f"rules: {', '.join(RULES)}\nspaces: {', '.join(SPACES)}")


def _list_all() -> dict[str, Any]:
    return {
        "domains": {entry.name: _describe_domain(entry) for entry in domains.entries()},
        "methods": {entry.name: _describe_method(entry) for entry in methods.entries()},
        "scores": dict(GENERAL_SCORES),
        "rules": list(RULES),
        "spaces": list(SPACES),
        "detectors": detectors.names(),
        "terms": list(TERMS),
        "wrappers": {name: about for name, (_, _, about) in known_wrappers().items()},
    }


def _describe_domain(entry: Entry) -> dict[str, Any]:
    domain = find_domain(entry.name)
    return {
        "title": entry.title,
        "origin": entry.origin,
        "agents": agent_names(entry.name),
        "novelties": {novelty.name: novelty.description for novelty in domain.novelties.values()},
        "parameters": dict(domain.parameters),
        "options": _describe_options(domain.options),
        "scores": {score.name: score.description for score in domain.scores.values()},
        "defaults": _defaults(domain.defaults),
    }


def _defaults(defaults: Defaults) -> dict[str, Any]:
    """The defaults of a domain, options of methods among them."""
    named: dict[str, Any] = asdict(defaults)
    options: dict[str, Any] = named.pop("options")
    return named | options


def _describe_method(entry: Entry) -> dict[str, Any]:
    return {
        "title": entry.title,
        "role": entry.role,
        "origin": entry.origin,
        "about": entry.about,
        "options": _describe_options(entry.load().options),
    }


def _describe_options(options: Mapping[str, Option]) -> dict[str, str]:
    return {name: f"{option.description} ({_allowed(option)})" for name, option in options.items()}


def _allowed(option: Option) -> str:
    default = "" if option.default is None else f"; default {option.default}"
    return (", ".join(option.words) or "a number") + default


def _domain_table(entry: Entry) -> Table:
    domain = _describe_domain(entry)
    defaults = domain["defaults"]
    table = _table(f"domain {entry.name}: {entry.title}{_origin(entry)}")
    table.add_row("agents", ", ".join(domain["agents"]) + "  (or the path of an SB3 .zip)")
    shown = [f"{name}={value:g}" for name, value in domain["parameters"].items()]
    more = f", ... ({len(shown)}; `napping list --json`)" if len(shown) > MAX_PARAMETERS else ""
    table.add_row("parameters", ", ".join(shown[:MAX_PARAMETERS]) + more)
    for key, default in (("novelties", defaults["novelty"]), ("scores", defaults["score"])):
        for i, (name, text) in enumerate(domain[key].items()):
            table.add_row("" if i else key, f"{name}{' (default)' if name == default else ''}: {text}")
    for name, text in domain["options"].items():
        table.add_row(f"--domain-option {name}=...", text)
    options = find_domain(entry.name).defaults.options
    if options:
        table.add_row(", ".join(options), f"{', '.join(map(str, options.values()))} (defaults)")
    return table


def _score_table() -> Table:
    table = _table("scores of every domain: napping run DOMAIN --score NAME")
    for name, about in GENERAL_SCORES.items():
        table.add_row(name, about)
    return table


def _wrapper_table() -> Table:
    table = _table("wrappers of observations: napping run --env ID --wrap NAME NAME")
    for name, (_, _, about) in known_wrappers().items():
        table.add_row(name, about)
    return table


def _method_table(entries: list[Entry]) -> Table:
    table = _table("methods and their options")
    for entry in entries:
        table.add_row(entry.name, entry.role, entry.about + _origin(entry))
        options = _describe_method(entry)["options"]
        if len(options) > MAX_OPTIONS:
            table.add_row("", "", f"{len(options)} options, such as {', '.join([*options][:3])}: `napping list --json`")
            continue
        for name, text in options.items():
            table.add_row("", "", f"--option {name}=...: {text}")
    return table


def _detector_table(entries: list[Entry]) -> Table:
    table = _table("detectors")
    for entry in entries:
        table.add_row(entry.name, entry.about + _origin(entry))
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", show_header=False, box=None)


def _origin(entry: Entry) -> str:
    return "" if entry.origin == "nappingrl" else f" (from {entry.origin})"
