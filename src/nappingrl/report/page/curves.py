"""The curves of a page as data: per split of the trials, group and run; `page.js` draws them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.report import intervals
from nappingrl.report.figures.style import MOST_LINES, looks
from nappingrl.report.measure import read_trials
from nappingrl.report.page.html import range_decimals
from nappingrl.report.runs import Loaded
from nappingrl.report.statistics import Interval, mean_t, rate_wilson
from nappingrl.report.summary import final_levels, is_rate, span_of

Floats = NDArray[np.float64]
BINS = 5
TRIALS_PER_BIN = 4
MAX_BYTES = 3_500_000
"""Of the data of all splits; parameters that no longer fit are left out and named."""
_SYMBOLS = {
    "o": "circle", "s": "square", "^": "triangle-up", "v": "triangle-down", "*": "star", "D": "diamond",
    "p": "pentagon", "<": "triangle-left", ">": "triangle-right", "X": "x", "P": "cross", "h": "hexagon",
    "d": "diamond-tall",
}  # fmt: skip
"""Markers of the figures -> those of plotly."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The trials of one run, a row each."""

    keys: pl.DataFrame
    draws: pl.DataFrame
    tau: int
    returns: Floats
    level: Floats
    """Mean return of the last ten episodes."""
    solved: NDArray[np.bool_] | None
    """None: nobody knows."""
    is_rate: bool
    """Whether a return says passed (1) or not (0)."""


@dataclass(frozen=True, slots=True)
class Split:
    """A way to divide the trials into groups."""

    name: str
    kind: str
    """all, names (a list to choose from) or bins (a slider)."""
    labels: list[str]
    members: list[list[NDArray[np.int64]]]
    """Per group and run: the rows of its matrix."""


def read_matrix(run: Loaded) -> Matrix:
    """The rows of a run as matrices."""
    trials = read_trials(run.rows)
    levels = trials.keys.join(
        final_levels(run.manifest, run.rows), on=["novelty", "number"], how="left", maintain_order="left"
    )
    return Matrix(
        trials.keys, trials.draws, trials.tau, trials.returns, levels["level"].to_numpy(),
        levels["solved"].to_numpy() if run.manifest.solved_level is not None else None, is_rate(run.manifest, run.rows),
    )  # fmt: skip


def find_splits(matrices: list[Matrix], before: dict[str, float]) -> Iterator[Split]:
    """All trials; by novelty where there are several; by each parameter that varies, in bins of equal size."""
    yield Split("all trials", "all", ["all trials"], [[np.arange(len(m.keys)) for m in matrices]])
    names = pl.concat(m.keys["novelty"] for m in matrices).unique(maintain_order=True).to_list()
    if len(names) > 1:
        novelties = [m.keys["novelty"].to_numpy() for m in matrices]
        yield Split("novelty", "names", names, [[np.flatnonzero(x == name) for x in novelties] for name in names])
    n_bins = min(BINS, max(len(m.keys) for m in matrices) // TRIALS_PER_BIN)
    shared = [name for name in matrices[0].draws.columns if all(name in m.draws.columns for m in matrices)]
    draws = pl.concat(m.draws.select(shared) for m in matrices).unique()  # a draw that several runs met counts once
    for column in shared:
        values = [m.draws[column].to_numpy() for m in matrices]
        edges = np.unique(np.quantile(draws[column].to_numpy(), np.linspace(0, 1, max(n_bins, 1) + 1)))
        if len(edges) < 3:
            continue
        bins = [np.searchsorted(edges[1:-1], x, side="right") for x in values]
        name = column.removeprefix("param_")
        labels = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
        was = f" ({before[name]:g} before the novelty)" if name in before else ""
        yield Split(name + was, "bins", labels, [[np.flatnonzero(b == i) for b in bins] for i in range(len(labels))])


def curve_data(runs: list[Loaded], statistic: str) -> dict[str, Any]:
    """All that the script of the page needs."""
    matrices = [read_matrix(run) for run in runs]
    return_range = span_of(runs[0].manifest, *(run.rows for run in runs))
    digits = range_decimals(return_range)
    splits: list[dict[str, Any]] = []
    left_out, size = [], 0
    for split in find_splits(matrices, runs[0].manifest.parameters):
        groups = [
            {"label": label, "runs": [_group(m, rows, digits) for m, rows in zip(matrices, members, strict=True)]}
            for label, members in zip(split.labels, split.members, strict=True)
        ]
        size += len(json.dumps(groups))
        if splits and size > MAX_BYTES:
            left_out.append(split.name)
            continue
        splits.append({"name": split.name, "kind": split.kind, "groups": groups})
    return {
        "statistic": statistic,
        "range": list(return_range),
        "digits": digits,
        "runs": [
            {
                "name": run.label,
                "colour": look.colour,
                "symbol": _SYMBOLS.get(look.marker, "circle"),
                "dash": "solid" if look.dash == "-" else ",".join(f"{2 * length:g}px" for length in look.dash[1]),
                "first": -m.tau,
                "hidden": len(runs) > MOST_LINES and run.manifest.role == "control",
            }
            for run, m, look in zip(runs, matrices, looks([(r.manifest, r.rows) for r in runs]), strict=True)
        ],
        "splits": splits,
        "left_out": left_out,
    }


def _group(matrix: Matrix, rows: NDArray[np.int64], digits: int) -> dict[str, Any] | None:
    if len(rows) == 0:
        return None
    returns, level = matrix.returns[rows], matrix.level[rows]
    solved = None if matrix.solved is None else matrix.solved[rows]
    means = intervals.over_trials(returns, "rate") if matrix.is_rate else intervals.mean_t(returns)
    medians = intervals.median_order(returns)
    return {
        "n": len(rows),
        "mean": _short(means.centre, digits),
        "mean_band": _ends(means, digits),
        "median": _short(medians.centre, digits),
        "median_band": _ends(medians, digits),
        "level": _triple(level, mean_t(level), digits),
        "solved": None if solved is None else _triple(solved, rate_wilson(solved), 4),
    }


def _ends(band: intervals.Band, digits: int) -> list[list[float]] | None:
    if np.isnan(band.lower).any():
        return None
    return [_short(band.lower, digits), _short(band.upper, digits)]


def _triple(values: NDArray[Any], interval: Interval | None, digits: int) -> list[float]:
    found = [values.mean()] if interval is None else [interval.value, interval.low, interval.high]
    return _short(np.asarray(found, np.float64), digits)


def _short(values: Floats, digits: int) -> list[float]:
    """Rounded, whole numbers without a point: the page is to stay small."""
    return [int(value) if value.is_integer() else value for value in np.round(values, digits).tolist()]
