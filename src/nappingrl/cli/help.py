"""Help pages, written from the source of the commands: no command is imported for them, so they are fast."""

import ast
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nappingrl
from nappingrl.cli.commands import COMMANDS, GROUPS, TOPICS

_HERE = Path(__file__).parent
_ROOT = _HERE.parent.parent
_METAVARS = {"int": "N", "float": "X", "Path": "PATH"}
_NAMES = {"option": "NAME=VALUE", "domain_option": "NAME=VALUE", "env": "ID", "wrap": "NAME", "address": "HOST:PORT"}
"""What stands for the value of an option where neither its type nor its name says it."""
_INDENT, _COLUMN = 2, 24
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument or an option of a command, as its source declares it."""

    name: str
    annotation: str
    default: str
    """As the user would write it; empty: none, or nothing worth showing."""
    is_required: bool
    about: str

    @property
    def is_positional(self) -> bool:
        """Whether it is given by its place."""
        return self.annotation.startswith("Positional")

    @property
    def metavar(self) -> str:
        """What stands for its value; empty for a flag."""
        kind = self.annotation.removeprefix("Positional[").removesuffix("]" * self.is_positional)
        inner = kind.removeprefix("tuple[").split(",")[0].split(" |")[0]
        if inner == "bool":
            return ""
        name = _NAMES.get(self.name) or (self.name.upper() if self.is_positional else _METAVARS.get(inner))
        return (name or self.name.upper()) + (" ..." if kind.startswith("tuple") else "")

    @property
    def label(self) -> str:
        """How to write it."""
        if self.is_positional:
            return self.metavar
        return f"--{self.name.replace('_', '-')} {self.metavar}".strip()

    @property
    def text(self) -> str:
        """Its description, with the default if that is not obvious."""
        default = f" (default: {self.default})" if self.default and "Default:" not in self.about else ""
        return f"{' '.join(self.about.split())}{default}{' (required)' * self.is_required}"


@dataclass(frozen=True, slots=True)
class Described:
    """A command, as its source declares it."""

    about: str
    parameters: tuple[Parameter, ...]
    groups: Mapping[str, Sequence[str]]
    """Titles of the parts of its options, and the names of the fields in each."""


def describe(command: str) -> Described:
    """Read the class of a command: its documentation, its fields and their documentation."""
    name = command.split()[-1].capitalize()
    file = _HERE.joinpath(*command.split()).with_suffix(".py")
    return _read_class(file, name)


def _read_class(file: Path, name: str) -> Described:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    node = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    parameters = {parameter.name: parameter for parameter in _read_fields(node.body)}
    for base in map(ast.unparse, node.bases):
        for one in tree.body:
            if isinstance(one, ast.ImportFrom) and base in {alias.name for alias in one.names}:
                source = _ROOT.joinpath(*(one.module or "").split(".")).with_suffix(".py")
                inherited = _read_class(source, base).parameters
                parameters |= {parameter.name: parameter for parameter in inherited}
    groups = next((one.value for one in node.body if isinstance(one, ast.AnnAssign) and _name(one) == "groups"), None)
    return Described(
        ast.get_docstring(node) or "", tuple(parameters.values()), ast.literal_eval(groups) if groups else {}
    )


def _name(node: ast.AnnAssign) -> str:
    return ast.unparse(node.target)


def _read_fields(body: Sequence[ast.stmt]) -> Iterator[Parameter]:
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or "ClassVar" in ast.unparse(node.annotation):
            continue
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        about = str(after.value.value) if is_text else ""  # type: ignore[union-attr]
        yield Parameter(_name(node), ast.unparse(node.annotation), _default(node.value), node.value is None, about)


def _default(value: ast.expr | None) -> str:
    """A default as the user would write it; empty where it means: nothing."""
    if isinstance(value, ast.Call):  # Path("zoo")
        value = value.args[0]
    if not isinstance(value, ast.Constant) or value.value in ("", None) or value.value is False:
        return ""
    return str(value.value)


def print_help(words: Sequence[str]) -> None:
    """Print the help of what the words name: the program, the group `birds`, or a command."""
    for line in _page(" ".join(words)):
        print(line)


def _page(command: str) -> Iterator[str]:
    if command in COMMANDS:
        yield from _command_page(command)
        return
    usage, about = ("birds COMMAND", TOPICS[command]) if command else ("COMMAND", nappingrl.__doc__ or "")
    yield from (f"usage: napping {usage} [options]", "", *about.splitlines(), "")
    for title, names in GROUPS.items() if not command else (("commands", list(COMMANDS)),):
        chosen = [name for name in names if name.startswith(f"{command} ")] if command else names
        yield _bold(f"{title}:")
        for name in chosen:
            yield from _entry(
                name.removeprefix(f"{command} "), TOPICS.get(name, COMMANDS.get(name, "")).splitlines()[0]
            )
        yield ""
    if not command:
        yield _bold("options:")
        yield from _entry("--version", "Print the version.")
        yield from _entry("--help", "Print this page; after a command, that command's.")
        yield ""
        yield "Begin with: napping run cartpole --trials 20"


def _command_page(command: str) -> Iterator[str]:
    described = describe(command)
    arguments = [one for one in described.parameters if one.is_positional]
    options = [one for one in described.parameters if not one.is_positional]
    named = [one.metavar if one.is_required else f"[{one.metavar}]" for one in arguments]
    required = [one.label for one in options if one.is_required]
    yield " ".join(["usage: napping", command, *named, *required, "[options]"])
    yield ""
    width = _width()
    for paragraph in described.about.split("\n\n"):
        lines = paragraph.splitlines()
        if lines[0].startswith("Example:"):
            yield from lines  # whole, to be copied
        else:
            yield from _wrap(" ".join(lines), width)
        yield ""
    if arguments:
        yield _bold("arguments:")
        for one in arguments:
            yield from _entry(one.label, one.text)
        yield ""
    for title, names in _grouped(options, described.groups):
        yield _bold(f"{title}:")
        for one in names:
            yield from _entry(one.label, one.text)
        yield ""


def _grouped(
    options: Sequence[Parameter], groups: Mapping[str, Sequence[str]]
) -> Iterator[tuple[str, Sequence[Parameter]]]:
    """The options by the titles of their groups; those without a group come last."""
    by_name = {one.name: one for one in sorted(options, key=lambda one: not one.is_required)}
    for title, names in groups.items():
        yield title, [by_name.pop(name) for name in names]
    if by_name:
        yield "other options" if groups else "options", list(by_name.values())


def _entry(label: str, text: str) -> Iterator[str]:
    """A label, and its text beside it or, where the label is long, below it."""
    indent = " " * _COLUMN
    lines = _wrap(text, _width() - _COLUMN) or [""]
    start = f"{' ' * _INDENT}{label}"
    if len(start) < _COLUMN - 1:
        yield f"{start:<{_COLUMN}}{lines[0]}"
        lines = lines[1:]
    else:
        yield start
    yield from (indent + line for line in lines)


def _wrap(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


def _width() -> int:
    return max(60, min(100, shutil.get_terminal_size().columns))


def _bold(text: str) -> str:
    return f"{_BOLD}{text}{_PLAIN}" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text
