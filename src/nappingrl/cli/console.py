"""Output that commands share: progress bars, tables, notes, and new run folders."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from nappingrl._build import COMPILING, is_cold, log

if TYPE_CHECKING:
    from nappingrl.report.runs import Run

_GAP = 2
"""Characters between columns."""
_MAX_CELL = 30
"""Longer texts of a table are wrapped, if there is need."""


@contextmanager
def progress(text: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error if that is a terminal.

    Yields a function of (done, total) and, optionally, a new text.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    is_shown = sys.stderr.isatty()
    log.disabled = is_shown  # the bar says it
    with Progress(*columns, console=Console(stderr=True), disable=not is_shown, transient=True) as bar:
        task = bar.add_task(text, total=None)

        def update(done: int, total: int, description: str = text) -> None:
            if done:
                bar.update(task, completed=done, total=total, description=description)
            else:  # a bar that moves without a length
                bar.update(task, total=None, description=f"{description}: {COMPILING if is_cold() else 'starting'}")

        yield update


def print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print rows in columns.

    Outside of a terminal it is one table with one line per row, however long. In a terminal that is too narrow, rows
    become columns if that helps; else there are several tables, which all begin with the first column.
    """
    lines = [head, *rows]
    if not sys.stdout.isatty():
        return _print_lines(lines, sum(_sizes(lines, sys.maxsize)))
    width = _console().width
    turned = [tuple(column) for column in zip(*lines, strict=True)]
    if sum(_sizes(lines)) > width >= sum(_sizes(turned)):
        lines = turned
    for columns in _blocks(_sizes(lines), width):
        _print_lines([tuple(line[i] for i in columns) for line in lines], width)
    return None


def _print_lines(lines: list[tuple[str, ...]], width: int) -> None:
    """Print one table; the first line is its head."""
    table = Table(*map(escape, lines[0]), box=None, pad_edge=False)
    for line in lines[1:]:
        table.add_row(*map(escape, line))
    _console(width).print(table)


def _sizes(lines: list[tuple[str, ...]], most: int = _MAX_CELL) -> list[int]:
    """The width of each column with the gap behind it."""
    return [min(most, max(map(len, column))) + _GAP for column in zip(*lines, strict=True)]


def _blocks(sizes: list[int], width: int) -> Iterator[list[int]]:
    """The columns of each table, by their sizes: as many as fit, and the first one in every table."""
    block = [0]
    for i, size in enumerate(sizes[1:], 1):
        if len(block) > 1 and sum(sizes[one] for one in block) + size > width:
            yield block
            block = [0]
        block.append(i)
    yield block


def print_entries(title: str, entries: Mapping[str, str]) -> None:
    """Print names and what they are below a title, then an empty line; a text without a name stands alone."""
    console = _console()
    console.print(f"[bold]{escape(title)}[/bold]", soft_wrap=True)
    if alone := entries.get(""):
        console.print(escape(alone))
    table = Table(show_header=False, box=None)
    table.add_column(no_wrap=True)
    for name, text in entries.items():
        if name:
            table.add_row(escape(name), escape(text))
    console.print(*((table,) if table.row_count else ()), "")


def _console(width: int = 80) -> Console:
    """Standard output: as wide as the terminal, else this wide."""
    return Console(width=None if sys.stdout.isatty() else width, highlight=False)


def print_note(text: str) -> None:
    """Print one line to standard error."""
    print(f"napping: {text}", file=sys.stderr)


def warn_incomplete(runs: "Iterable[Run]") -> None:
    """Print a note for each unfinished run."""
    for run in runs:
        if run.gap:
            print_note(f"{run.path} is unfinished: {run.gap}; the rest is used")


def new_run_folder(name: str) -> Path:
    """The first of runs/NAME-1, runs/NAME-2, ... that does not exist yet."""
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path
