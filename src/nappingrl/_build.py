"""The package's source: its hash, and compiled kernels cached per hash."""

import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parent
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
    base = os.environ.get("NUMBA_CACHE_DIR") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kernels = (file for file in ROOT.rglob("*.py") if b"\n@kernel(" in file.read_bytes() or file == Path(__file__))
    folder = Path(base, "nappingrl", f"kernels-{_sha256(kernels)[:16]}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a read-only home: kernels are compiled in every process
        return None
    return folder if os.access(folder, os.W_OK) else None


def kernel(**options: Any) -> Callable[[Function], Function]:
    """Compile a function with numba's `njit`, cached in `kernel_folder`; `options` are those of `njit`.

    numba lets a kernel inherit unset options from the caller that happens to be compiled first, which would change its
    bits; here they are always set.

    A kernel may use kernels and constants of modules that hold kernels themselves: only those are in the hash.
    """
    import numba

    complete: dict[str, Any] = {"fastmath": False, "error_model": "python"} | options
    settings: Any = numba.config

    def compile_cached(function: Function) -> Function:
        folder, before = kernel_folder(), settings.CACHE_DIR
        settings.CACHE_DIR = str(folder or "")  # numba reads it while it decorates
        try:
            compiled: Function = numba.njit(cache=folder is not None, **complete)(function)
        finally:
            settings.CACHE_DIR = before
        return compiled

    return compile_cached
