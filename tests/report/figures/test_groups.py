"""Figures with a line per group of trials."""

import numpy as np
import polars as pl
import pytest

from nappingrl.errors import BadRunError
from nappingrl.report.figures import FIGURES
from nappingrl.report.figures.curves import SMALL_PANEL_START
from nappingrl.report.figures.groups import BINS, MAX_COLUMNS, value_groups
from report.figures.drawn import PRE, Runs, line, many, returns_of


def test_fifths_hold_equally_many_trials() -> None:
    values = np.random.default_rng(0).permutation(20).astype(float)
    groups = value_groups(values)
    assert [words for words, _ in groups] == ["0 to 3", "4 to 7", "8 to 11", "12 to 15", "16 to 19"]
    for i, (_, places) in enumerate(groups):
        assert sorted(values[places]) == list(range(4 * i, 4 * i + 4))


def test_by_value_has_a_row_per_parameter_and_a_line_per_fifth(runs: Runs) -> None:
    shown = runs["mountaincar"]
    canvas = FIGURES["by-value"].plot(shown, "mean")
    panels = np.array(canvas.axes).reshape(2, len(shown))
    rows = shown[1].rows
    force = rows.filter(pl.col("episode") == 0)["param_force"].to_numpy()
    words, places = value_groups(force)[0]
    first = max(PRE + SMALL_PANEL_START, 0)
    expected = returns_of(rows)[places].mean(axis=0)[first:]
    np.testing.assert_allclose(line(panels[0, 1], words)[1], expected)
    lines = [one for one in panels[0, 1].get_lines() if " to " in str(one.get_label())]
    assert len(lines) == BINS


def test_by_value_refuses_what_it_cannot_show(runs: Runs) -> None:
    with pytest.raises(BadRunError, match=f"at most {MAX_COLUMNS} runs"):
        FIGURES["by-value"].plot(many(runs["cartpole"]))


def test_by_agent_has_a_panel_per_run_and_a_line_per_novelty(runs: Runs) -> None:
    shown = runs["crossroad"]
    canvas = FIGURES["by-agent"].plot(shown, "mean")
    assert [axes.get_title() for axes in canvas.axes] == ["random Frozen", "random NAPPING"]
    for name in shown[1].novelties:
        expected = returns_of(shown[1].where(name).rows).mean(axis=0)
        np.testing.assert_allclose(line(canvas.axes[1], name)[1], expected)


def test_profiles_fall_from_all_trials(runs: Runs) -> None:
    canvas = FIGURES["profiles"].plot(runs["cartpole"])
    for run in runs["cartpole"]:
        x, y = line(canvas.axes[0], f"balance {'NAPPING' if run.method == 'napping' else 'Frozen'}")
        levels = run.levels["level"].to_numpy()
        assert y[0] == 1
        np.testing.assert_allclose(y, [(levels >= value - 1e-6).mean() for value in x])
