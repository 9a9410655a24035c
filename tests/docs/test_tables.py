"""What the pages list is what exists: the registry's tables, the navigation, the reference, the glossary, the paths."""

import importlib.util
import re
from importlib import import_module
from pathlib import Path

import pytest

import nappingrl
from docs.pages import PAGES, ROOT, name_of
from docs.tables import PAGE, write_tables
from nappingrl.registry import detectors, methods

DOCS = [page for page in PAGES if page.is_relative_to(ROOT / "docs")]
SOURCES = [*(ROOT / "src").rglob("*.py"), *(page for page in PAGES if page.name != "glossary.md")]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def first_cells(page: str) -> list[str]:
    """The names in the first column of a page's tables."""
    return [cell for row in re.findall(r"^\| ((?:`[\w-]+`(?:, )?)+) \|", page, re.MULTILINE) for cell in _names(row)]


def _names(text: str) -> list[str]:
    return re.findall(r"`([\w-]+)`", text)


def exists(name: str) -> bool:
    """Whether a dotted name is a module or an attribute of one."""
    module, _, attribute = name.rpartition(".")
    try:
        if importlib.util.find_spec(name) is not None:
            return True
    except ModuleNotFoundError:  # its parent is no package
        if not exists(module):
            return False
    return hasattr(import_module(module), attribute)


def test_tables_are_those_of_the_registry() -> None:
    assert read(PAGE) == write_tables(), "run: python tests/docs/tables.py"


def test_pages_name_every_detector_baseline_and_control() -> None:
    listed = first_cells(read("docs/detectors.md"))[: len(detectors.names())]
    assert sorted(listed) == sorted(detectors.names())
    roles = {entry.name: entry.role for entry in methods.entries() if entry.origin == "nappingrl"}
    others = [name for name, role in roles.items() if role in ("baseline", "control") and name != "frozen"]
    assert set(others) <= set(first_cells(read("docs/baselines.md")))


def test_every_page_is_in_the_navigation() -> None:
    linked = re.findall(r"[\w/-]+\.md", read("mkdocs.yml"))
    assert sorted(linked) == sorted(page.relative_to(ROOT / "docs").as_posix() for page in DOCS)


def test_every_benchmark_is_listed() -> None:
    listed = re.findall(r"python (benchmarks/\w+\.py)", read("benchmarks/README.md"))
    scripts = [path for path in (ROOT / "benchmarks").glob("*.py") if "__main__" in path.read_text(encoding="utf-8")]
    assert set(listed) == {path.relative_to(ROOT).as_posix() for path in scripts}


def test_reference_names_exist() -> None:
    paths = re.findall(r"^::: ([\w.]+)$", read("docs/reference.md"), re.MULTILINE)
    for path in paths:
        assert exists(path), path
    for name in set(nappingrl.__all__) - {"__version__"}:
        thing = getattr(nappingrl, name)
        assert {f"{thing.__module__}.{thing.__name__}", thing.__module__} & set(paths), name


@pytest.mark.parametrize("term", re.findall(r"^\| \*\*(.+)\*\* \|", read("docs/glossary.md"), re.MULTILINE))
def test_terms_of_the_glossary_are_used(term: str) -> None:
    used = re.compile(rf"\b{term.replace(' ', '[ _-]')}s?\b", re.IGNORECASE)
    assert any(used.search(path.read_text(encoding="utf-8")) for path in SOURCES)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_on_a_page_exist(page: Path) -> None:
    text = read(name_of(page))
    for path in re.findall(r"`((?:src|tests|docs|examples|benchmarks)/[\w./-]+)`", text):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"`(nappingrl(?:\.[a-z_0-9]+)+)\b", text):
        assert exists(name), name


def test_the_changelog_names_old_and_new() -> None:
    rows = re.findall(r"^\| (`.+) \| (`.+|not public) \|$", read("CHANGELOG.md"), re.MULTILINE)
    assert len(rows) > 40
    for old, new in rows:
        for name in re.findall(r"`NappingAgent\.(\w+)", new):
            assert hasattr(nappingrl.NappingAgent, name), name
        for name in re.findall(r"`NappingAgent\.(\w+)", old):
            assert not hasattr(nappingrl.NappingAgent, name), name
        for name in re.findall(r"`(nappingrl(?:\.\w+)+)", new):
            assert exists(name), name
        for name in re.findall(r"`(nappingrl(?:\.\w+)+)`", old):
            assert not exists(name), name
