"""Throughput of the engine now and at an earlier commit.

Both commits are exported to a temporary folder, each with its own cache of compiled kernels. After an untimed run of
each, rounds alternate between the two; every round is a new process that measures CPU time on one core. The ratio is
the median over rounds of steps per second now / before: above 1 is faster. `same rows` tells whether both commits
played the same episodes to the same returns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from nappingrl.errors import BadSpecError
from nappingrl.types import OnProgress

# Runs with the sources of either commit, so it may only use what all of them have.
TIMED = """
import hashlib, json, sys, time
import polars, nappingrl
domain, agent, method, trials = sys.argv[1:5]
def run(trials, seed):
    result = nappingrl.run(domain, agent, method, trials=trials, seed=seed, workers=1)
    return result if isinstance(result, polars.DataFrame) else result.rows
run(2, 1)
started = time.process_time()
rows = run(int(trials), 11)
seconds = time.process_time() - started
episodes = json.dumps([rows["length"].to_list(), rows["return"].to_list()])
print(int(rows["length"].sum()) / seconds, hashlib.sha256(episodes.encode()).hexdigest())
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class Case:
    """What is timed."""

    domain: str
    agent: str
    method: str
    share: float = 1.0
    """Multiple of the number of trials."""


CASES = (
    Case("cartpole", "ppo", "frozen", 2),
    Case("mountaincar", "dqn", "frozen", 2),
    Case("cartpole", "ppo", "napping"),
    Case("cartpole", "dqn", "napping"),
    Case("mountaincar", "dqn", "napping"),
    Case("cartpole", "ppo", "foresight", 1 / 8),
    Case("mountaincar", "dqn", "foresight", 1 / 8),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Steps per second before and now (medians), and the median of the rounds' ratios."""

    domain: str
    agent: str
    method: str
    trials: int
    before: float
    now: float
    ratio: float
    same_rows: bool


def _export(commit: str, folder: Path) -> Path:
    """The sources of a commit of the checkout that is the current folder."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit, "src"], capture_output=True, check=False)
    if archive.returncode:
        reason = archive.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise BadSpecError(f"commit '{commit}' cannot be read: {reason}; run this in a checkout of nappingrl")
    subprocess.run(["tar", "x"], cwd=folder, input=archive.stdout, check=True)
    return folder / "src"


def _time_once(source: Path, case: Case, trials: int) -> tuple[float, str]:
    """Steps per second in a new process, and a hash of the rows."""
    cache = source.parent / "kernels"
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", TIMED, case.domain, case.agent, case.method, str(trials)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=source, check=False)
    if process.returncode:
        raise BadSpecError(f"{' '.join(command[3:])} failed: {process.stderr.strip().rpartition(chr(10))[2]}")
    speed, rows_hash = process.stdout.split()[-2:]
    return float(speed), rows_hash


def _compare(before: Path, now: Path, case: Case, trials: int, rounds: int) -> Comparison:
    """Alternate between both commits."""
    for source in (before, now):
        _time_once(source, case, trials=2)  # compiles the kernels
    speeds = []
    hashes = set()
    for _ in range(rounds):
        old, old_hash = _time_once(before, case, trials)
        new, new_hash = _time_once(now, case, trials)
        speeds.append((old, new))
        hashes |= {old_hash, new_hash}
    return Comparison(
        domain=case.domain,
        agent=case.agent,
        method=case.method,
        trials=trials,
        before=statistics.median(old for old, _ in speeds),
        now=statistics.median(new for _, new in speeds),
        ratio=statistics.median(new / old for old, new in speeds),
        same_rows=len(hashes) == 1,
    )


def compare_commits(
    before: str, now: str = "HEAD", trials: int = 256, rounds: int = 5, on_progress: OnProgress | None = None
) -> list[Comparison]:
    """All cases at both commits; NAPPING has `trials`, the others a share of them."""
    comparisons = []
    with tempfile.TemporaryDirectory() as folder:
        sources = _export(before, Path(folder, "before")), _export(now, Path(folder, "now"))
        for i, case in enumerate(CASES):
            if on_progress is not None:
                on_progress(i, len(CASES))
            comparisons.append(_compare(*sources, case, max(1, round(trials * case.share)), rounds))
    return comparisons
