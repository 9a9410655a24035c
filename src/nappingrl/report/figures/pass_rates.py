"""Figures of pass rates: over the episodes, per novelty, per agent, and as a table in colours."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.report.figures.curves import EPISODE, some_episodes
from nappingrl.report.figures.style import (
    TWO_COLUMNS,
    add_legend,
    count_words,
    episodes_by_trial,
    has_band,
    legend_entries,
    mark_novelty,
    new_canvas,
    plot_interval,
)
from nappingrl.report.intervals import Band, name_interval, over_trials
from nappingrl.report.looks import SCRIPTED, Look, looks, scripted_entry
from nappingrl.report.pass_rates import AFTER, ALL, BEFORE, END, WINDOWS, Rate, RunRates, measure_rates
from nappingrl.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

FIRST_EPISODE = -20
"""First episode shown: trials start at different episodes, and few have more before the novelty."""
BLOCK = 5
"""Episodes of one point in the panels of single novelties."""
FIRST_BLOCK = -10
MOST_BANDS = 4
"""With more runs than this only methods have a band, not baselines or controls."""
MOST_BESIDE = 8
"""Entries of a legend that fit into an empty panel."""
_BARS = {BEFORE: ("#d9d9d9", ""), AFTER: ("#ffffff", "////"), END: ("#555555", "")}
"""Shades, as colours stand for methods in other figures."""
_LIMITS = (-0.04, 1.04)


def plot_rates(runs: Sequence[Run]) -> "Canvas":
    """Pass rate per episode with Wilson's intervals: agents with a network on the left, scripted ones on the right.

    Of the former, methods have a band. They are drawn among the scripted agents too, to compare them.
    """
    shown = looks(runs)
    trained = [i for i, run in enumerate(runs) if scripted_entry(run.manifest) is None]
    scripted = [i for i in range(len(runs)) if i not in trained]
    groups = {"agents with a network": trained, SCRIPTED: scripted}
    groups = {title: members for title, members in groups.items() if members}
    canvas = new_canvas(TWO_COLUMNS, 3.5)
    panels = canvas.subplots(1, len(groups), sharey=True, squeeze=False).ravel()
    for axes, (title, members) in zip(panels, groups.items(), strict=True):
        for place, i in enumerate(members):
            is_banded = members is scripted or has_band(runs[i], shown[i], len(members))
            _plot_rate(axes, runs[i], shown[i], place, is_banded)
        if members is scripted:
            for i in trained:
                if shown[i].role == "method":
                    _plot_rate(axes, runs[i], shown[i], None)
        mark_novelty(axes, runs, is_named=False)
        axes.set_title(title if len(groups) > 1 else "")
        axes.set(xlabel=EPISODE, ylim=_LIMITS)
    counts = [run.n_trials for run in runs]
    panels[0].set_ylabel(f"{name_interval('rate', min(counts))}\nover {count_words(counts)}")
    add_legend(canvas, panels)
    return canvas


def _plot_rate(axes: "Axes", run: Run, look: Look, place: int | None, is_banded: bool = False) -> None:
    """A line; without a place among the others: without markers."""
    episodes, passed = episodes_by_trial(run.rows, "return")
    seen = episodes >= FIRST_EPISODE
    band = over_trials(passed[:, seen], "rate")
    if place is None:
        plot_interval(axes, episodes[seen], band, replace(look, marker=""), is_banded=is_banded)
    else:
        plot_interval(axes, episodes[seen], band, look, some_episodes(episodes[seen], place), is_banded)


def plot_blocks(runs: Sequence[Run]) -> "Canvas":
    """One panel per novelty: the pass rate of five episodes at a time."""
    names = list(dict.fromkeys(name for run in runs for name in run.novelties))
    n_columns = min(3, len(names))
    n_rows = -(-len(names) // n_columns)
    n_free = n_rows * n_columns - len(names)
    canvas = new_canvas(TWO_COLUMNS, (0.4 if n_free else 1.0) + 1.8 * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    shown, counts = looks(runs), []
    for axes, name in zip(panels, names, strict=False):
        for run, look in zip(runs, shown, strict=True):
            if name in run.novelties:
                here = run.where(name)
                counts.append(here.n_trials)
                _plot_block(axes, here.rows, look, is_banded=len(runs) <= MOST_BANDS or look.role == "method")
        axes.axvline(-0.5, color="#444444", linewidth=0.9)
        axes.set(title=name, ylim=_LIMITS)
    for i, axes in enumerate(panels[: len(names)]):
        if i + n_columns >= len(names):
            axes.set_xlabel("episode (line: novelty)")
            axes.tick_params(labelbottom=True)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    few = " (band: methods only)" if len(runs) > MOST_BANDS else ""
    canvas.supylabel(
        f"{BLOCK} episodes: {name_interval('rate', min(counts))}{few} over {count_words(counts)}", fontsize=8
    )  # fmt: skip
    entries = legend_entries(panels[: len(names)])
    if n_free and len(entries[0]) <= MOST_BESIDE:
        panels[-1].legend(*entries, loc="center")
    else:
        add_legend(canvas, panels)
    return canvas


def _plot_block(axes: "Axes", rows: pl.DataFrame, look: Look, is_banded: bool) -> None:
    centres, band = in_blocks(rows)
    plot_interval(axes, centres, band, look, is_banded=is_banded)


def in_blocks(rows: pl.DataFrame) -> tuple[NDArray[np.float64], Band]:
    """The middles of blocks of five episodes, none across the novelty, and the mean over trials of their pass rates."""
    episodes, passed = episodes_by_trial(rows, "return")
    starts = [start for start in range(FIRST_BLOCK, int(episodes[-1]) + 1, BLOCK) if start + BLOCK > episodes[0]]
    centres, bands = [], []
    for start in starts:
        part = passed[:, (episodes >= start) & (episodes < start + BLOCK)]
        here = ~np.isnan(part)
        rates = np.nansum(part, axis=1)[here.any(axis=1)] / here.sum(axis=1)[here.any(axis=1)]
        bands.append(over_trials(rates, "mean"))
        centres.append(start + (BLOCK - 1) / 2)
    ends = (np.array([getattr(band, end) for band in bands]) for end in ("centre", "lower", "upper"))
    return np.array(centres), Band(*ends)


def plot_agents(runs: Sequence[Run]) -> "Canvas":
    """Three bars per run: before the novelty, right after it, at the end; the best at the end first."""
    rates = sorted(measure_rates(runs), key=lambda run: -_overall(run)[END].value)
    canvas = new_canvas(TWO_COLUMNS, 0.9 + 0.36 * len(rates))
    axes = canvas.add_subplot()
    for k, window in enumerate(WINDOWS):
        here = [(i, _overall(run)[window]) for i, run in enumerate(rates) if window in _overall(run)]
        colour, hatch = _BARS[window]
        y = np.array([i for i, _ in here]) + 0.27 * (k - 1)
        axes.barh(
            y, [rate.value for _, rate in here], 0.26, color=colour, hatch=hatch, edgecolor="#333333", linewidth=0.5,
            label=_window_words(window),
        )  # fmt: skip
        for at, (_, rate) in zip(y, here, strict=True):
            if (ends := _ends(rate)) is not None:
                axes.hlines(at, *ends, color="black", linewidth=0.9)
    axes.set_yticks(range(len(rates)), [run.run for run in rates])
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(rates) - 0.4, -0.6)
    counts = [_overall(run)[END].trials for run in rates]
    axes.set(xlim=(0, 1.04), xlabel=f"{name_interval('rate', min(counts))} over {count_words(counts)}")
    add_legend(canvas, [axes])
    return canvas


def plot_asymptotic(runs: Sequence[Run]) -> "Canvas":
    """Run x novelty: the pass rate of the last ten episodes, as a number and as a colour."""
    rates = sorted(measure_rates(runs), key=lambda run: -_overall(run)[END].value)
    names = list(dict.fromkeys(name for run in rates for name in run.by_novelty))
    names = [name for name in names if name != ALL] + [ALL] * (ALL in names)
    canvas = new_canvas(TWO_COLUMNS, 0.9 + 0.36 * len(rates))
    axes = canvas.add_subplot()
    table = np.array([[_value(run, name) for name in names] for run in rates])
    axes.imshow(np.ma.masked_invalid(table), cmap="cividis", vmin=0, vmax=1, aspect="auto")
    for i, run in enumerate(rates):
        for j, name in enumerate(names):
            if name in run.by_novelty:
                rate = run.by_novelty[name][END]
                ends = _ends(rate)
                words = f"{rate.value:.2f}" + (f"\n{ends[0]:.2f}–{ends[1]:.2f}" if ends else "")  # noqa: RUF001
                colour = "white" if rate.value < 0.5 else "black"
                axes.text(j, i, words, ha="center", va="center", color=colour, fontsize=8, linespacing=1.05)
    axes.set_xticks(range(len(names)), [_narrow(name) for name in names])
    axes.set_yticks(range(len(rates)), [run.run for run in rates])
    axes.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
    axes.grid(visible=False)
    if ALL in names:
        axes.axvline(len(names) - 1.5, color="white", linewidth=3)
    counts = [rate.trials for run in rates for name in names if name != ALL for rate in _of(run, name)]
    axes.set_xlabel(f"last ten episodes: {name_interval('rate', min(counts))}, {count_words(counts)} of each novelty")
    return canvas


# ------------------------------------------------------------------------------------------------------------- helpers


def _overall(run: RunRates) -> Any:
    """The rates over all novelties, or of the only one."""
    return next(iter(run.by_novelty.values()))


def _of(run: RunRates, novelty: str) -> list[Rate]:
    return [run.by_novelty[novelty][END]] if novelty in run.by_novelty else []


def _value(run: RunRates, novelty: str) -> float:
    return run.by_novelty[novelty][END].value if novelty in run.by_novelty else np.nan


def _ends(rate: Rate) -> tuple[float, float] | None:
    """The wider of both intervals: over trials it has no width where all trials pass alike. None of one trial."""
    if rate.wilson is None or rate.over_trials is None:
        return None
    return min(rate.wilson.low, rate.over_trials.low), max(rate.wilson.high, rate.over_trials.high)


def _window_words(window: str) -> str:
    words = {BEFORE: "before the novelty", AFTER: "the first three episodes after it", END: "the last ten episodes"}
    return words[window]


def _narrow(name: str) -> str:
    """taller-slingshot -> two lines."""
    return name.replace("circumcircle", "circum-\ncircle") if name == "circumcircle" else name.replace("-", "\n")
