"""Protocols: the phases of a trial and how many episodes each has."""

import re

from nappingrl.errors import BadSpecError
from nappingrl.trials.limits import MAX_EPISODES

PRE, NOVEL = "pre", "novel"
RESTORED, RECURRED = "restored", "recurred"
CHANGED = (NOVEL, RECURRED)
"""The phases in the changed domain; `restored` is the original one again, `recurred` the novelty again."""
RETURN = "40+40+40+40"
_COUNT = "[0-9]{1,18}"
_PROTOCOL = re.compile(rf"(?:(?P<least>{_COUNT})\.\.)?(?P<most>{_COUNT})\+(?P<after>{_COUNT}(?:\+{_COUNT}\+{_COUNT})?)")
Phases = tuple[tuple[str, int], ...]


def phases(protocol: str) -> Phases:
    """The phases of a trial and their greatest numbers of episodes."""
    _, most, after = episode_counts(protocol)
    return ((PRE, most), *zip((NOVEL, RESTORED, RECURRED), after, strict=False))


def episode_counts(protocol: str) -> tuple[int, int, tuple[int, ...]]:
    """The least and the greatest number of episodes before the novelty, and those of the phases after it."""
    match = _PROTOCOL.fullmatch({"paper": "40+40", "return": RETURN}.get(protocol, protocol))
    if match is not None:
        most, after = int(match["most"]), tuple(int(count) for count in match["after"].split("+"))
        least = int(match["least"]) if match["least"] else most
        if most + sum(after) > MAX_EPISODES:
            raise BadSpecError(f"protocol '{protocol:.40}' has more than {MAX_EPISODES} episodes a trial; use fewer")
        if min(after) >= 1 and least <= most:
            return least, most, after
    raise BadSpecError(
        f"unknown protocol '{protocol:.40}'; allowed: paper, PRE+POST episodes such as 10+40, 1..40+40 for a number "
        f"before the novelty drawn for each trial, or return ({RETURN}: the original domain again, then the novelty)"
    )
