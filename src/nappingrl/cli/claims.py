"""`napping claims`."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from nappingrl.cli import argv
from nappingrl.cli.console import print_note, print_table, progress, warn_incomplete
from nappingrl.errors import BadRunError
from nappingrl.report.runs import Run
from nappingrl.reproduction.judging import FAILS, largest_runs, settings_key
from nappingrl.reproduction.outputs import (
    count_verdicts,
    describe_verdict,
    judge_claims,
    write_claims,
    write_pages,
    write_pass_rates,
    write_rows,
)
from nappingrl.reproduction.published import read_evidence, read_published
from nappingrl.reproduction.tables import costs_markdown, results_markdown
from nappingrl.trials.store import make_folder, write_output


@dataclass(frozen=True)
class Claims:
    """Check the paper's quantitative claims against your runs.

    Each claim holds, does not hold, is undecided (with the number of trials that would decide it) or is not judged
    (with the reason). Claims about NAPPING are judged as printed, with our defaults, and beyond the paper. Exit status
    0: no claim fails; 1: at least one does; 2: no runs were found.

    Example: napping claims paper
    Example: napping claims docs/paper runs/more --out merged
    """

    folders: Positional[tuple[Path, ...]]
    """Folders with runs at any depth, such as the --out of `napping paper`, or published files (paper/rows/*.parquet).
    Of runs that only differ in the number of trials, the largest is judged; all of a domain need the same seed."""
    partial: bool = False
    """Accept unfinished runs and use their finished parts. A finished run with the same settings comes first."""
    out: Path | None = None
    """Also write claims.md, claims.json, results.md, costs.md (CPU seconds), a page per domain (DOMAIN/report.html),
    and the return of every episode (rows/DOMAIN.parquet)."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Judge, then print."""
        if not self.folders:
            raise BadRunError("no folder was given; give the --out of `napping paper`, or folders with runs")
        if self.partial and self.out is not None:
            raise BadRunError("--out writes whole runs; leave --partial out, or finish the runs")
        with progress("claims") as on_progress:
            found = read_evidence(self.folders, self.partial)
            runs = largest_runs(found)
            judged = judge_claims(runs, on_progress)
            if self.out is not None:
                self._write(runs, judged, self.out, on_progress)
        for note in _notes(found, runs):
            print_note(note)
        warn_incomplete(runs)
        if self.json:
            print(json.dumps({"claims": judged}))
        else:
            print_claims(judged)
        if any(entry["status"] == FAILS for entry in judged):
            sys.exit(1)

    def _write(
        self, runs: list[Run], judged: list[dict[str, Any]], out: Path, on_progress: Callable[..., None]
    ) -> None:
        on_progress(1, 3, "tables and rows")
        make_folder(out)
        for name, text in (("results.md", results_markdown(runs)), ("costs.md", costs_markdown(runs))):
            write_output(out / name, text.encode())
        write_claims(judged, out)
        files = write_rows(runs, out / "rows")
        on_progress(2, 3, "pages")
        published = [run for file in files for run in read_published(file)]
        command = argv.rebuild(replace(self, json=False))
        write_pages(published, out, lambda paths, folder, statistic: command)
        write_pass_rates(published, out)
        print_note(f"tables, pages and rows: {out}")


def _notes(found: list[Run], runs: list[Run]) -> list[str]:
    """Which runs are left out, and which of them an older or newer version of the source has made."""
    kept = {settings_key(run): run for run in runs}
    notes = []
    for run in found:
        other = kept[settings_key(run)]
        if any(run is one for one in runs):
            continue
        is_other = run.manifest.source_sha256 != other.manifest.source_sha256
        source = ", of another version of the source" * is_other
        notes.append(
            f"{run.place} is left out ({run.n_trials} trials): there is one with the same settings and "
            f"{other.n_trials} trials{source}"
        )
    return notes


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
