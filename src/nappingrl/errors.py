"""Exceptions and the check of names. A message is one line: what came, what is allowed, nearest match, what to do."""

import difflib
import re
from collections.abc import Iterable
from importlib import import_module
from operator import index
from typing import Any, SupportsIndex

MAX_SHOWN = 100
"""Characters of a user's text in a message."""
_CUTOFF = 0.6
"""Least similarity of a name that is suggested, from 0 to 1."""


class NappingError(Exception):
    """Base of all errors a user can cause; the command line prints it as one line and exits with status 2."""


class AdaptationWarning(UserWarning):
    """The agent does not adapt, or not to everything that it observed; the text says why."""


class UnknownNameError(NappingError):
    """Raised for an unknown name of a domain, agent, method, novelty, score, rule or detector."""


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


def import_extra(module: str, what: str, extra: str) -> Any:
    """Import a module of an optional dependency; one line that names the extra where it is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f'{what} needs {error.name}, which is not installed: pip install "nappingrl[{extra}]"'
        ) from None


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """A hint with the nearest of the allowed names, with a space before it; empty where none is near."""
    by_stem = {_stem(other): other for other in allowed}
    near = difflib.get_close_matches(_stem(name), by_stem, n=1, cutoff=_CUTOFF)
    return f" Did you mean '{by_stem[near[0]]}'?" if near else ""


def _stem(name: str) -> str:
    """What a name is compared by: not by its case, nor by the version that ids of environments end with."""
    return re.sub(r"-v\d+$", "", name.lower())


def shown(text: str, most: int = MAX_SHOWN) -> str:
    """A text for a message: on one line, and its beginning where it is long."""
    line = " ".join(text[: 2 * most].split())
    return line if len(text) <= 2 * most and len(line) <= most else f"{line[:most]}..."


def check_name(kind: str, name: str, allowed: Iterable[str]) -> str:
    """Return `name` if it is allowed, else raise with the nearest match."""
    names = sorted(allowed)
    if name in names:
        return name
    raise UnknownNameError(f"unknown {kind} '{shown(name)}'; allowed: {', '.join(names)}.{did_you_mean(name, names)}")


def check_whole(what: str, value: object, least: int, most: int) -> int:
    """Return a whole number from `least` to `most`, else raise in one line."""
    if isinstance(value, SupportsIndex) and not isinstance(value, bool) and least <= (number := index(value)) <= most:
        return number
    raise BadSpecError(f"{what} {_shown(value)} is not a whole number from {least} to {most}")


def _shown(value: object) -> str:
    """A value for a message; Python refuses to print whole numbers of thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "of more than 30 digits"
    return shown(ascii(value))
