"""The curves of a page as data: per split of the trials, group and run; `page.js` draws them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.report.aggregates import profile
from nappingrl.report.figures.style import MOST_LINES
from nappingrl.report.intervals import (
    Band,
    Interval,
    mean_band,
    mean_interval,
    median_band,
    over_trials,
    rate_interval,
)
from nappingrl.report.looks import Look, looks
from nappingrl.report.page.formats import range_decimals
from nappingrl.report.runs import Run
from nappingrl.report.summary import span_of
from nappingrl.types import Floats

BINS = 5
TRIALS_PER_BIN = 4
MAX_BYTES = 3_500_000
"""Limit of the data of all splits; parameters that no longer fit are left out and named."""
_SYMBOLS = {
    "o": "circle", "s": "square", "^": "triangle-up", "v": "triangle-down", "*": "star", "D": "diamond",
    "p": "pentagon", "<": "triangle-left", ">": "triangle-right", "X": "x", "P": "cross", "h": "hexagon",
    "d": "diamond-tall", "H": "hexagon2", "8": "octagon", "1": "y-down", "2": "y-up", "3": "y-left",
}  # fmt: skip
"""Markers of the figures -> those of plotly."""


@dataclass(frozen=True, slots=True)
class Split:
    """A way to divide the trials into groups."""

    name: str
    kind: str
    """all, names (a list to choose from) or bins (a slider)."""
    labels: list[str]
    members: list[list[NDArray[np.int64]]]
    """Per group and run: the numbers of its trials."""


def find_splits(runs: Sequence[Run]) -> Iterator[Split]:
    """All trials; by novelty if there are several; by each parameter that varies, in bins of equal size."""
    yield Split("all trials", "all", ["all trials"], [[np.arange(len(run.keys)) for run in runs]])
    names = pl.concat(run.keys["novelty"] for run in runs).unique(maintain_order=True).to_list()
    if len(names) > 1:
        novelties = [run.keys["novelty"].to_numpy() for run in runs]
        yield Split("novelty", "names", names, [[np.flatnonzero(x == name) for x in novelties] for name in names])
    before = runs[0].manifest.parameters
    n_bins = min(BINS, max(len(run.keys) for run in runs) // TRIALS_PER_BIN)
    draws = [run.draws for run in runs]
    shared = [name for name in draws[0].columns if all(name in of_run.columns for of_run in draws)]
    distinct = pl.concat(of_run.select(shared) for of_run in draws).unique()  # a draw that several runs met counts once
    for column in shared:
        values = [of_run[column].to_numpy() for of_run in draws]
        edges = np.unique(np.quantile(distinct[column].to_numpy(), np.linspace(0, 1, max(n_bins, 1) + 1)))
        if len(edges) < 3:
            continue
        bins = [np.searchsorted(edges[1:-1], x, side="right") for x in values]
        name = column.removeprefix("param_")
        labels = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)]
        was = f" ({before[name]:g} before the novelty)" if name in before else ""
        yield Split(name + was, "bins", labels, [[np.flatnonzero(b == i) for b in bins] for i in range(len(labels))])


def curve_data(runs: Sequence[Run], statistic: str) -> dict[str, Any]:
    """All data that the script of the page needs."""
    return_range = span_of(runs[0].manifest, *(run.rows for run in runs))
    digits = range_decimals(return_range)
    splits: list[dict[str, Any]] = []
    left_out: list[str] = []
    size = 0
    for split in find_splits(runs):
        groups = [
            {"label": label, "runs": [_group(run, rows, digits) for run, rows in zip(runs, members, strict=True)]}
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
        "runs": [_line(run, look, len(runs)) for run, look in zip(runs, looks(runs), strict=True)],
        "profiles": [_profile(run, return_range, digits) for run in runs],
        "splits": splits,
        "left_out": left_out,
    }


def _line(run: Run, look: Look, n_runs: int) -> dict[str, Any]:
    """How a run is drawn."""
    return {
        "name": run.label,
        "colour": look.colour,
        "symbol": _SYMBOLS.get(look.marker, "circle"),
        "dash": "solid" if look.dash == "-" else ",".join(f"{2 * length:g}px" for length in look.dash[1]),
        "first": -run.tau,
        "hidden": n_runs > MOST_LINES and run.manifest.role == "control",
    }


def _profile(run: Run, return_range: tuple[float, float], digits: int) -> dict[str, Any]:
    """The performance profile of a run."""
    returns, band = profile(run, return_range)
    return {"x": _short(returns, digits), "y": _short(band.centre, 4), "band": _ends(band, 4)}


def _group(run: Run, rows: NDArray[np.int64], digits: int) -> dict[str, Any] | None:
    """The curves and the end of some trials of a run."""
    if len(rows) == 0:
        return None
    returns = run.matrix("return")[rows]
    levels = run.keys.join(run.levels, on=["novelty", "number"], how="left", maintain_order="left")[rows]
    means = over_trials(returns, "rate") if run.is_rate else mean_band(returns)
    medians = median_band(returns)
    level, solved = levels["level"].to_numpy(), levels["solved"].to_numpy()
    has_level = run.manifest.solved_level is not None
    return {
        "n": len(rows),
        "mean": _short(means.centre, digits),
        "mean_band": _ends(means, digits),
        "median": _short(medians.centre, digits),
        "median_band": _ends(medians, digits),
        "level": _triple(level, mean_interval(level), digits),
        "solved": _triple(solved, rate_interval(solved), 4) if has_level else None,
    }


def _ends(band: Band, digits: int) -> list[list[float]] | None:
    if np.isnan(band.lower).any():
        return None
    return [_short(band.lower, digits), _short(band.upper, digits)]


def _triple(values: NDArray[Any], interval: Interval | None, digits: int) -> list[float]:
    numbers = [values.mean()] if interval is None else [interval.value, interval.low, interval.high]
    return _short(np.asarray(numbers, np.float64), digits)


def _short(values: Floats, digits: int) -> list[float]:
    """Rounded, whole numbers without a point: the page is to stay small."""
    return [int(value) if value.is_integer() else value for value in np.round(values, digits).tolist()]
