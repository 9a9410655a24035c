"""Every command and every example that a reader is shown is run (with few trials)."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

from nappingrl.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[list[str]]:
    lines = [line.split("  #")[0] for block in blocks(page, "") for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("napping ")]


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda page: page.name)
def test_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        if words[0] in ("bench", "train", "paper") or "--executor" in words:
            continue  # minutes long, or on Ray; their own tests run them small
        if words[0] == "birds" and words[1] != "levels" and "--headless" not in words:
            continue  # waits for a person or for an agent; tests/domains/birds plays both
        for flag, value in (("--trials", "2"), ("--workers", "1")):
            if words[0] == "run":
                words = [*words, flag, value] if flag not in words else _with(words, flag, value)
        main(words)


def _with(words: list[str], flag: str, value: str) -> list[str]:
    at = words.index(flag)
    return [*words[: at + 1], value, *words[at + 2 :]]


def test_readme_python_runs() -> None:
    for block in blocks(ROOT / "README.md", "python"):
        exec(compile(block, "README.md", "exec"), {})


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_wrapped_example_recovers(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "wrap_an_agent.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    frozen, adapted = (eval(line.split(":", 1)[1]) for line in lines[:2])
    assert max(frozen) < 20
    assert min(adapted) == 200


def test_links_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert target.startswith("http") or (ROOT / target).exists(), target
