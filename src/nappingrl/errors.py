"""Exceptions and the check of names. A message is one line: what came, what is allowed, nearest match, what to do."""

import difflib
from collections.abc import Iterable


class NappingError(Exception):
    """Base of all errors a user can cause; the command line prints it as one line and exits with status 2."""


class UnknownNameError(NappingError):
    """Raised when a domain, agent, method, novelty, score, rule or detector is asked for by a name nobody has."""


class BadAgentError(NappingError):
    """Raised when a file or object cannot serve as a frozen agent here."""


class BadObservationError(NappingError):
    """Raised when an observation has the wrong shape or holds NaN or infinity."""


class BadSpecError(NappingError):
    """Raised when an experiment is described by values outside their range."""


class BadRunError(NappingError):
    """Raised when a run folder belongs to another experiment or cannot be read."""


class MissingExtraError(NappingError):
    """Raised when an optional dependency is needed and not installed."""


def check_name(kind: str, name: str, allowed: Iterable[str]) -> str:
    """Return `name` if it is allowed, else raise with the nearest match."""
    names = sorted(allowed)
    if name in names:
        return name
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise UnknownNameError(f"unknown {kind} '{name}'; allowed: {', '.join(names)}.{hint}")
