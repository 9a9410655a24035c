"""Pass rates: counted by hand, their intervals, what they are compared with, and how `napping report` shows them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from nappingrl.cli import main
from nappingrl.report.compute import compute_metrics
from nappingrl.report.export import export
from nappingrl.report.figures import FIGURES, draw_curves
from nappingrl.report.figures.pass_rates import in_blocks
from nappingrl.report.figures.style import episodes_by_trial
from nappingrl.report.intervals import over_trials, rate_band
from nappingrl.report.looks import by_agent, looks
from nappingrl.report.pass_rates import (
    AFTER,
    ALL,
    BEFORE,
    END,
    measure_gains,
    measure_rates,
    rates_json,
    rates_markdown,
    rates_table,
)
from nappingrl.report.runs import Run
from nappingrl.trials.store import RunFolder
from report.rows import make_run, steps

PRE, POST = 4, 20
NOVELTIES = ["bone", "bone", "green-egg", "green-egg"]


def birds(agent: str = "dqn", method: str = "napping", ends: tuple[int, ...] = (10, 8, 0, 5), **options: Any) -> Run:
    """Four trials: passed before the novelty, then lost until that many of the last ten are passed.

    The trials start 4, 2, 4 and 1 episodes before the novelty.
    """
    returns = [steps((1, PRE), (0, POST - n), (1, n)) for n in ends]
    run = make_run("angrybirds", agent, method, returns, PRE, novelties=NOVELTIES, **options)
    first = pl.Series(np.repeat([-4, -2, -4, -1], PRE + POST))
    return replace(run, rows=run.rows.filter(pl.col("episode") >= first))


def test_rates_are_counted_over_all_episodes_of_a_window() -> None:
    (run,) = measure_rates([birds()])
    assert list(run.by_novelty) == [ALL, "bone", "green-egg"]
    assert {window: (r.passed, r.played) for window, r in run.by_novelty[ALL].items()} == {
        BEFORE: (11, 11),  # 4 + 2 + 4 + 1
        AFTER: (0, 12),
        END: (23, 40),
    }
    bone = run.by_novelty["bone"][END]
    assert (bone.value, bone.trials) == (18 / 20, 2)
    assert bone.wilson is not None
    assert bone.over_trials is not None
    assert (bone.wilson.low, bone.wilson.high) == pytest.approx((0.69897, 0.97213), abs=1e-5)
    assert (bone.over_trials.low, bone.over_trials.high) == (0.8, 1.0)  # either trial twice
    json.dumps(rates_json([run], []))


def test_gains_are_paired_and_go_to_the_agent_itself_and_to_the_others() -> None:
    frozen = birds(method="frozen", ends=(0, 0, 0, 5), role="baseline")
    scripted = birds("naive", "frozen", (10, 10, 10, 10), role="baseline")
    gains = measure_gains([birds(), frozen, scripted])
    own = {gain.novelty: gain.difference for gain in gains if gain.is_same_agent}
    assert own == pytest.approx({ALL: 0.45, "bone": 0.9, "green-egg": 0.0})  # (1 + .8 + 0 + 0) / 4
    (other,) = [gain for gain in gains if not gain.is_same_agent]
    assert (other.run, other.other, other.novelty) == ("DQN NAPPING", "Naive", ALL)
    assert other.difference == pytest.approx(-0.425)
    assert other.interval is not None
    lines = rates_table(measure_rates([birds(), frozen]), gains)
    assert [line[:2] for line in lines[:3]] == [(ALL, "DQN NAPPING"), (ALL, "DQN Frozen"), ("bone", "DQN NAPPING")]
    assert lines[2][-1].startswith("+0.90 (")
    assert "| all | DQN NAPPING | 4 | 1.00 (0.74 to 1.00) | 0.00 (0.00 to 0.24) | 0.57 (" in rates_markdown(
        measure_rates([birds()]), []
    )


def test_other_weights_of_the_same_name_are_not_compared() -> None:
    frozen = birds(method="frozen")
    other = replace(frozen, manifest=replace(frozen.manifest, agent_sha256="other"))
    assert measure_gains([birds(), other]) == []


def test_returns_of_zero_and_one_are_passes_only_where_nothing_else_can_come() -> None:
    run = birds()
    assert run.is_rate
    assert not replace(run, rows=run.rows.with_columns(pl.col("return") * 0.5)).is_rate
    assert not make_run("cartpole", "ppo", "frozen", [[1.0, 1.0, 1.0]]).is_rate


# ---- trials that start at different episodes ----------------------------------------------------------------------


def test_only_episodes_that_all_trials_have_are_read_as_a_matrix() -> None:
    run = birds()
    assert run.common_rows["episode"].to_numpy().min() == -1
    assert (run.tau, run.matrix("return").shape) == (1, (4, 21))
    assert len(run.rows) - len(run.common_rows) == 7  # 3 + 1 + 3 + 0 left out
    metrics = compute_metrics(run, run)
    assert metrics.by_name["last10_won"].value == pytest.approx(23 / 40)
    assert "7 episodes before -1 are left out" in metrics.notes[-1]
    assert len(compute_metrics(make_run("cartpole", "ppo", "frozen", [[1.0] * 8] * 2)).notes) == len(metrics.notes) - 1


def test_exported_trials_count_their_own_episodes(tmp_path: Path) -> None:
    (file,) = export(birds(), "wsu", tmp_path)
    counted = pl.read_csv(file).group_by("trial_index", maintain_order=True).agg(pl.col("episode_index"))
    assert counted["episode_index"].to_list() == [list(range(n + POST)) for n in (4, 2, 4, 1)]


def test_missing_episodes_are_gaps_of_a_curve() -> None:
    episodes, passed = episodes_by_trial(birds().rows, "return")
    assert episodes.tolist() == list(range(-PRE, POST))
    assert np.isnan(passed).sum(axis=1).tolist() == [0, 2, 0, 3]
    rate = over_trials(passed, "rate")
    assert rate.centre[:PRE].tolist() == [1.0] * PRE
    assert rate.lower[0] == pytest.approx(rate_band(2, 2).lower)  # two trials have episode -4
    assert np.isnan(over_trials(passed, "mean").centre).tolist() == [True] * 3 + [False] * (POST + 1)


def test_blocks_do_not_cross_the_novelty() -> None:
    middles, found = in_blocks(birds().rows)
    assert middles.tolist() == [-3, 2, 7, 12, 17]
    assert found.centre.tolist() == pytest.approx([1, 0, 0, (1 + 0.6 + 0 + 0) / 4, (1 + 1 + 0 + 1) / 4])


# ---- shown --------------------------------------------------------------------------------------------------------


def test_scripted_agents_have_their_own_colours_and_no_method() -> None:
    shown = looks([birds("dqn"), birds("naive", "frozen"), birds("hydra", "frozen"), birds("dqn-rel")])
    assert [look.label for look in shown] == ["DQN NAPPING", "Naive", "HYDRA", "DQN-Rel NAPPING"]
    assert len({look.colour for look in shown[:3]}) == 3
    assert shown[0].colour == shown[3].colour
    assert shown[0].dash != shown[3].dash
    panels = by_agent([birds("dqn"), birds("naive", "frozen"), birds("hydra", "frozen")])
    labels = {title: [look.label for look in members] for title, (_, members) in panels.items()}
    assert labels == {"DQN": ["NAPPING"], "scripted agents": ["Naive", "HYDRA"]}


def test_overall_has_a_panel_for_scripted_agents_with_the_lines_of_napping_in_it() -> None:
    canvas = FIGURES["overall"].plot([birds(), birds("naive", "frozen"), birds(method="frozen")])
    left, right = canvas.axes
    assert {one.get_label() for one in left.get_lines()} >= {"DQN NAPPING", "DQN Frozen"}
    labels = {one.get_label() for one in right.get_lines()}
    assert {"DQN NAPPING", "Naive"} <= labels
    assert "DQN Frozen" not in labels
    (rates,) = [one.get_ydata() for one in left.get_lines() if one.get_label() == "DQN NAPPING"]
    assert rates[-1] == 0.75


def test_heat_map_names_the_rate_of_each_cell() -> None:
    (axes,) = FIGURES["angrybirds-asymptotic"].plot([birds(), birds("naive", "frozen", (0, 0, 0, 0))]).axes
    cells = [text.get_text().splitlines()[0] for text in axes.texts]
    assert cells == ["0.90", "0.25", "0.57", "0.00", "0.00", "0.00"]


def test_bars_are_sorted_by_the_end() -> None:
    (axes,) = FIGURES["angrybirds-agents"].plot([birds("naive", "frozen", (0, 0, 0, 0)), birds()]).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["DQN NAPPING", "Naive"]
    assert axes.yaxis_inverted()
    lengths = [[bar.get_width() for bar in group] for group in axes.containers]
    assert lengths == [[1.0, 1.0], [0.0, 0.0], [23 / 40, 0.0]]


def test_report_of_passes_shows_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("naive", "datalab"):
        run = birds(name, "frozen", protocol=f"1..{PRE}+{POST}")
        RunFolder.create(Path(name), run.manifest).write(0, run.rows)
    main(["report", "naive", "datalab", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["rates"]["runs"][0]["by_novelty"]["bone"][END]["rate"] == 0.9
    page = Path("naive/report.html").read_text("utf-8")
    assert "1 to 4 before, 20 after the novelty" in page
    assert '"statistic":"mean"' in page
    main(["report", "naive", "datalab"])
    said = capsys.readouterr().out
    assert "0.90 (0.70 to 0.97)" in said
    assert "Wilson's 95 % interval" in said


def test_curves_of_passes_have_wilson_bands(tmp_path: Path) -> None:
    assert draw_curves([birds()], tmp_path / "a.png", "mean").stat().st_size > 5000
