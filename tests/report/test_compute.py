"""All metrics of a run: which need other runs, how trials are paired, and a run computed again by plain loops."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError
from nappingrl.report.compute import compute_metrics
from nappingrl.report.runs import Run
from nappingrl.trials.manifest_record import Manifest
from report.rows import flags


def make_rows(returns: list[list[float]], detected: NDArray[np.bool_], tau: int, **columns: Any) -> pl.DataFrame:
    n_trials, n_episodes = len(returns), len(returns[0])
    return pl.DataFrame(
        {
            "novelty": "physics",
            "number": np.repeat(np.arange(n_trials), n_episodes),
            "episode": np.tile(np.arange(n_episodes) - tau, n_trials),
            "return": np.array(returns, float).ravel(),
            "length": np.full(n_trials * n_episodes, 7),
            "won": np.array(returns).ravel() > 0.9,
            "detected": detected.ravel(),
            "param_force": np.repeat(np.arange(n_trials) / 10, n_episodes),
        }
        | columns
    )


def make_manifest(detector: str = "rolling-mean") -> Manifest:
    spec = {"domain": "toy", "agent": "a", "method": "m", "detector": detector}
    return Manifest(spec, "1", "", "", 1, 1, 1, (0.0, 1.0), "won", 1.0)


def make(rows: pl.DataFrame, detector: str = "rolling-mean") -> Run:
    return Run(make_manifest(detector), rows)


DETECTED = flags("..|.x", "..|..")
RUN = make(make_rows([[1, 1, 0, 1], [1, 1, 0, 0]], DETECTED, 2))
FROZEN_ROWS = make_rows([[1, 1, 0, 0], [1, 1, 0, 0]], DETECTED, 2)
FROZEN = make(FROZEN_ROWS)


def test_without_other_runs_what_needs_them_has_no_value() -> None:
    found = compute_metrics(RUN).by_name
    needy = {name for name, metric in found.items() if metric.value is None}
    assert needy == {
        "nrp", "inrp", "onrp", "opti", "apti", "ipti", "opti_ratio", "apti_ratio", "ipti_ratio", "nrm_baseline",
        "resilience_drop", "resilience_vs_random", "oracle_regret", "failed_removed",
    }  # fmt: skip
    assert all(np.isnan(found[name].per_trial).all() for name in needy)
    assert compute_metrics(RUN).failed_cut is None


def test_values_are_means_over_the_trials_where_they_are_defined() -> None:
    found = compute_metrics(RUN, FROZEN, random=FROZEN, oracle=RUN, window=1)
    value = {name: metric.value for name, metric in found.by_name.items()}
    assert value["m1_first"] == 1
    assert len(found.by_name["m1_first"].defined) == 1
    assert value["m2"] == 0.5
    assert value["nrp"] == 0.5
    assert value["opti"] == 0.5  # 1 and, both being 0, 0
    assert value["opti_ratio"] is None
    assert value["resilience_drop"] == 1
    assert value["resilience_vs_random"] == 0
    assert value["oracle_regret"] == 0
    assert value["failed"] == value["failed_removed"] == found.failed_cut == 0.5
    assert_array_equal(found.median, [0, 0.5])
    assert_array_equal(found.mean, [0, 0.5])


def test_no_detection_at_all_has_no_m1() -> None:
    rows = RUN.rows.with_columns(detected=pl.lit(False))
    found = compute_metrics(make(rows)).by_name
    assert found["m1_first"].value is found["m1_count"].value is None
    assert found["m2"].value == found["amoc_scaled"].value == 0


def test_a_single_trial_of_a_single_episode() -> None:
    found = compute_metrics(make(make_rows([[1]], flags("|x"), 0))).by_name
    assert found["m22"].value is found["nrm"].value is found["one_shot_performance"].value is None
    assert found["last10_return"].value == found["asymptotic_performance"].value == 1


def test_the_default_window_is_cut_to_the_episodes_there_are() -> None:
    rows = make_rows([[1.0] * 40 + [0.0, 0.5]], np.zeros((1, 42), bool), 40)
    found = compute_metrics(make(rows, "given"))
    assert found.by_name["asymptotic_performance"].value == 0.25
    assert found.notes[0] == "toy: performance = (return - 0) / 1, 0 to 1"
    assert "window m = 2 of 42" in found.notes[1]
    assert "5 episodes stays within 0.05 of the mean of the last 2" in found.notes[2]
    assert "M4" in found.notes[3]
    for window in (0, 3):
        with pytest.raises(ValueError, match="allowed: 1 to 2"):
            compute_metrics(make(rows), window=window)


def test_trials_are_paired_whatever_the_order_of_the_rows() -> None:
    shuffled = FROZEN_ROWS.sample(fraction=1.0, shuffle=True, seed=3)
    straight, mixed = (compute_metrics(RUN, make(rows)).frame() for rows in (FROZEN_ROWS, shuffled))
    assert straight.equals(mixed)
    assert straight["number"].to_list() == [0, 1]
    assert straight["m1_first"].to_list() == [1.0, None]


@pytest.mark.parametrize(
    ("baseline", "message"),
    [
        (FROZEN_ROWS.with_columns(param_force=pl.col("param_force") + 1), "other novelties"),
        (FROZEN_ROWS.filter(pl.col("number") == 0), "missing or doubled"),
        (pl.concat([FROZEN_ROWS, FROZEN_ROWS]), "missing or doubled"),
        (FROZEN_ROWS.filter(pl.col("episode") >= -1), "other novelties or protocols"),
        (FROZEN_ROWS.head(7), "missing or doubled"),
        (FROZEN_ROWS.with_columns(pl.col("episode") + 1), "other novelties or protocols"),
    ],
)
def test_other_draws_are_refused(baseline: pl.DataFrame, message: str) -> None:
    with pytest.raises(BadRunError, match=message):
        compute_metrics(RUN, make(baseline))
    with pytest.raises(BadRunError, match="missing or doubled"):
        compute_metrics(make(RUN.rows.clear()))


def test_a_small_run_measured_again_by_plain_loops(agent: Agent) -> None:
    options: dict[str, Any] = {"trials": 3, "protocol": "6+8", "seed": 1}
    run = nappingrl.run("cartpole", agent, "napping", **options)
    frozen = nappingrl.run("cartpole", agent, "frozen", **options)
    found = compute_metrics(run, frozen, window=2)
    value = {name: metric.value for name, metric in found.by_name.items()}
    sums = dict.fromkeys(("nrp", "inrp", "apti", "last10_return", "resilience_drop", "tp", "m2", "one_shot"), 0.0)
    delays, near = [], 0
    for number in range(3):
        ours, theirs = ([r for r in t.to_dicts() if r["number"] == number] for t in (run.rows, frozen.rows))
        assert [r["episode"] for r in ours] == list(range(-6, 8))
        p, b = ([(r["return"] - 1) / 199 for r in trial] for trial in (ours, theirs))
        before = sum(b[:6]) / 6
        sums["nrp"] += (p[12] + p[13]) / 2 / before / 3
        sums["inrp"] += (p[6] + p[7]) / 2 / before / 3
        sums["apti"] += (p[12] + p[13]) / (p[12] + p[13] + b[12] + b[13]) / 3
        sums["last10_return"] += sum(r["return"] for r in ours[6:]) / 8 / 3
        sums["resilience_drop"] += (max(b[:6]) - sum(b[6:]) / 8) / 3
        sums["one_shot"] += p[7] / 3
        sums["tp"] += sum(r["detected"] for r in ours[6:]) / 3
        alarms = [r["episode"] for r in ours if r["detected"]]
        if alarms and alarms[0] >= 0:
            sums["m2"] += 1 / 3
            delays.append(alarms[0])
        mean = sum(p[:6]) / 6
        deviation = math.sqrt(sum((x - mean) ** 2 for x in p[:6]) / 6) or 1e-5
        near += abs(sum(p[6:]) / 8 - mean) / deviation < 2
    assert delays
    assert value["m1_first"] == value["m1_count"] == pytest.approx(sum(delays) / len(delays))
    assert value["nrm"] == pytest.approx(near / 3)
    value["one_shot"] = value["one_shot_performance"]
    for name, expected in sums.items():
        assert value[name] == pytest.approx(expected), name
    expected_unscaled = sum((9 - delay) / 9 for delay in delays) / 3  # Npost = 14 - 6 + 1
    assert value["amoc_unscaled"] == pytest.approx(expected_unscaled)
