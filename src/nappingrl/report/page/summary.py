"""The summary of a page and how to run everything again."""

import shlex

import polars as pl

from nappingrl.report.best_control import Comparison
from nappingrl.report.metrics import performance_words
from nappingrl.report.page.html import facts, items, number, span_words, table, text
from nappingrl.report.runs import Loaded
from nappingrl.report.statistics import mean_t, rate_wilson
from nappingrl.report.summary import LAST, Summary, final_levels, span_of

HEAD = ("run", "trials", "before", "episode 0", "last 10", "solved", "failed", "regions", "over its best control")

Compared = tuple[str, Summary, Comparison | None]
"""Label and summary of a run, and how it stands against its controls."""

_SETTINGS = ("domain", "agent", "method", "novelty", "trials", "seed", "protocol", "detector", "strength")


_LEGEND = """<p>Mean returns over trials: before the novelty, in the first episode after it, and in the last ten;
solved: the share of trials whose last ten episodes reach the level above. Small print: 95 % intervals over trials
(Student's t, which may reach beyond the range of returns; Wilson's for shares). The last column is the paired
difference of the last ten to the best control among these runs; a method that is not better than a control has shown
nothing.</p>"""


def runs_table(runs: list[Compared]) -> list[tuple[str, ...]]:
    """The runs as rows of text, under HEAD."""
    return [_row(*run) for run in runs]


def table_digits(return_range: tuple[float, float] | None) -> int:
    """Digits of a return in the table of runs."""
    return 1 if return_range is not None and return_range[1] - return_range[0] > 10 else 2


def _row(label: str, s: Summary, against: Comparison | None) -> tuple[str, ...]:
    digits = table_digits(s.return_range)
    return (
        label,
        str(s.trials * len(s.by_novelty)) + (f" ({s.diverged} diverged)" if s.diverged else ""),
        "-" if s.pre_mean is None else f"{s.pre_mean:.{digits}f}",
        f"{s.mean[0]:.{digits}f}",
        f"{s.last10_mean:.{digits}f}",
        "-" if s.solved is None else f"{s.solved:.0%}",
        "-" if s.failed is None else str(s.failed),
        f"{s.regions_mean:.0f}",
        _verdict(s, against, digits),
    )


def _verdict(s: Summary, against: Comparison | None, digits: int) -> str:
    if s.role != "method":
        return s.role
    if against is None:
        return "no control run beside it"
    return against.words(digits)


def summary_section(runs: list[Loaded], compared: list[Compared]) -> str:
    """What was run, what came out, and what a reader should know of it."""
    warnings = [f"Partial report: {run.label} has {run.gap}." for run in runs if run.gap]
    sources = {run.manifest.source_sha256 for run in runs}
    if len(sources) > 1:
        warnings.append(f"These runs come from {len(sources)} states of the source code; see How to rerun.")
    notes = [f"{run.label}: {note}" for run in runs for note in run.manifest.notes]
    settings = [(name, ", ".join(dict.fromkeys(str(run.manifest.spec[name]) for run in runs))) for name in _SETTINGS]
    manifest = runs[0].manifest
    solved = "nobody knows when: the environment has no reward threshold"
    if manifest.solved_level is not None:
        solved = f"mean {manifest.solved_column} of the last {LAST} episodes at least {manifest.solved_level:g}"
    span, is_known = span_of(manifest, *(run.rows for run in runs)), manifest.return_range is not None
    words = performance_words(str(manifest.spec["domain"]), span, is_known)
    return (
        (f"<div class='warning' role='note'>{items(warnings)}</div>" if warnings else "")
        + facts([*settings, ("episodes", _episodes(runs)), ("solved", solved), ("performance", words)])
        + _runs_html(runs, compared)
        + _LEGEND
        + (f"<h3>Notes of the runs</h3>{items(notes, 'notes')}" if notes else "")
        + _by_novelty(runs)
    )


def _episodes(runs: list[Loaded]) -> str:
    """How many before and after the novelty."""
    words = []
    for run in runs:
        begins = run.rows.group_by("trial").agg(-pl.col("episode").min())["episode"].to_numpy()
        least, most = int(begins.min()), int(begins.max())
        after = int(run.rows["episode"].to_numpy().max()) + 1
        words.append(f"{least if least == most else f'{least} to {most}'} before, {after} after the novelty")
    return "; ".join(dict.fromkeys(words))


def _runs_html(runs: list[Loaded], compared: list[Compared]) -> str:
    lines = []
    for run, cells in zip(runs, runs_table(compared), strict=True):
        level, solved = _ends(run, final_levels(run.manifest, run.rows))
        by_name = dict(zip(HEAD, map(text, cells), strict=True))
        by_name["last 10"] += f" <small>{level}</small>"
        by_name["solved"] += f" <small>{solved}</small>" if solved else ""
        lines.append(list(by_name.values()))
    return table("Runs", HEAD, lines, "runs")


def _ends(run: Loaded, levels: pl.DataFrame) -> tuple[str, str]:
    """The intervals of the final level and of the share solved of these trials; empty: nobody knows."""
    n, digits = len(levels), table_digits(run.manifest.return_range)
    level = span_words(mean_t(levels["level"].to_numpy()), digits, n)
    if run.manifest.solved_level is None:
        return level, ""
    return level, span_words(rate_wilson(levels["solved"].to_numpy()), digits, n, is_share=True)


def _by_novelty(runs: list[Loaded]) -> str:
    """Final level and share solved of each novelty; empty where there is one only."""
    names = list(dict.fromkeys(name for run in runs for name in run.rows["novelty"].unique(maintain_order=True)))
    if len(names) < 2:
        return ""
    levels = [final_levels(run.manifest, run.rows) for run in runs]
    lines = [
        [
            text(name),
            *(_novelty_cell(run, of.filter(of["novelty"] == name)) for run, of in zip(runs, levels, strict=True)),
        ]
        for name in names
    ]
    return table("Last ten episodes and share solved, by novelty", ["novelty", *(text(r.label) for r in runs)], lines)


def _novelty_cell(run: Loaded, levels: pl.DataFrame) -> str:
    if levels.is_empty():
        return "-"
    mean, digits = float(levels["level"].to_numpy().mean()), table_digits(run.manifest.return_range)
    level, solved = _ends(run, levels)
    share = f"<small>{levels['solved'].to_numpy().mean():.0%} solved, {solved}</small>" if solved else ""
    return f"{number(mean, digits)} <small>{level}</small>{share}"


def command_of(run: Loaded) -> str:
    """The command that started the run, or one that asks for the same."""
    if run.manifest.command:
        return run.manifest.command
    spec = dict(run.manifest.spec)
    words = ["napping", "run", str(spec.pop("domain"))]
    options = spec.pop("options", {})
    for name, value in spec.items():
        words += [f"--{name}", str(value)]
    if options:
        words += ["--option", *(f"{name}={value}" for name, value in options.items())]
    return shlex.join(words)


def rerun_section(runs: list[Loaded], command: str, made_with: str) -> str:
    """Commands, versions, seeds and hashes."""
    commands = "\n".join(text(words) for words in (*map(command_of, runs), command))
    alike: dict[tuple[str, ...], list[str]] = {}
    for run in runs:
        cells = (
            text(run.manifest.spec["seed"]),
            text(run.manifest.version),
            text(", ".join(f"{name} {value}" for name, value in run.manifest.versions.items()) or "-"),
            f"<code class='hash'>{text(run.manifest.agent_sha256)}</code>",
            f"<code class='hash'>{text(run.manifest.source_sha256)}</code>",
        )
        alike.setdefault(cells, []).append(text(run.label))
    lines = [["<br>".join(labels), *cells] for cells, labels in alike.items()]
    return (
        f"<p>The runs, and then this report:</p><pre><code>{commands}</code></pre>"
        + table(
            "What they were run with",
            ("run", "seed", "nappingrl", "versions", "sha256 of the agent", "sha256 of the source"),
            lines,
            "prose",
        )
        + f"<p>Rows do not depend on the number of workers. Page made with {text(made_with)}.</p>"
    )
