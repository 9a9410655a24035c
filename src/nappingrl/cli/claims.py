"""`napping claims`."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

import nappingrl.report.figures  # noqa: F401  # pass_rates and figures import each other: figures first
from nappingrl.cli.console import print_claims, warn_incomplete
from nappingrl.cli.paper import judge_all
from nappingrl.report.runs import load_run
from nappingrl.reproduction.claims import FAILS
from nappingrl.trials.store import RunFolder


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
        runs = [load_run(folder, self.partial) for folder in RunFolder.below(self.folder)]
        judged = judge_all([run.run for run in runs])
        warn_incomplete(runs)
        if self.json:
            print(json.dumps({"claims": judged}))
        else:
            print_claims(judged)
        if any(entry["status"] == FAILS for entry in judged):
            sys.exit(1)
