"""Sizes of modules and functions: small enough to read in one go."""

import ast
from pathlib import Path
from statistics import median

import nappingrl

PACKAGE = Path(nappingrl.__file__).parent
MODULES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
MAX_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_MEDIAN_LINES = 150
MAX_ROOT_MODULES = 15


def functions() -> dict[str, int]:
    """Lines of every function, by module and name."""
    lengths = {}
    for module, text in MODULES.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{module}:{node.name}"
                lengths[name] = max(lengths.get(name, 0), (node.end_lineno or node.lineno) - node.lineno + 1)
    return lengths


def test_modules_are_short() -> None:
    assert {name for name, text in MODULES.items() if text.count("\n") > MAX_LINES} == set()


def test_functions_are_short() -> None:
    assert {name for name, length in functions().items() if length > MAX_FUNCTION_LINES} == set()


def test_most_modules_are_very_short() -> None:
    sizes = [text.count("\n") for name, text in MODULES.items() if not name.endswith("__init__.py")]
    assert median(sizes) <= MAX_MEDIAN_LINES


def test_the_root_holds_few_modules() -> None:
    root = {path.name for path in PACKAGE.glob("*.py")}
    assert len(root) <= MAX_ROOT_MODULES, sorted(root)


def test_the_public_names_are_listed() -> None:
    assert set(nappingrl.__all__) <= set(dir(nappingrl))
