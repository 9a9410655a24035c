"""`napping bench`: every domain with every method, the history of results, and earlier commits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nappingrl.benchmark import before_after, overview
from nappingrl.cli import main
from nappingrl.errors import BadSpecError


def test_overview_and_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history = tmp_path / "history.jsonl"
    words = ["bench", "--part", "overview", "--domains", "crossroad", "--methods", "frozen", "controller"]
    main([*words, "--history", str(history), "--json"])
    cases = json.loads(capsys.readouterr().out.splitlines()[-1])["overview"]
    assert [(case["domain"], case["agent"], case["method"]) for case in cases] == [
        ("crossroad", "dqn", "frozen"), ("crossroad", "dqn", "controller"),
    ]  # fmt: skip
    assert [case["is_compiled"] for case in cases] == [True, False]
    for case in cases:
        assert case["step_us"] > 0
        assert case["steps_per_second"] == pytest.approx(1e6 / case["step_us"])
        assert case["times_loop"] > 1
        assert case["times_forward"] > 0
        assert 50 < case["memory_mb"] < 5000
    (line,) = map(json.loads, history.read_text().splitlines())
    assert line["overview"] == cases
    assert line["commit"]
    assert line["machine"]["cores"] >= 1


def test_memory_is_left_out_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, which has no module `resource`."""
    assert overview.peak_memory_mb() is not None
    monkeypatch.setitem(sys.modules, "resource", None)
    assert overview.peak_memory_mb() is None


def test_a_method_that_refuses_the_agent_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "--part", "overview", "--domains", "angrybirds", "--methods", "online"])
    assert "angrybirds online: " in capsys.readouterr().out


def test_earlier_commits_are_measured_alternately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a checkout with two commits, whose package only says how fast it is."""
    speeds = {"first": 100.0, "second": 250.0}
    program = "import nappingrl; print(nappingrl.SPEED, 'rows')"
    monkeypatch.setattr(before_after, "TIMED", program)
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    package = tmp_path / "src" / "nappingrl"
    package.mkdir(parents=True)
    for message, speed in speeds.items():
        (package / "__init__.py").write_text(f"SPEED = {speed}\n")
        git(tmp_path, "add", "src")
        git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", message)
    main(["bench", "--before", "HEAD~1", "--rounds", "2", "--json"])
    compared: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {case["ratio"] for case in compared["comparisons"]} == {2.5}
    assert all(case["same_rows"] for case in compared["comparisons"])
    with pytest.raises(BadSpecError, match=r"commit 'nowhere' cannot be read: .*checkout"):
        before_after.compare_commits("nowhere")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True)
