"""Pass rates of runs whose returns are passed (1) or not (0): before the novelty, right after it, and at the end.

Wilson's interval assumes independent levels. The levels of a trial are not (they share what was learned), so the
bootstrap over trials stands beside it; where the two differ, trust the wider one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from nappingrl.report.best_control import PAIRED
from nappingrl.report.intervals import LEVEL, Interval, bootstrap_interval, mean_interval, pair, rate_band
from nappingrl.report.looks import looks
from nappingrl.report.runs import Run
from nappingrl.report.summary import LAST
from nappingrl.types import Floats

RIGHT_AFTER = 3
"""Episodes after the novelty that count as right after it."""
ALL = "all"
BEFORE, AFTER, END = WINDOWS = ("before", "right after", "last ten")
RATES_HEAD = ("novelty", "run", "trials", *WINDOWS, "last ten, over trials", "last ten, minus frozen")
GAINS_HEAD = ("run", "last ten, minus", "paired difference over trials")
RATES_NOTE = (
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
    """Bootstrap of whole trials, within each novelty if each has several trials; None with one trial."""

    @property
    def value(self) -> float:
        """The share passed."""
        return self.passed / self.played


@dataclass(frozen=True, slots=True)
class RunRates:
    """The rates of one run: novelty ("all" first) -> window -> rate; windows without episodes are left out."""

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


def has_rates(runs: Sequence[Run]) -> bool:
    """Whether the returns of all these runs are passed or not."""
    return bool(runs) and all(run.is_rate for run in runs)


def measure_rates(runs: Sequence[Run]) -> list[RunRates]:
    """The rates of every run, over all novelties and of each."""
    rates = []
    for run, look in zip(runs, looks(runs), strict=True):
        by_novelty = {ALL: _windows(run.rows)} if len(run.novelties) > 1 else {}
        by_novelty |= {name: _windows(run.where(name).rows) for name in run.novelties}
        rates.append(RunRates(look.label, look.agent, run.method, run.manifest.role, by_novelty))
    return rates


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
    band = rate_band(passed, played)
    ends = float(band.lower), float(band.upper)
    wilson = None if np.isnan(ends[0]) else Interval(passed / played, *ends, LEVEL, played)
    has_strata = int(counts["novelty"].value_counts()["count"].to_numpy().min()) > 1
    over_trials = bootstrap_interval(
        _share, counts["passed"].to_numpy(), counts["played"].to_numpy(), rng=np.random.default_rng(_SEED),
        strata=counts["novelty"].to_numpy().astype(np.str_) if has_strata else None, resamples=_RESAMPLES,
    )  # fmt: skip
    return Rate(passed, played, len(counts), wilson, over_trials)


def _share(passed: Floats, played: Floats) -> Any:
    return passed.sum(axis=-1) / played.sum(axis=-1)


def measure_gains(runs: Sequence[Run]) -> list[Gain]:
    """Every method that adapts, against its agent frozen in each novelty, and against all other agents in all."""
    gains = []
    named = list(zip(runs, looks(runs), strict=True))
    for first, look in named:
        for second, other in named:
            if _is_compared(first, second):
                is_same_agent = first.spec["agent"] == second.spec["agent"]
                by_novelty = _gains(first, second) if is_same_agent else {ALL: _gain(first, second)}
                gains += [Gain(look.label, other.label, is_same_agent, name, *g) for name, g in by_novelty.items()]
    return gains


def _is_compared(first: Run, second: Run) -> bool:
    """Whether a method is compared with this run: its agent frozen, or another agent on the same draws."""
    if first is second or first.manifest.role != "method":
        return False
    if any(first.spec[key] != second.spec[key] for key in PAIRED if key != "agent"):
        return False
    if first.spec["agent"] == second.spec["agent"]:
        has_same_weights = first.manifest.agent_sha256 == second.manifest.agent_sha256
        return second.method == "frozen" and has_same_weights
    return second.method == "frozen" or second.manifest.role == "method"


def _gains(first: Run, second: Run) -> dict[str, tuple[float, Interval | None]]:
    overall = {ALL: _gain(first, second)} if len(first.novelties) > 1 else {}
    return overall | {name: _gain(first, second, name) for name in first.novelties}


def _gain(first: Run, second: Run, novelty: str = "") -> tuple[float, Interval | None]:
    is_wanted = (pl.col("novelty") == novelty) | (novelty == "")
    difference = pair(first.levels.filter(is_wanted), second.levels.filter(is_wanted), "level").difference
    return float(difference.mean()), mean_interval(difference)


# ----------------------------------------------------------------------------------------------------------- as tables


def rates_table(rates: list[RunRates], gains: list[Gain]) -> list[tuple[str, ...]]:
    """Rows of text under RATES_HEAD: all novelties first, then each of them."""
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
    """Rows of text under GAINS_HEAD: every method that adapts against the other agents."""
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
    """Rates and gains as plain values."""
    runs = [asdict(run) for run in rates]
    for run, entry in zip(rates, runs, strict=True):
        for novelty, windows in run.by_novelty.items():
            for name, rate in windows.items():
                entry["by_novelty"][novelty][name]["rate"] = rate.value
    return {"runs": runs, "differences": [asdict(gain) for gain in gains]}


def rates_markdown(rates: list[RunRates], gains: list[Gain]) -> str:
    """Both tables as Markdown."""
    parts = []
    for head, lines in ((RATES_HEAD, rates_table(rates, gains)), (GAINS_HEAD, gains_table(gains))):
        if lines:
            rows = [head, ("---",) * len(head), *lines]
            parts.append("\n".join("| " + " | ".join(cells) + " |" for cells in rows))
    return "\n\n".join([*parts, RATES_NOTE]) + "\n"
