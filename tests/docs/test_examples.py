"""Every example runs and prints something."""

import runpy
from pathlib import Path

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
