"""The package's source: its hash, and compiled kernels cached per hash."""

import hashlib
import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).parent
ROOT = HERE.parent
HAS_KERNEL = re.compile(rb"\n *@kernel\(")
Function = TypeVar("Function", bound=Callable[..., Any])


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
    """Where compiled kernels are cached: a folder per hash of the modules that hold kernels; None: nowhere.

    numba notices a change in a kernel's own file, but not in the kernels and constants of other files that it uses;
    with one folder for all versions it would run old code.
    """
    kernels = (file for file in ROOT.rglob("*.py") if HAS_KERNEL.search(file.read_bytes()) or file.parent == HERE)
    try:
        base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base, "nappingrl", f"kernels-{_sha256(kernels)[:16]}")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        warn_once(f"kernels are compiled anew in every process: {error}; set NUMBA_CACHE_DIR to a writable folder")
        return None
    if not os.access(folder, os.W_OK):
        warn_once(f"kernels are compiled anew in every process: {folder} is read-only; set NUMBA_CACHE_DIR")
        return None
    return folder


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

    A kernel may use kernels and constants of modules that hold kernels themselves: only those are in the hash. It may
    be a closure over such kernels and constants; then its name tells which, so that the cache keeps them apart.
    """
    import numba

    from nappingrl._build.kernel_cache import closure_name, make_cache

    complete: dict[str, Any] = {"fastmath": False, "error_model": "python", "_nrt": allocates} | options

    def compile_cached(function: Function) -> Function:
        function.__qualname__ += closure_name(function)
        compiled: Any = numba.njit(**complete)(function)
        if (folder := kernel_folder()) is not None:
            compiled._cache = make_cache(function, folder)
        result: Function = compiled
        return result

    return compile_cached
