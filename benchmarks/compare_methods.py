"""Methods, learners, controls and the oracle on the same draws: prints the tables of docs/results.md.

python benchmarks/compare_methods.py crossroad --novelty all --trials 100 --seed 11
"""

import argparse
from pathlib import Path
from typing import Any

from nappingrl.agents import load, zoo_names
from nappingrl.domains import find_domain
from nappingrl.registry import domains
from nappingrl.report.runs import Run, read_run
from nappingrl.report.table import Result, summarise_runs, table_digits
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.workers import default_workers

METHODS = (
    "frozen", "online", "finetune", "napping", "napping rule=printed", "napping-no-memory", "controller",
    "replay-success", "switch-on-failure", "random", "oracle",
)  # fmt: skip


def run_spec(arguments: argparse.Namespace, agent: str, text: str) -> RunSpec:
    """The spec of "method field=value option=value"."""
    method, *pairs = text.split()
    fields: dict[str, Any] = {"options": {}}
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name == "score":
            fields[name] = value
        else:
            fields["options"][name] = value
    return RunSpec(
        arguments.domain, agent, method, arguments.novelty, arguments.trials, arguments.seed, **fields
    ).complete()


def cells(agent: str, text: str, result: Result) -> list[str]:
    """One line of the table."""
    summary, best = result.summary, result.best_control
    digits = table_digits(summary.return_range)
    levels = {name: numbers["last10_mean"] for name, numbers in summary.by_novelty.items()}
    gap = best.describe(digits) if best is not None and summary.role == "method" else "-"
    found = [agent, text, f"{summary.last10_mean:.{digits}f}", f"{summary.solved:.2f}", str(summary.failed), gap]
    if len(levels) > 1:
        bases = [level for name, level in levels.items() if name != "noise"]
        found += [f"{level:.{digits}f}" for level in (sum(bases) / len(bases), *levels.values())]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("domain", choices=domains.names())
    parser.add_argument("--agents", nargs="+", default=[], help="names or paths; default: all of the zoo")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--novelty", default="")
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--out", type=Path, default=Path("runs/methods"))
    arguments = parser.parse_args()
    head = ["agent", "method", "last 10", "solved", "failed", "over its best control"]
    if arguments.novelty == "all":
        head += ["without noise", *find_domain(arguments.domain).novelties]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for agent in arguments.agents or zoo_names(arguments.domain):
        runs: dict[str, Run] = {}
        for text in arguments.methods:
            spec = run_spec(arguments, agent, text)
            place = arguments.out / f"{arguments.domain}-{Path(agent).parent.name}{Path(agent).stem}-{text}"
            run_into(place, spec, load(agent, arguments.domain), default_workers())
            runs[text] = read_run(place)
        for text, result in zip(runs, summarise_runs(list(runs.values())), strict=True):
            print("| " + " | ".join(cells(agent, text, result)) + " |", flush=True)


if __name__ == "__main__":
    main()
