"""The columns `acted` and `why_not` of rows, and what `napping run` makes of them."""

import json
from pathlib import Path

import polars as pl
import pytest

from command_line import Napping
from nappingrl import run
from nappingrl.agents import load
from nappingrl.trials.engine import Engine
from nappingrl.trials.spec import RunSpec


@pytest.mark.parametrize(
    ("method", "before", "after"),
    [("frozen", "", ""), ("napping", "", "napping"), ("oracle", "", "oracle"), ("online", "online", "online"),
     ("random", "", "random"), ("controller", "", "controller"), ("napping-ucb", "", "napping-ucb")],
)  # fmt: skip
def test_what_acted(method: str, before: str, after: str) -> None:
    spec = RunSpec("cartpole", "ppo", method, trials=2, protocol="2+3", detector="given").complete()
    rows = Engine(spec, load("ppo", "cartpole")).run_trials(spec.trial_specs())
    assert set(rows.filter(pl.col("phase") == "pre")["acted"]) == {before}
    assert rows.filter(pl.col("episode") == 2)["acted"].to_list() == [after] * 2


def test_a_guard_that_stopped_its_method_is_noted(napping: Napping, tmp_path: Path) -> None:
    """Random actions lose at once, so the guard stops them; the run says so in its notes, table and JSON."""
    words = ["run", "cartpole", "--method", "random", "--guard", "--novelty", "none", "--detector", "given"]
    words += ["--trials", "2", "--protocol", "2+6", "--workers", "1", "--out", str(tmp_path / "run")]
    done = napping(*words, "--json")
    summary = json.loads(done.out)
    assert summary["acted"].keys() == {"agent", "random"}
    assert any("the guard has stopped it" in reason for reason in summary["why_not"])
    assert sum("most often because the guard has stopped it" in note for note in summary["notes"]) == 1
    table = napping(*words)
    assert "random 33%" in table.out
    assert "given" in table.out


def test_detection_is_in_the_summary(tmp_path: Path) -> None:
    made = run("cartpole", "ppo", "foresight", novelty="force=-10", trials=2, protocol="20+3", out=tmp_path / "run")
    summary = made.summary()
    assert summary.detector == "residual"
    assert summary.detection_rate == 1.0
    assert summary.detection_delay is not None
    assert summary.detection_delay < 20
    assert summary.false_alarms == 0
    assert summary.acted["foresight"] > 0
