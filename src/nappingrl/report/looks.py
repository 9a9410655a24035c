"""How runs are labelled and drawn everywhere: a method has one colour and marker, an agent one dash."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nappingrl.registry import Entry, agents, domains, methods
from nappingrl.report.runs import Run, differing_options
from nappingrl.trials.manifest_record import Manifest

SCRIPTED = "scripted agents"
"""Title of the panel of all scripted agents."""
NOT_INSTALLED = ("#666666", "d")
"""Colour and marker of a method that is not registered: its package is no longer installed."""
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.3)), (0, (8, 2, 1, 2, 1, 2)), (0, (3, 1)))
_AGENT_DASHES = {"ppo": 0, "ppo-strong": 0, "dqn-rel": 0, "dqn": 1, "ppo-weak": 2, "ppo-unnormalised": 3}


@dataclass(frozen=True, slots=True)
class Look:
    """How a run is drawn, and what it is called."""

    label: str
    colour: str
    marker: str
    dash: Any
    agent: str = ""
    """Its title."""
    method: str = ""
    method_title: str = ""
    role: str = ""
    """Of the method: method, baseline, control or oracle."""
    variant: str = ""
    """The method's title, with the settings in which it differs from other runs; of a scripted agent its title."""

    @property
    def line(self) -> dict[str, Any]:
        """Keywords for Axes.plot."""
        return {
            "color": self.colour, "linestyle": self.dash, "marker": self.marker, "label": self.label,
            "markerfacecolor": "white", "zorder": 2.4 if self.role == "method" else 2.2,
        }  # fmt: skip


def looks(runs: Sequence[Run]) -> list[Look]:
    """How each run is drawn: colour and marker of its method, dash of its agent; settings that differ are named.

    Scripted agents have their own colour and marker, and no method in their label.
    """
    manifests = [run.manifest for run in runs]
    variants = [(agent_name(m), _differences(m, manifests)) for m in manifests]
    dashes = _give_dashes([v for v, m in zip(variants, manifests, strict=True) if scripted_entry(m) is None])
    shown = []
    for manifest, (agent, differences) in zip(manifests, variants, strict=True):
        method = str(manifest.spec["method"])
        note = f" ({differences})" if differences else ""
        entry = scripted_entry(manifest)
        if entry is not None:
            title = entry.title + note
            shown.append(Look(title, entry.colour, entry.marker, "-", title, method, title, manifest.role, title))
            continue
        method_title, colour, marker = method_look(method)
        label, agent_title = f"{_shown(agent)} {method_title}{note}", _shown(agent)
        dash = dashes[agent, differences]
        variant = method_title + note
        shown.append(Look(label, colour, marker, dash, agent_title, method, method_title, manifest.role, variant))
    return shown


def method_look(method: str) -> tuple[str, str, str]:
    """Title, colour and marker of a method; its name and the look of NOT_INSTALLED if it is not registered."""
    if method not in methods:
        return method, *NOT_INSTALLED
    entry = methods.entry(method)
    return entry.title, entry.colour, entry.marker


def domain_title(domain: str) -> str:
    """The title of a registered domain; other names, such as ids of environments, as they are."""
    return domains.entry(domain).title if domain in domains else domain


def scripted_entry(manifest: Manifest) -> Entry | None:
    """The registered agent of a run that learns by itself; None for agents that a method adapts."""
    name = f"{manifest.spec['domain']}-{agent_name(manifest)}"
    entry = agents.entry(name) if name in agents else None
    return entry if entry is not None and entry.is_stateful else None


def by_agent(runs: Sequence[Run]) -> dict[str, tuple[list[Run], list[Look]]]:
    """The runs of each agent, labelled by their methods, for panels of one agent; scripted agents share one.

    Runs of the same method, which differ in its settings, have different dashes.
    """
    groups: dict[str, tuple[list[Run], list[Look]]] = {}
    for run, look in zip(runs, looks(runs), strict=True):
        is_scripted = scripted_entry(run.manifest) is not None
        members, shown = groups.setdefault(SCRIPTED if is_scripted else look.agent, ([], []))
        members.append(run)
        if not is_scripted:
            n_alike = sum(other.method == look.method for other in shown)
            look = replace(look, label=look.variant, dash=_DASHES[n_alike % len(_DASHES)])
        shown.append(look)
    return groups


def agent_name(manifest: Manifest) -> str:
    """The agent's name; of a file its stem, without the domain in front."""
    return Path(str(manifest.spec["agent"])).stem.removeprefix(f"{manifest.spec['domain']}-")


def _shown(agent: str) -> str:
    """ppo-strong -> PPO-Strong; other names as they are."""
    words = agent.split("-")
    if words[0] not in ("ppo", "dqn"):
        return agent
    return "-".join([words[0].upper(), *(word.capitalize() for word in words[1:])])


def _condition(key: str, spec: Mapping[str, Any]) -> str:
    if key == "guard":
        return "guarded" if spec.get("guard") else "unguarded"
    is_explained = key in ("seed", "strength", "protocol") or (key == "detector" and spec[key] == spec["method"])
    return f"{key} {spec[key]}" if is_explained else str(spec[key])


def _differences(manifest: Manifest, manifests: list[Manifest]) -> str:
    """What a legend says besides agent and method: conditions that differ, and options of the same method."""
    spec = manifest.spec
    same = [m.spec for m in manifests if m.spec["method"] == spec["method"]]
    conditions = [
        key
        for key in ("novelty", "seed", "strength", "protocol", "guard")
        if any(m.spec.get(key) != spec.get(key) for m in manifests)
    ]
    if _is_told_otherwise(manifest, manifests) or any(other["detector"] != spec["detector"] for other in same):
        conditions.append("detector")
    if any(other.get("score") != spec.get("score") for other in same):
        conditions.append("score")
    words = [_condition(key, spec) for key in conditions]
    same_agent = [other for other in same if other["agent"] == spec["agent"]]
    options = differing_options(spec, same) + differing_options(spec, same_agent, "domain_options")
    return ", ".join(words + options)


def _is_told_otherwise(manifest: Manifest, manifests: list[Manifest]) -> bool:
    """Whether the run is told of the novelty and most are not, or the other way round.

    Which detector it has says little otherwise: methods have different ones by default.
    """
    told = [m.spec["detector"] == "given" for m in manifests]
    alike = told.count(manifest.spec["detector"] == "given")
    return alike < len(told) and 2 * alike <= len(told)


def _give_dashes(variants: list[tuple[str, str]]) -> dict[tuple[str, str], Any]:
    """The usual dash of an agent if it is free, else the next free one."""
    given: dict[tuple[str, str], int] = {}
    for variant in dict.fromkeys(variants):
        free = [i for i in range(len(_DASHES)) if i not in given.values()] or [len(given) % len(_DASHES)]
        usual = _AGENT_DASHES.get(variant[0], free[0])
        given[variant] = usual if usual in free else free[0]
    return {variant: _DASHES[i] for variant, i in given.items()}
