"""The engine's throughput now and at an earlier commit, alternately in one run: prints the ratio of the medians.

Run: python benchmarks/before_after.py 2b727e4~1 --trials 256 --rounds 5

Each process compiles its kernels first, then times one run on one core (CPU time).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TIMED = """
import sys, time
import nappingrl
domain, agent, method, trials = sys.argv[1:5]
nappingrl.run(domain, agent, method, trials=4, seed=1, workers=1)
started = time.process_time()
result = nappingrl.run(domain, agent, method, trials=int(trials), seed=11, workers=1)
rows = getattr(result, "rows", result)  # the older version returns the rows themselves
print(int(rows["length"].sum()) / (time.process_time() - started))
"""


def steps_per_second(source: Path, case: tuple[str, str, str], trials: int) -> float:
    """Of the package whose sources are in this folder."""
    environment = os.environ | {"PYTHONPATH": str(source), "NUMBA_CACHE_DIR": str(source / ".numba_cache")}
    command = [sys.executable, "-c", TIMED, *case, str(trials)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=source)
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="to compare with")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| world, agent, method | steps a second then | now | now / then |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, commit in (("then", options.commit), ("now", "HEAD")):
            archive = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, capture_output=True, check=True)
            (Path(folder) / name).mkdir()
            subprocess.run(["tar", "x"], cwd=Path(folder) / name, input=archive.stdout, check=True)
        for case in (("cartpole", "ppo", "napping"), ("cartpole", "dqn", "napping"), ("mountaincar", "dqn", "napping")):
            speeds: dict[str, list[float]] = {"then": [], "now": []}
            for _ in range(options.rounds):
                for name, found in speeds.items():
                    found.append(steps_per_second(Path(folder) / name / "src", case, options.trials))
            then, now = (statistics.median(found) for found in speeds.values())
            print(f"| {' '.join(case)} | {then:.0f} | {now:.0f} | {now / then:.2f} |", flush=True)


if __name__ == "__main__":
    main()
