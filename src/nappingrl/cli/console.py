"""Output that commands share: progress bars, tables, notes, and new run folders."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from nappingrl.report.runs import Run


@contextmanager
def progress(text: str) -> Iterator[Callable[..., None]]:
    """Show a progress bar on standard error if that is a terminal.

    Yields a function of (done, total) and, optionally, a new text.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task(text, total=None)

        def update(done: int, total: int, description: str = text) -> None:
            bar.update(task, completed=done, total=total, description=description)

        yield update


def print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print rows in columns: 160 characters wide unless standard output is a terminal."""
    table = Table(*head, box=None)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def print_note(text: str) -> None:
    """Print one line to standard error."""
    print(f"napping: {text}", file=sys.stderr)


def warn_incomplete(runs: Iterable[Run]) -> None:
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
