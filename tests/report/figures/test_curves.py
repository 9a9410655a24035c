"""Figures over the episodes of a trial."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.image import imread
from scipy import stats

from conftest import make_agent
from nappingrl.report.figures import FIGURES, draw_curves
from nappingrl.report.figures.curves import detection_delays
from nappingrl.report.looks import looks
from report.figures.drawn import (
    POST,
    PRE,
    Runs,
    check_layout,
    line,
    many,
    repeated,
    returns_of,
    texts,
)


@pytest.mark.parametrize(
    ("domain", "statistic", "reduce"),
    [("cartpole", "median", np.median), ("mountaincar", "mean", np.mean), ("crossroad", "mean", np.mean)],
)
def test_overall_shows_the_statistic_over_trials(
    runs: Runs, domain: str, statistic: str, reduce: Callable[..., Any]
) -> None:
    canvas = FIGURES["overall"].plot(runs[domain], statistic)
    axes = canvas.axes[0]
    for run, look in zip(runs[domain], looks(runs[domain]), strict=True):
        x, y = line(axes, look.label)
        assert x.tolist() == list(range(-PRE, POST))
        np.testing.assert_allclose(y, reduce(returns_of(run.rows), axis=0))
    assert statistic in axes.get_ylabel()
    assert "without interval" in axes.get_ylabel(), "too few trials for bands"
    assert not axes.collections
    n_trials = runs[domain][0].rows["trial"].n_unique()
    assert f"{n_trials} trials" in axes.get_ylabel()
    agent = make_agent(domain).name
    assert {f"{agent} Frozen", f"{agent} NAPPING"} <= set(texts(canvas))
    assert "novelty" in [text.strip() for text in texts(canvas)]
    (at,) = {round(one.get_xdata()[0], 3) for one in axes.get_lines() if one.get_linewidth() == 0.9}
    assert at == -0.5


def test_overall_bands_are_the_intervals(runs: Runs) -> None:
    run = repeated(runs["cartpole"][0])
    axes = FIGURES["overall"].plot([run]).axes[0]
    assert "95 % interval" in axes.get_ylabel()
    returns = returns_of(run.rows)
    post = axes.collections[1].get_paths()[0].vertices
    for episode in range(POST):
        ends = stats.quantile_test(returns[:, PRE + episode], p=0.5).confidence_interval(0.95)
        here = post[post[:, 0] == episode][:, 1]
        assert (here.min(), here.max()) == pytest.approx((ends.low, ends.high))


def test_of_several_runs_only_methods_have_bands(runs: Runs) -> None:
    shown = [repeated(run) for run in many(runs["cartpole"], agents=2)]
    axes = FIGURES["overall"].plot(shown).axes[0]
    methods = sum(run.manifest.role == "method" for run in shown)
    assert 0 < methods < len(shown)
    assert len(axes.collections) == 2 * methods, "before and after the novelty"


def test_by_novelty_has_a_panel_for_each(runs: Runs) -> None:
    canvas = FIGURES["by-novelty"].plot(runs["crossroad"], "mean")
    rows = runs["crossroad"][1].rows
    names = rows["novelty"].unique(maintain_order=True).to_list()
    assert [axes.get_title() for axes in canvas.axes] == names
    for axes, name in zip(canvas.axes, names, strict=True):
        returns = returns_of(rows.filter(pl.col("novelty") == name))
        np.testing.assert_allclose(line(axes, "random NAPPING")[1], returns.mean(axis=0))


def test_regions_over_time(runs: Runs) -> None:
    canvas = FIGURES["regions-over-time"].plot(runs["cartpole"])
    rows = runs["cartpole"][1].rows
    regions = rows["regions"].to_numpy().reshape(-1, PRE + POST)[:, PRE:]
    assert regions.max() > 0
    np.testing.assert_allclose(line(canvas.axes[0], "balance NAPPING")[1], np.median(regions, axis=0))
    assert "balance Frozen" not in texts(canvas)


def test_detection_delay_is_cumulative(runs: Runs) -> None:
    canvas = FIGURES["detection-delay"].plot(runs["cartpole"])
    detected = runs["cartpole"][0].rows["detected"].to_numpy().reshape(-1, PRE + POST)[:, PRE:]
    assert detected[:, -1].mean() > 0
    np.testing.assert_allclose(line(canvas.axes[0], "balance: Frozen, NAPPING")[1], detected.mean(axis=0))


def test_false_alarms_are_no_detections(runs: Runs) -> None:
    run = runs["cartpole"][0]
    first = run.rows["trial"][0]
    rows = run.rows.with_columns(pl.col("detected") | (pl.col("trial") == first))
    delays = detection_delays(rows)
    assert np.isnan(delays[0])
    assert not np.isnan(delays[1:]).any()
    assert any(
        "1 false alarms left out" in text for text in texts(FIGURES["detection-delay"].plot([replace(run, rows=rows)]))
    )


@pytest.mark.parametrize(("domain", "pre"), [("cartpole", PRE), ("mountaincar", 0)])
def test_overall_of_many_runs_has_a_panel_per_agent(runs: Runs, domain: str, pre: int) -> None:
    shown = runs[domain]
    if domain == "mountaincar":  # a level before the novelty that is far from all that comes after it
        level = pl.when(pl.col("episode") < 0).then(-500.0).otherwise(-50.0 + pl.col("number"))
        shown = [replace(run, rows=run.rows.with_columns(level.alias("return"))) for run in shown]
    canvas = FIGURES["overall"].plot(many(shown), "median" if domain == "cartpole" else "mean")
    check_layout(canvas)
    assert [axes.get_title().partition("\n")[0] for axes in canvas.axes] == [f"agent-{i}" for i in range(5)]
    for axes in canvas.axes:
        for run, method in zip(shown, ("Frozen", "NAPPING"), strict=True):
            reduce = np.median if domain == "cartpole" else np.mean
            found = line(axes, method)
            assert found[0].tolist() == list(range(-pre, POST))
            np.testing.assert_allclose(found[1], reduce(returns_of(run.rows)[:, PRE - pre :], axis=0))
        if not pre:
            assert "before the novelty: −500 (Frozen)" in axes.get_title()  # noqa: RUF001
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Frozen", "NAPPING"]


def test_report_curves_still_work(runs: Runs, tmp_path: Path) -> None:
    frozen, napping = runs["cartpole"]
    for i, shown in enumerate(([frozen, napping], many([frozen, napping]))):
        path = draw_curves(shown, tmp_path / f"curves-{i}.png", "mean")
        assert imread(path).shape[:2] == (720, 1080)
