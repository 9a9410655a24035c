"""benchmarks/repeat_published.py: published rows against what this version of the package makes."""

import sys
from pathlib import Path

import polars as pl
import pytest

import nappingrl
from benchmark_scripts import load_benchmark
from nappingrl.reproduction.published import publish


def repeat(monkeypatch: pytest.MonkeyPatch, file: Path) -> int:
    """The exit status."""
    monkeypatch.setattr(sys, "argv", ["repeat_published.py", str(file), "--trials", "2"])
    with pytest.raises(SystemExit) as stop:
        load_benchmark("repeat_published").main()
    return int(stop.value.code or 0)


def test_other_returns_are_counted_by_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = nappingrl.run("crossroad", "dqn", "napping", novelty="all", trials=3, protocol="1+3", out=tmp_path / "one")
    publish([run], tmp_path / "same.parquet")
    assert repeat(monkeypatch, tmp_path / "same.parquet") == 0
    assert capsys.readouterr().out.endswith("| one | this one | 18 | 0 |\n"), "two trials of each of nine novelties"
    is_one = (pl.col("novelty") == run.novelties[4]) & (pl.col("number") == 1) & (pl.col("episode") == 2)
    other = pl.when(is_one).then(-pl.col("return")).otherwise(pl.col("return")).alias("return")
    object.__setattr__(run, "rows", run.rows.with_columns(other))
    publish([run], tmp_path / "other.parquet")
    assert repeat(monkeypatch, tmp_path / "other.parquet") == 1
    assert capsys.readouterr().out.endswith("| one | this one | 18 | 1 |\n")
