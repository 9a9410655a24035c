"""What a run costs against trials, regions and workers: CPU and wall seconds, and the memory of the largest process.

python benchmarks/cost_model.py cartpole --agent ppo --method napping --trials 128 512 2048 --workers 1 2

Each run is a new process, after one that compiles the kernels. The last line is the least-squares fit of CPU
seconds = start + seconds per trial * trials, over the runs with one worker.
"""

import argparse
import resource
import time
from dataclasses import dataclass

import numpy as np
import polars as pl

import nappingrl
from nappingrl.benchmark.overview import PER_MB, in_process
from nappingrl.reproduction.times import cpu_seconds


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run."""

    trials: int
    workers: int
    episodes: int
    regions: float
    """Mean number at the end of a trial."""
    steps: int
    cpu: float
    wall: float
    memory_mb: float
    """Of the largest process."""

    def row(self) -> str:
        """As a row of the table."""
        cells = (
            f"{self.trials}", f"{self.episodes}", f"{self.workers}", f"{self.regions:.0f}", f"{self.cpu:.1f}",
            f"{self.wall:.1f}", f"{self.cpu / self.steps * 1e6:.2f}", f"{self.memory_mb:.0f}",
        )  # fmt: skip
        return f"| {' | '.join(cells)} |"


def measure(domain: str, agent: str, method: str, trials: int, episodes: int, workers: int) -> Cost:
    """Run it in this process and its workers."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    rows = nappingrl.run(
        domain, agent, method, trials=trials, protocol=f"{episodes}+{episodes}", seed=7, workers=workers
    ).rows
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    last = rows.filter(pl.col("episode") == pl.col("episode").max())
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    regions, steps = float(last["regions"].mean() or 0), int(rows["length"].sum())  # type: ignore[arg-type]
    return Cost(trials, workers, episodes, regions, steps, cpu, wall, memory / PER_MB)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("domain", nargs="?", default="cartpole")
    parser.add_argument("--agent", default="ppo")
    parser.add_argument("--method", default="napping")
    parser.add_argument("--trials", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--episodes", type=int, nargs="+", default=[10, 40, 160], help="before and after the novelty")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    name = options.domain, options.agent, options.method
    few, middle = min(options.trials), sorted(options.episodes)[len(options.episodes) // 2]
    in_process(measure, *name, 1, 1, 1)  # compiles the kernels
    print("| trials | episodes | workers | regions | CPU s | wall s | us per step | memory (MB) |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    single = []
    for workers in options.workers:
        for trials in options.trials:
            cost = in_process(measure, *name, trials, middle, workers)
            print(cost.row(), flush=True)
            single += [cost] if workers == 1 else []
    for episodes in options.episodes:
        if episodes != middle:
            print(in_process(measure, *name, few, episodes, 1).row(), flush=True)
    if len(single) > 1:
        per_trial, start = np.polyfit([cost.trials for cost in single], [cost.cpu for cost in single], 1)
        print(f"\nCPU seconds = {start:.2f} + {per_trial:.4f} * trials, {middle} + {middle} episodes each")


if __name__ == "__main__":
    main()
