"""Figures over drawn values."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex

from nappingrl.errors import BadRunError
from nappingrl.report.figures import FIGURES
from nappingrl.report.figures.style import FAILED
from nappingrl.report.figures.values import binned
from report.figures.drawn import POST, TRIALS, Runs, check_layout, line, many, returns_of, texts


def test_by_parameter_has_five_panels_with_their_defaults(runs: Runs) -> None:
    canvas = FIGURES["by-parameter"].plot(runs["cartpole"])
    panels = canvas.axes[:5]
    titles = {"length": "half the pole", "gravity": "m/s²", "masscart": "cart", "masspole": "pole", "force": "(N)"}
    parameters = runs["cartpole"][0].manifest.parameters
    assert set(parameters) == set(titles)
    for axes, name in zip(panels, parameters, strict=True):
        assert titles[name] in axes.get_xlabel()
    defaults = [next(one for one in axes.get_lines() if one.get_linestyle() == ":").get_xdata()[0] for axes in panels]
    assert defaults == list(runs["cartpole"][0].manifest.parameters.values())
    assert texts(canvas).count("default") == 5
    levels = returns_of(runs["cartpole"][1].rows)[:, -POST:].mean(axis=1)  # fewer than ten episodes: all of them
    assert line(panels[0], "balance NAPPING")[1] == pytest.approx([np.median(levels)])


def test_a_parameter_that_was_not_drawn_is_refused(runs: Runs) -> None:
    run = runs["cartpole"][0]
    defaults = run.manifest.parameters.items()
    unchanged = run.rows.with_columns(pl.lit(value).alias(f"param_{name}") for name, value in defaults)
    with pytest.raises(BadRunError, match="no trial of these runs changed a parameter"):
        FIGURES["by-parameter"].plot([replace(run, rows=unchanged)])
    one = unchanged.with_columns(run.rows["param_force"])
    canvas = FIGURES["by-parameter"].plot([replace(run, rows=one)])
    assert [axes.get_xlabel() for axes in canvas.axes] == ["force (N)"], "only what was drawn has a panel"


def test_bins_hold_equally_many_trials() -> None:
    values = np.random.default_rng(0).permutation(60).astype(float)
    centres, found = binned(values, 2 * values, "median")
    assert centres.tolist() == [7.0, 22.0, 37.0, 52.0]
    assert found.centre.tolist() == [14.0, 44.0, 74.0, 104.0]


def test_map_shows_failed_tasks_in_red_where_they_are(runs: Runs) -> None:
    run = runs["mountaincar"][0]
    manifest, rows = run.manifest, run.rows
    lost = rows["trial"].unique(maintain_order=True)[:3].to_list()
    minimum = manifest.return_range[0]
    is_lost = pl.col("trial").is_in(lost) & (pl.col("episode") >= 0)
    rows = rows.with_columns(
        pl.when(is_lost).then(minimum).otherwise(pl.max_horizontal("return", minimum + 1)).alias("return")
    )
    canvas = FIGURES["mountaincar-map"].plot([replace(run, rows=rows)] * 2)
    assert len(canvas.axes) == 3  # two panels and the colour bar
    axes = canvas.axes[0]
    fine, failed = (found for found in axes.collections if isinstance(found, PathCollection))
    assert to_hex(failed.get_edgecolor()[0]) == FAILED
    drawn = rows.filter(is_lost & (pl.col("episode") == 0)).select("param_force", "param_gravity").to_numpy()
    np.testing.assert_allclose(np.asarray(failed.get_offsets()), drawn)
    assert len(fine.get_offsets()) == TRIALS["mountaincar"] - 3
    np.testing.assert_allclose(np.sort(fine.get_array()), np.sort(returns_of(rows)[3:, -POST:].mean(axis=1)))
    assert "3 of 8 trials failed" in axes.get_title()
    (star,) = [one for one in axes.get_lines() if one.get_marker() == "*"]
    assert star.get_xydata().tolist() == [list(manifest.parameters.values())]


def test_by_parameter_of_many_runs_has_a_column_per_agent(runs: Runs) -> None:
    canvas = FIGURES["by-parameter"].plot(many(runs["mountaincar"], 3))
    check_layout(canvas)
    assert [axes.get_title() for axes in canvas.axes] == ["agent-0", "agent-1", "agent-2", "", "", ""]
    assert ["force" in axes.get_xlabel() for axes in canvas.axes] == [True] * 3 + [False] * 3
    assert all(len(axes.get_legend_handles_labels()[1]) == 2 for axes in canvas.axes)


def test_map_sets_the_methods_of_an_agent_side_by_side(runs: Runs) -> None:
    canvas = FIGURES["mountaincar-map"].plot(many(runs["mountaincar"], 2))
    titles = [axes.get_title().partition("\n")[0] for axes in canvas.axes[:4]]
    assert titles == ["agent-0 Frozen", "agent-0 NAPPING", "agent-1 Frozen", "agent-1 NAPPING"]
