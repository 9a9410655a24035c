"""The package's source: its hash, and the cache of compiled kernels, which follows the source module by module."""

import hashlib
import logging
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).parent
ROOT = HERE.parent
COMPILING = "compiling kernels, once per version (about 15 s)"
HAS_KERNEL = re.compile(rb"\n *@kernel\(")
Function = TypeVar("Function", bound=Callable[..., Any])
_IMPORTS = re.compile(r"^\s*from (nappingrl[\w.]*) import (\([^)]*\)|.*)$|^\s*import (nappingrl[\w.]*)", re.MULTILINE)


def _sha256(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def source_sha256() -> str:
    """Hash of all modules of the package."""
    return _sha256(ROOT.rglob("*.py"))


@cache
def kernel_folder() -> Path | None:
    """The cache of compiled kernels: a folder per module inside it; None: there is no place for one."""
    try:
        base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base, "nappingrl", "kernels")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        warn_once(f"kernels are compiled anew in every process: {error}; set NUMBA_CACHE_DIR to a writable folder")
        return None
    if not os.access(folder, os.W_OK):
        warn_once(f"kernels are compiled anew in every process: {folder} is read-only; set NUMBA_CACHE_DIR")
        return None
    return folder


@cache
def cache_key(file: Path, others: frozenset[Path] = frozenset()) -> str:
    """The name of the folder for kernels of a file: the module, and a hash of what its kernels are made of.

    numba notices a change in a kernel's own file, but not in the kernels and constants of other files that it uses;
    with one folder for all versions it would run old code. `others` are the files of kernels that a closure holds. A
    file outside of the package may use any kernel of it.
    """
    is_ours = file.is_relative_to(ROOT)
    if is_ours:
        files = frozenset().union(*(kernel_sources(one) for one in (file, *others) if one.is_relative_to(ROOT)))
    else:
        files = frozenset(one for one in ROOT.rglob("*.py") if _holds_kernels(one))
    name = ".".join(file.relative_to(ROOT).with_suffix("").parts) if is_ours else "other"
    return f"{name}-{_sha256([*files, *HERE.glob('*.py')])[:16]}"


@cache
def kernel_sources(file: Path) -> frozenset[Path]:
    """A module of the package and the modules with kernels that it imports, directly or through such modules."""
    found, todo = {file}, [file]
    while todo:
        new = {one for one in _imported(todo.pop()) if one not in found and _holds_kernels(one)}
        found |= new
        todo += new
    return frozenset(found)


def _imported(file: Path) -> Iterator[Path]:
    """The modules of the package that a file imports."""
    for package, names, module in _IMPORTS.findall(file.read_text(encoding="utf-8")):
        folder = ROOT.joinpath(*(package or module).split(".")[1:])
        named = [folder / name for name in re.findall(r"\w+", names)]
        yield from (one for path in (folder, *named) for one in (path.with_suffix(".py"), path / "__init__.py")
                    if one.is_file())  # fmt: skip


@cache
def _holds_kernels(file: Path) -> bool:
    return HAS_KERNEL.search(file.read_bytes()) is not None


def is_cold() -> bool:
    """Whether most of the modules with kernels that this process has imported still have to be compiled."""
    folder = kernel_folder()
    files = [Path(module.__file__) for name, module in list(sys.modules.items())
             if name.startswith("nappingrl.") and module.__file__]  # fmt: skip
    keys = [cache_key(file) for file in files if file.parent != HERE and _holds_kernels(file)]
    compiled = [key for key in keys if folder and any((folder / key).rglob("*.nbi"))]
    return 2 * len(compiled) < len(keys)


log = logging.getLogger("nappingrl.kernels")


@cache
def announce_compilation() -> None:
    """Log once that kernels are compiled, if it takes a while; workers leave it to the process that started them."""
    if multiprocessing.parent_process() is None and is_cold():
        log.warning("nappingrl: %s", COMPILING)


@cache
def warn_once(text: str) -> None:
    """Print a line on stderr, once; workers leave it to the process that started them."""
    if multiprocessing.parent_process() is None:
        print(f"napping: {text}", file=sys.stderr)


def kernel(allocates: bool = True, **options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba's `njit`, cached in `kernel_folder`; `options` are those of `njit`.

    Without `allocates`, references to arrays are not counted, which takes longer than a short kernel's own work. Such a
    kernel may neither create an array nor return one.

    numba lets a kernel inherit unset options from the caller that happens to be compiled first, which would change its
    bits; here they are always set.

    Kernels call an *inner* copy of a kernel, which Python cannot call: numba compiles what converts Python objects only
    for a kernel that is called from Python. A kernel cannot call itself.

    A kernel may use kernels and constants of modules that hold kernels themselves: only those are in the hash. It may
    be a closure over such kernels and constants; then its name tells which, so that the cache keeps them apart.
    """
    import numba

    from nappingrl._build.kernel_cache import closure_name, enclosed_files, make_cache

    complete: dict[str, Any] = {"fastmath": False, "error_model": "python", "_nrt": allocates} | options

    def make(function: Function, is_inner: bool) -> Any:
        wrappers = {"no_cpython_wrapper": is_inner, "no_cfunc_wrapper": True}
        compiled: Any = numba.njit(**complete | wrappers)(function)
        if (folder := kernel_folder()) is not None:
            key = cache_key(Path(function.__code__.co_filename), enclosed_files(function))
            compiled._cache = make_cache(function, folder / key / ("inner" if is_inner else "outer"))
        return compiled

    def compile_cached(function: Function) -> Function:
        function.__qualname__ += closure_name(function)
        outer = make(function, is_inner=False)
        inner = outer.inner = cache(lambda: make(function, is_inner=True))
        outer.get_call_template = lambda args, kws: inner().get_call_template(args, kws)
        outer.get_overload = lambda signature: inner().get_overload(signature)
        result: Function = outer
        return result

    return compile_cached
