"""What an evaluation leaves behind: figures, a page and the rows of each domain, the table of claims, pass rates."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nappingrl.report import figures
from nappingrl.report.figures.embedding_map import draw_replayed_map, first_with_regions
from nappingrl.report.figures.groups import MAX_COLUMNS
from nappingrl.report.figures.values import drawn_parameters
from nappingrl.report.looks import domain_title
from nappingrl.report.page import write_report
from nappingrl.report.pass_rates import has_rates, measure_gains, measure_rates, rates_json, rates_markdown
from nappingrl.report.runs import Run, number_equal
from nappingrl.reproduction import claims
from nappingrl.reproduction.columns import COLUMNS, OURS, columns_of
from nappingrl.reproduction.evaluation import PAPER, PaperSetup
from nappingrl.reproduction.judging import FAILS, HOLDS, NOT_JUDGED, UNDECIDED, judge
from nappingrl.reproduction.published import publish, times_of
from nappingrl.reproduction.tables import markdown
from nappingrl.trials.store import make_folder, write_output

VERDICTS = (HOLDS, FAILS, UNDECIDED, NOT_JUDGED)
CommandFor = Callable[[Sequence[Path], Path, str], str]
"""Gives the command that reports on runs into a folder with a statistic."""


def write_outputs(runs: Sequence[Run], out: Path, command_for: CommandFor | None = None) -> list[Path]:
    """Draw every figure that the runs allow into out/figures, and write a page per domain; returns the files."""
    return [*draw_figures(runs, out / "figures"), *write_pages(runs, out, command_for)]


def draw_figures(runs: Sequence[Run], out: Path) -> list[Path]:
    """Draw every figure that the runs allow, as <domain>-<figure>.png; a map of the regions for each agent."""
    make_folder(out)
    files = [figures.draw_domains(out / "domains.png")]
    files += [figures.draw_figure(name, [], out / f"{name}.png") for name in ("architecture", "method")]
    for domain, stem, members in _by_domain(runs):
        statistic = PAPER.get(domain, PaperSetup()).statistic
        for name, chosen in _choose_figures(domain, members):
            if chosen:
                path = out / f"{stem}-{name.removeprefix(f'{domain}-')}.png"
                files.append(figures.draw_figure(name, chosen, path, statistic))
    for run in runs:
        if run.path is not None and _has_regions(run) and OURS in columns_of(run.spec):
            again = run.replay(first_with_regions(run.rows))
            files.append(draw_replayed_map(run.manifest, again, out / f"{run.path.name}-embedding-map.png"))
    return files


def _choose_figures(domain: str, runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    """The figures made from rows, each with its runs: too many lines hide each other.

    Variants of NAPPING that are in no column of the claims are left to the page.
    """
    runs = [run for run in runs if run.method != COLUMNS[OURS].method or columns_of(run.spec)]
    frozen = [run for run in runs if run.method == "frozen"]
    adapting = [run for run in runs if run.manifest.role == "method"]
    yield "overall", [run for run in runs if run.manifest.role in ("method", "baseline")]
    yield "profiles", [run for run in runs if run.manifest.role != "control"]
    if len({novelty for run in runs for novelty in run.novelties}) > 1:
        yield "by-novelty", frozen + adapting
        yield "by-agent", [run for run in adapting if OURS in columns_of(run.spec)]
    elif drawn_parameters(runs):
        yield "by-parameter", frozen + adapting
        yield "by-value", [run for run in adapting if OURS in columns_of(run.spec)][:MAX_COLUMNS]
    for figure in figures.FIGURES.values():
        if figure.needs == domain:
            yield figure.name, frozen + adapting
    yield "regions-over-time", [run for run in adapting if _has_regions(run)]
    yield "detection-delay", frozen


def _has_regions(run: Run) -> bool:
    return run.manifest.role == "method" and bool((run.rows["regions"] > 0).any())


def _by_domain(runs: Sequence[Run]) -> Iterator[tuple[str, str, list[Run]]]:
    """The domains, the name of the files of each, and its runs: a run's file may name any text as its domain."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.domain, []).append(run)
    stems = [re.sub(r"[^A-Za-z0-9._-]+", "-", domain)[:100].strip(".-") or "domain" for domain in groups]
    return zip(groups, number_equal(stems), groups.values(), strict=True)


def write_pages(runs: Sequence[Run], out: Path, command_for: CommandFor | None = None) -> list[Path]:
    """A report page per domain, in out/<domain>; `command_for` gives the command that each page shows."""
    files = []
    for domain, stem, members in _by_domain(runs):
        statistic = PAPER.get(domain, PaperSetup()).statistic
        paths, folder = [run.path for run in members if run.path is not None], out / stem
        command = "" if command_for is None else command_for(paths, folder, statistic)
        files.append(write_report(members, folder, statistic=statistic, command=command))
    return files


def write_rows(runs: Sequence[Run], out: Path) -> list[Path]:
    """The return of every episode with what was drawn, one file per domain: out/<domain>.parquet."""
    files = []
    for _, stem, members in _by_domain(runs):
        files.append(out / f"{stem}.parquet")
        publish(members, files[-1])
    return files


def judge_claims(
    runs: Sequence[Run], on_progress: Callable[[int, int], None] = lambda done, total: None
) -> list[dict[str, Any]]:
    """Every claim of the paper with its finding in each column, as plain values."""
    return [
        {"domain": claim.domain, "text": claim.text, "criterion": claim.criterion, **asdict(finding)}
        for claim, finding in judge(claims.CLAIMS, runs, _cpu_seconds, on_progress)
    ]


def write_claims(judged: Sequence[Mapping[str, Any]], out: Path) -> None:
    """Write judged claims as claims.json and claims.md."""
    write_output(out / "claims.json", f"{json.dumps(judged, indent=2)}\n".encode())
    write_output(out / "claims.md", claims_markdown(judged).encode())


def claims_markdown(judged: Sequence[Mapping[str, Any]]) -> str:
    """The verdicts counted by column, then the claims of each domain; those about NAPPING with a column for each."""
    lines = [*markdown(count_verdicts(judged)), ""]
    for domain in dict.fromkeys(entry["domain"] for entry in judged):
        for columns, about in ((("",), "the agents and the learners"), (tuple(COLUMNS), "NAPPING")):
            of_domain = [entry for entry in judged if entry["domain"] == domain and entry["column"] in columns]
            if of_domain:
                lines += [f"### {domain_title(domain)}: {about}", "", *markdown(_claims_table(of_domain, columns)), ""]
    return "\n".join(lines)


def _claims_table(judged: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """A row for each claim, with what was found in each column; equal columns are merged."""
    claims = {entry["text"]: entry["criterion"] for entry in judged}
    found = {(entry["text"], entry["column"]): _finding_cell(entry) for entry in judged}
    merged: dict[tuple[str, ...], list[str]] = {}
    for column in columns:
        merged.setdefault(tuple(found[text, column] for text in claims), []).append(column or "verdict")
    head = ("claim", "holds if", *(" and ".join(names) for names in merged.values()))
    return [head, *zip(claims, claims.values(), *merged, strict=True)]


def _finding_cell(entry: Mapping[str, Any]) -> str:
    n = f" [n {entry['n']}]" if entry["n"] else ""
    verdict, _, needed = describe_verdict(entry).partition(": ")
    return f"**{verdict}**{f'; {needed}' if needed else ''}: {entry['ours']}{n}"


def count_verdicts(judged: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """How many claims of each column have each verdict, as a table with a head."""
    counts = Counter((entry["column"], entry["status"]) for entry in judged)
    columns = {"": "not about NAPPING"} | {name: name for name in COLUMNS}
    rows = [(title, *(str(counts[name, verdict]) for verdict in VERDICTS)) for name, title in columns.items()]
    return [("column", *VERDICTS), *rows]


def describe_verdict(entry: Mapping[str, Any]) -> str:
    """The verdict, and for an undecided claim what would decide it."""
    if entry["status"] != UNDECIDED:
        return str(entry["status"])
    if entry["trials_needed"] is None:
        return f"{UNDECIDED}: no number of trials would decide it at this estimate"
    hours = "" if entry["cpu_hours"] is None else f", {entry['cpu_hours']:.2g} CPU-hours"
    return f"{UNDECIDED}: needs about {entry['trials_needed']} trials{hours}"


def _cpu_seconds(run: Run) -> float | None:
    """What the run took, if that is known."""
    return times_of(run).cpu or None


def write_pass_rates(runs: Sequence[Run], out: Path) -> dict[str, Any]:
    """The pass rates of each domain that has them, as plain values; written beside its page as rates.md."""
    by_domain = {}
    for domain, stem, members in _by_domain(runs):
        if has_rates(members):
            rates, gains = measure_rates(members), measure_gains(members)
            by_domain[domain] = rates_json(rates, gains)
            write_output(out / stem / "rates.md", rates_markdown(rates, gains).encode())
    return by_domain
