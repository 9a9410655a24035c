"""Novelties in words: "LINK_LENGTH_1=2.0; action-delay=1" read, checked and said again in sentences.

A description becomes flat named numbers (`Description.ranges`), so that a trial can draw them and a row can show them:
an attribute by its own name, an entry of a sequence or an observation as NAME[i], the action that i becomes as
action-remap[i].
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isfinite

from nappingrl.errors import BadSpecError, UnknownNameError, did_you_mean, shown
from nappingrl.novelties.schedule import Schedule, read_schedule
from nappingrl.novelties.terms import (
    DROP,
    OBS_REMAP,
    OTHER,
    REMAP,
    TABLES,
    TERMS,
    check_term,
    count_entries,
    limits_of,
    neutral_of,
    say,
    split_name,
)
from nappingrl.types import DomainSpec

FOLLOWS = "follows"
_TERM = re.compile(r"([A-Za-z_][\w-]*)(?:\[([0-9]+)\])?\s*=\s*(.+)")
Span = tuple[float, float]


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
    schedules: Mapping[str, Schedule] = field(default_factory=dict)
    """Numbers that go on changing; their range is the peak of the schedule."""

    def neutral(self, domain: DomainSpec) -> dict[str, float]:
        """The values before the novelty."""
        return {flat: neutral_of(flat, domain) for flat in self.ranges}

    def whole(self, domain: DomainSpec) -> frozenset[str]:
        """Those that are whole numbers."""
        return frozenset(flat for flat in self.ranges if limits_of(flat, domain)[2])

    def words(self, domain: DomainSpec) -> str:
        """The change in sentences."""
        changed = {flat: span for flat, span in self.ranges.items() if set(span) != {neutral_of(flat, domain)}}
        shown_ranges = {flat: span for flat, span in (changed or self.ranges).items() if flat not in self.schedules}
        said = [say(flat, span, domain) for flat, span in shown_ranges.items() if flat != OTHER]
        said += [f"{flat} follows the schedule {schedule}" for flat, schedule in self.schedules.items()]
        said += [f"the environment is {self.other}"] if self.other else []
        said += [f"{name} follows" for name in self.follows]
        return "; ".join(said)


def read_description(text: str, domain: DomainSpec) -> Description:
    """Read a description; one line of complaint where it makes no sense for this environment."""
    ranges: dict[str, Span] = {}
    follows, parts, other = [], [], ""
    schedules: dict[str, Schedule] = {}
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        match = _TERM.fullmatch(part)
        if match is None:
            raise BadSpecError(
                f"'{part}' in novelty '{text}' is not of the form NAME=VALUE; example: {_example(domain)}"
            )
        name, entry, value = match[1], match[2], match[3].replace(" ", "")
        flat = name if entry is None else f"{name}[{entry}]"
        schedule = None if name == OTHER else read_schedule(value)
        parts.append(f"{flat}={schedule or value}")
        if value == FOLLOWS:
            follows.append(_check_attribute(flat, domain))
            continue
        found = _read_values(flat, value, domain) if schedule is None else _read_peak(flat, schedule, domain)
        schedules |= {} if schedule is None else {flat: schedule}
        other = value if name == OTHER else other
        if twice := next((key for key in found if key in ranges), None):
            raise BadSpecError(f"{twice} is given twice in novelty '{text}'")
        ranges |= found
    if not ranges:
        raise BadSpecError(f"novelty '{text}' changes nothing: no NAME=VALUE is given; example: {_example(domain)}")
    if other and (follows or any(split_name(flat)[0] not in TERMS for flat in ranges)):
        raise BadSpecError(f"novelty '{text}': attributes cannot be changed where {OTHER} puts another environment")
    if schedules and (follows or other):
        raise BadSpecError(f"novelty '{text}': a schedule goes neither with {FOLLOWS} nor with {OTHER}")
    return Description(";".join(parts), ranges, tuple(follows), other, schedules)


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
    n_entries = count_entries(name, domain)
    if entry is None and n_entries and ("," in value or name in TABLES or name not in TERMS):
        return _read_list(name, value.split(","), n_entries, domain)
    return {_check(flat, domain): _span(flat, value, domain)}


def _read_peak(flat: str, schedule: Schedule, domain: DomainSpec) -> dict[str, Span]:
    """The peak of a schedule, all of whose values must be allowed."""
    name, entry = split_name(_check(flat, domain))
    if name in (*TABLES, DROP) or (count_entries(name, domain) and entry is None and name not in TERMS):
        raise BadSpecError(f"{flat}={schedule}: a schedule is for one number; {flat} has several")
    for value in schedule.ends:
        _span(flat, repr(value), domain)
    if limits_of(flat, domain)[2] and schedule.kind != "jumps":
        raise BadSpecError(f"{flat}={schedule}: {flat} is a whole number; give its values as VALUE at TIME")
    peak = schedule.peak(neutral_of(flat, domain))
    return {flat: (peak, peak)}


def _read_list(name: str, items: list[str], n_entries: int, domain: DomainSpec) -> dict[str, Span]:
    """The flat numbers of NAME=a,b,c; entries of a term that change nothing are left out where others do."""
    if len(items) != n_entries:
        what = {REMAP: "actions", OBS_REMAP: "observations"}.get(name, "numbers")
        before = [f"{neutral_of(f'{name}[{i}]', domain):g}" for i in range(n_entries)]
        example = shown(",".join(before[::-1] if name in TABLES else before))
        raise BadSpecError(
            f"{name}={','.join(items)} gives {len(items)} of {n_entries} {what}; give one for each, as in {example}"
        )
    spans = {flat: _span(flat, item, domain) for flat, item in ((f"{name}[{i}]", x) for i, x in enumerate(items))}
    if name not in TERMS or name in TABLES:
        return spans
    return {flat: span for flat, span in spans.items() if set(span) != {neutral_of(flat, domain)}} or spans


def _span(flat: str, value: str, domain: DomainSpec) -> Span:
    """The range of one number; a single value is a range without width."""
    _check(flat, domain)
    low_text, dots, high_text = value.partition("..")
    try:
        low, high = float(low_text), float(high_text if dots else low_text)
    except ValueError:
        advice = "; separate terms by ';', as in gravity=20; action-delay=1" if "=" in value else ""
        raise BadSpecError(f"{flat}={value} is neither a number nor a range such as 0.5..2{advice}") from None
    least, most, is_whole = limits_of(flat, domain)
    if not (isfinite(low) and isfinite(high)):
        raise BadSpecError(f"{flat}={value} is not finite; give numbers such as 2 or ranges such as 0.5..2")
    if not least <= low <= high <= most:
        order = "; the first end of a range must not be greater than the second" if low > high else ""
        raise BadSpecError(f"{flat}={value} is outside its range, {least:g} to {most:g}{order}")
    if flat in domain.positive and low <= 0:
        raise BadSpecError(f"{flat}={value} must be greater than 0 in {domain.name}")
    if is_whole and not (low.is_integer() and high.is_integer()):
        raise BadSpecError(f"{flat}={value} is not a whole number")
    return low, high


def _check(flat: str, domain: DomainSpec) -> str:
    """The flat name, if there is such a number here."""
    if split_name(flat)[0] not in TERMS:
        return _check_attribute(flat, domain)
    check_term(flat, domain)
    return flat


def _check_attribute(flat: str, domain: DomainSpec) -> str:
    if flat in domain.constants:
        return flat
    hint = did_you_mean(flat, [*domain.constants, *TERMS])
    raise UnknownNameError(
        f"{domain.name} has no constant '{flat}' that a novelty could change; "
        f"its numbers: {', '.join(_grouped(domain.constants)) or 'none'}; beside them: {', '.join(TERMS)}.{hint}"
    )


def _grouped(names: Iterable[str]) -> list[str]:
    """Names, with the entries of a sequence as one: "AVAIL_TORQUE[0] to [2]"."""
    last = {split_name(flat)[0]: split_name(flat)[1] for flat in names}
    return [name if entry is None else f"{name}[0] to [{entry}]" for name, entry in last.items()]


def _example(domain: DomainSpec) -> str:
    name = next((flat for flat in domain.constants if not flat.endswith("]")), "")
    return f"{name}={2 * float(domain.constants[name]) or 1:g}" if name else "action-delay=2"
