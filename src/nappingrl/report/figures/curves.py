"""Figures over the episodes of a trial: returns, regions, detection."""

from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.report.best_control import Run
from nappingrl.report.figures.style import (
    MOST_LINES,
    ONE_COLUMN,
    TWO_COLUMNS,
    Look,
    add_legend,
    by_agent,
    count_words,
    episodes_by_trial,
    looks,
    mark_novelty,
    new_canvas,
    plot_interval,
)
from nappingrl.report.intervals import Band, name_interval, over_trials, rate_wilson
from nappingrl.report.summary import span_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

EPISODE = "episode (0: the first after the novelty)"
SMALL_PANEL_START = -10
"""First episode that small panels show: before it nothing happens."""
ENLARGE_BELOW = 0.3
"""Share of the scale below which the episodes after the novelty get a panel of their own."""


def plot_overall(runs: list[Run], statistic: str) -> "Canvas":
    """Return per episode over all trials: one line per run, with its interval; many runs in one panel per agent.

    Where all that comes after the novelty is squeezed into a small part of the scale, a second panel enlarges it.
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


def _plot_agents(runs: list[Run], statistic: str, start: int) -> "Canvas":
    """One panel of returns per agent; the level before the novelty, where it is out of view, in words."""
    agents = by_agent(runs)
    n_columns = min(3, len(agents))
    n_rows = -(-len(agents) // n_columns)
    canvas = new_canvas(TWO_COLUMNS, 0.8 + 2.3 * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, (agent, (members, shown)) in zip(panels, agents.items(), strict=False):
        _plot_returns(axes, members, shown, statistic, start)
        mark_novelty(axes, members, is_named=False)
        axes.set_title(agent if start < 0 else f"{agent}\nbefore the novelty: {_levels_before(members, shown)}")
        axes.set_xlabel("episode (dotted line: first alarm)")
        axes.tick_params(labelbottom=True)
    for axes in panels[len(agents) :]:
        axes.remove()
    for axes in panels[: len(agents) : n_columns]:
        axes.set_ylabel(f"return ({_interval_of(runs, statistic)}\nover {_trials_of(runs)})")
    add_legend(canvas, panels[: len(agents)])
    return canvas


def _levels_before(runs: list[Run], shown: list[Look]) -> str:
    """The mean return before the novelty, in words: of frozen if it is there, else of the first run."""
    i = next((i for i, look in enumerate(shown) if look.method == "frozen"), 0)
    before = runs[i][1].filter(pl.col("episode") < 0)["return"].to_numpy()
    level = f"{before.mean():.0f}".replace("-", "−") if len(before) else "not run"  # noqa: RUF001
    return f"{level} ({shown[i].method})"


def plot_by_novelty(runs: list[Run], statistic: str) -> "Canvas":
    """One small panel of returns per novelty."""
    names = list(dict.fromkeys(name for _, rows in runs for name in rows["novelty"].unique(maintain_order=True)))
    n_columns = min(3, len(names))
    n_rows = -(-len(names) // n_columns)
    canvas = new_canvas(TWO_COLUMNS, 0.9 + 1.55 * n_rows)
    panels = canvas.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False).ravel()
    low, high = span_of(runs[0][0], *(rows for _, rows in runs))
    shown = looks(runs)
    counts = []
    for axes, name in zip(panels, names, strict=False):
        here = [(m, rows.filter(pl.col("novelty") == name)) for m, rows in runs]
        of_novelty = [(run, look) for run, look in zip(here, shown, strict=True) if len(run[1])]
        counts += [run[1]["trial"].n_unique() for run, _ in of_novelty]
        _plot_returns(
            axes, [run for run, _ in of_novelty], [look for _, look in of_novelty], statistic, SMALL_PANEL_START
        )
        mark_novelty(axes, [run for run, _ in of_novelty], is_named=False)
        axes.set_title(name)
        axes.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    for axes in panels[len(names) :]:
        axes.remove()
    panels[min(n_columns * (n_rows - 1) + n_columns // 2, len(names) - 1)].set_xlabel(
        "episode (full line: novelty; dotted line: first alarm)"
    )
    canvas.supylabel(f"return ({name_interval(statistic, min(counts))} over {count_words(counts)})", fontsize=8)
    add_legend(canvas, panels[: len(names)])
    return canvas


def plot_regions(runs: list[Run]) -> "Canvas":
    """How many regions there are, and which share of them is still open."""
    kept = [
        (run, look)
        for run, look in zip(runs, looks(runs), strict=True)
        if run[1]["regions"].to_numpy().max(initial=0) > 0
    ]
    if not kept:
        raise BadRunError(
            "figure regions-over-time needs a run of a method with regions, such as napping; these have none"
        )
    with_regions = [run for run, _ in kept]
    canvas = new_canvas(TWO_COLUMNS, 2.9)
    left, right = canvas.subplots(1, 2)
    for (_, rows), look in kept:
        episodes, regions = episodes_by_trial(rows, "regions")
        n_open = episodes_by_trial(rows, "open_regions")[1]
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
        mark_novelty(axes, with_regions, is_named=False)
        axes.set(xlabel="episode after the novelty (dotted: first alarm)", xlim=(-2, None))
    add_legend(canvas, [left])
    return canvas


def plot_detection(runs: list[Run]) -> "Canvas":
    """Cumulative share of trials in which the novelty is known; runs of the same shares share a line."""
    canvas = new_canvas(ONE_COLUMN, 2.9)
    axes = canvas.add_subplot()
    shown = looks(runs)
    groups: dict[bytes, list[int]] = {}
    for i, (_, rows) in enumerate(runs):
        groups.setdefault(np.sort(detection_delays(rows)).tobytes(), []).append(i)
    for members in groups.values():
        rows = runs[members[0]][1]
        delays = detection_delays(rows)
        look = shown[members[0]]
        if len(members) > 1:
            look = replace(look, colour="#444444", marker="o")
        false = int(np.isnan(delays).sum())
        label = _shared_label([shown[i] for i in members]) + (f"; {false} false alarms left out" if false else "")
        judged = delays[~np.isnan(delays)]
        episodes = np.arange(int(rows["episode"].to_numpy().max()) + 1)
        known = np.array([(judged <= episode).sum() for episode in episodes])
        _plot_share(axes, episodes, rate_wilson(known, max(len(judged), 1)), replace(look, label=fill(label, 45)))
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("episodes after the novelty")
    axes.set_ylabel(f"share of trials detected\n({'95 % interval, ' * (_least_trials(runs) > 1)}{_trials_of(runs)})")
    add_legend(canvas, [axes], most=1)
    return canvas


def detection_delays(rows: pl.DataFrame) -> NDArray[np.float64]:
    """Per trial the first episode in which the novelty is known; inf: never; NaN: an alarm before there was one."""
    episodes, detected = episodes_by_trial(rows, "detected")
    known = detected > 0
    post = episodes >= 0
    first = np.where(known[:, post].any(axis=1), episodes[post][known[:, post].argmax(axis=1)], np.inf)
    return np.where(known[:, ~post].any(axis=1), np.nan, first)


# ------------------------------------------------------------------------------------------------------------- helpers


def _plot_returns(axes: "Axes", runs: list[Run], shown: list[Look], statistic: str, start: int | None = None) -> None:
    for i, ((_, rows), look) in enumerate(zip(runs, shown, strict=True)):
        episodes, returns = episodes_by_trial(rows, "return")
        seen = episodes >= (episodes[0] if start is None else start)
        found = over_trials(returns[:, seen], statistic)
        plot_interval(axes, episodes[seen], found, look, some_episodes(episodes[seen], i))


def some_episodes(episodes: NDArray[np.int64], shift: int = 0) -> list[int]:
    """Where markers go: a few, at other places for each line so that lines on top of each other can be told apart."""
    every = max(len(episodes) // 6, 1)
    return list(range(min(shift * max(every // 3, 1), len(episodes) - 1), len(episodes), every))


def _span(runs: list[Run], statistic: str, start: int | None) -> tuple[float, float]:
    """The least and the greatest end of an interval from an episode on."""
    ends = []
    for _, rows in runs:
        episodes, returns = episodes_by_trial(rows, "return")
        found = over_trials(returns[:, episodes >= (episodes[0] if start is None else start)], statistic)
        ends += [found.lower, found.centre, found.upper]
    return float(np.nanmin(np.concatenate(ends))), float(np.nanmax(np.concatenate(ends)))


def _shared_label(shown: list[Look]) -> str:
    """Such as "PPO: frozen, napping"."""
    if len(shown) == 1:
        return shown[0].label
    agents = dict.fromkeys(look.agent for look in shown)
    return "; ".join(f"{agent}: {', '.join(x.method for x in shown if x.agent == agent)}" for agent in agents)


def _plot_open_share(axes: "Axes", episodes: NDArray[np.int64], share: NDArray[np.float64], look: Look) -> None:
    """The mean over those trials that have regions at the time."""
    has = np.flatnonzero((~np.isnan(share)).any(axis=0))
    found = [over_trials(share[~np.isnan(share[:, i]), i], "mean") for i in has]
    ends = (np.array([getattr(one, name) for one in found]) for name in ("centre", "lower", "upper"))
    plot_interval(axes, episodes[has], Band(*ends), look, some_episodes(episodes[has]))


def _plot_share(axes: "Axes", episodes: NDArray[np.int64], found: Band, look: Look) -> None:
    axes.fill_between(episodes, found.lower, found.upper, step="post", color=look.colour, alpha=0.18, linewidth=0)
    axes.plot(episodes, found.centre, drawstyle="steps-post", markevery=some_episodes(episodes), **look.line)


def _least_trials(runs: list[Run]) -> int:
    return min(rows["trial"].n_unique() for _, rows in runs)


def _interval_of(runs: list[Run], statistic: str) -> str:
    return name_interval(statistic, _least_trials(runs))


def _trials_of(runs: list[Run]) -> str:
    return count_words([rows["trial"].n_unique() for _, rows in runs])
