"""What an evaluation leaves behind: figures, a page per domain, the table of claims, pass rates."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nappingrl.report import figures
from nappingrl.report.figures.values import drawn_parameters
from nappingrl.report.page import write_report
from nappingrl.report.page.rules import why_no_rules
from nappingrl.report.pass_rates import has_rates, measure_gains, measure_rates, rates_json, rates_markdown
from nappingrl.report.runs import Run
from nappingrl.reproduction import claims
from nappingrl.reproduction.evaluation import PAPER, PaperSetup
from nappingrl.reproduction.judging import judge
from nappingrl.trials.store import make_folder, write_output

CommandFor = Callable[[Sequence[Path], Path, str], str]
"""Gives the command that reports on runs into a folder with a statistic."""


def write_outputs(runs: Sequence[Run], out: Path, command_for: CommandFor | None = None) -> list[Path]:
    """Draw every figure that the runs allow into out/figures, and write a page per domain; returns the files."""
    return [*draw_figures(runs, out / "figures"), *write_pages(runs, out, command_for)]


def draw_figures(runs: Sequence[Run], out: Path) -> list[Path]:
    """Draw every figure that the runs allow, as <domain>-<figure>.png."""
    make_folder(out)
    files = [figures.draw_domains(out / "domains.png"), figures.draw_figure("method", [], out / "method.png")]
    for domain, members in _by_domain(runs).items():
        statistic = PAPER.get(domain, PaperSetup()).statistic
        for name, chosen in _choose_figures(domain, members):
            if chosen:
                path = out / f"{domain}-{name.removeprefix(f'{domain}-')}.png"
                files.append(figures.draw_figure(name, chosen, path, statistic))
    for run in filter(_has_regions, runs):
        if run.path is not None and not why_no_rules(run.method):
            path = out / f"{run.path.name}-embedding-map.png"
            figures.draw_trial_map(run, path)
            files.append(path)
    return files


def _choose_figures(domain: str, runs: Sequence[Run]) -> Iterator[tuple[str, list[Run]]]:
    """The figures made from rows, each with its runs: too many lines hide each other."""
    frozen = [run for run in runs if run.method == "frozen"]
    adapting = [run for run in runs if run.manifest.role == "method"]
    yield "overall", [run for run in runs if run.manifest.role in ("method", "baseline")]
    if len({novelty for run in runs for novelty in run.novelties}) > 1:
        yield "by-novelty", frozen + adapting
    elif drawn_parameters(runs):
        yield "by-parameter", frozen + adapting
    for figure in figures.FIGURES.values():
        if figure.needs == domain:
            yield figure.name, frozen + adapting
    yield "regions-over-time", [run for run in adapting if _has_regions(run)]
    yield "detection-delay", frozen


def _has_regions(run: Run) -> bool:
    return run.manifest.role == "method" and bool((run.rows["regions"] > 0).any())


def _by_domain(runs: Sequence[Run]) -> dict[str, list[Run]]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.domain, []).append(run)
    return groups


def write_pages(runs: Sequence[Run], out: Path, command_for: CommandFor | None = None) -> list[Path]:
    """A report page per domain, in out/<domain>; `command_for` gives the command that each page shows."""
    files = []
    for domain, members in _by_domain(runs).items():
        statistic = PAPER.get(domain, PaperSetup()).statistic
        paths = [run.path for run in members if run.path is not None]
        command = "" if command_for is None else command_for(paths, out / domain, statistic)
        files.append(write_report(members, out / domain, statistic=statistic, command=command))
    return files


def judge_claims(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Every claim of the paper with its finding, as plain values."""
    return [
        {"domain": claim.domain, "text": claim.text, "criterion": claim.criterion, **asdict(finding)}
        for claim, finding in judge(claims.CLAIMS, runs)
    ]


def write_claims(runs: Sequence[Run], out: Path) -> list[dict[str, Any]]:
    """Judge the claims and write them as claims.json and claims.md."""
    judged = judge_claims(runs)
    write_output(out / "claims.json", f"{json.dumps(judged, indent=2)}\n".encode())
    lines = ["| claim | ours | status |", "|---|---|---|"]
    lines += [f"| {entry['domain']}: {entry['text']} | {entry['ours']} | {entry['status']} |" for entry in judged]
    write_output(out / "claims.md", "\n".join([*lines, ""]).encode())
    return judged


def write_pass_rates(runs: Sequence[Run], out: Path) -> dict[str, Any]:
    """The pass rates of each domain that has them, as plain values; written beside its page as rates.md."""
    by_domain = {}
    for domain, members in _by_domain(runs).items():
        if has_rates(members):
            rates, gains = measure_rates(members), measure_gains(members)
            by_domain[domain] = rates_json(rates, gains)
            write_output(out / domain / "rates.md", rates_markdown(rates, gains).encode())
    return by_domain
