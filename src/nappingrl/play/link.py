"""Links that restore a match: registered names and numbers only."""

from collections.abc import Iterable

import msgspec

from nappingrl.errors import BadSpecError, check_name
from nappingrl.play.choices import Choices
from nappingrl.play.commands import Begin, read_command

PARAMETER = "p."
_NAMES = ("domain", "agent", "method", "seed", "token")


def read_link(query: Iterable[tuple[str, str]], choices: Choices) -> Begin:
    """What a link asks for; paths, modules and hubs are refused like any other unknown name."""
    given: dict[str, object] = {}
    changes: dict[str, float] = {}
    for name, value in query:
        if name.startswith(PARAMETER):
            changes[name.removeprefix(PARAMETER)] = _number(name, value)
        elif check_name("part of a link", name, [*_NAMES, f"{PARAMETER}NAME"]) != "token":
            given[name] = int(_number(name, value)) if name == "seed" else value
    text = msgspec.json.encode({"do": "begin", "domain": choices.domain, **given, "changes": changes})
    begin = read_command(text)
    assert isinstance(begin, Begin)
    choices.resolve(begin)
    return begin


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadSpecError(f"{name}={text[:40]!a} in the link is not a number") from None
