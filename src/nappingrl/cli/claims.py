"""`napping claims`."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from nappingrl.cli.console import print_table, warn_incomplete
from nappingrl.report.runs import read_runs_below
from nappingrl.reproduction.judging import FAILS
from nappingrl.reproduction.outputs import count_verdicts, describe_verdict, judge_claims


@dataclass(frozen=True)
class Claims:
    """Check the paper's quantitative claims against your runs.

    Each claim holds, does not hold, is undecided (with the number of trials that would decide it) or is not judged
    (with the reason). Claims about NAPPING are judged as printed, with our defaults, and beyond the paper. Exit status
    0: no claim fails; 1: at least one does; 2: no runs were found.

    Example: napping claims paper
    """

    folder: Positional[Path]
    """Folder with runs at any depth, such as the --out of `napping paper`."""
    partial: bool = False
    """Accept unfinished runs and use their finished parts."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Judge, then print."""
        runs = read_runs_below(self.folder, self.partial)
        judged = judge_claims(runs)
        warn_incomplete(runs)
        if self.json:
            print(json.dumps({"claims": judged}))
        else:
            print_claims(judged)
        if any(entry["status"] == FAILS for entry in judged):
            sys.exit(1)


def print_claims(judged: list[dict[str, Any]]) -> None:
    """Print judged claims, then how many have each verdict."""
    print_table(
        ("domain", "claim of the paper", "column", "trials", "estimate (95 % interval)", "verdict"),
        [
            (entry["domain"], entry["text"], entry["column"] or "-", str(entry["n"] or "-"), entry["ours"],
             describe_verdict(entry))
            for entry in judged
        ],
    )  # fmt: skip
    head, *rows = count_verdicts(judged)
    print_table(head, rows)
