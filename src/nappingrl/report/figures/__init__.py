"""Figures from run folders, by name: FIGURES holds them all, `draw_figure` draws one.

Intervals are 95 % over trials: between order statistics for medians, by bootstrap for means (`intervals.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from nappingrl.errors import BadRunError, BadSpecError, check_name
from nappingrl.report.best_control import Run
from nappingrl.report.figures.curves import plot_by_novelty, plot_detection, plot_overall, plot_regions
from nappingrl.report.figures.method import draw_map, draw_strip, plot_method
from nappingrl.report.figures.pass_rates import plot_agents, plot_asymptotic, plot_blocks, plot_rates
from nappingrl.report.figures.style import (
    COLOURS,
    MOST_LINES,
    TITLES,
    Look,
    add_legend,
    by_agent,
    episodes_by_trial,
    looks,
    new_canvas,
    save,
    style,
)
from nappingrl.report.figures.values import plot_by_value, plot_map
from nappingrl.report.intervals import Band, over_trials
from nappingrl.report.summary import curve, is_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

__all__ = ["COLOURS", "FIGURES", "Figure", "Run", "curves", "draw_figure", "draw_map", "draw_strip"]

Plot = Callable[[list[Run]], "Canvas"]
ONE_DOMAIN, NOTHING, PICTURES, PRINCIPLES = "one domain", "nothing", "pictures", "principles"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: what it shows, what it is made from, and how."""

    name: str
    title: str
    needs: str
    """A domain's name: runs of it. "one domain": runs of any one. "nothing"; "pictures" and "principles": see plot."""
    _plot: Plot

    def plot(self, runs: list[Run]) -> "Canvas":
        """The matplotlib figure, not yet written; one line of complaint if the runs do not fit."""
        _check_runs(self, runs)
        with style():
            return self._plot(runs)

    def draw(self, runs: list[Run], path: Path) -> Path:
        """Write it to a .png, .pdf or .svg file."""
        return save(self.plot(runs), path)


def draw_figure(name: str, runs: list[Run], path: Path) -> Path:
    """Draw a figure by its name."""
    return FIGURES[check_name("figure", name, FIGURES)].draw(runs, path)


def _check_runs(figure: Figure, runs: list[Run]) -> None:
    wanted = TITLES.get(figure.needs, figure.needs)
    if figure.needs == NOTHING:
        if runs:
            raise BadSpecError(f"figure {figure.name} is made without runs; {len(runs)} given")
        return
    if not runs:
        raise BadSpecError(f"figure {figure.name} needs at least one run of {wanted}; give the --out folders of runs")
    domains = list(dict.fromkeys(str(manifest.spec["domain"]) for manifest, _ in runs))
    if figure.needs == ONE_DOMAIN and len(domains) > 1:
        raise BadRunError(f"figure {figure.name} needs runs of one domain; these are of {', '.join(domains)}")
    for manifest, rows in runs:
        if figure.needs in TITLES and manifest.spec["domain"] != figure.needs:
            raise BadRunError(
                f"figure {figure.name} needs runs of {figure.needs}; '{manifest.label}' is another domain"
            )
        if not (rows["episode"] >= 0).any():
            raise BadRunError(f"figure {figure.name}: the run '{manifest.label}' has no rows after the novelty")


def _without_runs(runs: list[Run]) -> "Canvas":
    return plot_method()


def _other_input(name: str, function: str, runs: list[Run]) -> Any:
    raise BadSpecError(f"figure {name} is not made from rows; use `napping figure {name}`, or {function} in Python")


FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("cartpole-overall", "CartPole: median return per episode", "cartpole",
               partial(plot_overall, statistic="median")),
        Figure("cartpole-by-parameter", "CartPole: final level against each drawn constant", "cartpole",
               partial(plot_by_value, statistic="median")),
        Figure("mountaincar-overall", "MountainCar: mean return per episode", "mountaincar",
               partial(plot_overall, statistic="mean")),
        Figure("mountaincar-by-value", "MountainCar: final level against force and gravity", "mountaincar",
               partial(plot_by_value, statistic="mean")),
        Figure("mountaincar-map", "MountainCar: final level over force x gravity, failed tasks in red", "mountaincar",
               plot_map),
        Figure("crossroad-overall", "CrossRoad: mean return per episode over all novelties", "crossroad",
               partial(plot_overall, statistic="mean")),
        Figure("crossroad-by-novelty", "CrossRoad: mean return per episode, one panel per novelty", "crossroad",
               partial(plot_by_novelty, statistic="mean")),
        Figure("angrybirds-overall", "Angry Birds: pass rate per episode over all novelties", "angrybirds", plot_rates),
        Figure("angrybirds-by-novelty", "Angry Birds: pass rate after each novelty, five episodes at a time",
               "angrybirds", plot_blocks),
        Figure("angrybirds-agents", "Angry Birds: pass rate before, right after and at the end, agent by agent",
               "angrybirds", plot_agents),
        Figure("angrybirds-asymptotic", "Angry Birds: pass rate of the last ten episodes, agent x novelty",
               "angrybirds", plot_asymptotic),
        Figure("domains", "The worlds", PICTURES, partial(_other_input, "domains", "draw_strip")),
        Figure("method", "The method's worked example", NOTHING, _without_runs),
        Figure("embedding-map", "The regions of one trial", PRINCIPLES,
               partial(_other_input, "embedding-map", "draw_map")),
        Figure("regions-over-time", "Regions per episode, and the share that is open", ONE_DOMAIN, plot_regions),
        Figure("detection-delay", "Share of trials in which the novelty is detected", ONE_DOMAIN, plot_detection),
    )
}  # fmt: skip


def curves(runs: list[Run], path: Path, statistic: str = "median") -> Path:
    """Return per post-novelty episode, median or mean over trials, with the middle half of the trials as a band.

    Pass rates have their 95 % intervals as bands. Many runs: one panel per agent, without bands.
    """
    is_split = len(runs) > MOST_LINES
    has_rates = statistic == "mean" and all(is_rate(*run) for run in runs)
    words = ["pass rate" if has_rates else statistic]
    words += [] if is_split else ["95 % interval" if has_rates else "middle half of trials"]
    with style():
        canvas = new_canvas(7.2, 4.8)
        groups = by_agent(runs) if is_split else {"": (runs, looks(runs))}
        panels = canvas.subplots(1, len(groups), sharey=True, squeeze=False).ravel()
        for axes, (agent, (members, shown)) in zip(panels, groups.items(), strict=True):
            for (_, rows), look in zip(members, shown, strict=True):
                _plot_curve(axes, rows, look, "rate" if has_rates else statistic, has_band=not is_split)
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
        found = over_trials(returns[:, episodes >= 0], "rate")
        episodes = episodes[episodes >= 0]
    else:
        data = curve(rows)
        episodes = data["episode"].to_numpy()
        found = Band(*(data[name].to_numpy() for name in (statistic, "lower", "upper")))
    if has_band:
        axes.fill_between(episodes, found.lower, found.upper, color=look.colour, alpha=0.12, linewidth=0)
    axes.plot(episodes, found.centre, label=look.label, **line)
    pre = rows.filter(pl.col("episode") < 0)
    if len(pre):
        axes.plot([-3, -0.5], [pre["return"].to_numpy().mean()] * 2, **line)
