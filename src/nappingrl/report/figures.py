"""Figures from run folders, by matplotlib."""

from pathlib import Path
from typing import Any

import polars as pl

from nappingrl.errors import MissingExtraError
from nappingrl.report.summary import curve
from nappingrl.trials.store import Manifest

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's palette: safe for colour-blind readers."""
DASHES = ("-", "--", "-.", ":")

Run = tuple[Manifest, pl.DataFrame]


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError('figures need matplotlib: pip install "nappingrl[report]"') from error
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def curves(runs: list[Run], path: Path, statistic: str = "median") -> Path:
    """Return per post-novelty episode: median or mean over trials, and the middle half of the trials as a band."""
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(7.2, 4.8), constrained_layout=True)
    for i, (manifest, rows) in enumerate(runs):
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i % len(DASHES)]
        data = curve(rows)
        episodes = data["episode"].to_numpy()
        axes.fill_between(episodes, data["lower"], data["upper"], color=colour, alpha=0.12, linewidth=0)
        axes.plot(episodes, data[statistic], dash, color=colour, linewidth=2, label=manifest.label)
        pre = rows.filter(pl.col("episode") < 0)
        if len(pre):
            level = pre["return"].to_numpy().mean()
            axes.plot([-3, -0.5], [level, level], dash, color=colour, linewidth=2)
    axes.axvline(-0.25, color="grey", linewidth=1)
    axes.annotate("novelty", (-0.25, 1.01), xycoords=("data", "axes fraction"), ha="center", fontsize=8)
    axes.set_xlabel("post-novelty episode (short lines on the left: level before the novelty)")
    axes.set_ylabel(f"return ({statistic}, middle half of trials)")
    axes.grid(alpha=0.25)
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path
