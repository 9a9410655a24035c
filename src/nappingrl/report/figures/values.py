"""Figures over the drawn values of a novelty: the final level of a trial against what it met."""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.report.figures.style import FAILED, TWO_COLUMNS, add_legend, legend_entries, new_canvas
from nappingrl.report.intervals import Band, name_interval, over_trials
from nappingrl.report.looks import Look, by_agent, looks
from nappingrl.report.runs import Run
from nappingrl.report.summary import LAST, is_failed, span_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

AXIS_TITLES = {
    "cartpole": {
        "length": "length (half the pole, m)",
        "gravity": "gravity (m/s²)",
        "masscart": "mass of the cart (kg)",
        "masspole": "mass of the pole (kg)",
        "force": "force (N)",
    },
    "mountaincar": {"force": "force of a push (per step²)", "gravity": "gravity (per step²)"},
}
"""Domain -> parameters with their units; the others are called by their names."""
BINS = "bins with the same number of trials"
_TRIALS_PER_BIN, _MOST_BINS, _MOST_LINES = 15, 12, 4
_MOST_COLUMNS = 4
_LINE = 90
"""Characters of a title that fit a figure of two columns."""


def trial_table(run: Run) -> pl.DataFrame:
    """Per trial: its parameters after the novelty, its final level, and whether all its episodes scored the minimum."""
    post = run.rows.filter(pl.col("episode") >= 0)
    drawn = post.group_by("trial", maintain_order=True).agg(is_failed(run.manifest), pl.col("^param_.*$").last())
    return drawn.join(run.levels.select("trial", "level"), on="trial", maintain_order="left")


def drawn_parameters(runs: Sequence[Run]) -> list[str]:
    """The parameters that some trial of these runs changed."""
    return [
        name
        for name, default in runs[0].manifest.parameters.items()
        if any((run.rows[f"param_{name}"] != default).any() for run in runs if f"param_{name}" in run.rows.columns)
    ]


def plot_by_parameter(runs: Sequence[Run], statistic: str) -> "Canvas":
    """Final level against the drawn value of each parameter: bins of equal size.

    Many runs of several agents: a row of panels per parameter with a column per agent.
    """
    names = drawn_parameters(runs)
    if not names:
        raise BadRunError("no trial of these runs changed a parameter; run them with another novelty")
    agents = by_agent(runs)
    has_columns = len(runs) > _MOST_LINES and len(agents) > 1
    groups = list(agents.values()) if has_columns else [(list(runs), looks(runs))]
    n_columns = len(groups) if has_columns else min(3, len(names))
    n_rows = len(names) if has_columns else -(-len(names) // n_columns)
    canvas = new_canvas(TWO_COLUMNS, (0.3 if n_rows * n_columns > len(names) * len(groups) else 0.7) + 2.0 * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    places = [(name, group) for name in names for group in groups]
    for axes, (name, group) in zip(panels, places, strict=False):
        _plot_parameter(axes, name, group, statistic)
    n_least = min(run.n_trials for run in runs)
    for axes in panels[: len(places) : n_columns]:
        axes.set_ylabel(f"return, last {LAST} episodes\n({name_interval(statistic, n_least)})")
    if has_columns:
        for axes, agent in zip(panels, agents, strict=False):
            axes.set_title(agent, pad=14)
        for axes in panels:
            axes.locator_params(axis="x", nbins=4)
    if len(panels) > len(places):
        _legend_panel(panels, len(places))
    else:
        add_legend(canvas, panels, title=BINS)
    return canvas


def _plot_parameter(axes: "Axes", name: str, group: tuple[list[Run], list[Look]], statistic: str) -> None:
    """One panel: runs against the drawn values of one parameter."""
    runs, shown = group
    default = runs[0].manifest.parameters[name]
    for i, (run, look) in enumerate(zip(runs, shown, strict=True)):
        drawn = trial_table(run).filter(pl.col(f"param_{name}") != default)
        if len(drawn):
            values, levels = drawn[f"param_{name}"].to_numpy(), drawn["level"].to_numpy()
            _plot_bins(axes, binned(values, levels, statistic), look, i, len(runs))
    _mark_default(axes, default)
    axes.set_xlabel(axis_title(runs[0], name))
    axes.locator_params(axis="x", nbins=5)


def plot_map(runs: Sequence[Run]) -> "Canvas":
    """Force x gravity: a dot per trial, larger and brighter the better it ends; failed trials are orange crosses."""
    from matplotlib.colors import SymLogNorm

    cells = _cells(runs)
    n_rows, n_columns = len(cells), max(map(len, cells))
    canvas = new_canvas(TWO_COLUMNS, 0.6 + (2.9 if n_columns < 3 else 2.3) * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    low, _ = span_of(runs[0].manifest, *(run.rows for run in runs))
    default = runs[0].manifest.parameters
    tables = [[trial_table(run) for run, _ in row] for row in cells]
    best = max(float(table["level"].to_numpy().max()) for row in tables for table in row)
    scale = SymLogNorm(linthresh=10, vmin=low, vmax=max(best, low + 1))
    used = []
    for (i, j), axes in np.ndenumerate(panels):
        if j >= len(cells[i]):
            axes.remove()
            continue
        used.append(axes)
        table, look = tables[i][j], cells[i][j][1]
        dots = _plot_dots(axes, table, scale)
        axes.plot(
            default["force"], default["gravity"], "*", color="white", markersize=11,
            markeredgecolor="black", markeredgewidth=0.9, label="default (before the novelty)", zorder=5,
        )  # fmt: skip
        title = fill(f"{look.agent} {look.variant}", _LINE // n_columns)
        axes.set_title(f"{title}\n{int(table['failed'].sum())} of {len(table)} trials failed")
        if j == 0:
            axes.set_ylabel(axis_title(runs[0], "gravity"))
        if i == n_rows - 1 or j >= len(cells[i + 1]):
            axes.set_xlabel(axis_title(runs[0], "force"))
            axes.tick_params(labelbottom=True)
        axes.locator_params(axis="x", nbins=4)
    ticks = [t for t in (-500, -200, -100, -50, -20) if t <= best]
    bar = canvas.colorbar(dots, ax=used, ticks=ticks, shrink=min(0.9, 1.8 / n_rows), aspect=25, pad=0.02)
    bar.ax.set_yticklabels([f"−{-tick}" for tick in ticks])  # noqa: RUF001
    bar.set_label(f"return (mean of the last {LAST} episodes)")
    add_legend(canvas, used)
    return canvas


def _cells(runs: Sequence[Run]) -> list[list[tuple[Run, Look]]]:
    """Rows of panels: an agent begins a new one, unless each has a single run."""
    groups = [list(zip(members, shown, strict=True)) for members, shown in by_agent(runs).values()]
    if max(map(len, groups)) == 1:
        groups = [[cell for group in groups for cell in group]]
    n_columns = min(_MOST_COLUMNS, max(map(len, groups)))
    return [group[at : at + n_columns] for group in groups for at in range(0, len(group), n_columns)]


def binned(
    values: NDArray[np.float64], levels: NDArray[np.float64], statistic: str
) -> tuple[NDArray[np.float64], Band]:
    """Trials in the order of their value, in bins of equal size: the bins' median values and levels."""
    n_bins = int(np.clip(len(values) // _TRIALS_PER_BIN, 1, _MOST_BINS))
    parts = np.array_split(np.argsort(values, kind="stable"), n_bins)
    bands = [over_trials(levels[part], statistic) for part in parts]
    centres = np.array([np.median(values[part]) for part in parts])
    return centres, Band(*(np.array([getattr(band, end) for band in bands]) for end in ("centre", "lower", "upper")))


# ------------------------------------------------------------------------------------------------------------- helpers


def axis_title(run: Run, parameter: str) -> str:
    """The name of a parameter with its unit, where that is known."""
    return AXIS_TITLES.get(run.domain, {}).get(parameter, parameter)


def _plot_bins(axes: "Axes", bins: tuple[NDArray[np.float64], Band], look: Look, place: int, n: int) -> None:
    """Points with error bars; those of several runs stand side by side."""
    centres, band = bins
    width = np.diff(centres).min() if len(centres) > 1 else 0.0
    x = centres + (place - (n - 1) / 2) * 0.07 * width
    axes.vlines(x, band.lower, band.upper, color=look.colour, linewidth=0.8, alpha=0.8)
    axes.plot(x, band.centre, **look.line)


def _mark_default(axes: "Axes", value: float) -> None:
    axes.axvline(value, color="#444444", linewidth=0.9, linestyle=":", zorder=1)
    axes.annotate(
        "default", (value, 1.0), (0, 1), xycoords=axes.get_xaxis_transform(), textcoords="offset points",
        ha="center", va="bottom", annotation_clip=False,
    )  # fmt: skip


def _legend_panel(panels: NDArray[Any], n_used: int) -> None:
    """The legend in the first free panel of the grid."""
    for axes in panels[n_used:]:
        axes.set_axis_off()
    panels[n_used].legend(*legend_entries(panels[:n_used]), loc="center", title=BINS)


def _plot_dots(axes: "Axes", table: pl.DataFrame, scale: Any) -> Any:
    fine, failed = table.filter(~pl.col("failed")), table.filter(pl.col("failed"))
    largest = float(np.clip(6000 / max(len(table), 1), 6, 24))
    size = largest * (0.2 + 0.8 * np.asarray(scale(fine["level"].to_numpy()), np.float64))
    dots = axes.scatter(
        fine["param_force"], fine["param_gravity"], c=fine["level"], cmap="viridis", norm=scale, s=size, linewidth=0,
        label="trial (large: ends well)",
    )  # fmt: skip
    axes.scatter(
        failed["param_force"], failed["param_gravity"], color=FAILED, marker="x", s=22, linewidth=1.1,
        label="failed: goal never reached", zorder=4,
    )  # fmt: skip
    return dots
