"""The hash of the source, and the cache of compiled kernels."""

import ast
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

import nappingrl
from nappingrl import _build
from nappingrl._build import kernel, kernel_folder, kernel_sources, source_sha256

ROOT = Path(nappingrl.__file__).parent
MODULES = {f"nappingrl.{'.'.join(file.relative_to(ROOT).with_suffix('').parts)}": file for file in ROOT.rglob("*.py")}
KERNEL_MODULES = {name for name, file in MODULES.items() if _build.HAS_KERNEL.search(file.read_bytes())}


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
    assert folder.name == "kernels"


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
    (code,) = compiled.inner().inspect_llvm().values()  # the copy that `caller` calls
    assert "fmul" in code
    assert "fmul contract" not in code
    compiled = caller
    assert "fmul contract" in "".join(compiled.inspect_llvm().values())


def test_importing_the_package_touches_no_file(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", "import nappingrl"], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


def triple(x: float) -> float:
    """A function to compile."""
    return 3 * x


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, before any warning."""
    monkeypatch.setattr(_build, "kernel_folder", lambda: tmp_path)
    _build.warn_once.cache_clear()
    return tmp_path


def compiled_and_hits() -> tuple[float, int]:
    """What a fresh kernel gives, and how often its code came from the cache."""
    fresh: Any = kernel()(triple)
    return fresh(2.0), sum(fresh.stats.cache_hits.values())


def multiplier(factor: float) -> Any:
    """A kernel that is a closure over a kernel, which is one over a number."""

    @kernel()
    def multiply(x: float) -> float:
        return factor * x

    @kernel()
    def add_one(x: float) -> float:
        return multiply(x) + 1

    return multiply, add_one


@pytest.mark.usefixtures("cache_folder")
def test_closures_are_cached_by_what_they_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closures of one name are kept apart, and found again; those over kernels of other packages are not kept."""
    for factor in (2.0, 3.0, 2.0):
        for compiled in multiplier(factor):
            compiled(1.0)
    kernels = [multiplier(factor) for factor in (2.0, 3.0)]
    assert [(multiply(5.0), add_one(5.0)) for multiply, add_one in kernels] == [(10.0, 11.0), (15.0, 16.0)]
    hits = [[sum(compiled.stats.cache_hits.values()) for compiled in pair] for pair in kernels]
    assert hits == [[1, 0], [1, 0]]
    monkeypatch.setitem(sys.modules, "nappingrl.example", sys.modules[__name__])  # numba imports it with a kernel
    monkeypatch.setitem(multiplier.__globals__, "__name__", "nappingrl.example")
    for _ in range(2):
        ours = multiplier(4.0)[1]
        assert ours(5.0) == 21.0
    assert sum(ours.stats.cache_hits.values()) == 1


@pytest.mark.usefixtures("cache_folder")
@pytest.mark.parametrize("is_cold", [True, False])
def test_a_long_compilation_is_announced_once(
    is_cold: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_build, "is_cold", lambda: is_cold)
    _build.announce_compilation.cache_clear()
    for hits in (0, 1):
        assert compiled_and_hits() == (6.0, hits)
    said = [record.getMessage() for record in caplog.records]
    assert said == ["nappingrl: compiling kernels, once per version (about 15 s)"] * is_cold


DAMAGE = {
    "empty": lambda content: b"",
    "short": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:-9] + bytes([content[-9] ^ 4]) + content[-8:],
    "garbage": lambda content: b"\x80\x02Nr\xff\xff\xff\x1f." * 100,
}


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_kernels_are_compiled_anew(
    how: str, suffix: str, cache_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither unpickled nor run: one line, and the next process finds them whole."""
    assert [compiled_and_hits(), compiled_and_hits()] == [(6.0, 0), (6.0, 1)]
    (file,) = cache_folder.rglob(f"*.{suffix}")
    file.write_bytes(DAMAGE[how](file.read_bytes()))
    assert compiled_and_hits() == (6.0, 0)
    said = capsys.readouterr().err
    assert said == f"napping: damaged kernels in {file.parent} are compiled anew\n"
    assert compiled_and_hits() == (6.0, 1)


def test_a_full_disk_costs_a_compilation(cache_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels run, and one line says why they are not kept; the same where a file is a folder."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        assert [compiled_and_hits(), compiled_and_hits()] == [(6.0, 0), (6.0, 0)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "cannot be kept" in said
    assert "File too large" in said
    assert [compiled_and_hits(), compiled_and_hits()] == [(6.0, 0), (6.0, 1)]
    (index,) = cache_folder.rglob("*.nbi")
    index.unlink()
    index.mkdir()
    assert compiled_and_hits() == (6.0, 0)


@pytest.mark.parametrize("name", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME"])
def test_without_a_place_for_kernels_one_line_says_so(name: str, tmp_path: Path) -> None:
    """A home that cannot be written, below a file, here: kernels still run."""
    (tmp_path / "file").touch()
    program = tmp_path / "program.py"
    program.write_text(
        "from nappingrl._build import kernel\n@kernel()\ndef f(x):\n    return 3 * x\nprint(f(2.0), f(2))\n"
    )
    environment = {key: value for key, value in os.environ.items() if key not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    environment[name] = str(tmp_path / "file" / "folder")
    done = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "6.0 6\n"
    assert done.stderr.count("\n") == 1
    assert "compiled anew in every process" in done.stderr
    assert "NUMBA_CACHE_DIR" in done.stderr


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
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any("kernel" in ast.unparse(by) for by in node.decorator_list)
    ]
    used = _names(*(statement for function in kernels for statement in function.body))
    assert used & _from_outside(tree) <= {"kernel"}, "pass it as an argument"


def _uses(file: Path) -> set[str]:
    """The modules that a file imports, by Python's own parser."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = {node.module for node in imported} | {f"{node.module}.{a.name}" for node in imported for a in node.names}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return {name if name in MODULES else f"{name}.__init__" for name in names} & set(MODULES)


@pytest.mark.parametrize("name", sorted(KERNEL_MODULES))
def test_a_module_is_cached_by_the_kernels_that_it_uses(name: str) -> None:
    found, todo = {name}, [name]
    while todo:
        new = (_uses(MODULES[todo.pop()]) & KERNEL_MODULES) - found
        found |= new
        todo += new
    assert kernel_sources(MODULES[name]) == {MODULES[one] for one in found}


def test_a_comment_drops_the_kernels_of_those_that_use_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all kernels, and none at all where a file is only touched."""
    for one, text in {
        "leaf": "\n@kernel()\ndef f(): ...\n",
        "user": "from nappingrl.leaf import f\n@kernel()\ndef g(): ...\n",
        "other": "\n@kernel()\ndef h(): ...\n",
    }.items():
        (tmp_path / f"{one}.py").write_text(text)
    monkeypatch.setattr(_build, "ROOT", tmp_path)
    monkeypatch.setattr(_build, "HERE", tmp_path / "_build")

    def keys() -> dict[str, str]:
        for cached in (_build.cache_key, _build.kernel_sources, _build._holds_kernels):
            cached.cache_clear()
        return {one: _build.cache_key(tmp_path / f"{one}.py") for one in ("leaf", "user", "other")}

    before = keys()
    os.utime(tmp_path / "leaf.py", (0, 0))
    assert keys() == before
    with (tmp_path / "leaf.py").open("a") as file:
        file.write("# a comment\n")
    after = keys()
    assert {one for one in after if after[one] != before[one]} == {"leaf", "user"}
    for cached in (_build.cache_key, _build.kernel_sources, _build._holds_kernels):
        cached.cache_clear()
