"""Tensors of a file that torch.save wrote, read as arrays without torch.

torch.load, in its weights-only mode too, builds sparse, quantised and meta tensors, calls bytearray(n) for any n, and
enlarges a storage to fit whatever size a tensor declares. Here a tensor is dense, lies within its storage, and all
tensors together are within a limit.
"""

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.sb3.inert import Inert, Stored, load_inert
from nappingrl.errors import BadAgentError
from nappingrl.files import read_zip

MAX_OPCODES = 1_000_000
MAX_DIMENSIONS = 8
MAX_DEPTH = 8
"""Of dictionaries in each other; an optimiser's state has three."""
DTYPES = {
    "FloatStorage": "f4", "DoubleStorage": "f8", "HalfStorage": "f2", "BFloat16Storage": "u2", "LongStorage": "i8",
    "IntStorage": "i4",
}  # fmt: skip
OTHER_KINDS = {"sparse": "sparse", "qtensor": "quantised", "meta": "meta", "nested": "nested", "njt": "nested"}
"""Words in the names of torch's functions, and the tensors that they rebuild."""
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_ALLOWED = "only dense tensors of numbers are read"


def read_tensors(content: bytes, max_bytes: int) -> dict[Any, Any]:
    """A saved dictionary with arrays in the place of tensors; those in dictionaries within it too."""
    return _TensorReader(max_bytes).read(content)


class _TensorReader:
    """The storages of a file, and the memory that its tensors may still take."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = self._bytes_left = max_bytes
        self._items_left = MAX_OPCODES
        self._storages: dict[str, bytes] = {}
        self._order = "<"

    def read(self, content: bytes) -> dict[Any, Any]:
        """The dictionary in a file."""
        saved = self._read_zip(content) if content[:2] == b"PK" else self._read_legacy(content)
        if not isinstance(saved, dict):
            raise BadAgentError("it is no dictionary of tensors")
        return {key: self._arrays_of(item, MAX_DEPTH) for key, item in saved.items()}

    def _read_zip(self, content: bytes) -> Any:
        members = read_zip(content, self._max_bytes)
        prefix = next((name.removesuffix("data.pkl") for name in members if name.endswith("/data.pkl")), None)
        if prefix is None:
            raise BadAgentError("it has no data.pkl")
        self._order = ">" if members.get(f"{prefix}byteorder") == b"big" else "<"
        self._storages = {name.removeprefix(f"{prefix}data/"): data for name, data in members.items()}
        return load_inert(io.BytesIO(members[f"{prefix}data.pkl"]), MAX_OPCODES)[0]

    def _read_legacy(self, content: bytes) -> Any:
        """The format of torch before 1.6: five pickles, then each storage after its number of elements."""
        stream = io.BytesIO(content)
        (magic, _), _, _, (saved, stored), (keys, _) = (load_inert(stream, MAX_OPCODES) for _ in range(5))
        if magic != _LEGACY_MAGIC or not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise BadAgentError("it was not written by torch.save")
        item_sizes = {key: np.dtype(code).itemsize for code, key in map(_type_and_key, stored)}
        for key in keys:
            n = int.from_bytes(stream.read(8), "little")
            self._storages[key] = stream.read(min(n * item_sizes.get(key, 0), len(content)))
        return saved

    def _arrays_of(self, value: Any, depth: int) -> Any:
        self._items_left -= 1
        if self._items_left < 0 or depth < 0:  # dictionaries that hold one another make a small file endless
            raise BadAgentError(f"it holds more than {MAX_OPCODES:,} entries, or more than {MAX_DEPTH} levels of them")
        if isinstance(value, dict):
            return {key: self._arrays_of(item, depth - 1) for key, item in value.items()}
        return self._array(value) if isinstance(value, Inert) else value

    def _array(self, tensor: Inert) -> NDArray[Any]:
        """The array of a tensor's record."""
        if tensor.origin == "torch._utils._rebuild_parameter" and tensor.args and isinstance(tensor.args[0], Inert):
            tensor = tensor.args[0]
        if tensor.origin != "torch._utils._rebuild_tensor_v2" or len(tensor.args) < 4:
            kind = next((kind for word, kind in OTHER_KINDS.items() if word in tensor.origin), "")
            what = f"a {kind} tensor" if kind else f"'{tensor.origin[:60]}'"
            raise BadAgentError(f"it holds {what}; {_ALLOWED}")
        stored, offset, shape, stride = tensor.args[:4]
        code, key = _type_and_key(stored)
        if not (_are_sizes((offset,)) and _are_sizes(shape) and _are_sizes(stride) and len(shape) == len(stride)):
            raise BadAgentError("it holds a tensor without a valid shape")
        flat = self._storage(code, key)
        last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
        n_items = math.prod(shape)
        self._bytes_left -= 4 * n_items
        if self._bytes_left < 0:
            raise BadAgentError(f"it holds tensors that are larger than {self._max_bytes:,} bytes together")
        if not n_items:
            return np.zeros((0,) * max(len(shape), 1), np.float32)
        if last >= len(flat):
            raise BadAgentError(f"it holds a tensor of shape {shape} that is larger than its storage of {len(flat)}")
        view = np.lib.stride_tricks.as_strided(flat[offset:], shape, [step * flat.itemsize for step in stride])
        if code == "u2":  # the upper halves of float32
            return (view.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(over="ignore"):
            return view.astype(np.float32 if view.dtype.kind == "f" else np.int64)

    def _storage(self, code: str, key: str) -> NDArray[Any]:
        data = self._storages.get(key)
        dtype = np.dtype(self._order + code)
        if data is None or len(data) % dtype.itemsize:
            raise BadAgentError(f"it lacks the storage '{key[:20]}' of a tensor, or has only a part of it")
        return np.frombuffer(data, dtype)


def _type_and_key(stored: Any) -> tuple[str, str]:
    """The type code and the key of a storage's record: ("storage", type, key, device, number of elements)."""
    if not isinstance(stored, Stored) or len(stored.args) < 5 or not isinstance(stored.args[2], str):
        raise BadAgentError("it holds a tensor without a storage")
    name = str(getattr(stored.args[1], "origin", ""))
    code = DTYPES.get(name.removeprefix("torch."))
    if code is None:
        raise BadAgentError(f"it holds a tensor of type '{name[:40]}'; allowed: {', '.join(DTYPES)}")
    return code, stored.args[2]


def _are_sizes(values: Any) -> bool:
    """Whether these are sizes that fit any file."""
    is_tuple = isinstance(values, tuple) and len(values) <= MAX_DIMENSIONS
    return is_tuple and all(isinstance(n, int) and 0 <= n < 1 << 40 for n in values)
