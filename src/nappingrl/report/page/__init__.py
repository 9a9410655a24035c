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
from nappingrl.report.page.html import resource, text
from nappingrl.report.page.metrics import measure_runs, metrics_section
from nappingrl.report.page.rules import TrialRules, find_rules, rules_section
from nappingrl.report.page.summary import rerun_section, summary_section
from nappingrl.report.runs import Run, check_one_domain, label_runs
from nappingrl.report.table import Result, summarise_runs
from nappingrl.trials.store import make_folder, write_output

__all__ = ["PAGE", "PICTURE", "Content", "write_page", "write_report"]

PAGE, PICTURE = "report.html", "curves.png"
MAX_BYTES = 10_000_000

_CONTROLS = """<form id="controls"><fieldset><legend>Curve</legend>
<label><input type="radio" name="statistic" value="median"> median</label>
<label><input type="radio" name="statistic" value="mean"> mean</label></fieldset>
<fieldset id="choice"><legend>Trials</legend>
<label>Split by <select id="split"></select></label>
<label id="names" hidden>show <select id="name"></select></label>
<label id="bins" hidden>show <input type="range" id="bin" min="0" step="1" value="0"></label>
<output id="shown" for="split name bin" aria-live="polite"></output></fieldset></form>
<figure><div id="plot" role="figure" aria-label="Return per episode of each run, before and after the novelty; the
table below has the end of each curve in numbers"></div>
<figcaption>Return per episode over the trials shown. Band: 95 % interval over trials, of the mean (Student's t;
Wilson's where a return says passed or not) or of the median (order statistics, from 6 trials on). Where trials start
at different episodes, only the common ones are shown. Episode 0 is the first after the novelty. Click a name
to hide or show a run; of many runs the controls are hidden at first.
</figcaption></figure>
<div class="scroll" tabindex="0" role="region" aria-label="The trials shown"><table class="ends">
<caption>The trials shown, in numbers</caption>
<thead><tr><th scope="col">run</th><th scope="col">trials</th><th scope="col">last 10</th>
<th scope="col">solved</th></tr></thead><tbody id="ends"></tbody></table></div>
<noscript><p class="warning">The curves need JavaScript; curves.png beside this page shows them as a picture.</p>
</noscript>"""


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


def write_page(path: Path, content: Content) -> Path:
    """Write the page: one HTML file that fetches nothing."""
    plotly, version = plotly_script()
    data = curve_data(content.runs, content.statistic)
    left_out = ", ".join(data["left_out"])
    curves = _CONTROLS + (f"<p>Left out to keep the page small: split by {text(left_out)}.</p>" if left_out else "")
    commands = [_command_of(run, content.command_for) for run in content.runs]
    made_with = f"nappingrl {nappingrl.__version__} and plotly {version}"
    sections = {
        "Summary": summary_section(content.runs, content.results),
        "Curves": curves,
        "Metrics": metrics_section(content.runs, measure_runs(content.runs)),
        "Rules": rules_section(content.rules, content.why_no_rules),
        "How to rerun": rerun_section(content.runs, [*commands, content.command], made_with),
    }
    page = _assemble(_title(content.runs), sections, json.dumps(data, separators=(",", ":")), plotly)
    if (size := len(page.encode())) >= MAX_BYTES:
        raise BadRunError(f"the page would have {size / 1e6:.1f} MB, allowed: {MAX_BYTES / 1e6:.0f}; give fewer runs")
    write_output(path, page.encode())
    return path


def _title(runs: Sequence[Run]) -> str:
    return f"{domain_title(runs[0].domain)}: " + ", ".join(dict.fromkeys(method_look(run.method)[0] for run in runs))


def _assemble(title: str, sections: dict[str, str], data: str, plotly: str) -> str:
    """The document. Its policy lets exactly our two scripts run and nothing be fetched."""
    scripts = [plotly, resource("page.js")]
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    policy = f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"
    anchors = {name: name.lower().replace(" ", "-") for name in sections}
    links = "".join(f"<a href='#{anchor}'>{text(name)}</a>" for name, anchor in anchors.items())
    body = "".join(
        f"<section id='{anchors[name]}'><h2>{text(name)}</h2>{part}</section>" for name, part in sections.items()
    )
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>\n"
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<meta name='viewport' content='width=device-width,initial-scale=1'><title>{text(title)} - nappingrl</title>\n"
        f"<style>{resource('page.css')}</style></head>\n<body><header><h1>{text(title)}</h1>"
        f"<nav aria-label='Sections'>{links}</nav></header>\n<main>{body}</main>\n"
        f"<script type='application/json' id='data'>{_inert(data)}</script>\n"
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body></html>\n"
    )


def _inert(data: str) -> str:
    """JSON that cannot end its own element."""
    return data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
