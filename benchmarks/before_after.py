"""Throughput of the engine now and at an earlier commit.

python benchmarks/before_after.py bb3bd05 --rounds 5

Both commits are exported to a temporary folder, each with its own cache of compiled kernels. After an untimed run of
each, rounds alternate between the two; every round is a new process that measures CPU time on one core. The ratio is
the median over rounds of steps per second now / before: above 1 is faster. `same rows` tells whether both commits
played the same episodes to the same returns.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
    """Multiple of --trials."""


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


def export(commit: str, folder: Path) -> Path:
    """The sources of a commit."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True)
    subprocess.run(["tar", "x"], cwd=folder, input=archive.stdout, check=True)
    return folder / "src"


def time_once(source: Path, case: Case, trials: int) -> tuple[float, str]:
    """Steps per second in a new process, and a hash of the rows."""
    cache = source.parent / "kernels"
    environment = os.environ | ONE_THREAD | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", TIMED, case.domain, case.agent, case.method, str(trials)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=source, check=False)
    if process.returncode:
        raise SystemExit(f"{' '.join(command[3:])} with {source} failed:\n{process.stderr}")
    speed, rows_hash = process.stdout.split()[-2:]
    return float(speed), rows_hash


def compare(before: Path, now: Path, case: Case, trials: int, rounds: int) -> Comparison:
    """Alternate between both commits."""
    for source in (before, now):
        time_once(source, case, trials=2)  # compiles the kernels
    speeds = []
    hashes = set()
    for _ in range(rounds):
        old, old_hash = time_once(before, case, trials)
        new, new_hash = time_once(now, case, trials)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?", default="bb3bd05", help="commit to compare with")
    parser.add_argument("--now", default="HEAD", help="commit to measure; uncommitted changes are not included")
    parser.add_argument("--trials", type=int, default=256, help="of NAPPING; foresight an eighth, frozen twice as many")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--methods", nargs="+", default=["frozen", "napping", "foresight"])
    parser.add_argument("--json", action="store_true", help="print a single machine-readable array")
    options = parser.parse_args()
    comparisons = []
    if not options.json:
        print(
            "| domain | agent | method | steps/s before | now | now / before | same rows |\n|" + "---|" * 7, flush=True
        )
    with tempfile.TemporaryDirectory() as folder:
        before = export(options.before, Path(folder, "before"))
        now = export(options.now, Path(folder, "now"))
        for case in CASES:
            if case.method not in options.methods:
                continue
            trials = max(1, round(options.trials * case.share))
            c = compare(before, now, case, trials, options.rounds)
            comparisons.append(asdict(c))
            if not options.json:
                cells = (c.domain, c.agent, c.method, f"{c.before:.0f}", f"{c.now:.0f}", f"{c.ratio:.3f}")
                print(f"| {' | '.join(cells)} | {'yes' if c.same_rows else 'NO'} |", flush=True)
    if options.json:
        json.dump(comparisons, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
