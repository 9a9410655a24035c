"""Does this version of the package still make the published rows?

python benchmarks/repeat_published.py docs/paper --trials 2

Runs the first trials of each published run again, with the settings in its manifest, and compares the return of every
episode. Returns are the same on one type of CPU with the same versions of numpy and numba; on others a few may differ.
The exit status is 1 if any differ.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from nappingrl._build import source_sha256
from nappingrl.agents import load
from nappingrl.report.runs import Run, read_run
from nappingrl.reproduction.published import read_evidence
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec

KEY = ["novelty", "number", "episode"]


def repeat(run: Run, trials: int, workers: int) -> tuple[int, int]:
    """How many trials of a run were run again, and how many of them have other returns."""
    spec = RunSpec(**run.spec)
    spec = replace(spec, trials=min(trials, spec.trials))
    with tempfile.TemporaryDirectory() as folder:
        run_into(Path(folder) / "run", spec, load(spec.agent, spec.domain), workers)
        again = read_run(Path(folder) / "run").rows
    both = again.select(*KEY, pl.col("return").cast(pl.Float32)).join(
        run.rows.select(*KEY, pl.col("return").cast(pl.Float32).alias("published")), on=KEY, how="left"
    )
    same = both.group_by("novelty", "number").agg(pl.col("return").eq_missing(pl.col("published")).all())
    return len(same), int((~same["return"]).sum())


def table(runs: Sequence[Run], trials: int, workers: int) -> bool:
    """Print a line per run; whether all returns are the published ones."""
    all_same = True
    print("| run | source | trials | with other returns |\n|---|---|---|---|")
    for run in runs:
        source = "this one" if run.manifest.source_sha256 == source_sha256() else run.manifest.source_sha256[:12]
        n, n_other = repeat(run, trials, workers)
        all_same &= n_other == 0
        print(f"| {run.name} | {source} | {n} | {n_other} |", flush=True)
    return all_same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path, help="a published file, or a folder of them")
    parser.add_argument("--trials", type=int, default=2, help="of each novelty")
    parser.add_argument("--only", default="", help="runs whose names contain this text")
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    runs = [run for run in read_evidence([args.rows]) if args.only in run.name]
    if not runs:
        parser.error(f"no run of {args.rows} has '{args.only}' in its name")
    sys.exit(not table(runs, args.trials, args.workers))


if __name__ == "__main__":
    main()
