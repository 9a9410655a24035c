"""The hash of the source, and the cache of compiled kernels."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

import nappingrl
from nappingrl import _build
from nappingrl._build import kernel, kernel_folder, source_sha256

ROOT = Path(nappingrl.__file__).parent
MODULES = {f"nappingrl.{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}": file for file in ROOT.rglob("*.py")}
KERNEL_MODULES = {name for name, file in MODULES.items() if "\n@kernel(" in file.read_text(encoding="utf-8")}


def test_source_hash_is_steady() -> None:
    assert source_sha256() == source_sha256()
    assert len(source_sha256()) == 64


def test_the_cache_is_a_folder_of_ours_and_numba_keeps_its_setting() -> None:
    before = numba.config.CACHE_DIR

    @kernel()
    def double(x: float) -> float:
        return 2 * x

    assert double(2.0) == 4.0
    assert before == numba.config.CACHE_DIR
    folder = kernel_folder()
    assert folder is not None
    assert folder.name.startswith("kernels-")


def test_a_kernel_does_not_inherit_the_options_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or its bits would depend on which of its callers was compiled first, and the cache would keep them."""
    monkeypatch.setattr(_build, "kernel_folder", lambda: None)  # cached code cannot be inspected

    @kernel()
    def multiply_add(x: float) -> float:
        return x * 3.0 + 1.0

    @kernel(fastmath={"contract"})
    def caller(x: float) -> float:
        return multiply_add(x) * 2.0

    assert caller(1.0) == 8.0
    compiled: Any = multiply_add
    assert "fmul contract" not in "".join(compiled.inspect_llvm().values())
    compiled = caller
    assert "fmul contract" in "".join(compiled.inspect_llvm().values())


def test_importing_the_package_touches_no_file(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", "import nappingrl"], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


def _names(*nodes: ast.AST) -> set[str]:
    return {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}


def _from_outside(tree: ast.Module) -> set[str]:
    """Names of a module that come from modules without kernels, directly or by assignment."""
    outside: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nappingrl"):
            module = node.module if node.module in MODULES else f"{node.module}.__init__"
            outside |= set() if module in KERNEL_MODULES else {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _names(node.value) & outside:
            outside |= _names(*(node.targets if isinstance(node, ast.Assign) else [node.target]))
    return outside


@pytest.mark.parametrize("name", sorted(KERNEL_MODULES))
def test_what_a_kernel_uses_is_in_the_hash(name: str) -> None:
    """A kernel keeps the constants that it was compiled with: they must come from modules whose source is hashed."""
    tree = ast.parse(MODULES[name].read_text(encoding="utf-8"))
    kernels = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and any("kernel" in ast.unparse(by) for by in node.decorator_list)
    ]
    used = _names(*(statement for function in kernels for statement in function.body))
    assert used & _from_outside(tree) <= {"kernel"}, "pass it as an argument"
