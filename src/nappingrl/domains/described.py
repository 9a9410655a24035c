"""Descriptions of novelties in registered domains: `napping run cartpole --novelty "gravity=20; action-delay=1"`."""

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from nappingrl.domains.scheduled import with_schedules
from nappingrl.domains.transformed import with_transforms
from nappingrl.errors import BadSpecError, check_name
from nappingrl.novelties.description import Description, read_description
from nappingrl.novelties.novelty import Novelty
from nappingrl.novelties.subject import find_spec, make_env
from nappingrl.novelties.terms import OTHER, transforms_of
from nappingrl.novelties.verify import verify
from nappingrl.registry import Entry
from nappingrl.types import DomainSpec

ALSO = ("all", "none", "a description such as NAME=VALUE")
"""What `--novelty` takes beside names."""
Options = tuple[tuple[str, Any], ...]
"""Options of a domain, with their values."""


@dataclass(frozen=True, slots=True)
class VerifiedNovelty:
    """A novelty that was described: for drawing, for applying, and the doubts of its verification."""

    novelty: Novelty
    description: Description
    doubts: tuple[str, ...]


def as_novelty(name: str, description: Description, domain: DomainSpec) -> Novelty:
    """A description as a novelty that trials draw."""
    return Novelty(name, description.ranges, description.words(domain), whole=description.whole(domain))


def registered_domain(entry: Entry, options: Options = ()) -> DomainSpec:
    """The domain of an entry, with options; it reads descriptions beside the names of its novelties."""
    spec: DomainSpec = entry.load().spec
    domain = spec.renamed(entry.name, entry.title, entry.env_id).with_options(dict(options))
    if domain.read_novelty is not None or domain.narrow is not None:
        return domain
    return replace(domain, read_novelty=partial(_read_novelty, entry), narrow=partial(_narrow, entry, options))


def _read_novelty(entry: Entry, text: str) -> Novelty:
    if "=" in text:
        return _verified(entry, text).novelty
    novelties = registered_domain(entry).novelties
    return novelties[check_name("novelty", text, [*novelties, *ALSO])]


def _narrow(entry: Entry, options: Options, names: tuple[str, ...]) -> DomainSpec:
    described = tuple(name for name in names if "=" in name)
    return _with_transforms(entry, options, described) if described else registered_domain(entry, options)


@lru_cache
def _with_transforms(entry: Entry, options: Options, texts: tuple[str, ...]) -> DomainSpec:
    """The domain with the numbers of these descriptions that are not its own."""
    domain, verified = registered_domain(entry, options), [_verified(entry, text) for text in texts]
    neutral: dict[str, float] = {}
    for novelty in verified:
        neutral |= transforms_of(novelty.description.neutral(_subject(entry)))
    notes = tuple(doubt for novelty in verified for doubt in novelty.doubts)
    schedules = {flat: one for novelty in verified for flat, one in novelty.description.schedules.items()}
    return with_schedules(with_transforms(replace(domain, notes=(*domain.notes, *notes)), neutral), schedules)


@lru_cache
def _verified(entry: Entry, text: str) -> VerifiedNovelty:
    """A description, verified; once in a process."""
    domain = _subject(entry)
    description = read_description(text, domain)
    if description.other:
        raise BadSpecError(f"{OTHER} replaces a gymnasium environment, not the domain {entry.name}; use --env")
    doubts = verify(partial(make_env, find_spec(entry.env_id)), description, domain)
    return VerifiedNovelty(as_novelty(description.text, description, domain), description, tuple(doubts))


def _subject(entry: Entry) -> DomainSpec:
    """The domain as descriptions refer to it."""
    domain = registered_domain(entry)
    return replace(domain, constants=domain.parameters)
