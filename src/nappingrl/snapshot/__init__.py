"""State as named arrays, and back: `flatten` and `unflatten` for records, `restore_arrays` for an object's arrays.

Saved arrays are untrusted. What a field may hold is stated beside it, as `Annotated[type, Expected(...)]` or, for the
arrays of an object, in its class's `saved`; reading checks it. A rule over several fields is the record's `check`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from nappingrl.errors import BadAgentError
from nappingrl.types import arrays_of

MAX_COUNT = 10**15
"""The largest saved integer."""
MAX_NUMBER = 1e30
"""The largest saved magnitude, unless a field states another; its square and that one's square do not overflow."""
MAX_FLOAT32 = 1e18
"""The same for 32-bit numbers; sums of their squares do not overflow."""
MAX_EPISODE = 2**31 - 2**20
"""The largest saved number of an episode; buffers keep 32 bits."""
MAX_ITEMS = 100_000
"""The most items of a saved list or dictionary."""

Sizes = Mapping[str, int]
_KINDS = {bool: "b", int: "iu", float: "fiu"}
_N_GENERATOR_WORDS = 13


@dataclass(frozen=True, slots=True)
class Expected:
    """What a saved number, or an array of them, may be; what is not stated follows from its type."""

    shape: tuple[str | int, ...] = ()
    """Of an array, or (length,) of a list. A word is a size that the reader gives, or one that is the same throughout
    the record; for an object's arrays, empty: as it is before."""
    low: float | None = None
    high: float | None = None
    below: str = ""
    """The size that integers are below, such as a number of actions."""
    with_nan: bool = False
    with_inf: bool = False

    def limits(self, dtype: np.dtype[Any], sizes: Sizes) -> tuple[float, float]:
        """The least and the largest number."""
        if dtype.kind == "f":
            most: float = MAX_FLOAT32 if dtype.itemsize < 8 else MAX_NUMBER
        else:
            most = 2**64 - 1 if dtype.kind == "u" else MAX_COUNT
        high = sizes[self.below] - 1 if self.below else self.high
        return (-most if self.low is None else self.low), (most if high is None else high)


_ANYTHING = Expected()


def flatten(value: Any, name: str) -> dict[str, NDArray[Any]]:
    """A value as arrays whose names begin with `name`.

    Takes arrays, numbers, Philox generators and None, and records (dataclasses, named tuples), lists and dictionaries
    of them.
    """
    if value is None:
        return {}
    if isinstance(value, Generator):
        return {name: _pack_generator(value)}
    if _is_record(value):
        parts = {field: getattr(value, field) for field in _hints(value.__class__)}
    elif isinstance(value, dict):
        parts = {"keys": np.array(list(value), np.int64)} | {str(key): item for key, item in value.items()}
    elif isinstance(value, list) and not all(isinstance(item, int | float) for item in value):
        parts = {"length": len(value)} | {str(i): item for i, item in enumerate(value)}
    else:
        return {name: np.asarray(value)}
    return {key: array for part, item in parts.items() for key, array in flatten(item, f"{name}.{part}").items()}


def unflatten(hint: Any, arrays: Mapping[str, NDArray[Any]], name: str, sizes: Sizes | None = None) -> Any:
    """The value of this type that `flatten` turned into these arrays, checked."""
    return _Reader(arrays).read(hint, name, dict(sizes or {}))


def restore_arrays(
    thing: Any, arrays: Mapping[str, NDArray[Any]], prefix: str = "", sizes: Sizes | None = None
) -> None:
    """Replace the arrays of an object by saved ones of the same types and shapes.

    Its class may state more in `saved`, a dictionary of `Expected` by attribute.
    """
    reader, saved = _Reader(arrays), getattr(type(thing), "saved", {})
    sizes = dict(sizes or {})
    for name, array in arrays_of(thing).items():
        expected = saved.get(name, _ANYTHING)
        shape = expected.shape or array.shape
        setattr(thing, name, reader.take(prefix + name, array.dtype, shape, expected, sizes))


class _Reader:
    """Reads checked values out of saved arrays."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._groups = {name[:at] for name in arrays for at in range(len(name)) if name[at] == "."}

    def read(self, hint: Any, name: str, sizes: dict[str, int], expected: Expected = _ANYTHING) -> Any:
        """The value of this type."""
        origin, inner = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.read(inner[0], name, sizes, next(item for item in inner[1:] if isinstance(item, Expected)))
        if origin is UnionType:  # X | None
            return self.read(inner[0], name, sizes) if name in self._arrays or name in self._groups else None
        if origin is np.ndarray:
            return self.take(name, np.dtype(get_args(inner[1])[0]), expected.shape, expected, sizes)
        if hint is Generator:
            return _unpack_generator(name, self.take(name, np.dtype(np.uint64), (_N_GENERATOR_WORDS,)))
        if origin is dict:
            return self._read_dict(inner, name, sizes)
        if origin is list:
            return self._read_list(inner[0], name, sizes, expected)
        if _is_record(hint):
            return self._read_record(hint, name, sizes)
        return hint(self._numbers(name, hint, (), expected, sizes).item())

    def take(
        self, name: str, dtype: np.dtype[Any], shape: tuple[str | int, ...], expected: Expected = _ANYTHING,
        sizes: dict[str, int] | None = None,
    ) -> NDArray[Any]:  # fmt: skip
        """A copy of an array of this type and shape; words of the shape that `sizes` lacks are added to it."""
        array, sizes = self._get(name), {} if sizes is None else sizes
        if array.dtype != dtype:
            _refuse(name, f"has type {array.dtype}", str(dtype))
        if array.ndim == len(shape):
            for axis, length in zip(shape, array.shape, strict=True):
                if isinstance(axis, str):
                    sizes.setdefault(axis, length)
        wanted = tuple(sizes.get(axis, -1) if isinstance(axis, str) else axis for axis in shape)
        if array.shape != wanted:
            _refuse(name, f"has shape {array.shape}", str(wanted) if -1 not in wanted else f"{len(wanted)} axes")
        _check_numbers(name, array, expected, sizes)
        return np.array(array, order="C")

    def _read_record(self, hint: Any, name: str, sizes: dict[str, int]) -> Any:
        hints, own = _hints(hint), dict(sizes)
        record = hint(**{field: self.read(hints[field], f"{name}.{field}", own) for field in hints})
        if hasattr(record, "check"):
            try:
                record.check(own)
            except ValueError as error:
                raise BadAgentError(f"'{name}' is not valid: {error}") from error
        return record

    def _read_dict(self, inner: tuple[Any, ...], name: str, sizes: dict[str, int]) -> dict[Any, Any]:
        keys = self.take(f"{name}.keys", np.dtype(np.int64), ("keys",)).tolist()
        if len(set(keys)) < len(keys) or len(keys) > MAX_ITEMS:
            _refuse(f"{name}.keys", f"has {len(keys)} keys, {len(set(keys))} different ones", f"at most {MAX_ITEMS}")
        return {key: self.read(inner[1], f"{name}.{key}", sizes) for key in keys}

    def _read_list(self, item: Any, name: str, sizes: dict[str, int], expected: Expected) -> list[Any]:
        if item in _KINDS:
            return [item(number) for number in self._numbers(name, item, ("items",), expected, sizes).tolist()]
        length = 0 if name in self._arrays and not self._arrays[name].size else self.read(int, f"{name}.length", sizes)
        allowed = MAX_ITEMS if not expected.shape else sizes[str(expected.shape[0])]
        if not 0 <= length <= allowed or (expected.shape and length != allowed):
            _refuse(f"{name}.length", f"is {length}", f"{allowed if expected.shape else f'0 to {allowed}'}")
        return [self.read(item, f"{name}.{i}", sizes) for i in range(length)]

    def _numbers(self, name: str, kind: type, shape: tuple[str, ...], expected: Expected, sizes: Sizes) -> NDArray[Any]:
        """One Python number (shape ()), or a list of them; an empty list has any type."""
        array = self._get(name)
        if array.ndim != len(shape) or array.size > MAX_ITEMS:
            _refuse(name, f"has shape {array.shape}", f"at most {MAX_ITEMS} numbers" if shape else "one number")
        if array.size and array.dtype.kind not in _KINDS[kind]:
            _refuse(name, f"has type {array.dtype}", kind.__name__)
        _check_numbers(name, array, expected, sizes)
        return array

    def _get(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise BadAgentError(f"array '{name}' is missing")
        return self._arrays[name]


def _check_numbers(name: str, array: NDArray[Any], expected: Expected, sizes: Sizes) -> None:
    if array.dtype.kind not in "iuf" or not array.size:
        return
    low, high = expected.limits(array.dtype, sizes)
    is_bad = ~((array >= low) & (array <= high))  # NaN is
    if expected.with_nan:
        is_bad &= ~np.isnan(array)
    if expected.with_inf:
        is_bad &= ~np.isinf(array)
    if is_bad.any():
        _refuse(name, f"holds {array[is_bad].flat[0]}", f"{low:g} to {high:g}")


def _refuse(name: str, came: str, allowed: str) -> NoReturn:
    raise BadAgentError(f"array '{name:.80}' {came}; allowed: {allowed}")


def _is_record(value: Any) -> bool:
    return is_dataclass(value) or hasattr(value, "_fields")


@lru_cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record, include_extras=True)


def _pack_generator(generator: Generator) -> NDArray[np.uint64]:
    state: Any = generator.bit_generator.state
    flags = np.array([state["buffer_pos"], state["has_uint32"], state["uinteger"]], np.uint64)
    return np.concatenate([state["state"]["counter"], state["state"]["key"], state["buffer"], flags])


def _unpack_generator(name: str, words: NDArray[np.uint64]) -> Generator:
    counter, key, buffer, flags = np.split(words, [4, 6, 10])
    if (flags > np.array([4, 1, 2**32 - 1], np.uint64)).any():
        _refuse(name, f"ends in {flags.tolist()}", "at most 4, 1 and 2**32 - 1")
    position, has_uint32, uinteger = flags.tolist()
    bits = Philox(0)
    bits.state = {
        "bit_generator": "Philox", "state": {"counter": counter, "key": key}, "buffer": buffer,
        "buffer_pos": position, "has_uint32": has_uint32, "uinteger": uinteger,
    }  # fmt: skip
    return Generator(bits)
