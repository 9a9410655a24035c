"""numba's cache of compiled kernels, with checksums: a damaged file is compiled anew instead of being run."""

import hashlib
import pickle
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from typing_extensions import override

from nappingrl._build import ROOT, announce_compilation, warn_once

_numba: Any = import_module("numba")  # it has no types
_caching: Any = import_module("numba.core.caching")
_DIGEST = hashlib.sha256().digest_size


def make_cache(function: Callable[..., Any], folder: Path) -> Any:
    """A cache for a function in this folder; one that stores nothing where the folder cannot be used."""
    if any(not kernel.__module__.startswith("nappingrl.") for kernel in _enclosed_kernels(function)):
        return _caching.NullCache()  # the folder's name says nothing of the source of others
    settings = _numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(folder)  # numba reads it while it makes a cache
    try:
        cache = CheckedCache(function)
    except (OSError, RuntimeError) as error:  # RuntimeError: numba finds no place for it
        _warn(folder, error)
        return _caching.NullCache()
    finally:
        settings.CACHE_DIR = before
    # where a folder cannot be used, numba takes another one, whose name says nothing of other modules' kernels
    return cache if Path(cache.cache_path).is_relative_to(folder) else _caching.NullCache()


def _enclosed(function: Callable[..., Any]) -> list[Any]:
    """What a closure holds, kernels as plain functions."""
    return [getattr(cell.cell_contents, "py_func", cell.cell_contents) for cell in function.__closure__ or ()]


def _enclosed_kernels(function: Callable[..., Any]) -> list[Callable[..., Any]]:
    return [value for value in _enclosed(function) if callable(value)]


def enclosed_files(function: Callable[..., Any]) -> frozenset[Path]:
    """The files of all kernels that a closure holds, directly or in closures that it holds."""
    files = set[Path]()
    for enclosed in _enclosed_kernels(function):
        files |= {Path(enclosed.__code__.co_filename), *enclosed_files(enclosed)}
    return frozenset(files)


def closure_name(function: Callable[..., Any]) -> str:
    """What distinguishes a closure from others of the same name in any process; empty: it is none."""
    if not function.__closure__:
        return ""
    held = [f"{v.__module__}.{v.__qualname__}" if callable(v) else repr(v) for v in _enclosed(function)]
    return "_" + hashlib.sha256(repr(held).encode()).hexdigest()[:16]


class CheckedCache(_caching.FunctionCache):  # type: ignore[misc]
    """The cache of one function; a file that cannot be written or read costs a compilation, no more."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        file: Any = vars(self)["_cache_file"]
        is_ours = Path(function.__code__.co_filename).is_relative_to(ROOT)
        stamp = None if is_ours else file._source_stamp  # the folder of a module of ours follows its content
        self._cache_file = _CheckedFile(self.cache_path, file._index_name.removesuffix(".nbi"), stamp)

    @override
    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Without what a closure holds, which numba would pickle differently in each process: its name says it."""
        return sig, codegen.magic_tuple(), hashlib.sha256(self._py_func.__code__.co_code).hexdigest()

    @override
    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = None
        try:
            found = super().load_overload(sig, target_context)
        except OSError as error:
            _warn(Path(self.cache_path), error)
        if found is None:
            announce_compilation()
        return found

    @override
    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:  # a full disk, a folder that has become read-only
            self.disable()
            _warn(Path(self.cache_path), error)


class _CheckedFile(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """An index and its data files, each with its checksum in front: nothing else is unpickled."""

    def _load_index(self) -> Any:
        content = self._read(Path(self._index_path))
        if content is None:
            return {}
        version, stamp, overloads = content
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(Path(self._data_path(name)))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: Path) -> Any:
        """The content of a file; None where it is missing or damaged."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            warn_once(f"damaged kernels in {path.parent} are compiled anew")
            return None
        return pickle.loads(content[_DIGEST:])

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)
        with self._open_for_write(path) as file:
            file.write(hashlib.sha256(data).digest() + data)


def _warn(folder: Path, error: Exception) -> None:
    reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:100]
    warn_once(f"compiled kernels cannot be kept in {folder} ({reason}); they are compiled anew in every process")
