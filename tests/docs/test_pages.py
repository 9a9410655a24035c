"""Every command on a page parses, and it and every block of Python run, in the order of the page and in one folder."""

import argparse
import importlib
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import gymnasium
import pytest

from conftest import BALANCE, line_layers, make_agent, write_zip
from docs.pages import MENTION, PAGES, ROOT, Shown, name_of, parse_page, read_page
from nappingrl.cli import main
from nappingrl.cli.argv import parse
from nappingrl.errors import AdaptationWarning
from nappingrl.registry import REGISTRIES, added_entries, unregister

NOT_RUN = {
    r"make .*": "sets up an environment and runs for minutes; CI does",
    r"napping paper .*": "runs for minutes to hours; tests/reproduction/test_evaluation.py runs it small",
    r"napping convert .*": "reads a zip that is not here; tests/cli/test_convert.py converts one",
    r"napping (claims|report) docs/paper.*": "reads all published rows; reproduction/test_published_docs.py does, too",
    r"napping claims paper": "reads the folder of `napping paper`; tests/reproduction/test_evaluation.py runs it",
    r"napping figure .* paper/runs/.*": "reads the folder of `napping paper`; tests/report/figures draws it",
    r"napping bench.*": "measures for minutes; tests/benchmark runs it small",
    r"napping run .*--executor ray.*": "needs a Ray cluster; tests/trials/test_ray_executor.py runs it",
    r"napping run .*other-env=drifting:.*": "needs ns-gym, which is not a dependency",
    r"napping train angrybirds .*": "trains for minutes; tests/agents/test_object_networks.py trains small ones",
    r"napping birds serve .*": "waits for agents; tests/cli/test_birds.py connects them",
    r"napping report served/run": "reads what agents played on the server; tests/cli/test_birds.py does",
    r"napping birds external .*": "starts a program that is not here; tests/domains/angrybirds/server starts agents",
    r"napping birds accept .*": "measures for an hour; tests/domains/angrybirds/acceptance measures a few levels",
    r"napping birds play(?!.*--headless).*": "opens a window; tests/cli/test_birds.py plays in one",
    r"napping play.*": "serves until it is stopped; tests/play/test_browser.py opens it",
    r"python benchmarks/training_seeds.py .*": "reads agents trained for hours; test_training_seeds.py runs it small",
    r"python benchmarks/playground.py .*": "drives a browser for minutes",
    r"python benchmarks/ray_overhead.py": "starts Ray clusters",
    r"python tests/golden/.*": "runs for minutes; tests/golden/test_golden_rows.py runs parts of it",
    r"python tests/docs/tables.py": "writes a page; tests/docs/test_tables.py compares it",
}
"""Commands that are only parsed, and why."""

NOT_EXECUTED = {
    "# drifting.py": "needs ns-gym, which is not a dependency; tests/domains/test_from_env.py has a double of it",
}
"""Blocks of Python by how they begin that are only compiled, and why."""

GENERATED = r"(\.\./)?paper/(cartpole|mountaincar|crossroad|angrybirds)/report\.html"
"""Pages that `make docs` writes."""
SMALL_SCRIPT = {"--trials": "1", "--episodes": "2", "--rounds": "1"}
SMALL = {"--trials": "2", "--protocol": "2+12", "--workers": "1"}
TINY = {"--trials": "1", "--protocol": "1+2", "--workers": "1"}


class ParsedError(Exception):
    """Raised in place of running a script."""


def commands(page: Path) -> list[Shown]:
    return [shown for shown in read_page(page) if shown.is_command]


def reason_not_to_run(shown: Shown) -> str:
    if not shown.is_command:
        return next((why for start, why in NOT_EXECUTED.items() if shown.text.startswith(start)), "")
    if shown.is_mention:
        return "a sentence names it"
    if shown.is_pattern:
        return "the reader fills in the words in capitals"
    return next((why for pattern, why in NOT_RUN.items() if re.fullmatch(pattern, " ".join(shown.words))), "")


def is_run_here(shown: Shown) -> bool:
    """Whether `test_page_runs` runs it."""
    return not reason_not_to_run(shown) and (not shown.is_command or shown.words[0] == "napping")


def make_small(words: list[str]) -> list[str]:
    """The words of a command with few and short trials, and with few steps where it trains by a recipe."""
    if words[0] == "replay":
        return [*words[:2], "1"]
    if words[0] == "record" and "--seconds" not in words:
        return [*words, "--seconds", "2"]
    if words[0] == "train" and not {"--env", "--steps"} & set(words):
        return [*words, "--steps", "2048"]
    if words[0] != "run":
        return words
    for flag, value in (SMALL if words[1] in ("cartpole", "mountaincar", "crossroad") else TINY).items():
        at = words.index(flag) if flag in words else len(words)
        words = [*words[:at], flag, value, *words[at + 2 :]]
    return words


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_parse(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for shown in commands(page):
        program, *words = (re.sub(r"^S$", "1", word) for word in shown.words)
        if shown.is_mention:
            continue
        if program == "make":
            assert set(words) <= targets, shown
        elif program == "python":
            parse_script(words, monkeypatch)
        else:
            parse(words)


def parse_script(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    original = argparse.ArgumentParser.parse_args

    def parse_only(self: argparse.ArgumentParser) -> NoReturn:
        original(self)
        raise ParsedError

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    with pytest.raises(ParsedError):
        runpy.run_path(str(ROOT / words[0]), run_name="__main__")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_command_is_overlooked(page: Path) -> None:
    """The words of a command occur nowhere but in the commands that the other tests collect."""
    overlooked = MENTION.findall(" ".join(page.read_text(encoding="utf-8").split()))
    for shown in commands(page):
        for found in MENTION.findall(shown.text):
            overlooked.remove(found)
    assert overlooked == []


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(map(is_run_here, read_page(page)))],
    ids=name_of,
)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("figures", "docs/images"):
        Path(name).mkdir(parents=True)
    namespace = SETUP.get(name_of(page), dict)()
    entry_points: dict[str, dict[str, str]] = {}
    if name_of(page) in WARNED:
        warnings.simplefilter("ignore", AdaptationWarning)  # pytest restores the filters after the test
    for shown in read_page(page):
        if shown.is_python:
            run_python(shown, namespace)
        elif shown.language == "toml":
            entry_points |= tomllib.loads(shown.text)["project"]["entry-points"]
            install(entry_points)
        elif is_run_here(shown):
            main(make_small(shown.words[1:]))


def run_python(shown: Shown, namespace: dict[str, Any]) -> None:
    """Run a block; one that the reader saves as a file is saved and imported."""
    text = re.sub(r"\btrials=\d+", 'trials=1, protocol="1+2"', shown.text)
    code = compile("\n" * shown.line + text, name_of(shown.page), "exec")
    if not is_run_here(shown):
        return
    if not shown.file:
        exec(code, namespace)
        return
    file = Path(shown.file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    importlib.invalidate_caches()
    importlib.import_module(".".join(file.with_suffix("").parts))


def install(entry_points: dict[str, dict[str, str]]) -> None:
    """Leave in the working folder what an installer of a package with these entry points would."""
    info = Path("my_napping-0.1.dist-info")
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-napping\nVersion: 0.1\n", "utf-8")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in points.items())
        for group, points in entry_points.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups), "utf-8")
    forget_entry_points()


def forget_entry_points() -> None:
    importlib.invalidate_caches()
    for registry in REGISTRIES.values():
        registry.__dict__.pop("_installed", None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    dict.fromkeys(
        shown.text
        for page in PAGES
        for shown in read_page(page)
        if shown.text.startswith("python benchmarks/") and not reason_not_to_run(shown)
    ),
)
def test_script_runs(text: str, tmp_path: Path) -> None:
    _, script, *words = shlex.split(text)
    for flag, value in SMALL_SCRIPT.items():
        if flag in words:
            words[words.index(flag) + 1] = value
    subprocess.run([sys.executable, ROOT / script, *words], cwd=tmp_path, check=True)


def test_every_exception_is_needed() -> None:
    everything = [shown for page in PAGES for shown in read_page(page)]
    for pattern in NOT_RUN:
        assert any(re.fullmatch(pattern, " ".join(shown.words)) for shown in everything if shown.is_command), pattern
    for start in NOT_EXECUTED:
        assert any(shown.text.startswith(start) for shown in everything if shown.is_python), start
    assert {name_of(page) for page in PAGES} >= SETUP.keys()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    children = [child for token in parse_page(page) for child in token.children or []]
    targets = [
        child.attrGet("href") or child.attrGet("src") for child in children if child.type in ("link_open", "image")
    ]
    for target in map(str, targets):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        if re.fullmatch(GENERATED, path):
            continue
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), target
        assert not is_in_docs(page) or is_in_docs(linked), f"{target} is outside of the site"
        assert not anchor or anchor in anchors(linked), target


def is_in_docs(path: Path) -> bool:
    return path.is_relative_to(ROOT / "docs")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    tokens = parse_page(page)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def _any_environment() -> dict[str, Any]:
    write_zip(Path("my_agent.zip"), line_layers((0.0, 0.0, 0.0, 0.0, 1.0, 0.0), 3))
    return {}


def _own_agent() -> dict[str, Any]:
    write_zip(Path("my_agent.zip"), line_layers(BALANCE, 2))
    gymnasium.register("MyEnv-v0", entry_point=gymnasium.spec("CartPole-v1").entry_point, max_episode_steps=200)
    return {}


def _detectors() -> dict[str, Any]:
    return {"model": make_agent("cartpole"), "n_envs": 1}


def _metrics() -> dict[str, Any]:
    for name, method in (("a", "napping"), ("b", "frozen")):
        main(make_small(["run", "cartpole", "--method", method, "--out", f"runs/{name}"]))
    return {}


SETUP: dict[str, Callable[[], dict[str, Any]]] = {
    "docs/any-environment.md": _any_environment,
    "docs/own-agent.md": _own_agent,
    "docs/detectors.md": _detectors,
    "docs/metrics.md": _metrics,
}
"""Files and names that a page takes for granted."""
WARNED = {"docs/own-agent.md"}
"""Pages that show agents without a reference; they say that those warn."""


@pytest.fixture(autouse=True)
def _forget_environments_and_packages() -> Iterator[None]:
    known, modules = dict(gymnasium.registry), set(sys.modules)
    yield
    gymnasium.registry.clear()
    gymnasium.registry.update(known)
    for entry in added_entries():
        unregister(entry.kind, entry.name)
    forget_entry_points()
    for name in set(sys.modules) - modules:
        if name.split(".")[0] == "my_napping":
            del sys.modules[name]
