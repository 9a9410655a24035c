"""Every example runs and prints something."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from docs.pages import ROOT


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example_runs(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_wrapped_example_recovers(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "wrap_an_agent.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    frozen, adapted = (eval(line.split(":", 1)[1]) for line in lines[:2])
    assert max(frozen) < 20
    assert min(adapted) == 200


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def run_notebook(path: Path) -> dict[str, Any]:
    """Execute the cells of a notebook; returns its names."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "notebooks are kept without output"
            exec(compile("".join(cell["source"]), f"{path.name} {cell['id']}", "exec"), names)
    return names


def test_there_are_two_notebooks() -> None:
    assert [path.name for path in NOTEBOOKS] == ["adapt_an_agent.ipynb", "compare_methods.ipynb"]


def test_the_notebook_of_one_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_notebook(NOTEBOOKS[0])
    assert max(names["frozen"]) < 50
    assert names["adapted"][-1] == 500


def test_the_notebook_of_methods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runs = run_notebook(NOTEBOOKS[1])["runs"]
    levels = {method: run.summary().last10_mean for method, run in runs.items()}
    assert levels["frozen"] + 50 < levels["napping"] <= levels["oracle"]
