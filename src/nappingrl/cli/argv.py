"""A command as words, and back: `parse` reads them, `rebuild` writes them.

A command is a dataclass: its fields are the options, and calling it runs it. Its module has the command's name and is
imported when the command is asked for, so `napping --help` stays fast.
"""

import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, get_args, get_type_hints

import nappingrl
from nappingrl.cli.commands import COMMANDS, TOPICS
from nappingrl.cli.help import print_help
from nappingrl.cli.mistakes import as_one_line, check_command
from nappingrl.errors import BadSpecError, did_you_mean, shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

HELP = frozenset({"-h", "--help"})
OPTIONS = ("--help", "--version")


class Command(Protocol):
    """A dataclass of options that runs when it is called."""

    def __call__(self) -> None:
        """Run the command."""
        ...


def load_command(name: str) -> type[Any]:
    """Import the class of a command."""
    module = import_module(f"nappingrl.cli.{name.replace(' ', '.')}")
    command_class: type[Any] = getattr(module, name.split()[-1].capitalize())
    return command_class


def parse(words: Sequence[str]) -> Command:
    """Return the command that the words describe; help ends the process, and a mistake raises BadSpecError."""
    words = list(words)
    check_command(words, list(COMMANDS))
    named = _command_words(words)
    own = words[: words.index("--")] if "--" in words else words
    if not HELP.isdisjoint(own) or " ".join(words) in ("", *TOPICS):
        print_help(named)
        sys.exit()
    if own == ["--version"]:
        print(f"nappingrl {nappingrl.__version__}")
        sys.exit()
    if " ".join(named) not in COMMANDS:
        unknown = words[len(named)]
        raise BadSpecError(
            f"unknown option '{shown(unknown)}'; allowed: --help, --version.{did_you_mean(unknown, OPTIONS)}"
        )
    return _parse_options(named, words[len(named) :])


def _parse_options(named: list[str], words: list[str]) -> Command:
    import tyro  # slow to import, and help does without it

    command_class = load_command(" ".join(named))
    with as_one_line(line(*named, "--help")):
        command: Command = tyro.cli(
            command_class, prog=line(*named), args=words, config=(tyro.conf.FlagCreatePairsOff,)
        )
    return command


def _command_words(words: list[str]) -> list[str]:
    """The first words, as far as they name a command or a group of commands."""
    named = [name.split() for name in (*COMMANDS, *TOPICS) if words[: len(name.split())] == name.split()]
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


def _is_positional(hint: Any) -> bool:
    from tyro.conf import Positional

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
