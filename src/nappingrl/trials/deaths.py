"""Why a worker process has died."""

import signal
from pathlib import Path

OOM_COUNTERS = (Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"))
"""Files of Linux with a line "oom_kill COUNT": of this container or session, and of the machine."""


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory, in this container or else on this machine."""
    for file in OOM_COUNTERS:
        try:
            counts = dict(line.split() for line in file.read_text(encoding="utf-8").splitlines())
            return int(counts["oom_kill"])
        except (OSError, KeyError, ValueError):
            continue
    return 0


def cause_of_death(exit_code: int, n_kills: int) -> str:
    """How a worker ended, in words.

    Args:
        exit_code: Exit status, or the negative number of a signal.
        n_kills: `oom_kills()` when the worker was started.
    """
    if exit_code >= 0:
        return f"ended with exit status {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    is_oom = name == "SIGKILL" and oom_kills() > n_kills
    return f"was killed by {name}{'; memory may have run out, use fewer workers' if is_oom else ''}"
