"""Page sections: the summary, and how to run everything again."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from nappingrl.report.intervals import mean_interval, rate_interval
from nappingrl.report.looks import looks
from nappingrl.report.metrics import performance_words
from nappingrl.report.page.formats import Cell, Table, number, span_words
from nappingrl.report.runs import Run
from nappingrl.report.summary import LAST, span_of
from nappingrl.report.table import HEAD, Result, runs_table, table_digits

_SETTINGS = ("domain", "agent", "method", "novelty", "trials", "seed", "protocol", "detector", "strength")


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Settings, results and notes of the runs."""

    warnings: list[str]
    runs: Table
    by_novelty: Table | None
    """None: there is one novelty only."""
    facts: list[tuple[str, str]]
    notes: list[str]


def summary_part(runs: Sequence[Run], results: Sequence[Result]) -> SummaryPart:
    """The summary of these runs for a page."""
    warnings = [f"Partial report: {run.label} has {run.gap}." for run in runs if run.gap]
    sources = {run.manifest.source_sha256 for run in runs}
    if len(sources) > 1:
        warnings.append(f"These runs come from {len(sources)} states of the source code; see How to rerun.")
    notes = [f"{run.label}: {note}" for run in runs for note in run.notes]
    return SummaryPart(warnings, _runs_table(runs, results), _by_novelty(runs), _facts(runs), notes)


def _facts(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """What was run, and what "solved" and "performance" mean here."""
    settings = [(name, ", ".join(dict.fromkeys(str(run.spec[name]) for run in runs))) for name in _SETTINGS]
    manifest = runs[0].manifest
    solved = "not defined: the environment has no reward threshold, or the published rows lack the column"
    if manifest.solved_level is not None:
        solved = f"mean {manifest.solved_column} of the last {LAST} episodes at least {manifest.solved_level:g}"
    span, is_known = span_of(manifest, *(run.rows for run in runs)), manifest.return_range is not None
    words = performance_words(str(manifest.spec["domain"]), span, is_known)
    return [*settings, ("episodes", _episodes(runs)), ("solved", solved), ("performance", words)]


def _episodes(runs: Sequence[Run]) -> str:
    """How many before and after the novelty."""
    words = []
    for run in runs:
        begins = run.rows.group_by("trial").agg(-pl.col("episode").min())["episode"].to_numpy()
        least, most = int(begins.min()), int(begins.max())
        after = int(run.rows["episode"].to_numpy().max()) + 1
        words.append(f"{least if least == most else f'{least} to {most}'} before, {after} after the novelty")
    return "; ".join(dict.fromkeys(words))


def _runs_table(runs: Sequence[Run], results: Sequence[Result]) -> Table:
    rows = []
    best = _best_of_each_agent(runs)
    for run, texts in zip(runs, runs_table(results), strict=True):
        level, solved = _ends(run, run.levels)
        cells: dict[str, Cell | str] = dict(zip(HEAD, texts, strict=True))
        cells["last 10"] = Cell(str(cells["last 10"]), (level,), is_best=run.label in best)
        cells["solved"] = Cell(str(cells["solved"]), (solved,) if solved else ())
        rows.append(list(cells.values()))
    return Table("Runs", HEAD, rows, "runs")


def _best_of_each_agent(runs: Sequence[Run]) -> set[str]:
    """Labels of the runs with the highest final level of each agent, without controls and oracle."""
    groups: dict[str, list[Run]] = {}
    for run, look in zip(runs, looks(runs), strict=True):
        if run.manifest.role not in ("control", "oracle"):
            groups.setdefault(look.agent, []).append(run)
    compared = [members for members in groups.values() if len(members) > 1]
    return {max(members, key=lambda run: float(run.levels["level"].to_numpy().mean())).label for members in compared}


def _ends(run: Run, levels: pl.DataFrame) -> tuple[str, str]:
    """The intervals of the final level and of the share solved of these trials; empty: not defined."""
    n, digits = len(levels), table_digits(run.manifest.return_range)
    level = span_words(mean_interval(levels["level"].to_numpy()), digits, n)
    if run.manifest.solved_level is None:
        return level, ""
    return level, span_words(rate_interval(levels["solved"].to_numpy()), digits, n, is_share=True)


def _by_novelty(runs: Sequence[Run]) -> Table | None:
    """Final level and share solved of each novelty."""
    names = list(dict.fromkeys(name for run in runs for name in run.novelties))
    if len(names) < 2:
        return None
    rows: list[list[Cell | str]] = [
        [name, *(_novelty_cell(run, run.levels.filter(pl.col("novelty") == name)) for run in runs)] for name in names
    ]
    return Table("Last ten episodes and share solved, by novelty", ("novelty", *(run.label for run in runs)), rows)


def _novelty_cell(run: Run, levels: pl.DataFrame) -> Cell:
    if levels.is_empty():
        return Cell("-")
    mean, digits = float(levels["level"].to_numpy().mean()), table_digits(run.manifest.return_range)
    level, solved = _ends(run, levels)
    share = (f"{levels['solved'].to_numpy().mean():.0%} solved, {solved}",) if solved else ()
    return Cell(number(mean, digits), (level, *share))


@dataclass(frozen=True, slots=True)
class RerunPart:
    """Commands, versions, seeds and hashes."""

    commands: list[str]
    versions: Table
    made_with: str


def rerun_part(runs: Sequence[Run], commands: Sequence[str], made_with: str) -> RerunPart:
    """How to make these runs and their page again."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        manifest = run.manifest
        versions = ", ".join(f"{name} {value}" for name, value in manifest.versions.items()) or "-"
        cells = (str(run.spec["seed"]), manifest.version, versions, manifest.agent_sha256, manifest.source_sha256)
        alike.setdefault(cells, []).append(run.label)
    rows: list[list[Cell | str]] = [
        ["\n".join(labels), *cells[:3], *(Cell("", code=code) for code in cells[3:])] for cells, labels in alike.items()
    ]
    head = ("run", "seed", "nappingrl", "versions", "sha256 of the agent", "sha256 of the source")
    table = Table("What they were run with", head, rows, "prose")
    return RerunPart([command for command in commands if command], table, made_with)
