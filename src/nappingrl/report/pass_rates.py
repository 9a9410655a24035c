"""Pass rates of runs whose returns say passed or not: before the novelty, right after it, and at the end.

Wilson's intervals take every level as independent of the others. The levels of a trial are not (they share what was
learned), so the bootstrap over trials stands beside them; where the two differ, believe the wider one.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from nappingrl.report.best_control import PAIRED, Run
from nappingrl.report.figures.style import looks
from nappingrl.report.intervals import LEVEL, Floats
from nappingrl.report.intervals import rate_wilson as wilson_band
from nappingrl.report.statistics import Interval, bootstrap, mean_t, pair
from nappingrl.report.summary import LAST, final_levels

RIGHT_AFTER = 3
"""Episodes after the novelty that count as right after it."""
ALL = "all"
BEFORE, AFTER, END = WINDOWS = ("before", "right after", "last ten")
HEAD = ("novelty", "run", "trials", *WINDOWS, "last ten, over trials", "last ten, minus frozen")
GAIN_HEAD = ("run", "last ten, minus", "paired difference over trials")
WORDS = (
    f"Share of levels passed before the novelty, in the first {RIGHT_AFTER} episodes after it and in the last {LAST}. "
    "Brackets: Wilson's 95 % interval, levels taken as independent; over trials: bootstrap of whole trials; "
    "differences: paired by draw, Student's t over trials."
)
_RESAMPLES = 2000
_SEED = 20231218


@dataclass(frozen=True, slots=True)
class Rate:
    """Passed levels among those played in one part of some trials."""

    passed: int
    played: int
    trials: int
    wilson: Interval | None
    over_trials: Interval | None
    """By bootstrap of whole trials, within each novelty where none has a single trial; None of one trial."""

    @property
    def value(self) -> float:
        """The share passed."""
        return self.passed / self.played


@dataclass(frozen=True, slots=True)
class RunRates:
    """The rates of one run: novelty ("all" first) -> window -> rate; a window without episodes is left out."""

    run: str
    agent: str
    method: str
    role: str
    by_novelty: Mapping[str, Mapping[str, Rate]]


@dataclass(frozen=True, slots=True)
class Gain:
    """How much more of its last ten levels a run passes than another one on the same draws."""

    run: str
    other: str
    is_same_agent: bool
    novelty: str
    difference: float
    interval: Interval | None


def measure_rates(runs: list[Run]) -> list[RunRates]:
    """The rates of every run, over all novelties and of each."""
    found = []
    for (manifest, rows), look in zip(runs, looks(runs), strict=True):
        names = rows["novelty"].unique(maintain_order=True).to_list()
        by_novelty = {ALL: _windows(rows)} if len(names) > 1 else {}
        by_novelty |= {name: _windows(rows.filter(pl.col("novelty") == name)) for name in names}
        spec = manifest.spec
        found.append(RunRates(look.label, look.agent, str(spec["method"]), manifest.role, by_novelty))
    return found


def in_window(window: str) -> pl.Expr:
    """Whether an episode belongs to a window."""
    episode = pl.col("episode")
    expressions = {
        BEFORE: episode < 0,
        AFTER: episode.is_between(0, RIGHT_AFTER - 1),
        END: (episode >= 0) & (episode > episode.max() - LAST),
    }
    return expressions[window]


def _windows(rows: pl.DataFrame) -> dict[str, Rate]:
    parts = {window: rows.filter(in_window(window)) for window in WINDOWS}
    return {window: _rate(part) for window, part in parts.items() if len(part)}


def _rate(rows: pl.DataFrame) -> Rate:
    counts = rows.group_by("novelty", "trial", maintain_order=True).agg(
        pl.col("return").sum().alias("passed"), pl.len().cast(pl.Float64).alias("played")
    )
    passed, played = int(counts["passed"].sum()), int(counts["played"].sum())
    band = wilson_band(passed, played)
    ends = float(band.lower), float(band.upper)
    wilson = None if np.isnan(ends[0]) else Interval(passed / played, *ends, LEVEL, played)
    has_strata = int(counts["novelty"].value_counts()["count"].to_numpy().min()) > 1
    over_trials = bootstrap(
        _share, counts["passed"].to_numpy(), counts["played"].to_numpy(), rng=np.random.default_rng(_SEED),
        strata=counts["novelty"].to_numpy().astype(np.str_) if has_strata else None, resamples=_RESAMPLES,
    )  # fmt: skip
    return Rate(passed, played, len(counts), wilson, over_trials)


def _share(passed: Floats, played: Floats) -> Any:
    return passed.sum(axis=-1) / played.sum(axis=-1)


def measure_gains(runs: list[Run]) -> list[Gain]:
    """Every method that adapts, against its agent frozen in each novelty, and against all other agents in all."""
    found = []
    named = list(zip(runs, looks(runs), strict=True))
    for first, look in named:
        if first[0].role != "method":
            continue
        for second, other in named:
            is_same_agent = _spec(first, "agent") == _spec(second, "agent")
            keys = [key for key in PAIRED if key != "agent"]
            is_wanted = _spec(second, "method") == "frozen" or (second[0].role == "method" and not is_same_agent)
            if first is second or not is_wanted or any(_spec(first, key) != _spec(second, key) for key in keys):
                continue
            if is_same_agent and first[0].agent_sha256 != second[0].agent_sha256:
                continue  # other weights of the same name
            gains = _gains(first, second) if is_same_agent else {ALL: _gain(first, second)}
            found += [Gain(look.label, other.label, is_same_agent, name, *gain) for name, gain in gains.items()]
    return found


def _spec(run: Run, key: str) -> Any:
    return run[0].spec[key]


def _gains(first: Run, second: Run) -> dict[str, tuple[float, Interval | None]]:
    names = first[1]["novelty"].unique(maintain_order=True).to_list()
    overall = {ALL: _gain(first, second)} if len(names) > 1 else {}
    return overall | {name: _gain(first, second, name) for name in names}


def _gain(first: Run, second: Run, novelty: str = "") -> tuple[float, Interval | None]:
    ours, theirs = (
        final_levels(*run).filter((pl.col("novelty") == novelty) | (novelty == "")) for run in (first, second)
    )
    difference = pair(ours, theirs, "level").difference
    return float(difference.mean()), mean_t(difference)


# ----------------------------------------------------------------------------------------------------------- as tables


def rates_table(rates: list[RunRates], gains: list[Gain]) -> list[tuple[str, ...]]:
    """Rows of text under HEAD: all novelties first, then each of them."""
    own = {(gain.run, gain.novelty): gain for gain in gains if gain.is_same_agent}
    lines = []
    for novelty in dict.fromkeys(name for run in rates for name in run.by_novelty):
        for run in rates:
            windows = run.by_novelty.get(novelty)
            if windows is None:
                continue
            gain = own.get((run.run, novelty))
            cells = [_cell(windows[name], windows[name].wilson) if name in windows else "-" for name in WINDOWS]
            end = windows[END]
            lines.append(
                (novelty, run.run, str(end.trials), *cells, _span(end.over_trials),
                 "-" if gain is None else gain_words(gain))
            )  # fmt: skip
    return lines


def gains_table(gains: list[Gain]) -> list[tuple[str, ...]]:
    """Rows of text under GAIN_HEAD: every method that adapts against the other agents."""
    return [(gain.run, gain.other, gain_words(gain)) for gain in gains if not gain.is_same_agent]


def gain_words(gain: Gain) -> str:
    """Such as "+0.31 (+0.25 to +0.37)"."""
    if gain.interval is None:
        return f"{gain.difference:+.2f} (one trial)"
    return f"{gain.difference:+.2f} ({gain.interval.low:+.2f} to {gain.interval.high:+.2f})"


def _cell(rate: Rate, interval: Interval | None) -> str:
    return f"{rate.value:.2f}" + (f" ({_span(interval)})" if interval else "")


def _span(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


def rates_json(rates: list[RunRates], gains: list[Gain]) -> dict[str, Any]:
    """Everything as plain values."""
    runs = [asdict(run) for run in rates]
    for run, entry in zip(rates, runs, strict=True):
        for novelty, windows in run.by_novelty.items():
            for name, rate in windows.items():
                entry["by_novelty"][novelty][name]["rate"] = rate.value
    return {"runs": runs, "differences": [asdict(gain) for gain in gains]}


def rates_markdown(rates: list[RunRates], gains: list[Gain]) -> str:
    """Both tables for a reader."""
    parts = []
    for head, lines in ((HEAD, rates_table(rates, gains)), (GAIN_HEAD, gains_table(gains))):
        if lines:
            rows = [head, ("---",) * len(head), *lines]
            parts.append("\n".join("| " + " | ".join(cells) + " |" for cells in rows))
    return "\n\n".join([*parts, WORDS]) + "\n"
