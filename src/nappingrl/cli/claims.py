"""`napping claims`."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from nappingrl.cli.console import print_claims, warn_incomplete
from nappingrl.report.runs import read_runs_below
from nappingrl.reproduction.judging import FAILS
from nappingrl.reproduction.outputs import judge_claims


@dataclass(frozen=True)
class Claims:
    """Check the paper's quantitative claims against your runs.

    Each claim holds, does not hold, or was not run. Exit status 0: every claim that was run holds; 1: at least one does
    not; 2: no runs were found.

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
