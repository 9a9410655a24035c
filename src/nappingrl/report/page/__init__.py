"""One page a person can open: tables, curves to play with, rules, commands, in a single HTML file without network."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import nappingrl
from nappingrl.errors import BadRunError, MissingExtraError
from nappingrl.report.page.curves import curve_data
from nappingrl.report.page.html import resource, text
from nappingrl.report.page.metrics import measure_runs, metrics_section
from nappingrl.report.page.rules import TrialRules, rules_section
from nappingrl.report.page.summary import HEAD, Compared, rerun_section, runs_table, summary_section
from nappingrl.report.runs import Loaded

__all__ = ["HEAD", "Compared", "Content", "plotly_script", "table", "write"]

MAX_BYTES = 10_000_000

table = runs_table

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
Wilson's where a return says passed or not) or of the median (order statistics, from 6 trials on). Where trials begin
at episodes of their own, those are shown that all trials have. Episode 0 is the first after the novelty. Click a name
to hide or show a run; of many runs the controls are hidden at first.
</figcaption></figure>
<div class="scroll" tabindex="0" role="region" aria-label="The trials shown"><table class="ends">
<caption>The trials shown, in numbers</caption>
<thead><tr><th scope="col">run</th><th scope="col">trials</th><th scope="col">last 10</th>
<th scope="col">solved</th></tr></thead><tbody id="ends"></tbody></table></div>
<noscript><p class="warning">The curves need JavaScript; curves.png beside this page shows them as a picture.</p>
</noscript>"""


@dataclass(frozen=True, slots=True)
class Content:
    """What a page is made of."""

    runs: list[Loaded]
    compared: list[Compared]
    statistic: str = "median"
    command: str = ""
    """That made the report."""
    rules: list[TrialRules] = field(default_factory=list)
    why_no_rules: str = ""
    """Why the rules of the chosen trial are not there."""


def plotly_script() -> tuple[str, str]:
    """Plotly's JavaScript and its version; MissingExtraError where it is not installed."""
    try:
        from plotly import __version__
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise MissingExtraError('the page needs plotly: pip install "nappingrl[report]"') from error
    return str(get_plotlyjs()).replace("\r\n", "\n"), str(__version__)


def write(path: Path, content: Content) -> Path:
    """Write the page. Nothing in it is fetched, and it can be moved."""
    plotly, version = plotly_script()
    data = curve_data(content.runs, content.statistic)
    left_out = ", ".join(data["left_out"])
    curves = _CONTROLS + (f"<p>Left out to keep the page small: split by {text(left_out)}.</p>" if left_out else "")
    made_with = f"nappingrl {nappingrl.__version__} and plotly {version}"
    sections = {
        "Summary": summary_section(content.runs, content.compared),
        "Curves": curves,
        "Metrics": metrics_section(content.runs, measure_runs(content.runs)),
        "Rules": rules_section(content.rules, content.why_no_rules),
        "How to rerun": rerun_section(content.runs, content.command, made_with),
    }
    page = _assemble(_title(content.runs), sections, json.dumps(data, separators=(",", ":")), plotly)
    if (size := len(page.encode())) >= MAX_BYTES:
        raise BadRunError(f"the page would have {size / 1e6:.1f} MB, allowed: {MAX_BYTES / 1e6:.0f}; give fewer runs")
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def _title(runs: list[Loaded]) -> str:
    spec = runs[0].manifest.spec
    return f"{spec['domain']}: " + ", ".join(dict.fromkeys(str(run.manifest.spec["method"]) for run in runs))


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
