"""Runs to draw, and what tests read off a figure."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from matplotlib.text import Text

from nappingrl.report.figures import FIGURES
from nappingrl.report.figures.style import settle, style
from nappingrl.report.runs import Run

Runs = dict[str, list[Run]]
FROM_RUNS = [name for name, figure in FIGURES.items() if figure.needs not in ("pictures", "principles")]
TRIALS = {"cartpole": 8, "mountaincar": 8, "crossroad": 2}
PRE, POST = 6, 8


def needed(name: str, runs: Runs) -> list[Run]:
    return runs[FIGURES[name].needs]


def returns_of(rows: pl.DataFrame) -> Any:
    return rows["return"].to_numpy().reshape(-1, PRE + POST)


def repeated(run: Run, times: int = 3) -> Run:
    """The same trials several times: enough of them for bands."""
    step = int(run.rows["number"].to_numpy().max()) + 1
    parts = [
        run.rows.with_columns(pl.col("trial") + f"-{i}", (pl.col("number") + i * step).cast(run.rows["number"].dtype))
        for i in range(times)
    ]
    return replace(run, rows=pl.concat(parts))


def texts(canvas: Any) -> list[str]:
    return [text.get_text() for text in canvas.findobj(Text) if text.get_visible() and text.get_text()]


def line(axes: Any, label: str) -> Any:
    """(x, y) of the line with this label, without the gap at the novelty."""
    (found,) = [one for one in axes.get_lines() if one.get_label() == label]
    data = found.get_xydata()
    return data[~np.isnan(data[:, 1])].T


def check_layout(canvas: Any) -> None:
    """Text of 8 pt or more, all of it on the page, no legend over a panel, no tick label over another."""
    settle(canvas)
    page = canvas.bbox.padded(1)
    with style():  # the number of ticks depends on it
        panels = [axes.get_tightbbox() for axes in canvas.axes]
        legends = [legend.get_window_extent() for legend in canvas.legends]
        for axes in canvas.axes:
            ticks = [tick.get_window_extent() for tick in axes.get_xticklabels() if tick.get_text()]
            assert all(a.x1 < b.x0 for a, b in pairwise(ticks) if a.width > 1)
    for box in panels + legends:
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert not any(legend.padded(-1).overlaps(panel) for legend in legends for panel in panels)
    assert min(text.get_fontsize() for text in canvas.findobj(Text) if text.get_text()) >= 8


def with_spec(run: Run, **changes: Any) -> Run:
    return replace(run, manifest=replace(run.manifest, spec=run.spec | changes))


def many(runs: list[Run], agents: int = 5) -> list[Run]:
    """The runs again for each of some agents: too many lines for one panel."""
    return [with_spec(run, agent=f"agent-{i}") for run in runs for i in range(agents)]
