"""Metrics of open-world learning: the formulas. `compute.py` applies them to runs; `docs/metrics.md` has their sources.

Arrays end in the episodes of a trial: (episodes,) for one trial, (trials, episodes) for many; results have one number
per trial. `tau` is the index of the first post-novelty episode, `p` performance in [0, 1], `base` the performance of
the non-adapting agent on the same draws, `m` a window in episodes. NaN means: not defined for this trial.
"""

from typing import Any, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from nappingrl.errors import BadRunError
from nappingrl.types import Flags, Floats

_ROUNDING = 1e-12


def performance(returns: NDArray[Any], return_range: tuple[float, float]) -> Floats:
    """Returns mapped to [0, 1]: (R - Rmin) / (Rmax - Rmin)."""
    low, high = return_range
    p = (np.asarray(returns, np.float64) - low) / (high - low)
    if not ((p >= -_ROUNDING) & (p <= 1 + _ROUNDING)).all():
        raise BadRunError(f"returns outside {low:g} to {high:g}, the range of the domain: the rows are not of this run")
    return np.clip(p, 0.0, 1.0)


def performance_words(domain: str, return_range: tuple[float, float], is_known: bool = True) -> str:
    """The map of `performance` in words, to be printed beside the numbers."""
    low, high = return_range
    words = f"{domain}: performance = (return {'-' if low >= 0 else '+'} {abs(low):g}) / {high - low:g}, 0 to 1"
    return words if is_known else f"{words}: the lowest and highest return in these runs"


def default_window(n_episodes: int) -> int:
    """A tenth of the trial's episodes, pre-novelty ones included, as in WSU's analysis; at least 1."""
    return max(1, int(0.1 * n_episodes))


def false_positives(detected: Flags, tau: int) -> Floats:
    """FP: pre-novelty episodes with detection declared. Lower is better."""
    return number(np.sum(detected[..., :tau], axis=-1))


def true_positives(detected: Flags, tau: int) -> Floats:
    """TP: post-novelty episodes with detection declared. Higher is better."""
    return number(np.sum(_post(detected, tau), axis=-1))


def true_negatives(detected: Flags, tau: int) -> Floats:
    """TN: pre-novelty episodes without detection. Higher is better."""
    return tau - false_positives(detected, tau)


def correctly_detected(detected: Flags, tau: int, min_tp: int = 1) -> Flags:
    """CDT: no false positive and at least `min_tp` true ones (HYDRA's helper asks for 2)."""
    return np.asarray((false_positives(detected, tau) == 0) & (true_positives(detected, tau) >= min_tp))


def false_negatives(detected: Flags, tau: int, variant: Literal["first", "count"] = "first") -> Floats:
    """FN. "first": post-novelty episodes before the first true positive (WSU, newer); NaN if there is none.

    "count": post-novelty episodes without detection (sail-on-client, HYDRA). Equal where detection is latched.
    """
    post = _post(detected, tau)
    if variant == "count":
        return number(np.sum(~post, axis=-1))
    if variant == "first":
        return np.where(post.any(axis=-1), post.argmax(axis=-1), np.nan)
    raise ValueError(f"unknown variant '{variant}'; allowed: first, count")


def m1(detected: Flags, tau: int, variant: Literal["first", "count"] = "first") -> Floats:
    """M1: FN of correctly detected trials, NaN of the others. Lower is better."""
    return np.where(correctly_detected(detected, tau), false_negatives(detected, tau, variant), np.nan)


def m22(detected: Flags, tau: int) -> Floats:
    """M2.2: TN / tau; NaN where nothing precedes the novelty. Higher is better."""
    return _mean(~detected[..., :tau])


def is_early(detected: Flags, tau: int) -> Flags:
    """Whether the first alarm comes before the novelty; no alarm is not early. Lower is better."""
    return np.asarray(detected[..., :tau].any(axis=-1))


def amoc(q: Floats, tau: int, scaled: bool = True) -> Floats:
    """Area under the AMOC curve of novelty probabilities q. Higher is better; no alarm at all gives 0.

    Equal probabilities are walked in the order of the episodes. With scaled=False the timeliness S is not divided by
    its last value, so that late detection costs; false alarms F are divided by their total in both.
    """
    order = np.argsort(-q, axis=-1, kind="stable")
    is_alarm = np.take_along_axis(q, order, axis=-1) > 0
    n_post = q.shape[-1] - tau + 1
    timeliness = np.where(is_alarm & (order >= tau), (n_post - (order - tau)) / n_post, 0.0)
    best = np.maximum.accumulate(timeliness, axis=-1)
    false = np.cumsum(is_alarm & (order < tau), axis=-1).astype(np.float64)
    false /= np.maximum(false[..., -1:], 1.0)
    last = best[..., -1:]
    if scaled:
        best, last = best / np.where(last > 0, last, 1.0), (last > 0).astype(np.float64)
    false, best = np.concatenate([false, np.ones_like(last)], -1), np.concatenate([best, last], -1)
    return number(np.trapezoid(best, false, axis=-1))


def nrp(p: Floats, base: Floats, tau: int, m: int) -> Floats:
    """NRP: mean of the last m over the baseline's pre-novelty mean (M3, or M4 where detection is given). Higher."""
    return _ratio(_mean(_last(p, tau, m)), _mean(base[..., :tau]))


def inrp(p: Floats, base: Floats, tau: int, m: int) -> Floats:
    """INRP: as NRP with the first m post-novelty episodes (M3.1 or M4.1). Higher is better."""
    return _ratio(_mean(_first(p, tau, m)), _mean(base[..., :tau]))


def onrp(p: Floats, base: Floats, tau: int) -> Floats:
    """ONRP: as NRP with all post-novelty episodes. Higher is better."""
    return _ratio(_mean(_post(p, tau)), _mean(base[..., :tau]))


def opti(p: Floats, base: Floats, tau: int, normalised: bool = True) -> Floats:
    """OPTI (AM1): a / (a + b) of post-novelty sums; 0.5 is no gain; 0 if both are 0. Else a / b, NaN if b is 0."""
    return _gain(_post(p, tau), _post(base, tau), normalised)


def apti(p: Floats, base: Floats, tau: int, m: int, normalised: bool = True) -> Floats:
    """APTI (AM2): as OPTI over the last m episodes. Higher is better."""
    return _gain(_last(p, tau, m), _last(base, tau, m), normalised)


def ipti(p: Floats, base: Floats, tau: int, m: int, normalised: bool = True) -> Floats:
    """IPTI (AM4): as OPTI over the first m post-novelty episodes. Higher is better."""
    return _gain(_first(p, tau, m), _first(base, tau, m), normalised)


def nrm(p: Floats, tau: int, ddof: int = 0) -> Floats:
    """NRM: 1 where |mean_post - mean_pre| / sd_pre < 2, else 0; its mean is the share of trials. Higher is better.

    metrics.pdf calls lower better; by its own formula it is the share of trials that stay within two deviations.
    """
    pre, post = p[..., :tau], _post(p, tau)
    if tau <= ddof:
        return np.full(p.shape[:-1], np.nan)
    spread = np.where(np.ptp(pre, axis=-1) == 0, 1e-5, np.std(pre, axis=-1, ddof=ddof))
    change = np.abs(_mean(post) - _mean(pre)) / spread
    return np.where(np.isnan(change), np.nan, change < 2)


def resilience_drop(base: Floats, tau: int) -> Floats:
    """Resilience, thesis: best pre-novelty episode minus post-novelty mean, without adaptation. Lower is better."""
    return (np.max(base[..., :tau], axis=-1) if tau else np.nan) - _mean(_post(base, tau))


def resilience_vs_random(base: Floats, random: Floats, tau: int) -> Floats:
    """Resilience, figure: post-novelty mean without adaptation minus that of random actions. Higher is better."""
    return _mean(_post(base, tau)) - _mean(_post(random, tau))


def last_mean(values: NDArray[Any], tau: int, m: int) -> Floats:
    """Mean of the last m episodes: of p, asymptotic adaptive performance; of returns, the paper's last ten. Higher."""
    return _mean(_last(values, tau, m))


def one_shot_performance(p: Floats, tau: int) -> Floats:
    """Performance after exactly one post-novelty episode: that of the second. Higher is better."""
    return _mean(_post(p, tau)[..., 1:2])


def convergence_episode(p: Floats, tau: int, eps: float, m: int, smooth: int) -> Floats:
    """The first post-novelty episode from which the smoothed curve stays within eps of the last-m mean; NaN if none.

    Smoothed: mean of an episode and the smooth - 1 post-novelty ones before it, fewer at the beginning.
    """
    if eps < 0 or smooth < 1:
        raise ValueError(f"eps {eps:g} and smoothing window {smooth}; allowed: eps >= 0 and a window >= 1")
    post, level = _post(p, tau), _mean(_last(p, tau, m))
    padding = np.full((*post.shape[:-1], smooth - 1), np.nan)
    windows = sliding_window_view(np.concatenate([padding, post], axis=-1), smooth, axis=-1)
    is_near = np.abs(np.nanmean(windows, axis=-1) - level[..., None]) <= eps + _ROUNDING
    n_near = np.sum(np.logical_and.accumulate(is_near[..., ::-1], axis=-1), axis=-1)
    return np.where(n_near > 0, post.shape[-1] - n_near, np.nan)


def adaptive_efficiency(p: Floats, lengths: NDArray[Any], tau: int, eps: float, m: int, smooth: int) -> Floats:
    """Environment steps after the novelty and before the episode of convergence; NaN if none. Lower is better."""
    converged = convergence_episode(p, tau, eps, m, smooth)
    post = _post(lengths, tau)
    steps = np.sum(np.where(np.arange(post.shape[-1]) < converged[..., None], post, 0), axis=-1)
    return np.where(np.isnan(converged), np.nan, steps)


def oracle_regret(p: Floats, oracle: Floats, tau: int) -> Floats:
    """Mean post-novelty performance that the oracle has and the agent lacks. Lower is better."""
    return _mean(_post(oracle, tau)) - _mean(_post(p, tau))


def retention(before: Floats, after: Floats) -> Floats:
    """Mean performance in the original domain after adaptation over that before it. Higher is better; 1: no loss."""
    return _ratio(_mean(after), _mean(before))


def failed(returns: Floats, tau: int, minimum: float) -> Flags:
    """Whether all post-novelty episodes are at the minimum return."""
    return np.asarray((_post(returns, tau) <= minimum).all(axis=-1))


def failed_removed(is_failed: Flags, base_failed: Flags) -> Floats:
    """Of the tasks that the baseline fails: 1 where the agent does not, 0 where it does; NaN elsewhere. Higher."""
    return np.where(base_failed, ~is_failed, np.nan)


def failed_cut(is_failed: Flags, base_failed: Flags) -> float | None:
    """1 - failed tasks / failed tasks of the baseline: newly failed ones count against it. None if there are none."""
    theirs = int(base_failed.sum())
    return None if theirs == 0 else 1 - int(is_failed.sum()) / theirs


def number(values: Any) -> Floats:
    """As floats."""
    return np.asarray(values, np.float64)


def _post(values: NDArray[Any], tau: int) -> NDArray[Any]:
    if not 0 <= tau < values.shape[-1]:
        raise ValueError(f"novelty at episode {tau} of {values.shape[-1]}; at least one must follow it")
    return values[..., tau:]


def _first(values: NDArray[Any], tau: int, m: int) -> NDArray[Any]:
    post = _post(values, tau)
    if not 1 <= m <= post.shape[-1]:
        raise ValueError(f"window of {m} episodes; allowed: 1 to {post.shape[-1]}, the post-novelty episodes")
    return post[..., :m]


def _last(values: NDArray[Any], tau: int, m: int) -> NDArray[Any]:
    return _first(_post(values, tau)[..., ::-1], 0, m)[..., ::-1]


def _mean(values: NDArray[Any]) -> Floats:
    return number(values.mean(axis=-1)) if values.shape[-1] else np.full(values.shape[:-1], np.nan)


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.divide(a, b, out=np.full(np.shape(b), np.nan), where=b != 0))


def _gain(p: Floats, base: Floats, normalised: bool) -> Floats:
    a, b = number(p.sum(axis=-1)), number(base.sum(axis=-1))
    return np.where(a + b == 0, 0.0, _ratio(a, a + b)) if normalised else _ratio(a, b)
