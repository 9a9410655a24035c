"""Runs in other formats, read back by their own readers."""

import csv
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError, UnknownNameError
from nappingrl.report.export import WSU_COLUMNS, export
from nappingrl.report.runs import Run


@pytest.fixture
def run(agent: Agent) -> Run:
    """Three short trials."""
    return nappingrl.run("cartpole", agent, "napping", trials=3, protocol="2+8", seed=4)


def test_sb3_reads_the_monitor_files(run: Run, tmp_path: Path) -> None:
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    files = export(run, "monitor", tmp_path / "out")
    assert [file.name for file in files] == ["0.monitor.csv", "1.monitor.csv", "2.monitor.csv"]
    rows = run.rows
    found = monitor.load_results(str(tmp_path / "out"))
    assert sorted(found["r"]) == sorted(rows["return"].to_list())
    assert sorted(found["l"]) == sorted(rows["length"].to_list())


def test_wsu_columns(run: Run, tmp_path: Path) -> None:
    (file,) = export(run, "wsu", tmp_path / "out")
    with file.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert tuple(lines[0]) == WSU_COLUMNS
    rows = run.rows
    assert len(lines) == len(rows) == 30
    for line, row in zip(lines, rows.iter_rows(named=True), strict=True):
        assert line["trial_id"] == row["trial"]
        assert int(line["trial_index"]) == row["number"]
        assert int(line["episode_index"]) == row["episode"] + 2
        assert float(line["performance"]) == pytest.approx((row["return"] - 1) / 199)
        assert (line["novelty_initiated"] == "true") == (row["episode"] >= 0)
        assert float(line["novelty_probability"]) == float(row["detected"])


def test_tensorboard_reads_the_scalars(run: Run, tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    (folder,) = export(run, "tensorboard", tmp_path / "out")
    events = accumulator.EventAccumulator(str(folder))
    events.Reload()
    assert "trial/return_median" in events.Tags()["tensors"]
    post = run.rows.filter(pl.col("episode") >= 0)
    want = [post.filter(pl.col("episode") == e)["return"].mean() for e in range(8)]
    got = [float(event.tensor_proto.float_val[0]) for event in events.Tensors("trial/return_mean")]
    assert got == pytest.approx(want)


def test_unknown_format(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'monitor'"):
        export(run, "monitr", tmp_path / "out")


def test_text_cells_are_no_formulas(run: Run, tmp_path: Path) -> None:
    evil = ["=HYPERLINK(1)", "+1+1", "-2+3", "@SUM(1)", "\tx", "\rx", "-99.3", "plain"]
    rows = pl.concat([run.rows[:1]] * len(evil)).with_columns(novelty=pl.Series(evil))
    (file,) = export(replace(run, rows=rows), "wsu", tmp_path / "out")
    with file.open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    assert [line["novelty_level"] for line in lines] == [*(f"'{text}" for text in evil[:6]), "-99.3", "plain"]
    assert [float(line["performance"]) for line in lines] == [float(lines[0]["performance"])] * len(evil)


@pytest.mark.parametrize("domain", ["/tmp/evil", "../../evil", "..", "a\\b", "C:\\evil", "x" * 5000])
def test_nothing_is_written_outside_of_the_folder(run: Run, tmp_path: Path, domain: str) -> None:
    pytest.importorskip("tensorboard")
    manifest = replace(run.manifest, spec=run.spec | {"domain": domain})
    (folder,) = export(replace(run, manifest=manifest), "tensorboard", tmp_path / "out")
    assert folder.parent == tmp_path / "out"
    assert list(folder.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_monitor_files_of_two_runs_are_never_mixed(run: Run, tmp_path: Path) -> None:
    export(run, "monitor", tmp_path)
    export(run, "monitor", tmp_path)
    with pytest.raises(BadRunError, match=r"holds 1\.monitor\.csv of another run; use another --out"):
        export(replace(run, rows=run.rows.filter(pl.col("number") == 0)), "monitor", tmp_path)
