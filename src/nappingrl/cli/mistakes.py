"""Mistakes in the words of a command, each as one line; tyro prints a box of many lines."""

import io
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr

from nappingrl.errors import BadSpecError, check_name

_MISUSE = 2
"""The exit status with which tyro refuses words."""
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_KINDS = {"INT": "a whole number", "FLOAT": "a number"}
_MAX_CHARACTERS = 400


def check_command(words: Sequence[str], commands: Sequence[str]) -> None:
    """Raise if the first words name no command."""
    if not words or words[0].startswith("-"):
        return
    check_name("command", words[0], list(dict.fromkeys(name.split()[0] for name in commands)))
    below = [name.split()[1] for name in commands if name.split()[0] == words[0] and " " in name]
    if below and words[1:] and not words[1].startswith("-"):
        check_name(f"command of {words[0]}", words[1], below)


@contextmanager
def as_one_line(help_line: str) -> Iterator[None]:
    """Raise BadSpecError with one line where tyro would print a box and exit; `help_line` shows all options."""
    printed = io.StringIO()
    try:
        with redirect_stderr(printed):
            yield
    except SystemExit as end:
        if end.code != _MISUSE:
            raise
        text = _summarise(_sections(printed.getvalue()))
        raise BadSpecError(f"{text}; see {help_line}") from None
    sys.stderr.write(printed.getvalue())  # warnings


def _sections(box: str) -> list[list[str]]:
    """The lines of a box below its title, split where it has a horizontal line.

    Its frame is "╭─ Title ──╮" or, if the terminal does not show such characters, a line of "-" below the title.
    """
    sections: list[list[str]] = [[]]
    for line in _COLOURS.sub("", box).splitlines():
        text = line.strip("│ ")
        if text.startswith("╭") or set(text) in ({"─"}, {"-"}):
            sections.append([])
        elif text and not text.startswith("╰"):
            sections[-1].append(text)
    return [section for section in sections[1:] if section and not section[0].startswith("For full helptext")]


def _summarise(sections: list[list[str]]) -> str:
    """What came, and what is allowed or was meant."""
    parts = []
    for section in sections:
        title, *lines = section
        if title.startswith("Argument helptext"):
            kind = lines[0].rpartition(" ")[2].removeprefix("{None}|")
            parts.append(f"allowed: {_KINDS.get(kind, kind)}")
        elif title.startswith(("Perhaps you meant", "Arguments similar to")):
            names = [line.split()[0] for line in lines if line.startswith("--")]
            parts.append(f"did you mean {' or '.join(dict.fromkeys(names))}?")
        else:
            parts.append(" ".join(section))
    text = "; ".join(part.rstrip(".") for part in parts)
    text = re.sub(r"^Error parsing (\S+): .*?('[^']*'); allowed", r"\1 is \2; allowed", text)
    text = text[:1].lower() + text[1:]
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
