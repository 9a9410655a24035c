"""Page sections: the summary, and how to run everything again."""

from collections.abc import Sequence

import polars as pl

from nappingrl.report.intervals import mean_interval, rate_interval
from nappingrl.report.metrics import performance_words
from nappingrl.report.page.html import facts, items, number, span_words, table, text
from nappingrl.report.runs import Run
from nappingrl.report.summary import LAST, span_of
from nappingrl.report.table import HEAD, Result, runs_table, table_digits

_SETTINGS = ("domain", "agent", "method", "novelty", "trials", "seed", "protocol", "detector", "strength")


_LEGEND = """<p>Mean returns over trials: before the novelty, in the first episode after it, and in the last ten;
solved: the share of trials whose last ten episodes reach the level above. Small print: 95 % intervals over trials
(Student's t, which may reach beyond the range of returns; Wilson's for shares). The last column is the paired
difference of the last ten to the best control among these runs; a method must beat its controls to show
anything.</p>"""


def summary_section(runs: Sequence[Run], results: Sequence[Result]) -> str:
    """Settings, results and notes of the runs."""
    warnings = [f"Partial report: {run.label} has {run.gap}." for run in runs if run.gap]
    sources = {run.manifest.source_sha256 for run in runs}
    if len(sources) > 1:
        warnings.append(f"These runs come from {len(sources)} states of the source code; see How to rerun.")
    notes = [f"{run.label}: {note}" for run in runs for note in run.notes]
    settings = [(name, ", ".join(dict.fromkeys(str(run.spec[name]) for run in runs))) for name in _SETTINGS]
    manifest = runs[0].manifest
    solved = "not defined: the environment has no reward threshold"
    if manifest.solved_level is not None:
        solved = f"mean {manifest.solved_column} of the last {LAST} episodes at least {manifest.solved_level:g}"
    span, is_known = span_of(manifest, *(run.rows for run in runs)), manifest.return_range is not None
    words = performance_words(str(manifest.spec["domain"]), span, is_known)
    return (
        (f"<div class='warning' role='note'>{items(warnings)}</div>" if warnings else "")
        + facts([*settings, ("episodes", _episodes(runs)), ("solved", solved), ("performance", words)])
        + _runs_html(runs, results)
        + _LEGEND
        + (f"<h3>Notes of the runs</h3>{items(notes, 'notes')}" if notes else "")
        + _by_novelty(runs)
    )


def _episodes(runs: Sequence[Run]) -> str:
    """How many before and after the novelty."""
    words = []
    for run in runs:
        begins = run.rows.group_by("trial").agg(-pl.col("episode").min())["episode"].to_numpy()
        least, most = int(begins.min()), int(begins.max())
        after = int(run.rows["episode"].to_numpy().max()) + 1
        words.append(f"{least if least == most else f'{least} to {most}'} before, {after} after the novelty")
    return "; ".join(dict.fromkeys(words))


def _runs_html(runs: Sequence[Run], results: Sequence[Result]) -> str:
    lines = []
    for run, cells in zip(runs, runs_table(results), strict=True):
        level, solved = _ends(run, run.levels)
        by_name = dict(zip(HEAD, map(text, cells), strict=True))
        by_name["last 10"] += f" <small>{level}</small>"
        by_name["solved"] += f" <small>{solved}</small>" if solved else ""
        lines.append(list(by_name.values()))
    return table("Runs", HEAD, lines, "runs")


def _ends(run: Run, levels: pl.DataFrame) -> tuple[str, str]:
    """The intervals of the final level and of the share solved of these trials; empty: not defined."""
    n, digits = len(levels), table_digits(run.manifest.return_range)
    level = span_words(mean_interval(levels["level"].to_numpy()), digits, n)
    if run.manifest.solved_level is None:
        return level, ""
    return level, span_words(rate_interval(levels["solved"].to_numpy()), digits, n, is_share=True)


def _by_novelty(runs: Sequence[Run]) -> str:
    """Final level and share solved of each novelty; empty where there is one only."""
    names = list(dict.fromkeys(name for run in runs for name in run.novelties))
    if len(names) < 2:
        return ""
    lines = [
        [text(name), *(_novelty_cell(run, run.levels.filter(pl.col("novelty") == name)) for run in runs)]
        for name in names
    ]
    return table("Last ten episodes and share solved, by novelty", ["novelty", *(text(r.label) for r in runs)], lines)


def _novelty_cell(run: Run, levels: pl.DataFrame) -> str:
    if levels.is_empty():
        return "-"
    mean, digits = float(levels["level"].to_numpy().mean()), table_digits(run.manifest.return_range)
    level, solved = _ends(run, levels)
    share = f"<small>{levels['solved'].to_numpy().mean():.0%} solved, {solved}</small>" if solved else ""
    return f"{number(mean, digits)} <small>{level}</small>{share}"


def rerun_section(runs: Sequence[Run], commands: Sequence[str], made_with: str) -> str:
    """Commands, versions, seeds and hashes."""
    shown = "\n".join(text(command) for command in commands if command)
    alike: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        cells = (
            text(run.spec["seed"]),
            text(run.manifest.version),
            text(", ".join(f"{name} {value}" for name, value in run.manifest.versions.items()) or "-"),
            f"<code class='hash'>{text(run.manifest.agent_sha256)}</code>",
            f"<code class='hash'>{text(run.manifest.source_sha256)}</code>",
        )
        alike.setdefault(cells, []).append(text(run.label))
    lines = [["<br>".join(labels), *cells] for cells, labels in alike.items()]
    return (
        f"<p>The runs, then this report:</p><pre><code>{shown}</code></pre>"
        + table(
            "What they were run with",
            ("run", "seed", "nappingrl", "versions", "sha256 of the agent", "sha256 of the source"),
            lines,
            "prose",
        )
        + f"<p>Rows do not depend on the number of workers. Page made with {text(made_with)}.</p>"
    )
