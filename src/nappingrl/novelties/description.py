"""Novelties in words: "LINK_LENGTH_1=2.0; action-delay=1" read, checked and said again in sentences.

A description becomes flat named numbers (`Description.ranges`), so that a trial can draw them and a row can show them:
an attribute by its own name, an entry of a sequence or an observation as NAME[i], the action that i becomes as
action-remap[i].
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from nappingrl.errors import BadSpecError, UnknownNameError, did_you_mean
from nappingrl.novelties.attributes import split_name
from nappingrl.types import DomainSpec

FOLLOWS = "follows"
OTHER = "other-env"
REMAP, DROP = "action-remap", "obs-drop"
_TERM = re.compile(r"([A-Za-z_][\w-]*)(?:\[([0-9]+)\])?\s*=\s*(.+)")
Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Term:
    """A kind of change beside attributes."""

    neutral: float
    """The value that changes nothing."""
    words: str
    """What the agent meets; {} is the value."""
    low: float = -inf
    high: float = inf
    is_whole: bool = False
    actions: str = ""
    """discrete or continuous: the actions it needs."""


TERMS: dict[str, Term] = {
    REMAP: Term(0.0, "action {entry} does what action {} did", is_whole=True, actions="discrete"),
    "action-delay": Term(0.0, "actions take effect {} steps late", low=0.0, high=1000.0, is_whole=True),
    "action-noise": Term(0.0, "actions are random, or noisy, by a share of {}", low=0.0, high=1.0),
    "action-scale": Term(1.0, "actions are multiplied by {}", actions="continuous"),
    "action-shift": Term(0.0, "{} is added to actions", actions="continuous"),
    "obs-shift": Term(0.0, "{} is added to {where}"),
    "obs-scale": Term(1.0, "{where} is multiplied by {}"),
    "obs-noise": Term(0.0, "Gaussian noise of {} is added to {where}", low=0.0),
    "obs-quantise": Term(0.0, "{where} comes in steps of {}", low=0.0),
    DROP: Term(0.0, "{where} reads 0", low=0.0, high=1.0, is_whole=True),
    "reward-scale": Term(1.0, "rewards are multiplied by {}"),
    "reward-shift": Term(0.0, "{} is added to rewards"),
    OTHER: Term(0.0, "another environment takes its place", low=0.0, is_whole=True),
}


@dataclass(frozen=True, slots=True)
class Description:
    """A novelty, read."""

    text: str
    """The same for descriptions that differ in spaces only."""
    ranges: Mapping[str, Span] = field(default_factory=dict)
    follows: tuple[str, ...] = ()
    """Attributes that are computed anew from the others, as when the environment is made."""
    other: str = ""
    """Id of the environment that takes the place of this one."""

    def neutral(self, domain: DomainSpec) -> dict[str, float]:
        """The values before the novelty."""
        return {flat: neutral_of(flat, domain) for flat in self.ranges}

    def whole(self, domain: DomainSpec) -> frozenset[str]:
        """Those that are whole numbers."""
        return frozenset(flat for flat in self.ranges if _limits(flat, domain)[2])

    def words(self, domain: DomainSpec) -> str:
        """The change in sentences."""
        said = [_say(flat, span, domain) for flat, span in self.ranges.items() if flat != OTHER]
        said += [f"the environment is {self.other}"] if self.other else []
        said += [f"{name} follows" for name in self.follows]
        return "; ".join(said)


def neutral_of(flat: str, domain: DomainSpec) -> float:
    """The value of one number before the novelty."""
    name, entry = split_name(flat)
    if name not in TERMS:
        return float(domain.constants[flat])
    return float(entry or 0) if name == REMAP else TERMS[name].neutral


def read_description(text: str, domain: DomainSpec) -> Description:
    """Read a description; one line of complaint where it makes no sense for this environment."""
    ranges: dict[str, Span] = {}
    follows, parts, other = [], [], ""
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        match = _TERM.fullmatch(part)
        if match is None:
            raise BadSpecError(
                f"'{part}' in novelty '{text}' is not of the form NAME=VALUE; example: {_example(domain)}"
            )
        name, entry, value = match[1], match[2], match[3].replace(" ", "")
        flat = name if entry is None else f"{name}[{entry}]"
        parts.append(f"{flat}={value}")
        if value == FOLLOWS:
            follows.append(_check_attribute(flat, domain))
            continue
        found = _read_values(flat, value, domain)
        other = value if name == OTHER else other
        if twice := next((key for key in found if key in ranges), None):
            raise BadSpecError(f"{twice} is given twice in novelty '{text}'")
        ranges |= found
    if not ranges:
        raise BadSpecError(f"novelty '{text}' changes nothing: no NAME=VALUE is given; example: {_example(domain)}")
    if other and (follows or any(split_name(flat)[0] not in TERMS for flat in ranges)):
        raise BadSpecError(f"novelty '{text}': attributes cannot be changed where {OTHER} puts another environment")
    return Description(";".join(parts), ranges, tuple(follows), other)


def _read_values(flat: str, value: str, domain: DomainSpec) -> dict[str, Span]:
    """The flat numbers of one NAME=VALUE."""
    name, entry = split_name(flat)
    if name == OTHER:
        return {OTHER: (1.0, 1.0)}
    if name == DROP and entry is None:
        entries = [int(item) for item in value.split(",") if item.isdecimal()]
        if len(entries) != value.count(",") + 1:
            raise BadSpecError(f"{flat}={value} does not name entries of the observation; example: {DROP}=0,2")
        return {_check(f"{DROP}[{i}]", domain): (1.0, 1.0) for i in entries}
    n_entries = domain.n_actions if name == REMAP else sum(split_name(key)[0] == name for key in _entries(domain))
    if entry is None and n_entries:
        items = value.split(",")
        if len(items) != n_entries:
            what = "actions" if name == REMAP else "numbers"
            raise BadSpecError(
                f"{flat}={value} gives {len(items)} of {n_entries} {what}; give one for each, as in 2,1,0"
            )
        return {f"{name}[{i}]": _span(f"{name}[{i}]", item, domain) for i, item in enumerate(items)}
    return {_check(flat, domain): _span(flat, value, domain)}


def _span(flat: str, value: str, domain: DomainSpec) -> Span:
    """The range of one number; a single value is a range without width."""
    _check(flat, domain)
    low_text, dots, high_text = value.partition("..")
    try:
        low, high = float(low_text), float(high_text if dots else low_text)
    except ValueError:
        raise BadSpecError(f"{flat}={value} is neither a number nor a range such as 0.5..2") from None
    least, most, is_whole = _limits(flat, domain)
    if not (isfinite(low) and isfinite(high)) or not least <= low <= high <= most:
        order = "; the first end of a range must not be greater than the second" if low > high else ""
        raise BadSpecError(f"{flat}={value} is outside its range, {least:g} to {most:g}{order}")
    if is_whole and not (low.is_integer() and high.is_integer()):
        raise BadSpecError(f"{flat}={value} is not a whole number")
    return low, high


def _limits(flat: str, domain: DomainSpec) -> tuple[float, float, bool]:
    """The least and the greatest value of one number, and whether it is whole."""
    name, _ = split_name(flat)
    if name == REMAP:
        return 0.0, domain.n_actions - 1.0, True
    if name in TERMS:
        return TERMS[name].low, TERMS[name].high, TERMS[name].is_whole
    is_flag = isinstance(domain.constants[flat], bool)
    return (0.0, 1.0, True) if is_flag else (-inf, inf, False)


def _check(flat: str, domain: DomainSpec) -> str:
    """The flat name, if there is such a number here."""
    name, entry = split_name(flat)
    if name not in TERMS:
        return _check_attribute(flat, domain)
    needs = TERMS[name].actions
    if needs and (needs == "discrete") != (domain.n_actions > 0):
        instead = "action-scale or action-shift" if needs == "discrete" else REMAP
        raise BadSpecError(f"{name} needs {needs} actions, which {domain.name} has not; use {instead}")
    n_entries = len(domain.observation_low) if name.startswith("obs-") else domain.n_actions if name == REMAP else 0
    if entry is not None and entry >= n_entries:
        allowed = f"allowed: {name}[0] to {name}[{n_entries - 1}]" if n_entries else f"{name} has no entries"
        raise BadSpecError(f"{flat} is not there in {domain.name}; {allowed}")
    return flat


def _check_attribute(flat: str, domain: DomainSpec) -> str:
    if flat in domain.constants:
        return flat
    hint = did_you_mean(flat, [*domain.constants, *TERMS])
    raise UnknownNameError(
        f"{domain.name} has no constant '{flat}' that a novelty could change; "
        f"its numbers: {', '.join(domain.constants) or 'none'}; beside them: {', '.join(TERMS)}.{hint}"
    )


def _entries(domain: DomainSpec) -> list[str]:
    return [flat for flat in domain.constants if flat.endswith("]")]


def _example(domain: DomainSpec) -> str:
    name = next((flat for flat in domain.constants if not flat.endswith("]")), "")
    return f"{name}={2 * float(domain.constants[name]) or 1:g}" if name else "action-delay=2"


def _say(flat: str, span: Span, domain: DomainSpec) -> str:
    """One number in words."""
    name, entry = split_name(flat)
    amount = f"{span[0]:g}" if span[0] == span[1] else f"{span[0]:g} to {span[1]:g}"
    if name not in TERMS:
        return f"{flat} is {amount} instead of {float(domain.constants[flat]):g}"
    where = "the whole observation" if entry is None else f"observation {entry}"
    return TERMS[name].words.format(amount, entry=entry, where=where)
