"""All metrics of a run, computed from its rows by the formulas of `metrics.py`."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.report import metrics
from nappingrl.report.metrics import Flags, Floats
from nappingrl.report.summary import LAST, common_episodes, span_of
from nappingrl.trials.store import Manifest


@dataclass(frozen=True, slots=True)
class Trials:
    """The rows of a run as (trials, episodes) matrices."""

    keys: pl.DataFrame
    """novelty and number of each trial: what pairs it with the same draw of another run."""
    draws: pl.DataFrame
    """The parameters in force at the first post-novelty episode."""
    tau: int
    n_cropped: int
    """Episodes left out because not all trials have them."""
    returns: Floats
    lengths: NDArray[np.int64]
    won: Flags
    detected: Flags


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of a run: whether higher or lower is better, and a value per trial, NaN where it is not defined."""

    name: str
    better: str
    per_trial: Floats

    @property
    def defined(self) -> Floats:
        """The values of the trials where it is defined."""
        return self.per_trial[np.isfinite(self.per_trial)]

    @property
    def value(self) -> float | None:
        """The mean over the trials where it is defined; None: it is not defined for this run."""
        return float(self.defined.mean()) if len(self.defined) else None


@dataclass(frozen=True, slots=True)
class Metrics:
    """The metrics of one run, by name."""

    keys: pl.DataFrame
    by_name: dict[str, Metric]
    median: Floats
    """Median return over trials per post-novelty episode."""
    mean: Floats
    failed_cut: float | None
    notes: tuple[str, ...]
    """Performance map, window, convergence rule and kind of detection, in words."""

    def frame(self) -> pl.DataFrame:
        """One row per trial: novelty, number, and a column per metric, null where it is not defined."""
        columns = [pl.Series(name, metric.per_trial).fill_nan(None) for name, metric in self.by_name.items()]
        return self.keys.with_columns(columns)


def read_trials(rows: pl.DataFrame, like: Trials | None = None) -> Trials:
    """Rows as matrices, in the order of their trials; `like`: the same draws in the same order, or BadRunError.

    Where trials begin at episodes of their own, only those are read that all trials have.
    """
    n_rows = len(rows)
    rows = rows if rows.is_empty() else common_episodes(rows)
    keys = rows.select("novelty", "number").unique(maintain_order=True) if like is None else like.keys
    rows = rows.join(keys.with_row_index("row"), on=["novelty", "number"]).sort("row", "episode")
    n_trials, n_episodes = len(keys), rows["episode"].n_unique()
    tau = rows.filter(pl.col("episode") < 0)["episode"].n_unique()
    expected = np.tile(np.arange(-tau, n_episodes - tau), n_trials)
    if n_trials == 0 or not np.array_equal(rows["episode"].to_numpy(), expected):
        raise BadRunError("trials or episodes are missing or doubled; give the rows of one finished run of these draws")
    draws = rows.filter(pl.col("episode") == 0).select(pl.col("^param_.*$"))
    if like is not None and (tau != like.tau or len(rows) != like.returns.size or not draws.equals(like.draws)):
        raise BadRunError("these runs met other novelties or protocols; same domain, novelty, seed and protocol needed")
    columns = (rows[name].to_numpy().reshape(-1, n_episodes) for name in ("return", "length", "won", "detected"))
    return Trials(keys, draws, tau, n_rows - len(rows), *columns)


def measure(
    manifest: Manifest, rows: pl.DataFrame, baseline: pl.DataFrame | None = None, *,
    random: pl.DataFrame | None = None, oracle: pl.DataFrame | None = None,
    window: int | None = None, eps: float = 0.05, smooth: int = 5, span: tuple[float, float] | None = None,
) -> Metrics:  # fmt: skip
    """All metrics of a run. baseline, random, oracle: rows of those methods on the same draws.

    Where a metric needs rows that are not given it has no value. window: None means `default_window`, at most the
    post-novelty episodes. eps and smooth: the convergence rule. span: the range of returns; None means the world's,
    or that of the rows given here where nobody knows it.
    """
    trials = read_trials(rows)
    span = span or span_of(manifest, *(table for table in (rows, baseline, random, oracle) if table is not None))
    tau, n_episodes = trials.tau, trials.returns.shape[1]
    n_post = n_episodes - tau
    m, ten = min(metrics.default_window(n_episodes), n_post) if window is None else window, min(LAST, n_post)

    def p_of(other: pl.DataFrame | None) -> Floats:
        if other is None:
            return np.full_like(trials.returns, np.nan)
        return metrics.performance(read_trials(other, trials).returns, span)

    p, base = metrics.performance(trials.returns, span), p_of(baseline)
    ours, theirs = metrics.failed(p, tau, 0.0), metrics.failed(base, tau, 0.0)
    unknown = np.full(len(p), np.nan)
    has_least, has_level = manifest.return_range is not None, manifest.solved_level is not None
    found = _detection(trials.detected, tau) | _reaction(p, base, tau, m)
    found |= {
        "resilience_drop": ("lower", metrics.resilience_drop(base, tau)),
        "resilience_vs_random": ("higher", metrics.resilience_vs_random(base, p_of(random), tau)),
        "asymptotic_performance": ("higher", metrics.last_mean(p, tau, m)),
        "one_shot_performance": ("higher", metrics.one_shot_performance(p, tau)),
        "adaptive_efficiency": ("lower", metrics.adaptive_efficiency(p, trials.lengths, tau, eps, m, smooth)),
        "oracle_regret": ("lower", metrics.oracle_regret(p, p_of(oracle), tau)),
        "last10_return": ("higher", metrics.last_mean(trials.returns, tau, ten)),
        "last10_won": ("higher", metrics.last_mean(trials.won, tau, ten) if has_level else unknown),
        "failed": ("lower", metrics.number(ours) if has_least else unknown),
        "failed_removed": ("higher", metrics.failed_removed(ours, theirs) if has_least else unknown),
    }
    by_name = {name: Metric(name, better, values) for name, (better, values) in found.items()}
    median, mean = np.median(trials.returns[:, tau:], axis=0), trials.returns[:, tau:].mean(axis=0)
    detector = str(manifest.spec["detector"])
    notes: tuple[str, ...] = (
        metrics.performance_words(str(manifest.spec["domain"]), span, has_least),
        f"window m = {m} of {n_episodes} episodes, novelty at {tau}",
        f"converged: mean of {smooth} episodes stays within {eps:g} of the mean of the last {m}",
        "detection: given (NRP is M4)" if detector == "given" else f"detection: by the system, {detector} (NRP is M3)",
    )
    if trials.n_cropped:
        notes += (f"trials begin at episodes of their own: {trials.n_cropped} episodes before {-tau} are left out",)
    return Metrics(trials.keys, by_name, median, mean, metrics.failed_cut(ours, theirs) if has_least else None, notes)


def _detection(detected: Flags, tau: int) -> dict[str, tuple[str, Floats]]:
    return {
        "fp": ("lower", metrics.false_positives(detected, tau)),
        "tp": ("higher", metrics.true_positives(detected, tau)),
        "tn": ("higher", metrics.true_negatives(detected, tau)),
        "m1_first": ("lower", metrics.m1(detected, tau, "first")),
        "m1_count": ("lower", metrics.m1(detected, tau, "count")),
        "m2": ("higher", metrics.number(metrics.correctly_detected(detected, tau))),
        "m21": ("lower", metrics.number(metrics.false_positives(detected, tau) > 0)),
        "m22": ("higher", metrics.m22(detected, tau)),
        "amoc_scaled": ("higher", metrics.amoc(metrics.number(detected), tau)),
        "amoc_unscaled": ("higher", metrics.amoc(metrics.number(detected), tau, scaled=False)),
        "is_early": ("lower", metrics.number(metrics.is_early(detected, tau))),
    }


def _reaction(p: Floats, base: Floats, tau: int, m: int) -> dict[str, tuple[str, Floats]]:
    found = {
        "nrp": metrics.nrp(p, base, tau, m),
        "inrp": metrics.inrp(p, base, tau, m),
        "onrp": metrics.onrp(p, base, tau),
    }
    for suffix, normalised in (("", True), ("_ratio", False)):
        found["opti" + suffix] = metrics.opti(p, base, tau, normalised)
        found["apti" + suffix] = metrics.apti(p, base, tau, m, normalised)
        found["ipti" + suffix] = metrics.ipti(p, base, tau, m, normalised)
    found |= {"nrm": metrics.nrm(p, tau), "nrm_baseline": metrics.nrm(base, tau)}
    return {name: ("higher", values) for name, values in found.items()}
