"""The canvas of all figures: sizes, fonts, legends, intervals."""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadSpecError, MissingExtraError
from nappingrl.report.looks import Look
from nappingrl.report.runs import Run
from nappingrl.trials.store import make_folder, write_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from nappingrl.report.intervals import Band

FAILED = "#e66100"
"""Orange, as in the paper; readable beside all colours of the levels."""
DPI = 300
ONE_COLUMN, TWO_COLUMNS = 3.5, 7.0
"""Printed widths in inches."""
MOST_LINES = 8
"""More lines than this hide each other: then every agent has its own panel."""
MIN_TRIALS_OF_A_BAND = 20
SUFFIXES = (".png", ".pdf", ".svg")
_RC = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.fontsize": 8, "axes.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "xtick.major.size": 2.5, "ytick.major.size": 2.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.axisbelow": True, "grid.color": "#dddddd", "grid.linewidth": 0.5,
    "lines.linewidth": 1.2, "lines.markersize": 3.5, "lines.markeredgewidth": 0.5, "legend.frameon": False,
    "legend.handlelength": 3.2, "legend.columnspacing": 1.5, "hatch.linewidth": 0.4, "hatch.color": "#555555",
    "pdf.fonttype": 42, "svg.fonttype": "none", "font.family": "sans-serif", "figure.dpi": 100,
}  # fmt: skip


# --------------------------------------------------------------------------------------------------------- the canvas


@contextmanager
def style() -> Iterator[None]:
    """Figures that are made inside have the common look; nothing of it stays behind."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError('figures need matplotlib: pip install "nappingrl[report]"') from error
    with matplotlib.rc_context(_RC):  # type: ignore[arg-type]
        yield


FREE_ROWS, ROW_HEIGHT = 4, 0.19
"""Rows of a legend that a figure has room for, and inches that each further one adds."""


def new_canvas(width: float, height: float) -> "Canvas":
    """An empty figure of this printed size in inches."""
    from matplotlib.figure import Figure as Canvas

    return Canvas(figsize=(width, height), layout="constrained")


def save(canvas: "Canvas", path: Path, dpi: int = DPI) -> Path:
    """Write a figure as its name's ending says: .png, .pdf or .svg."""
    if path.suffix.lower() not in SUFFIXES:
        raise BadSpecError(f"{path} does not end in one of {', '.join(SUFFIXES)}; a figure is written as its name ends")
    make_folder(path.parent)
    settle(canvas)
    content = io.BytesIO()
    with style():
        canvas.savefig(content, dpi=dpi, format=path.suffix[1:].lower())
    write_output(path, content.getvalue())
    return path


def settle(canvas: "Canvas") -> None:
    """Lay it out once before it is drawn: the ticks of the final size may need more room than those of the first."""
    with style():
        canvas.draw_without_rendering()


def add_legend(canvas: "Canvas", panels: "Iterable[Axes]", most: int = 4, title: str | None = None) -> None:
    """One legend for all panels, below them and outside all data, in as many columns as fit its width.

    The figure grows with a long legend, which would leave no room for the panels.
    """
    handles, labels = legend_entries(panels)
    if not handles:
        return
    widths = [0.068 * max(len(line) for line in label.splitlines()) + 0.6 for label in labels]
    page = canvas.get_figwidth()
    fitting = len(labels) if sum(widths) <= page else max(int(page / max(widths)), 1)
    n_rows = -(-len(labels) // min(most, fitting))
    canvas.set_figheight(canvas.get_figheight() + ROW_HEIGHT * max(0, n_rows - FREE_ROWS))
    canvas.legend(handles, labels, loc="outside lower center", ncols=-(-len(labels) // n_rows), title=title)


def legend_entries(panels: "Iterable[Axes]") -> tuple[list[Any], list[str]]:
    """What the panels show, each name once."""
    entries: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    return list(entries.values()), list(entries)


def has_band(run: Run, look: Look, n_runs: int) -> bool:
    """Whether the interval of a run is drawn: of methods, and of one run or two; bands of few trials hide the lines."""
    return run.n_trials >= MIN_TRIALS_OF_A_BAND and (look.role == "method" or n_runs <= 2)


def plot_interval(
    axes: "Axes", x: NDArray[Any], band: "Band", look: Look, markevery: Any = None, is_banded: bool = True
) -> None:
    """A line, with its interval as a band if asked for, broken where the novelty comes."""
    edge: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "linewidth": 0.4, "alpha": 0.5}
    for part in (x < 0, x >= 0) if is_banded else ():
        axes.fill_between(x[part], band.lower[part], band.upper[part], color=look.colour, alpha=0.13, linewidth=0)
        axes.plot(x[part], np.stack([band.lower[part], band.upper[part]], axis=1), **edge)
    at = int((x < 0).sum())
    if 0 < at < len(x):  # a gap in the line
        x, centre = np.insert(x.astype(np.float64), at, -0.5), np.insert(band.centre, at, np.nan)
        markevery = None if markevery is None else [i + (i >= at) for i in markevery]
    else:
        centre = band.centre
    axes.plot(x, centre, markevery=markevery, **look.line)


DOTTED = " (dotted line: first alarm)"
"""Ends the words of an axis where `mark_novelty` has drawn an alarm."""


def mark_novelty(axes: "Axes", runs: Sequence[Run], is_named: bool = True) -> bool:
    """A line at the novelty, and one at the first alarm if an episode before it is in view; whether that is drawn."""
    axes.axvline(-0.5, color="#444444", linewidth=0.9)
    is_alarm = (pl.col("episode") >= 0) & pl.col("detected")
    alarms = [run.rows.filter(is_alarm)["episode"] for run in runs if "detected" in run.rows.columns]
    first = min((int(episodes.to_numpy().min()) for episodes in alarms if len(episodes)), default=0)
    if first > 0:
        axes.axvline(first - 0.5, color="#444444", linewidth=0.7, linestyle=":")
    if is_named:
        above: Any = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "annotation_clip": False}
        if first > 0:
            axes.annotate("first alarm", (first - 0.5, 1.0), (0, 2), ha="left", va="bottom", **above)
        axes.annotate("novelty ", (-0.5, 1.0), (0, 2), ha="right" if first > 0 else "center", va="bottom", **above)
    return first > 0


def episodes_by_trial(rows: pl.DataFrame, column: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The episodes' numbers, and a column as (trials, episodes), trials in the order of the rows.

    NaN where a trial has no such episode.
    """
    places = {name: i for i, name in enumerate(rows["trial"].unique(maintain_order=True))}
    number = rows["episode"].to_numpy().astype(np.int64)
    episodes = np.arange(number.min(), number.max() + 1)
    table = np.full((len(places), len(episodes)), np.nan)
    table[rows["trial"].replace_strict(places).to_numpy(), number - number.min()] = rows[column].to_numpy()
    return episodes, table


def count_words(counts: list[int]) -> str:
    """Such as "100 trials" or "20-100 trials"."""
    least, most = min(counts), max(counts)
    return f"{most} trial{'s' * (most != 1)}" if least == most else f"{least}-{most} trials"
