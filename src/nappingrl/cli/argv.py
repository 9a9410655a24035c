"""A command as words, and back: `parse` reads them, `rebuild` writes them.

A command is a dataclass: its fields are the options, and calling it runs it. Its module has the command's name and is
imported when the command is asked for, so `napping --help` stays fast.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import reduce
from importlib import import_module
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Protocol, get_args, get_type_hints

import tyro
from tyro.conf import Positional, subcommand

import nappingrl
from nappingrl.cli.mistakes import as_one_line, check_command

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COMMANDS = {
    "list": "List domains, agents, methods and detectors.",
    "run": "Run trials: a trained agent meets a novelty, with or without adaptation.",
    "report": "Compare runs in a table, a picture and an HTML page.",
    "figure": "Draw a figure from run folders.",
    "replay": "Repeat one trial of a run, check its rows and print its principles as rules.",
    "paper": "Run the paper's whole evaluation, then write its figures, pages and claims.",
    "claims": "Check the paper's quantitative claims against your runs.",
    "export": "Convert a run to SB3's Monitor files, WSU's columns or TensorBoard.",
    "play": "Watch a frozen and an adapting agent side by side in the browser, and change the world under them.",
    "record": "Film a frozen and an adapting agent side by side while the world changes.",
    "train": "Train an agent in any gymnasium environment, or a shipped one from its recipe.",
    "convert": "Convert a zip of SB3's DQN or PPO to an agent as this package ships them.",
    "bench": "Measure the speed of the engine and the learners.",
    "birds serve": "Serve agents that speak the Science Birds protocol.",
    "birds external": "Start an agent that speaks the Science Birds protocol, supervise it and score it.",
    "birds play": "Play Angry Birds levels with the mouse, or watch an agent.",
    "birds levels": "Write Angry Birds levels as XML files or as one picture.",
    "birds accept": "Test whether Angry Birds levels need a trained agent.",
}
"""Every command and its one-line help; `birds play` is class `Play` in `nappingrl.cli.birds.play`."""

BIRDS_HELP = """Play, serve and write Angry Birds levels.

Example: napping birds play --novelty bone"""


class Command(Protocol):
    """A dataclass of options that runs when it is called."""

    def __call__(self) -> None:
        """Run the command."""
        ...


@dataclass(frozen=True)
class _NotLoaded:
    """Stands in for a command that was not asked for."""

    def __call__(self) -> None:
        """Never called: `parse` loads the command it returns."""


def load_command(name: str) -> type[Any]:
    """Import the class of a command."""
    module = import_module(f"nappingrl.cli.{name.replace(' ', '.')}")
    command_class: type[Any] = getattr(module, name.split()[-1].capitalize())
    return command_class


def parse(words: Sequence[str]) -> Command:
    """Return the command that the words describe; help ends the process, and a mistake raises BadSpecError."""
    words = [*words, "--help"] if list(words) in ([], ["birds"]) else list(words)
    check_command(words, list(COMMANDS))
    choices = _choices(words)
    with as_one_line(line(*_command_words(words), "--help")):
        command: Command = tyro.cli(choices, prog="napping", description=nappingrl.__doc__, args=words)
    return command


def _command_words(words: list[str]) -> list[str]:
    """The first words, as far as they name a command."""
    named = [name.split() for name in COMMANDS if words[: len(name.split())] == name.split()]
    return named[0] if named else []


def rebuild(command: "DataclassInstance") -> str:
    """Return the shell line that parses back to an equal command; options at their default are left out."""
    name = type(command).__module__.removeprefix("nappingrl.cli.").split(".")
    hints = get_type_hints(type(command), include_extras=True)
    is_positional = {field.name: _is_positional(hints[field.name]) for field in fields(command)}
    given = [field for field in fields(command) if not is_positional[field.name] and is_given(command, field)]
    options = [word for field in given for word in _option_words(field.name, getattr(command, field.name))]
    arguments = list(_argument_words(command, [field for field in fields(command) if is_positional[field.name]]))
    if any(word.startswith("-") for word in arguments):
        return line(*name, *options, "--", *arguments)
    return line(*name, *arguments, *options)


def line(*words: object) -> str:
    """Return a shell line of `napping`, quoted where needed."""
    return shlex.join(["napping", *map(str, words)])


def is_given(command: "DataclassInstance", field: "Field[Any]") -> bool:
    """Whether an option differs from its default, or has none."""
    return field.default is MISSING or getattr(command, field.name) != field.default


def flag(name: str) -> str:
    """A field's name as an option."""
    return f"--{name.replace('_', '-')}"


def _choices(words: list[str]) -> Any:
    """The union of all commands for tyro; only those that the words may mean are imported."""
    choices: list[Any] = []
    birds: list[Any] = []
    is_completion = bool(words) and words[0].startswith("--tyro-")
    for name, about in COMMANDS.items():
        parent, _, last = name.rpartition(" ")
        if is_completion or words[: len(name.split())] == name.split():
            choice: Any = Annotated[load_command(name), subcommand(last)]
        else:
            choice = Annotated[_NotLoaded, subcommand(last, description=about)]
        (birds if parent else choices).append(choice)
    group: Any = Annotated[reduce(or_, birds), subcommand("birds", description=BIRDS_HELP)]
    return reduce(or_, [*choices, group])


def _is_positional(hint: Any) -> bool:
    return any(marker in get_args(Positional[str])[1:] for marker in get_args(hint)[1:])


def _option_words(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield flag(name) if value else flag(f"no_{name}")
        return
    first, *others = _texts(value) or [""]
    if first.startswith("-"):
        yield f"{flag(name)}={first}"
    else:
        yield flag(name)
        yield from _texts(value)[:1]
    yield from others


def _argument_words(command: "DataclassInstance", arguments: "list[Field[Any]]") -> Iterator[str]:
    """Positional arguments up to the last one that is given: their places count."""
    while arguments and not is_given(command, arguments[-1]):
        arguments = arguments[:-1]
    for field in arguments:
        yield from _texts(getattr(command, field.name))


def _texts(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, tuple) else [str(value)]
