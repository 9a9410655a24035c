"""How a claim of the paper is judged.

A claim states where some true values lie: a gain above 0, a difference within a margin, a rate between two bounds.
Each is estimated with a 95 % interval over trials. The claim holds if the interval lies inside the stated range, does
not hold if it lies outside, and is undecided if it reaches over a bound. A finding then gives the number of trials at
which an interval of the measured spread would be short enough.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import msgspec
import numpy as np
import polars as pl

from nappingrl.errors import BadRunError
from nappingrl.report.intervals import (
    Interval,
    mean_difference_interval,
    mean_interval,
    pair,
    rate_interval,
    resampled_interval,
)
from nappingrl.report.runs import Run, check_same_draws
from nappingrl.reproduction.columns import COLUMNS, columns_of, setting_of
from nappingrl.types import Flags, Floats

HOLDS, FAILS, UNDECIDED, NOT_JUDGED = "holds", "does not hold", "undecided", "not judged"
MIN_EQUAL = 20
"""Trials from which on equal values decide: an interval of no width says nothing of values not yet drawn."""
MAX_FACTOR = 1e6
"""Times as many trials as there are, beyond which an estimate lies on the bound of its range: none would decide."""
Window = tuple[float, float]
"""First and last episode, both included."""
BEFORE: Window = (-inf, -1)
FIRST: Window = (0, 4)
"""Before NAPPING can act."""
LAST: Window = (30, 39)


@dataclass(frozen=True, slots=True)
class Part:
    """One value that a claim is about, and the range that the claim states for it."""

    label: str
    value: float
    interval: Interval | None
    """None: there are too few trials."""
    n: int
    """Trials that it is estimated from."""
    low: float = -inf
    high: float = inf
    digits: int = 2

    @property
    def status(self) -> str:
        """Holds, does not hold or undecided."""
        if self.interval is None or self._is_empty:
            return UNDECIDED
        if self.low < self.interval.low and self.interval.high < self.high:
            return HOLDS
        return FAILS if self.interval.high <= self.low or self.interval.low >= self.high else UNDECIDED

    @property
    def factor(self) -> float:
        """How many times as many trials would decide it at this spread; inf: it lies on a bound, or is unknown."""
        if self.status != UNDECIDED:
            return 1.0
        if self.interval is None:
            return inf
        if self._is_empty:
            return MIN_EQUAL / self.n
        margin = min(abs(self.value - bound) for bound in (self.low, self.high) if math.isfinite(bound))
        half = max(self.value - self.interval.low, self.interval.high - self.value)
        return (half / margin) ** 2 if margin > 0 else inf

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.label} {self.value:.{self.digits}f} (too few trials for an interval)"
        low, high = (f"{end:.{self.digits}f}" for end in (self.interval.low, self.interval.high))
        return f"{self.label} {self.value:.{self.digits}f} ({low} to {high})"

    @property
    def _is_empty(self) -> bool:
        """Whether the interval has no width because few trials happened to be equal."""
        return self.interval is not None and self.interval.low == self.interval.high and self.n < MIN_EQUAL


def mean_part(label: str, values: Floats, low: float = -inf, high: float = inf, digits: int = 2) -> Part:
    """A mean over trials."""
    if not len(values):
        raise NotJudgedError("no trial has these episodes or draws")
    return Part(label, float(values.mean()), mean_interval(values), len(values), low, high, digits)


def rate_part(label: str, flags: Flags, low: float = -inf, high: float = inf) -> Part:
    """A share of trials."""
    if not len(flags):
        raise NotJudgedError("no trial has these episodes or draws")
    return Part(label, float(flags.mean()), rate_interval(flags), len(flags), low, high)


def difference_part(label: str, first: Floats, second: Floats, low: float = -inf, high: float = inf) -> Part:
    """The difference of the means of two groups of trials on different draws."""
    if min(len(first), len(second)) < 1:
        raise NotJudgedError("one of the two groups of draws is empty")
    value = float(first.mean() - second.mean())
    return Part(label, value, mean_difference_interval(first, second), min(len(first), len(second)), low, high, 0)


def resampled_part(
    label: str, statistic: Callable[[Floats], Floats], values: Floats, low: float = -inf, high: float = inf,
    digits: int = 2,
) -> Part:  # fmt: skip
    """Any function of the means of columns (trials, columns), with a bootstrap interval over trials."""
    interval = resampled_interval(statistic, values)
    value = float(statistic(values.mean(axis=0)[None])[0])
    return Part(label, value, interval, len(values), low, high, digits)


class NotJudgedError(Exception):
    """A claim cannot be judged; its text says why."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of the paper, and how it is judged."""

    domain: str
    text: str
    criterion: str
    """When it holds."""
    judge: "Callable[[Evidence], Sequence[Part]]"
    by_column: bool = True
    """Whether it is about NAPPING, and so judged once for each column."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of a claim in our runs."""

    status: str
    ours: str = "-"
    """The estimates, or why it is not judged."""
    column: str = ""
    """As printed, ours or beyond; empty: it is not about NAPPING."""
    setting: str = ""
    """Method, rule, space and score of the runs."""
    n: int = 0
    """Trials behind the estimate that has the fewest."""
    trials_needed: int | None = None
    """Of an undecided claim: trials of each run that would decide it; None: no number would."""
    cpu_hours: float | None = None
    """What they cost; None: unknown."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The runs that claims are judged on; "napping" is the method of the column in view."""

    runs: dict[tuple[str, str, str], Run]
    """By domain, agent, and the column or method."""
    column: str = ""
    used: dict[tuple[str, str, str], Run] = field(default_factory=dict)
    """Those asked for so far."""

    @staticmethod
    def collect(runs: Sequence[Run]) -> "Evidence":
        """One run of each domain, agent, and column or method; variants of a column's method are no evidence.

        Of runs that differ in nothing but the number of trials, the largest. All runs of a domain met the same draws,
        as claims compare them trial by trial.
        """
        with_columns = {column.method for column in COLUMNS.values()}
        found: dict[tuple[str, str, str], Run] = {}
        first_of: dict[str, Run] = {}
        for run in largest_runs(runs):
            for kind in columns_of(run.spec) if run.method in with_columns else (run.method,):
                key = (run.domain, str(run.spec["agent"]), kind)
                if key in found:
                    raise BadRunError(
                        f"more than one run of '{run.manifest.label}' ({kind}): {found[key].place} and "
                        f"{run.place}; claims need one of each: give a folder with fewer runs"
                    )
                found[key] = run
                check_same_draws(first_of.setdefault(run.domain, run), run)
        return Evidence(found)

    def view(self, column: str) -> "Evidence":
        """The same runs, seen in a column, with nothing used yet."""
        return replace(self, column=column, used={})

    def has(self, domain: str, agent: str, method: str) -> bool:
        """Whether there is such a run."""
        return self._key(domain, agent, method) in self.runs

    def run(self, domain: str, agent: str, method: str) -> Run:
        """One run; raises where it is missing."""
        key = self._key(domain, agent, method)
        if key not in self.runs:
            raise NotJudgedError(f"{' '.join(key)} was not run")
        self.used[key] = self.runs[key]
        return self.runs[key]

    def _key(self, domain: str, agent: str, method: str) -> tuple[str, str, str]:
        return domain, agent, self.column if method == "napping" else method

    def levels(self, domain: str, agent: str, method: str) -> pl.DataFrame:
        """The final level of each trial, with the drawn parameters."""
        run = self.run(domain, agent, method)
        drawn = run.rows.filter(pl.col("episode") == 0).select("trial", pl.col("^param_.*$"))
        return run.levels.join(drawn, on="trial", maintain_order="left")

    def window(self, domain: str, agent: str, method: str, window: Window) -> pl.DataFrame:
        """Per trial: its mean return in some episodes, as `level`; raises where the protocol lacks them."""
        rows = self.run(domain, agent, method).rows
        chosen = rows.filter(pl.col("episode").is_between(*window))
        means = chosen.group_by("novelty", "number", maintain_order=True).agg(pl.col("return").mean().alias("level"))
        is_cut = math.isfinite(window[1]) and rows["episode"].max() < window[1]  # type: ignore[operator]
        if means.is_empty() or is_cut:
            raise NotJudgedError(f"{domain} {agent} {method} has no such episodes")
        return means

    def gain(self, domain: str, agent: str, method: str, to: Window = LAST, since: Window = FIRST) -> Floats:
        """Per trial: mean return of the episodes `to` minus that of the episodes `since`."""
        return paired(self.window(domain, agent, method, to), self.window(domain, agent, method, since))

    def difference(self, domain: str, first: tuple[str, str], second: tuple[str, str], novelty: str = "") -> Floats:
        """Paired final levels of two (agent, method), first minus second."""
        a, b = self.levels(domain, *first), self.levels(domain, *second)
        if novelty:
            a, b = a.filter(pl.col("novelty") == novelty), b.filter(pl.col("novelty") == novelty)
        return paired(a, b)


def largest_runs(runs: Sequence[Run]) -> list[Run]:
    """The runs, of those that differ in nothing but the number of trials the largest, in the place of the first.

    A finished run comes before a larger unfinished one, which may hold trials of the first novelties only. Of equally
    large ones with the same returns, the first.
    """
    alike: dict[bytes, list[Run]] = {}
    for run in runs:
        alike.setdefault(settings_key(run), []).append(run)
    return [run for group in alike.values() for run in _largest(group)]


def settings_key(run: Run) -> bytes:
    """What runs share that differ in nothing but the number of trials."""
    return msgspec.json.encode([{**run.spec, "trials": 0}, run.manifest.agent_sha256], order="deterministic")


def _largest(group: Sequence[Run]) -> list[Run]:
    if len(group) == 1:
        return list(group)
    most = max(map(_size, group))
    returns: list[pl.DataFrame] = []
    kept: list[Run] = []
    for run in group:
        # as precise as the least precise published returns
        of_run = run.rows.select("novelty", "number", "episode", pl.col("return").cast(pl.Float32)).sort(pl.all())
        if _size(run) == most and not any(of_run.equals(other) for other in returns):
            returns.append(of_run)
            kept.append(run)
    return kept


def _size(run: Run) -> tuple[bool, int]:
    return not run.gap, run.n_trials


def paired(first: pl.DataFrame, second: pl.DataFrame) -> Floats:
    """Levels of the same draws, first minus second; raises where there are none."""
    if first.join(second, on=["novelty", "number"]).is_empty():
        raise NotJudgedError("no draw was met by both runs")
    return pair(first, second, "level").difference


def judge(
    claims: Sequence[Claim],
    runs: Sequence[Run],
    cpu_seconds: Callable[[Run], float | None] = lambda run: None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[tuple[Claim, Finding]]:
    """Every claim with its findings in these runs: one for each column, or one where it is not about NAPPING."""
    evidence = Evidence.collect(runs)
    found: list[tuple[Claim, Finding]] = []
    for number, claim in enumerate(claims, 1):
        columns = COLUMNS if claim.by_column else ("",)
        found += [(claim, _judge(claim, evidence.view(column), cpu_seconds)) for column in columns]
        on_progress(number, len(claims))
    return found


def verdict(parts: Sequence[Part]) -> str:
    """What the parts of a claim come to: it holds if all of them do, and does not if any does not."""
    statuses = [part.status for part in parts]
    return FAILS if FAILS in statuses else UNDECIDED if UNDECIDED in statuses else HOLDS


def _factor(parts: Sequence[Part]) -> float:
    """How many times as many trials would decide a claim: one part outside its range is enough to refute it."""
    outside = [part.factor for part in parts if part.status == UNDECIDED and not part.low < part.value < part.high]
    return min(outside) if outside else max(part.factor for part in parts)


def _judge(claim: Claim, evidence: Evidence, cpu_seconds: Callable[[Run], float | None]) -> Finding:
    try:
        parts = claim.judge(evidence)
    except NotJudgedError as why:
        return Finding(NOT_JUDGED, str(why), evidence.column, _setting(evidence))
    status = verdict(parts)
    finding = Finding(
        status, "; ".join(map(str, parts)), evidence.column, _setting(evidence), min(part.n for part in parts)
    )
    factor = _factor(parts)
    if status != UNDECIDED or factor > MAX_FACTOR:
        return finding
    runs = list(evidence.used.values())
    needed = math.ceil(factor * min(run.n_trials for run in runs))  # those with the fewest set the width
    seconds = [(cpu_seconds(run), run.n_trials) for run in runs]
    per_trial = [spent / n for spent, n in seconds if spent is not None]
    hours = needed * sum(per_trial) / 3600 if len(per_trial) == len(runs) else None
    return replace(finding, trials_needed=needed, cpu_hours=hours)


def _setting(evidence: Evidence) -> str:
    """The methods behind a finding; of a column only NAPPING's."""
    settings = [setting_of(run.spec) for (_, _, kind), run in evidence.used.items() if kind in COLUMNS] or [
        setting_of(run.spec) for run in evidence.used.values()
    ]
    return ", ".join(dict.fromkeys(settings))


def outperforms(
    domain: str, first: str, second: str, novelties: tuple[str, ...], margin: float = 0.0
) -> Callable[[Evidence], Sequence[Part]]:
    """One agent with NAPPING ends above the other by more than a margin, in each of these novelties ("": over all)."""

    def judge_claim(evidence: Evidence) -> Sequence[Part]:
        return [
            mean_part(
                f"{first} minus {second}{f' on {novelty}' if novelty else ''}",
                evidence.difference(domain, (first, "napping"), (second, "napping"), novelty),
                low=margin,
            )
            for novelty in novelties
        ]

    return judge_claim


def shares_of_trials(rows: pl.DataFrame, least: float) -> Floats:
    """Whether each trial reaches a return in each episode after the novelty, (trials, episodes)."""
    post = rows.filter(pl.col("episode") >= 0)
    n = post["trial"].n_unique()
    return np.asarray(post["return"].to_numpy() >= least, np.float64).reshape(n, -1)
