"""What all commands share: progress bars, tables, fresh folders."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from nappingrl.report.runs import Loaded


@contextmanager
def progress(text: str) -> Iterator[Callable[..., None]]:
    """A bar with the time left on standard error; none where it is not a terminal.

    Gives a function of (done, total) and, where it changes, the text.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task(text, total=None)

        def tell(done: int, total: int, now: str = text) -> None:
            bar.update(task, completed=done, total=total, description=now)

        yield tell


def print_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Text in columns; wide where nobody looks."""
    table = Table(*head, box=None)
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def fresh_folder(name: str) -> Path:
    """A folder under runs/ that does not exist yet."""
    number = 1
    while (path := Path("runs") / f"{name}-{number}").exists():
        number += 1
    return path


def say_gaps(runs: "Iterable[Loaded]") -> None:
    """One line for each unfinished run that is used all the same."""
    for run in runs:
        if run.gap:
            say(f"{run.path} is unfinished: {run.gap}; the rest is used")


def say(text: str) -> None:
    """One line to the person, on standard error."""
    print(f"napping: {text}", file=sys.stderr)
