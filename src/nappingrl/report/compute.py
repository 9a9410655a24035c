"""All metrics of a run, computed from its rows by the formulas of `metrics.py`."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from nappingrl.report import metrics
from nappingrl.report.runs import Run
from nappingrl.report.summary import LAST, span_of
from nappingrl.types import Flags, Floats


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


def compute_metrics(
    run: Run, baseline: Run | None = None, *, random: Run | None = None, oracle: Run | None = None,
    window: int | None = None, eps: float = 0.05, smooth: int = 5, span: tuple[float, float] | None = None,
) -> Metrics:  # fmt: skip
    """All metrics of a run; baseline, random and oracle are runs of those methods on the same draws.

    A metric whose run is not given has no value. window: None means `default_window`, at most the post-novelty
    episodes. eps and smooth: the convergence rule. span: the range of returns; None means the domain's, or that of the
    rows given here if the domain has none.
    """
    tau, returns = run.tau, run.matrix("return")
    span = span or span_of(
        run.manifest, *(other.rows for other in (run, baseline, random, oracle) if other is not None)
    )
    n_episodes = returns.shape[1]
    n_post = n_episodes - tau
    m = min(metrics.default_window(n_episodes), n_post) if window is None else window
    p = metrics.performance(returns, span)
    base, at_random, best = (_performance(other, run, span) for other in (baseline, random, oracle))
    is_failed, is_base_failed = metrics.failed(p, tau, 0.0), metrics.failed(base, tau, 0.0)
    values = _known(_detection(run.matrix("detected", False), tau), "detected" in run.rows.columns)
    values |= _reaction(p, base, tau, m)
    values |= {
        "resilience_drop": ("lower", metrics.resilience_drop(base, tau)),
        "resilience_vs_random": ("higher", metrics.resilience_vs_random(base, at_random, tau)),
        "asymptotic_performance": ("higher", metrics.last_mean(p, tau, m)),
        "one_shot_performance": ("higher", metrics.one_shot_performance(p, tau)),
        "adaptive_efficiency": (
            "lower",
            metrics.adaptive_efficiency(p, run.matrix("length", np.nan), tau, eps, m, smooth),
        ),
        "oracle_regret": ("lower", metrics.oracle_regret(p, best, tau)),
    }
    values |= _paper(run, is_failed, is_base_failed)
    return Metrics(
        keys=run.keys,
        by_name={name: Metric(name, better, of_trials) for name, (better, of_trials) in values.items()},
        median=np.median(returns[:, tau:], axis=0),
        mean=returns[:, tau:].mean(axis=0),
        failed_cut=None if run.manifest.return_range is None else metrics.failed_cut(is_failed, is_base_failed),
        notes=_notes(run, span, m, eps, smooth),
    )


def _performance(other: Run | None, run: Run, span: tuple[float, float]) -> Floats:
    """The performance of another run on the same draws; NaN where there is none."""
    if other is None:
        return np.full(run.matrix("return").shape, np.nan)
    return metrics.performance(other.in_order_of(run).matrix("return"), span)


def _notes(run: Run, span: tuple[float, float], m: int, eps: float, smooth: int) -> tuple[str, ...]:
    """Performance map, window, convergence rule and kind of detection, in words."""
    tau, n_episodes, detector = run.tau, run.matrix("return").shape[1], str(run.spec["detector"])
    notes: tuple[str, ...] = (
        metrics.performance_words(run.domain, span, run.manifest.return_range is not None),
        f"window m = {m} of {n_episodes} episodes, novelty at {tau}",
        f"converged: mean of {smooth} episodes stays within {eps:g} of the mean of the last {m}",
        "detection: given (NRP is M4)" if detector == "given" else f"detection: by the system, {detector} (NRP is M3)",
    )
    if n_cropped := len(run.rows) - len(run.common_rows):
        notes += (f"trials start at different episodes: {n_cropped} episodes before {-tau} are left out",)
    return notes


def _known(values: dict[str, tuple[str, Floats]], is_known: bool) -> dict[str, tuple[str, Floats]]:
    """The values, or NaN where the rows do not tell."""
    if is_known:
        return values
    return {name: (better, np.full(len(of_trials), np.nan)) for name, (better, of_trials) in values.items()}


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
    values = {
        "nrp": metrics.nrp(p, base, tau, m),
        "inrp": metrics.inrp(p, base, tau, m),
        "onrp": metrics.onrp(p, base, tau),
    }
    for suffix, normalised in (("", True), ("_ratio", False)):
        values["opti" + suffix] = metrics.opti(p, base, tau, normalised)
        values["apti" + suffix] = metrics.apti(p, base, tau, m, normalised)
        values["ipti" + suffix] = metrics.ipti(p, base, tau, m, normalised)
    values |= {"nrm": metrics.nrm(p, tau), "nrm_baseline": metrics.nrm(base, tau)}
    return {name: ("higher", of_trials) for name, of_trials in values.items()}


def _paper(run: Run, is_failed: Flags, is_base_failed: Flags) -> dict[str, tuple[str, Floats]]:
    """The paper's own metrics; NaN where the domain has no least return or no level that counts as solved."""
    tau = run.tau
    ten = min(LAST, run.matrix("return").shape[1] - tau)
    unknown = np.full(len(run.keys), np.nan)
    has_least, has_level = run.manifest.return_range is not None, run.manifest.solved_level is not None
    return {
        "last10_return": ("higher", metrics.last_mean(run.matrix("return"), tau, ten)),
        "last10_won": ("higher", metrics.last_mean(run.matrix("won", np.nan), tau, ten) if has_level else unknown),
        "failed": ("lower", metrics.number(is_failed) if has_least else unknown),
        "failed_removed": ("higher", metrics.failed_removed(is_failed, is_base_failed) if has_least else unknown),
    }
