"""How long the stages of an evaluation took."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from nappingrl.errors import BadRunError
from nappingrl.files import UnusableFileError, read_file
from nappingrl.trials.limits import MAX_MANIFEST_BYTES
from nappingrl.trials.store import make_folder, write_output

TIMES = "times.json"
"""File beside the runs: how long each took."""


_Seconds = Annotated[float, Meta(ge=0, le=1e12)]


@dataclass(frozen=True, slots=True)
class Times:
    """How long a run took, over all calls."""

    wall: _Seconds = 0.0
    """Seconds from start to end."""
    cpu: _Seconds = 0.0
    """CPU seconds of all its processes."""


@contextmanager
def timed(run: Path) -> Iterator[None]:
    """Add the time spent inside to that of the run, even if it is stopped."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    try:
        yield
    finally:
        times = read_times(run.parent)
        before = times.get(run.name, Times())
        spent = time.perf_counter() - wall, cpu_seconds() - cpu
        times[run.name] = Times(round(before.wall + spent[0], 1), round(before.cpu + spent[1], 1))
        make_folder(run.parent)
        content = json.dumps({name: asdict(of_run) for name, of_run in times.items()}, indent=2)
        write_output(run.parent / TIMES, f"{content}\n".encode())


def read_times(runs: Path) -> dict[str, Times]:
    """How long each run in a folder took."""
    file = runs / TIMES
    if not os.path.exists(file):  # Path.exists() raises where a folder must not be read
        return {}
    try:
        return msgspec.json.decode(read_file(file, MAX_MANIFEST_BYTES), type=dict[str, Times])
    except (UnusableFileError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRunError(f"{file} cannot be read ({error}); delete it: only times are lost") from error


def cpu_seconds() -> float:
    """CPU seconds of this process and of its workers that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system
