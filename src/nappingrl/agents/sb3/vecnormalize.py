"""Observation statistics from a VecNormalize pickle, read without executing it.

Unpickling calls whatever the file names. Here every name, numpy's too, becomes an inert record that only stores its
arguments: no code of the file can run, and neither gym, gymnasium nor SB3 need be installed. Arrays are then rebuilt
from the bytes in the records.
"""

import io
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.mlp import Normaliser
from nappingrl.errors import BadAgentError

MAX_BYTES = 1 << 26
"""Larger files are refused; statistics of flat observations take a few kilobytes."""


class Inert:
    """Stands for any class, function or instance in a pickle; stores its arguments and does nothing with them."""

    origin = ""
    args: tuple[Any, ...]
    state: Any

    def __new__(cls, *args: Any, **kwargs: Any) -> "Inert":
        """Record a call."""
        self = object.__new__(cls)
        self.args, self.state = args, None
        return self

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: __new__ has stored the arguments."""

    def __call__(self, *args: Any, **kwargs: Any) -> "Inert":
        """Record a call of an instance."""
        return Inert(*args)

    def __setstate__(self, state: Any) -> None:
        """Store the state."""
        self.state = state

    def ignore(self, *args: Any) -> None:
        """Drop the items of dictionaries, lists and sets of unknown classes."""

    __setitem__ = append = extend = add = ignore


class _InertUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """An inert class with the name as its origin."""
        return type("Inert", (Inert,), {"origin": f"{module}.{name}"})


def read(path: Path) -> Normaliser | None:
    """The observation normaliser of a saved VecNormalize; None if it only normalises rewards."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadAgentError(f"normaliser file '{path}' is larger than {MAX_BYTES >> 20} MiB")
        content = path.read_bytes()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise BadAgentError(f"normaliser file '{path}': {reason}; give normaliser=None to leave it out") from None
    try:
        saved = _InertUnpickler(io.BytesIO(content)).load()
    except Exception:  # a damaged pickle can raise anything
        raise BadAgentError(f"normaliser file '{path}' is not a pickle, or a damaged one") from None
    try:
        return _normaliser(saved)
    except BadAgentError as error:
        raise BadAgentError(f"normaliser file '{path}': {error}") from None


def _normaliser(saved: Any) -> Normaliser | None:
    state = saved.state if isinstance(saved, Inert) else None
    if not isinstance(state, dict) or "obs_rms" not in state:
        raise BadAgentError("it holds no VecNormalize; only the vecnormalize.pkl of SB3 is allowed")
    if state.get("norm_obs", True) is False:
        return None
    statistics = state["obs_rms"]
    if not isinstance(statistics, Inert) or not isinstance(statistics.state, dict):
        raise BadAgentError("it normalises dictionary observations; only one flat observation is supported")
    mean = _floats(statistics.state.get("mean"))
    var = _floats(statistics.state.get("var"))
    epsilon = _number(state.get("epsilon", 1e-8))
    clip = _number(state.get("clip_obs", 10.0))
    if mean.shape != var.shape or mean.ndim == 0 or not (np.isfinite(mean).all() and np.isfinite(var).all()):
        raise BadAgentError(f"its mean {mean.shape} and variance {var.shape} are no observation statistics")
    if (var < 0).any() or not epsilon > 0 or not clip > 0:
        raise BadAgentError("its variance, epsilon and clip_obs must be positive")
    return Normaliser(mean, var, epsilon, clip)


def _number(value: Any) -> float:
    """A plain number or a numpy scalar."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Inert) and value.origin.endswith("multiarray.scalar") and len(value.args) == 2:
        return float(_from_bytes(value.args[1], value.args[0], (), "C"))
    raise BadAgentError("a number was expected among its statistics")


def _floats(value: Any) -> NDArray[np.float64]:
    """A numpy array of floats: `_reconstruct` plus state up to protocol 4, `_frombuffer` from protocol 5 on."""
    if isinstance(value, Inert):
        state = value.state
        if value.origin.endswith("multiarray._reconstruct") and isinstance(state, tuple) and len(state) == 5:
            _, shape, dtype, fortran, content = state
            return _from_bytes(content, dtype, shape, "F" if fortran else "C")
        if value.origin.endswith("numeric._frombuffer") and len(value.args) == 4:
            return _from_bytes(*value.args)
    raise BadAgentError("an array of floats was expected among its statistics")


def _from_bytes(content: Any, dtype: Any, shape: Any, order: Any) -> NDArray[np.float64]:
    """The array that numpy would rebuild from these bytes."""
    if _is_latin1_bytes(content):
        content = str(content.args[0]).encode("latin1", "replace")
    type_code, byte_order = _float_type(dtype)
    if order not in ("C", "F") or not _is_shape(shape):
        raise BadAgentError("an array of floats was expected among its statistics")
    if not isinstance(content, bytes | bytearray) or len(content) != math.prod(shape) * int(type_code[1]):
        raise BadAgentError("an array among its statistics is not as long as its shape says")
    return np.frombuffer(bytes(content), byte_order + type_code).reshape(shape, order=order).astype(np.float64)


def _is_latin1_bytes(content: Any) -> bool:
    """Whether the record stands for bytes as pickle protocol 2 writes them."""
    return isinstance(content, Inert) and content.origin == "_codecs.encode" and content.args[1:] == ("latin1",)


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)


def _float_type(dtype: Any) -> tuple[str, str]:
    """The type code (f4 or f8) and the byte order of a pickled dtype."""
    is_dtype = isinstance(dtype, Inert) and dtype.origin == "numpy.dtype" and len(dtype.args) > 0
    type_code = dtype.args[0] if is_dtype else None
    has_byte_order = is_dtype and isinstance(dtype.state, tuple) and len(dtype.state) > 1
    byte_order = dtype.state[1] if has_byte_order else "<"
    if type_code not in ("f4", "f8") or byte_order not in ("<", ">", "="):
        raise BadAgentError("an array of floats was expected among its statistics")
    return type_code, byte_order
