"""Figures from runs, by name: FIGURES lists them, `draw_figure` draws one.

Intervals are 95 % over trials: between order statistics for medians, by bootstrap for means (`intervals.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nappingrl.errors import BadRunError, BadSpecError, check_name
from nappingrl.report.figures.architecture import plot_architecture
from nappingrl.report.figures.curves import draw_curves, plot_by_novelty, plot_detection, plot_overall, plot_regions
from nappingrl.report.figures.domain_pictures import draw_domains
from nappingrl.report.figures.embedding_map import draw_map, draw_trial_map
from nappingrl.report.figures.groups import plot_by_agent, plot_by_value, plot_profiles
from nappingrl.report.figures.method import plot_method
from nappingrl.report.figures.pass_rates import plot_agents, plot_asymptotic, plot_blocks, plot_rates
from nappingrl.report.figures.style import save, style
from nappingrl.report.figures.values import plot_by_parameter, plot_map
from nappingrl.report.looks import domain_title
from nappingrl.report.pass_rates import has_rates
from nappingrl.report.runs import Run, check_one_domain

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

__all__ = ["FIGURES", "Figure", "draw_curves", "draw_domains", "draw_figure", "draw_map", "draw_trial_map"]

Plot = Callable[[Sequence[Run], str], "Canvas"]
"""Takes runs and the statistic over trials."""
ONE_DOMAIN, NOTHING, PICTURES, PRINCIPLES = "one domain", "nothing", "pictures", "principles"
STATISTICS = ("median", "mean")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: what it shows, what it needs, and how it is drawn."""

    name: str
    title: str
    needs: str
    """"one domain" (runs of any one), the name of a domain (runs of it), "nothing", "pictures" or "principles"."""
    _plot: Plot

    def plot(self, runs: Sequence[Run], statistic: str = "") -> "Canvas":
        """The matplotlib figure, not yet written; BadRunError where the runs do not fit."""
        _check_runs(self, runs)
        with style():
            return self._plot(runs, statistic or default_statistic(runs))

    def draw(self, runs: Sequence[Run], path: Path, statistic: str = "") -> Path:
        """Write it to a .png, .pdf or .svg file."""
        return save(self.plot(runs, statistic), path)


def draw_figure(name: str, runs: Sequence[Run], path: Path, statistic: str = "") -> Path:
    """Draw a figure by its name; `statistic`: median or mean over trials, default as `default_statistic`."""
    if statistic:
        check_name("statistic", statistic, STATISTICS)
    return FIGURES[check_name("figure", name, FIGURES)].draw(runs, path, statistic)


def default_statistic(runs: Sequence[Run]) -> str:
    """Median, or mean where a return is passed or not."""
    return "mean" if has_rates(runs) else "median"


def _check_runs(figure: Figure, runs: Sequence[Run]) -> None:
    if figure.needs == NOTHING:
        if runs:
            raise BadSpecError(f"figure {figure.name} is made without runs; {len(runs)} given")
        return
    if figure.needs in (PICTURES, PRINCIPLES):
        return  # its plot says what to use instead
    needed = figure.needs if figure.needs == ONE_DOMAIN else domain_title(figure.needs)
    if not runs:
        raise BadSpecError(f"figure {figure.name} needs at least one run of {needed}; give the --out folders of runs")
    check_one_domain(runs)
    for run in runs:
        if figure.needs not in (ONE_DOMAIN, run.domain):
            raise BadRunError(f"figure {figure.name} needs runs of {figure.needs}; '{run.label}' is another domain")
        if not (run.rows["episode"] >= 0).any():
            raise BadRunError(f"figure {figure.name}: the run '{run.label}' has no rows after the novelty")


def _overall(runs: Sequence[Run], statistic: str) -> "Canvas":
    return plot_rates(runs) if has_rates(runs) else plot_overall(runs, statistic)


def _by_novelty(runs: Sequence[Run], statistic: str) -> "Canvas":
    return plot_blocks(runs) if has_rates(runs) else plot_by_novelty(runs, statistic)


def _without_statistic(plot: "Callable[[Sequence[Run]], Canvas]") -> Plot:
    return lambda runs, statistic: plot(runs)


def _refuse_rows(name: str, function: str, runs: Sequence[Run], statistic: str) -> "Canvas":
    raise BadSpecError(f"figure {name} is not made from rows; use `napping figure {name}`, or {function} in Python")


FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        Figure("overall", "Return or pass rate per episode over all trials", ONE_DOMAIN, _overall),
        Figure("by-parameter", "Final level against each drawn parameter", ONE_DOMAIN, plot_by_parameter),
        Figure("by-value", "Return per episode, a line per fifth of the drawn values of each parameter", ONE_DOMAIN,
               plot_by_value),
        Figure("by-agent", "Return per episode, one panel per run, a line per novelty", ONE_DOMAIN, plot_by_agent),
        Figure("profiles", "Share of trials that end at or above each return", ONE_DOMAIN,
               _without_statistic(plot_profiles)),
        Figure("by-novelty", "Return or pass rate per episode, one panel per novelty", ONE_DOMAIN, _by_novelty),
        Figure("regions-over-time", "Regions per episode, and the share that is open", ONE_DOMAIN,
               _without_statistic(plot_regions)),
        Figure("detection-delay", "Share of trials in which the novelty is detected", ONE_DOMAIN,
               _without_statistic(plot_detection)),
        Figure("mountaincar-map", "MountainCar: final level over force x gravity, failed tasks crossed", "mountaincar",
               _without_statistic(plot_map)),
        Figure("angrybirds-agents", "Angry Birds: pass rate before, right after and at the end, agent by agent",
               "angrybirds", _without_statistic(plot_agents)),
        Figure("angrybirds-asymptotic", "Angry Birds: pass rate of the last ten episodes, agent x novelty",
               "angrybirds", _without_statistic(plot_asymptotic)),
        Figure("domains", "The domains", PICTURES, partial(_refuse_rows, "domains", "draw_domains")),
        Figure("architecture", "The parts of the method", NOTHING, lambda runs, statistic: plot_architecture()),
        Figure("method", "The method's worked example", NOTHING, lambda runs, statistic: plot_method()),
        Figure("embedding-map", "The regions of one trial", PRINCIPLES,
               partial(_refuse_rows, "embedding-map", "draw_trial_map")),
    )
}  # fmt: skip
