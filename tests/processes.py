"""Commands in separate processes, watched by /proc: the tests of signals wait for what a process does."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

Process = subprocess.Popen[str]


@contextmanager
def started(*words: str | Path, **options: object) -> Iterator[Process]:
    """`napping` in a new session; at the end all of its processes are killed."""
    command = [sys.executable, "-m", "nappingrl", *map(str, words)]
    pipe = subprocess.PIPE
    process: Process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        for pid in {process.pid, *members(process.pid)}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.communicate()


def members(session: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, of_session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of_session) == session and state not in "ZX":
            found.append(int(folder.name))
    return found


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler for a signal."""
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt")]
    return bool(int(line.split()[1], 16) >> number - 1 & 1)


def has_loaded(pid: int, library: str) -> bool:
    """Whether a process has mapped a shared library with this in its path."""
    return library in Path(f"/proc/{pid}/maps").read_text()
