"""Saved agents: a zip of JSON and npz, no pickle; written under another name first, so that it is whole or absent.

`flatten` and `unflatten` turn a record into named arrays and back.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError

FORMAT = 3
Record = TypeVar("Record")


def write_saved(path: str | Path, settings: dict[str, Any], tables: dict[str, NDArray[Any]]) -> Path:
    """Write the settings and the arrays; returns the path with its suffix."""
    path = Path(path)
    path = path if path.suffix == ".zip" else path.with_name(path.name + ".zip")
    arrays = io.BytesIO()
    np.savez_compressed(arrays, allow_pickle=False, **tables)
    temporary = path.with_name(path.name + ".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("adapter.json", json.dumps({"format": FORMAT} | settings, indent=2))
        archive.writestr("principles.npz", arrays.getvalue())
    temporary.replace(path)
    return path


def read_saved(path: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `write_saved` wrote; raises in one line where the file is anything else."""
    try:
        with zipfile.ZipFile(path) as archive:
            settings = json.loads(archive.read("adapter.json"))
            tables = dict(np.load(io.BytesIO(archive.read("principles.npz")), allow_pickle=False))
        format_ = settings["format"]
        assert {"config", "agent"} <= set(settings)
    except (OSError, KeyError, ValueError, AssertionError, TypeError, zipfile.BadZipFile) as error:
        raise BadAgentError(f"{path} is not a saved NappingAgent ({error}); give a file that save() wrote") from error
    if format_ != FORMAT:
        raise BadAgentError(f"{path} has format {format_}, this version reads {FORMAT}: save it again")
    return settings, tables


def flatten(value: Any, name: str) -> dict[str, NDArray[Any]]:
    """A value as arrays whose names begin with `name`.

    Takes arrays, numbers, Philox generators and None, and records (dataclasses, named tuples), lists and dictionaries
    of them.
    """
    if value is None:
        return {}
    if isinstance(value, Generator):
        return {name: _pack_generator(value)}
    if is_dataclass(value) or hasattr(value, "_fields"):
        parts = {field: getattr(value, field) for field in get_type_hints(type(value))}
    elif isinstance(value, dict):
        parts = {"keys": np.array(list(value))} | {str(key): item for key, item in value.items()}
    elif isinstance(value, list) and not all(isinstance(item, int | float) for item in value):
        parts = {"length": len(value)} | {str(i): item for i, item in enumerate(value)}
    else:
        return {name: np.asarray(value)}
    return {key: array for part, item in parts.items() for key, array in flatten(item, f"{name}.{part}").items()}


def unflatten(record: type[Record], arrays: Mapping[str, NDArray[Any]], name: str) -> Record:
    """The record that `flatten` turned into these arrays."""
    value: Record = _unflatten(record, arrays, name)
    return value


def _unflatten(hint: Any, arrays: Mapping[str, NDArray[Any]], name: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is UnionType:  # X | None
        is_there = name in arrays or any(key.startswith(f"{name}.") for key in arrays)
        return _unflatten(inner[0], arrays, name) if is_there else None
    if origin is np.ndarray:
        return np.array(arrays[name])
    if hint is Generator:
        return _unpack_generator(arrays[name])
    if origin is dict:
        keys = arrays[f"{name}.keys"].tolist()
        return {inner[0](key): _unflatten(inner[1], arrays, f"{name}.{inner[0](key)}") for key in keys}
    if origin is list:
        if name in arrays:
            return [inner[0](item) for item in arrays[name].tolist()]
        return [_unflatten(inner[0], arrays, f"{name}.{i}") for i in range(int(arrays[f"{name}.length"]))]
    if is_dataclass(hint) or hasattr(hint, "_fields"):
        hints = get_type_hints(hint)
        return hint(**{field: _unflatten(hints[field], arrays, f"{name}.{field}") for field in hints})
    return hint(arrays[name].item())


def _pack_generator(generator: Generator) -> NDArray[np.uint64]:
    state: Any = generator.bit_generator.state
    flags = np.array([state["buffer_pos"], state["has_uint32"], state["uinteger"]], np.uint64)
    return np.concatenate([state["state"]["counter"], state["state"]["key"], state["buffer"], flags])


def _unpack_generator(words: NDArray[np.uint64]) -> Generator:
    counter, key, buffer, (position, has_uint32, uinteger) = np.split(words, [4, 6, 10])
    bits = Philox(0)
    bits.state = {
        "bit_generator": "Philox", "state": {"counter": counter, "key": key}, "buffer": buffer,
        "buffer_pos": int(position), "has_uint32": int(has_uint32), "uinteger": int(uinteger),
    }  # fmt: skip
    return Generator(bits)


def restore_arrays(thing: object, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Set the attributes with these names; the counterpart of `arrays_of`."""
    for name, array in arrays.items():
        setattr(thing, name, np.array(array))
