"""What the commands that serve agents share: pass rates before and after the novelty, and the command to repeat it."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from nappingrl.cli.console import print_table

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from nappingrl.domains.angrybirds.server.results import Episode


def phases(episodes: "Iterable[Episode]") -> "dict[str, list[Episode]]":
    """Episodes before the novelty and with it."""
    chosen: dict[str, list[Episode]] = {"before": [], "novel": []}
    for episode in episodes:
        chosen["novel" if episode.entry.source.is_novel else "before"].append(episode)
    return chosen


def rate(episodes: "Sequence[Episode]") -> dict[str, Any]:
    """How many levels were passed, with how many shots."""
    from nappingrl.domains.angrybirds.server.results import PASS

    n_passed = sum(episode.status == PASS for episode in episodes)
    return {
        "levels": len(episodes),
        "passed": n_passed,
        "pass_rate": n_passed / len(episodes) if episodes else None,
        "shots": sum(episode.n_shots for episode in episodes),
    }


def rates(episodes: "Iterable[Episode]") -> dict[str, dict[str, Any]]:
    """The same for each phase."""
    return {name: rate(chosen) for name, chosen in phases(episodes).items()}


def print_rates(episodes: "Iterable[Episode]") -> None:
    """A table with a row for each phase that there is."""
    rows: list[tuple[str, ...]] = [
        (name, str(one["levels"]), str(one["passed"]), f"{one['pass_rate']:.2f}", str(one["shots"]))
        for name, one in rates(episodes).items()
        if one["levels"]
    ]
    print_table(("levels", "played", "passed", "pass rate", "shots"), rows)


def given(command: "DataclassInstance") -> list[str]:
    """The options of a command that are not as by default; not those that must be given."""
    return [
        option.name
        for option in fields(command)
        if option.default is not MISSING and getattr(command, option.name) != option.default
    ]


def option_of(name: str) -> str:
    """A field as it is written on the command line."""
    return f"--{name.replace('_', '-')}"


def again(command: "DataclassInstance", *words: str, last: Sequence[str] = ("out",)) -> str:
    """The command that does this again: options that are not as by default, then those that must be given."""
    for name in (*given(command), *last):
        value = getattr(command, name)
        if name != "json":
            words += (option_of(name), *(() if value is True else (str(value),)))
    return shlex.join(words)
