"""Figures of one run at a time over the episodes, a line per group of its trials: by drawn value, by novelty."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.report.aggregates import profile
from nappingrl.report.figures.curves import SMALL_PANEL_START
from nappingrl.report.figures.style import (
    DOTTED,
    TWO_COLUMNS,
    add_legend,
    count_words,
    episodes_by_trial,
    has_band,
    mark_novelty,
    new_canvas,
)
from nappingrl.report.figures.values import axis_title, drawn_parameters
from nappingrl.report.intervals import over_trials
from nappingrl.report.looks import looks
from nappingrl.report.runs import Run
from nappingrl.report.summary import LAST, span_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

BINS = 5
MAX_COLUMNS = 4
"""Runs side by side; more would be too narrow to read."""
_PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#8c564b", "#7f7f7f")


def plot_by_value(runs: Sequence[Run], statistic: str) -> "Canvas":
    """Return per episode: a row of panels per parameter, a column per run, a line per fifth of the drawn values."""
    names = drawn_parameters(runs)
    if not names:
        raise BadRunError("no trial of these runs changed a parameter; run them with another novelty")
    if len(runs) > MAX_COLUMNS:
        raise BadRunError(f"figure by-value shows at most {MAX_COLUMNS} runs; {len(runs)} given")
    canvas = new_canvas(TWO_COLUMNS, 0.5 + 1.75 * len(names))
    panels = canvas.subplots(len(names), len(runs), sharex=True, sharey=True, squeeze=False)
    for row, name in zip(panels, names, strict=True):
        for axes, run in zip(row, runs, strict=True):
            _plot_values(axes, run, name, statistic)
        title = axis_title(runs[0], name).replace(" (", "\n(")
        row[-1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title=title, handlelength=1.4)
    for axes, look in zip(panels[0], looks(runs), strict=True):
        axes.set_title(look.label)
    canvas.supxlabel("episode (0: the first after the novelty)", fontsize=8)
    canvas.supylabel(f"return ({statistic} over the trials of a fifth)", fontsize=8)
    return canvas


def value_groups(values: NDArray[np.float64]) -> list[tuple[str, NDArray[np.int64]]]:
    """Trials by fifths of their value: the range in words, and their places."""
    order = np.argsort(values, kind="stable")
    parts = [part for part in np.array_split(order, BINS) if len(part)]
    return [(f"{_short(values[part[0]])} to {_short(values[part[-1]])}", np.sort(part)) for part in parts]


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def _plot_values(axes: "Axes", run: Run, name: str, statistic: str) -> None:
    from matplotlib import colormaps

    episodes, returns = episodes_by_trial(run.rows, "return")
    drawn = run.rows.group_by("trial", maintain_order=True).agg(pl.col(f"param_{name}").last())
    groups = value_groups(drawn[f"param_{name}"].to_numpy())
    seen = episodes >= SMALL_PANEL_START
    colours = colormaps["viridis"](np.linspace(0, 0.9, len(groups)))
    for (words, places), colour in zip(groups, colours, strict=True):
        band = over_trials(returns[places][:, seen], statistic)
        axes.plot(episodes[seen], band.centre, color=colour, linewidth=1.0, label=words)
    mark_novelty(axes, [run], is_named=False)


def plot_by_agent(runs: Sequence[Run], statistic: str) -> "Canvas":
    """Return per episode: a panel per run, a line per novelty."""
    names = list(dict.fromkeys(name for run in runs for name in run.novelties))
    n_columns = min(2, len(runs))
    n_rows = -(-len(runs) // n_columns)
    canvas = new_canvas(TWO_COLUMNS, 1.0 + 2.1 * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    colours = {name: _PALETTE[i % len(_PALETTE)] for i, name in enumerate(names)}
    markers = {name: "os^vD*pXP"[i % 9] for i, name in enumerate(names)}
    low, high = span_of(runs[0].manifest, *(run.rows for run in runs))
    for axes, run, look in zip(panels, runs, looks(runs), strict=False):
        for i, name in enumerate(run.novelties):
            episodes, returns = episodes_by_trial(run.where(name).rows, "return")
            seen = episodes >= SMALL_PANEL_START
            line: dict[str, Any] = {"color": colours[name], "marker": markers[name], "markevery": (i, 9), "label": name}
            axes.plot(episodes[seen], over_trials(returns[:, seen], statistic).centre, linewidth=1.0, **line)
        has_alarm = mark_novelty(axes, [run], is_named=False)
        axes.set_title(look.label)
        axes.set_xlabel(f"episode{DOTTED * has_alarm}")
        axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    for axes in panels[len(runs) :]:
        axes.remove()
    counts = [len(run.keys) // len(run.novelties) for run in runs]
    for axes in panels[: len(runs) : n_columns]:
        axes.set_ylabel(f"return ({statistic} over\n{count_words(counts)} per novelty)")
    add_legend(canvas, panels[: len(runs)])
    return canvas


def plot_profiles(runs: Sequence[Run]) -> "Canvas":
    """Share of trials whose final level is at least a return."""
    canvas = new_canvas(TWO_COLUMNS, 3.1)
    axes = canvas.add_subplot()
    span = span_of(runs[0].manifest, *(run.rows for run in runs))
    for i, (run, look) in enumerate(zip(runs, looks(runs), strict=True)):
        returns, band = profile(run, span)
        if has_band(run, look, len(runs)):
            axes.fill_between(returns, band.lower, band.upper, color=look.colour, alpha=0.13, linewidth=0)
        axes.plot(returns, band.centre, markevery=(i, 10), **look.line)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel(f"mean return of the last {LAST} episodes, at least")
    counts = [run.n_trials for run in runs]
    axes.set_ylabel(f"share of trials\n({count_words(counts)})")
    add_legend(canvas, [axes])
    return canvas
