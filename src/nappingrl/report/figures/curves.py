"""Figures over the episodes of a trial: returns, regions, detection."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.report.figures.style import (
    DOTTED,
    MIN_TRIALS_OF_A_BAND,
    MOST_LINES,
    ONE_COLUMN,
    TWO_COLUMNS,
    add_legend,
    count_words,
    episodes_by_trial,
    has_band,
    mark_novelty,
    new_canvas,
    plot_interval,
    save,
    style,
)
from nappingrl.report.intervals import Band, name_interval, over_trials, rate_band
from nappingrl.report.looks import Look, by_agent, looks
from nappingrl.report.runs import Run
from nappingrl.report.summary import curve, span_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

EPISODE = "episode (0: the first after the novelty)"
SMALL_PANEL_START = -10
"""First episode of small panels: nothing happens before it."""
ENLARGE_BELOW = 0.3
"""Share of the scale below which the episodes after the novelty get their own panel."""


def plot_overall(runs: Sequence[Run], statistic: str) -> "Canvas":
    """Return per episode over all trials: one line per run, with its interval; many runs in one panel per agent.

    Where the episodes after the novelty take a small part of the scale, a second panel enlarges them.
    """
    low, high = _span(runs, statistic, None)
    post_low, post_high = _span(runs, statistic, 0)
    is_squeezed = post_high - post_low < ENLARGE_BELOW * (high - low)
    if len(runs) > MOST_LINES and len(by_agent(runs)) > 1:
        return _plot_agents(runs, statistic, 0 if is_squeezed else SMALL_PANEL_START)
    canvas = new_canvas(TWO_COLUMNS, 3.3)
    shown = looks(runs)
    panels = canvas.subplots(1, 2 if is_squeezed else 1, squeeze=False).ravel()
    _plot_returns(panels[0], runs, shown, statistic)
    mark_novelty(panels[0], runs)
    panels[0].set_xlabel(EPISODE)
    panels[0].set_ylabel(f"return ({_interval_of(runs, statistic)}\nover {_trials_of(runs)})")
    if is_squeezed:
        _plot_returns(panels[1], runs, shown, statistic, 0)
        mark_novelty(panels[1], runs, is_named=False)
        margin = 0.05 * (post_high - post_low)
        panels[1].set(xlabel=EPISODE, xlim=(-2, None), ylim=(post_low - margin, post_high + margin))
        panels[1].set_title("after the novelty, enlarged")
    add_legend(canvas, panels)
    return canvas


def _plot_agents(runs: Sequence[Run], statistic: str, start: int) -> "Canvas":
    """One panel of returns per agent; the level before the novelty, where it is out of view, in words."""
    agents = by_agent(runs)
    n_columns = 2 if len(agents) == 4 else min(3, len(agents))
    n_rows = -(-len(agents) // n_columns)
    canvas = new_canvas(TWO_COLUMNS, 0.8 + 2.3 * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, (agent, (members, shown)) in zip(panels, agents.items(), strict=False):
        _plot_returns(axes, members, shown, statistic, start)
        has_alarm = mark_novelty(axes, members, is_named=False)
        axes.set_title(agent if start < 0 else f"{agent}\nbefore the novelty: {_levels_before(members, shown)}")
        axes.set_xlabel(f"episode{DOTTED * has_alarm}")
        axes.tick_params(labelbottom=True)
    for axes in panels[len(agents) :]:
        axes.remove()
    for axes in panels[: len(agents) : n_columns]:
        axes.set_ylabel(f"return ({_interval_of(runs, statistic)}\nover {_trials_of(runs)})")
    add_legend(canvas, panels[: len(agents)])
    return canvas


def _levels_before(runs: Sequence[Run], shown: list[Look]) -> str:
    """The mean return before the novelty, in words: of the frozen run if there is one, else of the first run."""
    i = next((i for i, look in enumerate(shown) if look.method == "frozen"), 0)
    before = runs[i].rows.filter(pl.col("episode") < 0)["return"].to_numpy()
    level = f"{before.mean():.0f}".replace("-", "−") if len(before) else "not run"  # noqa: RUF001
    return f"{level} ({shown[i].method_title})"


def plot_by_novelty(runs: Sequence[Run], statistic: str) -> "Canvas":
    """One small panel of returns per novelty."""
    names = list(dict.fromkeys(name for run in runs for name in run.novelties))
    n_columns = min(3, len(names))
    n_rows = -(-len(names) // n_columns)
    canvas = new_canvas(TWO_COLUMNS, 0.9 + 1.55 * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    low, high = span_of(runs[0].manifest, *(run.rows for run in runs))
    shown = looks(runs)
    counts, has_alarm = [], False
    for axes, name in zip(panels, names, strict=False):
        here = [(run.where(name), look) for run, look in zip(runs, shown, strict=True) if name in run.novelties]
        members = [run for run, _ in here]
        counts += [run.n_trials for run in members]
        _plot_returns(axes, members, [look for _, look in here], statistic, SMALL_PANEL_START)
        has_alarm |= mark_novelty(axes, members, is_named=False)
        axes.set_title(name)
        axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    for axes in panels[len(names) :]:
        axes.remove()
    panels[min(n_columns * (n_rows - 1) + n_columns // 2, len(names) - 1)].set_xlabel(
        f"episode (full line: novelty{'; dotted line: first alarm' * has_alarm})"
    )
    words = name_interval(statistic, min(counts) if min(counts) >= MIN_TRIALS_OF_A_BAND else 1)
    canvas.supylabel(f"return ({words} over {count_words(counts)})", fontsize=8)
    add_legend(canvas, panels[: len(names)])
    return canvas


def _check_columns(runs: Sequence[Run], column: str) -> None:
    """Raise where rows lack a column, as those of a published file may."""
    for run in runs:
        if column not in run.rows.columns:
            raise BadRunError(f"the rows of '{run.label}' have no column '{column}'; give the folder of the run")


def plot_regions(runs: Sequence[Run]) -> "Canvas":
    """How many regions there are, and which share of them is still open."""
    _check_columns(runs, "regions")
    kept = [
        (run, look)
        for run, look in zip(runs, looks(runs), strict=True)
        if run.rows["regions"].to_numpy().max(initial=0) > 0
    ]
    if not kept:
        raise BadRunError(
            "figure regions-over-time needs a run of a method with regions, such as napping; these have none"
        )
    with_regions = [run for run, _ in kept]
    canvas = new_canvas(TWO_COLUMNS, 2.9)
    left, right = canvas.subplots(1, 2)
    for run, look in kept:
        episodes, regions = episodes_by_trial(run.rows, "regions")
        n_open = episodes_by_trial(run.rows, "open_regions")[1]
        post = episodes >= 0
        plot_interval(
            left, episodes[post], over_trials(regions[:, post], "median"), look, some_episodes(episodes[post])
        )
        share = np.divide(n_open, regions, out=np.full(regions.shape, np.nan), where=regions > 0)
        _plot_open_share(right, episodes[post], share[:, post], look)
    left.set_ylabel(f"regions ({_interval_of(with_regions, 'median')}\nover {_trials_of(with_regions)})")
    right.set_ylabel(f"open share of a trial's regions\n({_interval_of(with_regions, 'mean')})")
    left.set_ylim(bottom=0)
    left.locator_params(axis="y", integer=True)
    right.set_ylim(-0.03, 1.03)
    for axes in (left, right):
        has_alarm = mark_novelty(axes, with_regions, is_named=False)
        axes.set(xlabel=f"episode after the novelty{DOTTED * has_alarm}", xlim=(-2, None))
    add_legend(canvas, [left])
    return canvas


def plot_detection(runs: Sequence[Run]) -> "Canvas":
    """Cumulative share of trials in which the novelty is detected; runs with the same shares share a line."""
    _check_columns(runs, "detected")
    canvas = new_canvas(ONE_COLUMN, 2.9)
    axes = canvas.add_subplot()
    shown = looks(runs)
    groups: dict[bytes, list[int]] = {}
    for i, run in enumerate(runs):
        groups.setdefault(np.sort(detection_delays(run.rows)).tobytes(), []).append(i)
    for members in groups.values():
        rows = runs[members[0]].rows
        delays = detection_delays(rows)
        look = shown[members[0]]
        if len(members) > 1:
            look = replace(look, colour="#444444", marker="o")
        false = int(np.isnan(delays).sum())
        label = _shared_label([shown[i] for i in members]) + (f"; {false} false alarms left out" if false else "")
        judged = delays[~np.isnan(delays)]
        episodes = np.arange(int(rows["episode"].to_numpy().max()) + 1)
        known = np.array([(judged <= episode).sum() for episode in episodes])
        _plot_share(axes, episodes, rate_band(known, max(len(judged), 1)), replace(look, label=fill(label, 45)))
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("episodes after the novelty")
    axes.set_ylabel(f"share of trials detected\n({'95 % interval, ' * (_least_trials(runs) > 1)}{_trials_of(runs)})")
    add_legend(canvas, [axes], most=1)
    return canvas


def detection_delays(rows: pl.DataFrame) -> NDArray[np.float64]:
    """Per trial: the first episode in which the novelty is detected; inf: never; NaN: an alarm before the novelty."""
    episodes, detected = episodes_by_trial(rows, "detected")
    known = detected > 0
    post = episodes >= 0
    first = np.where(known[:, post].any(axis=1), episodes[post][known[:, post].argmax(axis=1)], np.inf)
    return np.where(known[:, ~post].any(axis=1), np.nan, first)


def draw_curves(runs: Sequence[Run], path: Path, statistic: str = "median") -> Path:
    """Return per post-novelty episode, median or mean over trials, with the middle half of the trials as a band.

    Pass rates have their 95 % intervals as bands. Many runs: one panel per agent, without bands.
    """
    is_split = len(runs) > MOST_LINES
    has_rates = statistic == "mean" and all(run.is_rate for run in runs)
    words = ["pass rate" if has_rates else statistic]
    words += [] if is_split else ["95 % interval" if has_rates else "middle half of trials"]
    with style():
        canvas = new_canvas(7.2, 4.8)
        groups = by_agent(runs) if is_split else {"": (list(runs), looks(runs))}
        panels = canvas.subplots(1, len(groups), sharey=True, squeeze=False).ravel()
        for axes, (agent, (members, shown)) in zip(panels, groups.items(), strict=True):
            for run, look in zip(members, shown, strict=True):
                _plot_curve(axes, run.rows, look, "rate" if has_rates else statistic, has_band=not is_split)
            axes.axvline(-0.25, color="grey", linewidth=1)
            axes.annotate("novelty", (-0.25, 1.01), xycoords=("data", "axes fraction"), ha="center", fontsize=8)
            axes.set_title(agent, pad=14)
            axes.set_xlabel("post-novelty episode" + " (short lines on the left: before the novelty)" * (not is_split))
        panels[0].set_ylabel(f"return ({', '.join(words)})")
        add_legend(canvas, panels)
    return save(canvas, path, dpi=150)


def _plot_curve(axes: "Axes", rows: pl.DataFrame, look: Look, statistic: str, has_band: bool) -> None:
    line: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "linewidth": 2 if has_band else 1.3}
    if statistic == "rate":
        episodes, returns = episodes_by_trial(rows, "return")
        band = over_trials(returns[:, episodes >= 0], "rate")
        episodes = episodes[episodes >= 0]
    else:
        data = curve(rows)
        episodes = data["episode"].to_numpy()
        band = Band(*(data[name].to_numpy() for name in (statistic, "lower", "upper")))
    if has_band:
        axes.fill_between(episodes, band.lower, band.upper, color=look.colour, alpha=0.12, linewidth=0)
    axes.plot(episodes, band.centre, label=look.label, **line)
    pre = rows.filter(pl.col("episode") < 0)
    if len(pre):
        axes.plot([-3, -0.5], [pre["return"].to_numpy().mean()] * 2, **line)


# ------------------------------------------------------------------------------------------------------------- helpers


def _plot_returns(
    axes: "Axes", runs: Sequence[Run], shown: list[Look], statistic: str, start: int | None = None
) -> None:
    for i, (run, look) in enumerate(zip(runs, shown, strict=True)):
        episodes, returns = episodes_by_trial(run.rows, "return")
        seen = episodes >= (episodes[0] if start is None else start)
        band = over_trials(returns[:, seen], statistic)
        is_banded = has_band(run, look, len(runs))
        plot_interval(axes, episodes[seen], band, look, some_episodes(episodes[seen], i), is_banded)


def some_episodes(episodes: NDArray[np.int64], shift: int = 0) -> list[int]:
    """Where markers go: a few, shifted for each line so that lines on top of each other can be told apart."""
    every = max(len(episodes) // 6, 1)
    return list(range(min(shift * max(every // 3, 1), len(episodes) - 1), len(episodes), every))


def _span(runs: Sequence[Run], statistic: str, start: int | None) -> tuple[float, float]:
    """The lowest and highest end of an interval from an episode on."""
    ends = []
    for run in runs:
        episodes, returns = episodes_by_trial(run.rows, "return")
        band = over_trials(returns[:, episodes >= (episodes[0] if start is None else start)], statistic)
        ends += [band.lower, band.centre, band.upper]
    return float(np.nanmin(np.concatenate(ends))), float(np.nanmax(np.concatenate(ends)))


def _shared_label(shown: list[Look]) -> str:
    """Such as "PPO: frozen, napping"."""
    if len(shown) == 1:
        return shown[0].label
    agents = dict.fromkeys(look.agent for look in shown)
    return "; ".join(f"{agent}: {', '.join(x.variant for x in shown if x.agent == agent)}" for agent in agents)


def _plot_open_share(axes: "Axes", episodes: NDArray[np.int64], share: NDArray[np.float64], look: Look) -> None:
    """The mean over those trials that have regions at the time."""
    has = np.flatnonzero((~np.isnan(share)).any(axis=0))
    bands = [over_trials(share[~np.isnan(share[:, i]), i], "mean") for i in has]
    ends = (np.array([getattr(band, name) for band in bands]) for name in ("centre", "lower", "upper"))
    plot_interval(axes, episodes[has], Band(*ends), look, some_episodes(episodes[has]))


def _plot_share(axes: "Axes", episodes: NDArray[np.int64], band: Band, look: Look) -> None:
    axes.fill_between(episodes, band.lower, band.upper, step="post", color=look.colour, alpha=0.18, linewidth=0)
    axes.plot(episodes, band.centre, drawstyle="steps-post", markevery=some_episodes(episodes), **look.line)


def _least_trials(runs: Sequence[Run]) -> int:
    return min(run.n_trials for run in runs)


def _interval_of(runs: Sequence[Run], statistic: str) -> str:
    """Which interval the bands show; none below the number of trials that has bands."""
    n = _least_trials(runs)
    return name_interval(statistic, n if n >= MIN_TRIALS_OF_A_BAND else 1)


def _trials_of(runs: Sequence[Run]) -> str:
    return count_words([run.n_trials for run in runs])
