"""The table of metrics of a page: every metric of every run with its interval, or why it has none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nappingrl.errors import BadRunError
from nappingrl.report.best_control import find_frozen
from nappingrl.report.compute import Metric, Metrics, compute_metrics
from nappingrl.report.intervals import mean_interval, rate_interval
from nappingrl.report.page.formats import Cell, Table, decimals, number, span_words
from nappingrl.report.runs import SAME_DRAWS, Run
from nappingrl.report.summary import span_of

_DRAWS = (*SAME_DRAWS, "novelty")
"""What two runs must share to have met the same novelties."""

_PRE = "no episode precedes the novelty"
_NOT_DETECTED = "no trial is detected after the novelty without a false alarm"
_BASE_AT_0 = "the frozen agent has performance 0 before the novelty"
_BASE_SUM_0 = "the frozen agent has performance 0 in these episodes"


@dataclass(frozen=True, slots=True)
class About:
    """What a reader should know about a metric."""

    name: str
    words: str
    needs: tuple[str, ...] = ()
    """Other runs that it needs (frozen, random, oracle), and columns besides returns."""
    undefined: str = "not defined for any trial"
    """Why it can lack a value although it has those runs."""
    is_share: bool = False
    """0 or 1 per trial."""


_FROZEN, _DETECTED = ("frozen",), ("detected",)
_COLUMNS = ("detected", "length", "won")
GROUPS: dict[str, dict[str, About]] = {
    "Detection": {
        "fp": About("False alarms", "episodes before the novelty with detection declared", _DETECTED),
        "tp": About("Alarms after the novelty", "episodes after the novelty with detection declared", _DETECTED),
        "tn": About("Quiet episodes before it", "episodes before the novelty without detection", _DETECTED),
        "m1_first": About(
            "Delay", "of correctly detected trials: episodes until the first detection", _DETECTED, _NOT_DETECTED
        ),
        "m1_count": About(
            "Missed episodes", "of correctly detected trials: episodes without detection", _DETECTED, _NOT_DETECTED
        ),
        "m2": About("Detected correctly", "share of trials detected without a false alarm", _DETECTED, is_share=True),
        "m21": About("Trials with a false alarm", "share of trials with a false alarm", _DETECTED, is_share=True),
        "m22": About("Quiet share", "share of episodes before the novelty without detection", _DETECTED, _PRE),
        "amoc_scaled": About(
            "AMOC, scaled", "area under the AMOC curve, timeliness scaled to 1: does not see late detection", _DETECTED
        ),
        "amoc_unscaled": About("AMOC", "area under the AMOC curve, late detection costs", _DETECTED),
        "is_early": About("Too early", "share of trials whose first alarm comes before it", _DETECTED, is_share=True),
    },
    "Reaction": {
        "nrp": About(
            "Recovered at the end",
            "performance of the last m episodes over the frozen agent's before the novelty",
            _FROZEN,
            _BASE_AT_0,
        ),
        "inrp": About(
            "Recovered at first", "the same with the first m episodes after the novelty", _FROZEN, _BASE_AT_0
        ),
        "onrp": About("Recovered over all", "the same with all episodes after the novelty", _FROZEN, _BASE_AT_0),
        "opti": About(
            "Gain over all",
            "share a / (a + b) of performance after the novelty, b that of the frozen agent; 0.5: no gain",
            _FROZEN,
        ),
        "apti": About("Gain at the end", "the same over the last m episodes", _FROZEN),
        "ipti": About("Gain at first", "the same over the first m episodes after the novelty", _FROZEN),
        "opti_ratio": About("Ratio over all", "a / b over all episodes after the novelty", _FROZEN, _BASE_SUM_0),
        "apti_ratio": About("Ratio at the end", "a / b over the last m episodes", _FROZEN, _BASE_SUM_0),
        "ipti_ratio": About(
            "Ratio at first", "a / b over the first m episodes after the novelty", _FROZEN, _BASE_SUM_0
        ),
        "nrm": About(
            "Unharmed",
            "share of trials whose mean stays within two deviations of that before the novelty",
            (),
            _PRE,
            is_share=True,
        ),
        "nrm_baseline": About("Unharmed when frozen", "the same of the frozen agent", _FROZEN, _PRE, is_share=True),
    },
    "Adaptation": {
        "resilience_drop": About(
            "Drop when frozen",
            "the frozen agent's best episode before the novelty minus its mean after it",
            _FROZEN,
            _PRE,
        ),
        "resilience_vs_random": About(
            "Frozen over random",
            "the frozen agent's mean after the novelty minus that of random actions",
            ("frozen", "random"),
        ),
        "asymptotic_performance": About("Final performance", "performance of the last m episodes"),
        "one_shot_performance": About(
            "Second episode",
            "performance in the second episode after the novelty",
            (),
            "only one episode follows the novelty",
        ),
        "adaptive_efficiency": About(
            "Steps to adapt",
            "environment steps until the curve stays near its final level",
            ("length",),
            "no trial ends near its final level",
        ),
        "oracle_regret": About(
            "Regret to the oracle",
            "mean performance after the novelty that the oracle has and the run lacks",
            ("oracle",),
        ),
    },
    "The paper's own": {
        "last10_return": About("Last ten returns", "return of the last ten episodes"),
        "last10_won": About(
            "Last ten won",
            "share of the last ten episodes won",
            ("won",),
            "the domain does not say when an episode is won",
        ),
        "failed": About(
            "Failed trials",
            "share of trials with all episodes after the novelty at the minimum return",
            (),
            "the domain has no minimum return",
            is_share=True,
        ),
        "failed_removed": About(
            "Failures cured",
            "of the trials that the frozen agent fails: the share that this run does not",
            _FROZEN,
            "the frozen agent fails no trial",
            is_share=True,
        ),
    },
}
FAILED_CUT = About(
    "Failures cut",
    "1 - failed trials / failed trials of the frozen agent", _FROZEN, "the frozen agent fails no trial"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """The metrics of a run, and why runs that some of them need are missing."""

    metrics: Metrics
    lacking: dict[str, str]


def measure_runs(runs: Sequence[Run]) -> list[Measured]:
    """The metrics of every run, with the frozen, random and oracle runs on its draws where there are any.

    Of a run with more trials than the frozen agent's, those that this one has, too.
    """
    measured = []
    span = span_of(runs[0].manifest, *(run.rows for run in runs))
    for whole in runs:
        run = _on_draws_of_frozen(whole, runs)
        columns = [column for column in _COLUMNS if column not in run.rows.columns]
        lacking = {column: f"the rows have no column '{column}'" for column in columns}
        beside = {method: _beside(run, runs, method, lacking) for method in ("frozen", "random", "oracle")}
        metrics = compute_metrics(run, beside["frozen"], random=beside["random"], oracle=beside["oracle"], span=span)
        if run is not whole:
            note = f"{whole.label}: the {run.n_trials} of its {whole.n_trials} trials whose draws the frozen agent met"
            metrics = replace(metrics, notes=(*metrics.notes, note))
        measured.append(Measured(metrics, lacking))
    return measured


def _on_draws_of_frozen(run: Run, runs: Sequence[Run]) -> Run:
    """The trials of a run on the draws of the frozen agent's smaller run; all trials where that is not smaller."""
    frozen = find_frozen(run, runs)
    if frozen is None or frozen.spec["trials"] >= run.spec["trials"]:
        return run
    return replace(run, rows=run.rows.join(frozen.keys, on=["novelty", "number"], how="semi", maintain_order="left"))


def _beside(run: Run, runs: Sequence[Run], method: str, lacking: dict[str, str]) -> Run | None:
    """The run of that method on the same draws; where there is none, the reason goes into `lacking`."""
    named = f"{method} --detector given" if method == "random" else method
    lacking[method] = f"needs a run of --method {named} on the same draws" + (
        " with the same agent" if method == "frozen" else ""
    )
    keys = (*_DRAWS, "agent") if method == "frozen" else _DRAWS
    for other in runs:
        if other.method != method or any(other.spec[key] != run.spec[key] for key in keys):
            continue
        if method == "frozen" and other.manifest.agent_sha256 != run.manifest.agent_sha256:
            continue
        if method == "random" and other.spec["detector"] != "given":
            note = f"; the random run here acts as the agent until {other.spec['detector']} detects the novelty"
            lacking[method] = lacking[method].removesuffix(note) + note
            continue
        try:
            other.in_order_of(run)
        except BadRunError:
            lacking[method] = f"the {method} run here lacks trials of this run, or met other novelties"
            continue
        del lacking[method]
        return other
    return None


@dataclass(frozen=True, slots=True)
class MetricsPart:
    """The tables, the reasons for every n/a, and notes on how they were computed."""

    groups: list[Table]
    reasons: list[str]
    notes: list[str]


def metrics_part(runs: Sequence[Run], measured: list[Measured]) -> MetricsPart:
    """The metrics of these runs for a page."""
    reasons: list[str] = []
    groups = []
    for title, group in GROUPS.items():
        lines = [_line(name, about, measured, reasons) for name, about in group.items()]
        if title == "The paper's own":
            lines.append(_cut_line(measured, reasons))
        groups.append(Table(title, ("metric", "better", *(run.label for run in runs)), lines, "metrics"))
    notes = dict.fromkeys(note for entry in measured for note in entry.metrics.notes)
    return MetricsPart(groups, reasons, list(notes))


def _line(name: str, about: About, measured: list[Measured], reasons: list[str]) -> list[Cell | str]:
    metrics = [one.metrics.by_name[name] for one in measured]
    cells = [_cell(m, about, one.lacking, reasons) for m, one in zip(metrics, measured, strict=True)]
    return [_name(name, about), metrics[0].better, *cells]


def _cut_line(measured: list[Measured], reasons: list[str]) -> list[Cell | str]:
    cells = []
    for one in measured:
        cut = one.metrics.failed_cut
        cells.append(_absent(FAILED_CUT, one.lacking, reasons) if cut is None else Cell(f"{cut:.3f}", ("of all",)))
    return [_name("failed_cut", FAILED_CUT), "higher", *cells]


def _name(name: str, about: About) -> Cell:
    return Cell(about.name, (about.words,), name)


def _cell(metric: Metric, about: About, lacking: dict[str, str], reasons: list[str]) -> Cell:
    values, n = metric.defined, len(metric.per_trial)
    if metric.value is None:
        return _absent(about, lacking, reasons)
    is_share = about.is_share and bool(np.isin(values, (0.0, 1.0)).all())
    interval = rate_interval(values) if is_share else mean_interval(values)
    digits = decimals(metric.value, *((interval.low, interval.high) if interval else ()))
    some = (f"of {len(values)} of {n} trials",) if len(values) < n else ()
    return Cell(number(metric.value, digits), (span_words(interval, digits, len(values)), *some))


def _absent(about: About, lacking: dict[str, str], reasons: list[str]) -> Cell:
    reason = next((lacking[method] for method in about.needs if method in lacking), about.undefined)
    if reason not in reasons:
        reasons.append(reason)
    return Cell("n/a", footnote=reasons.index(reason) + 1)
