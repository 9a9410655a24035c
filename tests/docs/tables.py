"""The tables of docs/available.md, written from the registry.

python tests/docs/tables.py    # writes the page again
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from nappingrl.agents.zoo import agent_names, card, zoo_names
from nappingrl.domains import find_domain
from nappingrl.options import Option
from nappingrl.registry import Entry, Registry, agents, detectors, domains, methods

PAGE = "docs/available.md"
TRAINED = "trained network"
HEAD = """# What is available

The built-in domains, agents, methods and detectors. `napping list` also shows those that you or an installed package
registered ([how](extend.md)). This page is generated from the registry: `python tests/docs/tables.py`.
"""


def write_tables() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_domains(), *_domain_options(), *_agents(), *_methods(), *_options(), *_detectors()])


def _domains() -> list[str]:
    rows = []
    for entry in _built_in(domains):
        spec = find_domain(entry.name)
        rows.append([
            f"`{entry.name}`", entry.title, f"`{entry.env_id}`",
            _marked(spec.novelties, spec.defaults.novelty), _marked(spec.scores, spec.defaults.score),
            f"`{spec.defaults.detector}`",
        ])  # fmt: skip
    note = "Defaults are bold."
    return _section("Domains", ["name", "title", "env", "novelties", "scores", "detector"], rows, note)


def _domain_options() -> list[str]:
    rows = [
        [f"`{entry.name}`", f"`{name}`", option.description, _allowed(option)]
        for entry in _built_in(domains)
        for name, option in find_domain(entry.name).options.items()
    ]
    note = "Give options as `--domain-option NAME=VALUE`, or as keywords of `gymnasium.make`."
    return _section("Options of domains", ["domain", "option", "description", "values"], rows, note)


def _agents() -> list[str]:
    rows = []
    for domain in _built_in(domains):
        for name in agent_names(domain.name):
            full = f"{domain.name}-{name}"
            about = agents.entry(full).about if full in agents else _about_network(domain.name, name)
            rows.append([f"`{domain.name}`", f"`{name}`", about])
    for stem in zoo_names():
        domain_or_env, _, name = stem.rpartition("-")
        if re.fullmatch(r".+-v\d+", domain_or_env):
            rows.append([f"`{domain_or_env}`", f"`{name}`", TRAINED])
    note = "Give one as `--agent NAME`; the path of an SB3 zip works too ([your own agent](own-agent.md))."
    return _section("Agents", ["domain or env", "agent", "description"], rows, note)


def _about_network(domain: str, name: str) -> str:
    about = card(domain, name)
    return f"{TRAINED}, converted: {about['about']}" if "licence" in about else TRAINED


def _methods() -> list[str]:
    rows = [[f"`{entry.name}`", entry.role, entry.about] for entry in _built_in(methods)]
    return _section(
        "Methods", ["method", "role", "description"], rows, "The [glossary](glossary.md) explains the roles."
    )


def _options() -> list[str]:
    """One row per option; methods with the same option share it."""
    takers: dict[tuple[str, str, str], list[str]] = {}
    for entry in _built_in(methods):
        for name, option in entry.load().options.items():
            if entry.name != "foresight":
                takers.setdefault((name, option.description, _allowed(option)), []).append(f"`{entry.name}`")
    rows = [[f"`{name}`", ", ".join(named), text, values] for (name, text, values), named in takers.items()]
    note = (
        "Give options as `--option NAME=VALUE`, or as keywords of `NappingAgent`. Those of foresight are listed on\n"
        "[its page](methods/foresight.md#options)."
    )
    return _section("Options of methods", ["option", "methods", "description", "values"], rows, note)


def _detectors() -> list[str]:
    rows = [[f"`{entry.name}`", entry.about] for entry in _built_in(detectors)]
    return _section("Detectors", ["detector", "description"], rows, "[Detectors](detectors.md) compares them.")


def _built_in(registry: Registry) -> list[Entry]:
    return [entry for entry in registry.entries() if entry.origin == "nappingrl"]


def _marked(names: Iterable[str], default: str) -> str:
    return ", ".join(f"**{name}**" if name == default else name for name in names)


def _allowed(option: Option) -> str:
    default = "" if option.default is None else f" (default {option.default})"
    return (", ".join(option.words) or "a number") + default


def _section(title: str, head: list[str], rows: list[list[str]], note: str) -> list[str]:
    table = [head, ["---"] * len(head), *rows]
    return [f"## {title}", "", note, "", *("| " + " | ".join(_cells(row)) + " |" for row in table), ""]


def _cells(row: list[str]) -> list[str]:
    return [cell.replace("|", "\\|") for cell in row]


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    path = Path(__file__).parents[2] / PAGE
    path.write_text(write_tables(), encoding="utf-8")
    print(f"wrote {path}")
