"""Ctrl-C and SIGTERM while `napping` starts: imports, compilation of kernels, the first trials. Never a traceback."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.attack.outcome import Outcome

STARTS = 40
CPU_SECONDS = 6.0
"""Signals are sent over these first seconds of processor time, which do not depend on the load."""
PATIENCE = 600.0
COMMANDS = (
    "run cartpole --trials 100000 --workers 2",
    "run angrybirds --trials 1000 --workers 1",
    "list --json",
    "bench",
)


def attack(budget: float, seed: int) -> Outcome:
    """Send one signal per start, at stratified moments; every other start compiles kernels anew."""
    outcome, rng = Outcome("starts"), random.Random(seed)
    n = max(len(COMMANDS), round(budget * STARTS))
    for i in range(n):
        words, number = COMMANDS[i % len(COMMANDS)], rng.choice([signal.SIGINT, signal.SIGTERM])
        moment = CPU_SECONDS * (i + rng.random()) / n
        with tempfile.TemporaryDirectory() as folder:
            status, err = _stop(words.split(), number, moment, Path(folder), is_cold=bool(i // len(COMMANDS) % 2))
        outcome.tried += 1
        if status == 0:
            outcome.survived += 1  # it was faster than the signal
        elif status == 128 + number and (not err or err.startswith("napping: stopped")) and err.count("\n") <= 1:
            outcome.refused += 1
        else:
            outcome.fail(f"napping {words}: {number.name} after {moment:.2f} s: {status} {err[-300:]}; seed {seed}")
    return outcome


def _stop(words: list[str], number: int, moment: float, folder: Path, is_cold: bool) -> tuple[int, str]:
    """Start a command, stop it once it has our handlers and has come to the moment."""
    cache = {"NUMBA_CACHE_DIR": str(folder / "kernels")} if is_cold else {}
    command, pipe = [sys.executable, "-m", "nappingrl", *words], subprocess.PIPE
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | cache, stdout=subprocess.DEVNULL, stderr=pipe, text=True
    )
    while process.poll() is None and not (_is_ready(process.pid) and _has_come_to(moment, process.pid)):
        time.sleep(0.002)
    process.send_signal(number)
    try:
        err = process.communicate(timeout=PATIENCE)[1]
        return process.returncode, err
    finally:
        process.kill()


def _is_ready(pid: int) -> bool:
    """Whether the process handles SIGTERM: Python itself does not, so our code has begun."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    caught = [int(line.split()[1], 16) for line in lines if line.startswith("SigCgt")]
    return any(mask >> signal.SIGTERM - 1 & 1 for mask in caught)


def _has_come_to(moment: float, pid: int) -> bool:
    """Whether the process has used that much processor time, or starts workers: then it uses hardly any more."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if children.exists() and children.read_text(encoding="utf-8"):
        return True
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") >= moment
