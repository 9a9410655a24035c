"""`napping report`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import convert, to_builtins
from tyro.conf import Positional

from nappingrl.cli import argv
from nappingrl.cli.console import print_table, warn_incomplete
from nappingrl.cli.run import command_for
from nappingrl.errors import BadSpecError
from nappingrl.report.page import PICTURE, write_report
from nappingrl.report.pass_rates import (
    GAINS_HEAD,
    RATES_HEAD,
    RATES_NOTE,
    gains_table,
    has_rates,
    measure_gains,
    measure_rates,
    rates_json,
    rates_table,
)
from nappingrl.report.runs import Run
from nappingrl.report.table import HEAD, Result, runs_table, summarise_runs
from nappingrl.report.verdict import verdict
from nappingrl.reproduction.published import read_named
from nappingrl.trials.spec import RunSpec


@dataclass(frozen=True)
class Report:
    """Compare runs in a table, a picture and an HTML page.

    Example: napping report runs/cartpole-ppo-frozen-1 runs/cartpole-ppo-napping-1 --out report
    Example: napping report docs/paper/mountaincar.parquet --out report
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of runs, all of one domain; or a published file (paper/rows/*.parquet), or FILE/RUN for one of
    its runs."""
    out: Path | None = None
    """Folder for curves.png and report.html. Default: the folder of the first run."""
    statistic: str = ""
    """Curve to draw, and to show first on the page: median or mean over trials.
    Default: median, or mean if returns are passes and failures."""
    trial: str = ""
    """Number or id of the trial whose rules the page shows, or none. Default: the trial with the median final level."""
    env: tuple[str, ...] = ()
    """Environments module:id that may be imported to repeat a trial; what a run's files say is not enough."""
    partial: bool = False
    """Accept unfinished runs and use their finished parts."""
    json: bool = False
    """Print a single machine-readable object."""

    def __call__(self) -> None:
        """Write the picture and the page, print the table."""
        if not self.runs:
            raise BadSpecError("no run given; give the --out folder of at least one run")
        runs = read_named(self.runs, self.partial, self.env)
        if self.out is None and runs[0].path is None:
            raise BadSpecError(f"--out is missing: {self.runs[0]} is no folder of a run; give one for the page")
        out = self.out or self.runs[0]
        command = argv.rebuild(replace(self, json=False))
        page = write_report(
            runs, out, statistic=self.statistic, trial=self.trial, command=command, command_for=_command_for
        )
        warn_incomplete(runs)
        results = summarise_runs(runs)
        if self.json:
            by_run = {str(run.path or run.label): _plain(result) for run, result in zip(runs, results, strict=True)}
            content: dict[str, Any] = {"runs": by_run, "picture": str(out / PICTURE), "page": str(page)}
            content["verdict"] = verdict(runs)
            if has_rates(runs):
                content["rates"] = rates_json(measure_rates(runs), measure_gains(runs))
            print(json.dumps(content))
            return
        print(verdict(runs))
        print_table(HEAD, runs_table(results))
        if has_rates(runs):
            _print_rates(runs)
        print(f"picture: {out / PICTURE}\nopen {page} in a browser")


def report_command(runs: Sequence[Path], out: Path, statistic: str) -> str:
    """The command that reports on these runs."""
    return argv.rebuild(Report(runs=tuple(runs), out=out, statistic=statistic))


def _print_rates(runs: Sequence[Run]) -> None:
    """Print the pass rates, and how they compare with those of other agents."""
    gains = measure_gains(runs)
    print_table(RATES_HEAD, rates_table(measure_rates(runs), gains))
    if others := gains_table(gains):
        print_table(GAINS_HEAD, others)
    print(RATES_NOTE)


def _command_for(spec: Mapping[str, Any], path: Path | None) -> str:
    return command_for(convert(spec, RunSpec), path)


def _plain(result: Result) -> dict[str, Any]:
    """The result of a run as plain values."""
    best = result.best_control
    control = best and {"control": best.other, "difference": best.difference, "interval": best.interval}
    return asdict(result.summary) | {"best_control": to_builtins(control)}
