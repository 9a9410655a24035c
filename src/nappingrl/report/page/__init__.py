"""The report page: tables, interactive curves, rules and commands in a single HTML file."""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nappingrl
from nappingrl.errors import BadRunError, BadSpecError, MissingExtraError, check_name
from nappingrl.report.figures import STATISTICS, default_statistic, draw_curves
from nappingrl.report.looks import domain_title, method_look
from nappingrl.report.page.curves import curve_data
from nappingrl.report.page.metrics import measure_runs, metrics_part
from nappingrl.report.page.rendering import render, resource
from nappingrl.report.page.rules import TrialRules, find_rules, rules_part
from nappingrl.report.page.summary import rerun_part, summary_part
from nappingrl.report.page.trials import trials_table
from nappingrl.report.runs import Run, check_one_domain, label_runs
from nappingrl.report.table import Result, summarise_runs
from nappingrl.report.verdict import verdict
from nappingrl.trials.store import make_folder, write_output

__all__ = ["PAGE", "PICTURE", "Content", "write_page", "write_report"]

PAGE, PICTURE = "report.html", "curves.png"
MAX_BYTES = 10_000_000

CommandFor = Callable[[Mapping[str, Any], Path | None], str]
"""The shell command that repeats a run, given by its spec, into a folder."""


@dataclass(frozen=True, slots=True)
class Content:
    """What a page is made of."""

    runs: Sequence[Run]
    results: Sequence[Result]
    statistic: str = "median"
    command: str = ""
    """The command that made the report."""
    rules: Sequence[TrialRules] = ()
    why_no_rules: Sequence[str] = ()
    """Why methods show no rules, one line each."""
    command_for: CommandFor | None = None
    """Gives the command for a run that was started from Python."""


def plotly_script() -> tuple[str, str]:
    """Plotly's JavaScript and its version; MissingExtraError where it is not installed."""
    try:
        from plotly import __version__
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingExtraError('the page needs plotly: pip install "nappingrl[report]"') from error
    return str(get_plotlyjs()).replace("\r\n", "\n"), str(__version__)


def write_report(
    runs: Sequence[Run],
    out: str | Path,
    *,
    statistic: str = "",
    trial: str = "",
    command: str = "",
    command_for: CommandFor | None = None,
) -> Path:
    """Write a page about runs of one domain, and a picture of their curves beside it; returns the page.

    Args:
        runs: Runs of one domain, from `nappingrl.run` or `nappingrl.read_run`.
        out: Folder of the page (report.html) and the picture (curves.png).
        statistic: median or mean over trials; default: median, or mean where a return is passed or not.
        trial: Number or id of the trial whose rules are shown, or "none"; default: the one with the median final level.
        command: How to make the report again, shown on the page.
        command_for: Gives the command for a run that was started from Python; default: the page shows none for it.
    """
    if statistic:
        check_name("statistic", statistic, STATISTICS)
    if not runs:
        raise BadSpecError("no run given; give at least one run")
    plotly_script()
    check_one_domain(runs)
    runs, folder = label_runs(runs), Path(out)
    statistic = statistic or default_statistic(runs)
    rules, why = find_rules(runs, trial)
    make_folder(folder)
    draw_curves(runs, folder / PICTURE, statistic)
    return write_page(folder / PAGE, Content(runs, summarise_runs(runs), statistic, command, rules, why, command_for))


def _command_of(run: Run, command_for: CommandFor | None) -> str:
    if run.manifest.command or command_for is None:
        return run.manifest.command
    return command_for(run.spec, run.path)


SECTIONS = {
    "Summary": "summary.html",
    "Curves": "curves.html",
    "Trials": "trials.html",
    "Metrics": "metrics.html",
    "Rules": "rules.html",
    "How to rerun": "rerun.html",
}
"""The sections of a page, and their templates."""


def write_page(path: Path, content: Content) -> Path:
    """Write the page: one HTML file that fetches nothing."""
    plotly, version = plotly_script()
    runs = content.runs
    data = curve_data(runs, content.statistic)
    commands = [*(_command_of(run, content.command_for) for run in runs), content.command]
    scripts = [plotly, resource("page.js")]
    page = render(
        "page.html",
        title=_title(runs), verdict=[verdict(runs)], sections=SECTIONS, policy=_policy(scripts),
        style=resource("page.css"), scripts=scripts, data=_inert(json.dumps(data, separators=(",", ":"))),
        summary=summary_part(runs, content.results), left_out=", ".join(data["left_out"]), trials=trials_table(runs),
        metrics=metrics_part(runs, measure_runs(runs)), rules=rules_part(content.rules, content.why_no_rules),
        rerun=rerun_part(runs, commands, f"nappingrl {nappingrl.__version__} and plotly {version}"),
    )  # fmt: skip
    if (size := len(page.encode())) >= MAX_BYTES:
        raise BadRunError(f"the page would have {size / 1e6:.1f} MB, allowed: {MAX_BYTES / 1e6:.0f}; give fewer runs")
    write_output(path, page.encode())
    return path


def _title(runs: Sequence[Run]) -> str:
    return f"{domain_title(runs[0].domain)}: " + ", ".join(dict.fromkeys(method_look(run.method)[0] for run in runs))


def _policy(scripts: Sequence[str]) -> str:
    """Lets exactly these scripts run and nothing be fetched."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


def _inert(data: str) -> str:
    """JSON that cannot end its own element."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
