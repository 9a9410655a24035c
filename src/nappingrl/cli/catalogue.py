"""What `napping list` shows: every kind of thing that can be named on the command line, with descriptions."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from nappingrl.agents.zoo import agent_names, card
from nappingrl.domains import find_domain
from nappingrl.env_wrappers import known_wrappers
from nappingrl.methods.napping.rules import RULES
from nappingrl.methods.napping.space import SPACES
from nappingrl.methods.scores import GENERAL_SCORES
from nappingrl.novelties.terms import OTHER, TERMS
from nappingrl.options import Option
from nappingrl.registry import Entry, agents, detectors, domains, methods
from nappingrl.types import Defaults

Entries = dict[str, str]
"""Names and what they are."""

KINDS = {
    "domains": "napping run DOMAIN",
    "agents": "napping run DOMAIN --agent NAME, or the path of an SB3 .zip",
    "novelties": "napping run DOMAIN --novelty NAME",
    "methods": "--method NAME",
    "detectors": "--detector NAME",
    "scores": "--score NAME",
    "rules": "--rule NAME, readings of NAPPING's update",
    "spaces": "--space NAME, where NAPPING's regions live",
    "terms": "--novelty 'NAME=VALUE; NAME=LOW..HIGH; TERM=VALUE'",
    "wrappers": "--env ID --wrap NAME NAME",
}
"""What can be listed, and how it is given."""


def list_kind(kind: str) -> Entries:
    """All names of a kind with one line each."""
    if kind == "domains":
        return {entry.name: f"{entry.title}{_origin(entry)}; {_few(find_domain(entry.name).parameters)}"
                for entry in domains.entries()}  # fmt: skip
    if kind == "methods":
        return {entry.name: f"[{entry.role}] {entry.about}{_origin(entry)}" for entry in methods.entries()}
    if kind == "detectors":
        return {entry.name: entry.about + _origin(entry) for entry in detectors.entries()}
    if kind == "agents":
        return {f"{domain} {name}": _about_agent(domain, name) for domain in domains for name in agent_names(domain)}
    if kind in ("novelties", "scores"):
        own = {
            f"{domain} {name}": text
            for domain in domains
            for name, text in _described(getattr(find_domain(domain), kind)).items()
        }
        return own if kind == "novelties" else {**{f"any {n}": text for n, text in GENERAL_SCORES.items()}, **own}
    if kind == "wrappers":
        return {name: about for name, (_, _, about) in known_wrappers().items()}
    return {"rules": dict(RULES), "spaces": dict(SPACES), "terms": _terms()}[kind]


def names_by_kind() -> dict[str, list[str]]:
    """The names that `describe_one` knows."""
    return {"domain": domains.names(), "method": methods.names(), "detector": detectors.names()}


def describe_one(name: str) -> Iterator[tuple[str, Entries]]:
    """Titles and entries for a domain, a method or a detector; a name may be of more than one kind."""
    if name in domains:
        yield from _domain(domains.entry(name))
    if name in methods:
        entry = methods.entry(name)
        yield f"method {name} ({entry.title}, {entry.role})", {"": entry.about + _origin(entry)}
        if options := entry.load().options:
            yield "options: --option NAME=VALUE", _describe_options(options)
    if name in detectors:
        entry = detectors.entry(name)
        yield f"detector {name} ({entry.title})", {"": entry.about + _origin(entry)}


def _domain(entry: Entry) -> Iterator[tuple[str, Entries]]:
    spec = find_domain(entry.name)
    yield f"domain {entry.name} ({entry.title}{_origin(entry)}), gymnasium id {entry.env_id}", {}
    yield "agents: --agent NAME", {name: _about_agent(entry.name, name) for name in agent_names(entry.name)}
    for title, found in (("novelties: --novelty NAME", spec.novelties), ("scores: --score NAME", spec.scores)):
        default = spec.defaults.novelty if title.startswith("nov") else spec.defaults.score
        yield title, {name: text + " (default)" * (name == default) for name, text in _described(found).items()}
    values = {name: f"{value:g}" for name, value in spec.parameters.items()}
    yield "parameters: --novelty 'NAME=VALUE; NAME=LOW..HIGH'", values
    if spec.options:
        yield "options: --domain-option NAME=VALUE", _describe_options(spec.options)
    yield "defaults", {name: str(value) for name, value in _defaults(spec.defaults).items()}


def describe_all() -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "domains": {entry.name: _describe_domain(entry) for entry in domains.entries()},
        "methods": {entry.name: _describe_method(entry) for entry in methods.entries()},
        "scores": dict(GENERAL_SCORES),
        "rules": dict(RULES),
        "spaces": dict(SPACES),
        "detectors": list_kind("detectors"),
        "terms": _terms(),
        "wrappers": list_kind("wrappers"),
    }


def _describe_domain(entry: Entry) -> dict[str, Any]:
    domain = find_domain(entry.name)
    return {
        "title": entry.title,
        "origin": entry.origin,
        "agents": agent_names(entry.name),
        "novelties": _described(domain.novelties),
        "parameters": dict(domain.parameters),
        "options": _describe_options(domain.options),
        "scores": _described(domain.scores),
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


def _describe_options(options: Mapping[str, Option]) -> Entries:
    return {name: f"{option.description} ({_allowed(option)})" for name, option in options.items()}


def _allowed(option: Option) -> str:
    default = "" if option.default is None else f"; default {option.default}"
    kind = "text" if isinstance(option.default, str) else "a number"
    return (", ".join(option.words) or kind) + default


def _described(things: Mapping[str, Any]) -> Entries:
    return {thing.name: thing.description for thing in things.values()}


def _about_agent(domain: str, name: str) -> str:
    full = f"{domain}-{name}"
    if full in agents:
        return agents.entry(full).about
    about = card(domain, name)
    return f"trained network, {about['algorithm']}"


def _terms() -> Entries:
    filled = {"entry": "N", "where": "the observation", "what": "each action"}
    return {name: term.words.format("VALUE", **filled) for name, term in TERMS.items() if name != OTHER}


def _few(names: Mapping[str, float], most: int = 5) -> str:
    """The first names of many."""
    shown = ", ".join([*names][:most])
    return f"parameters {shown}" + (f" and {len(names) - most} more" if len(names) > most else "")


def _origin(entry: Entry) -> str:
    return "" if entry.origin == "nappingrl" else f" (from {entry.origin})"
