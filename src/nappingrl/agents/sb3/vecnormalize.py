"""Observation statistics from a VecNormalize pickle, read without executing it.

Every name in it, numpy's too, becomes an inert record: no code of the file can run, and neither gym, gymnasium nor SB3
need be installed. Arrays are then rebuilt from the bytes in the records.
"""

import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nappingrl.agents.mlp import Normaliser
from nappingrl.agents.sb3.inert import Inert, load_inert
from nappingrl.errors import BadAgentError
from nappingrl.files import UnusableFileError, read_file

MAX_BYTES = 1 << 24
"""Larger files are refused; statistics of flat observations take a few kilobytes."""
MAX_OPCODES = 20_000
"""Longer pickles are refused; a VecNormalize takes about 600."""
MAX_INTEGER = 10**15
MAX_DIMENSIONS = 8


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a saved VecNormalize does to observations and rewards."""

    normaliser: Normaliser | None
    """None: it only normalises rewards."""
    scales_rewards: bool
    reward_scale: float | None
    """By which it divides rewards; None: the file does not tell."""


def read(path: Path) -> Normaliser | None:
    """The observation normaliser of a saved VecNormalize; None if it only normalises rewards."""
    return read_statistics(path).normaliser


def read_statistics(path: Path) -> Statistics:
    """The statistics of a saved VecNormalize."""
    try:
        saved, _ = load_inert(io.BytesIO(read_file(path, MAX_BYTES)), MAX_OPCODES)
        state = saved.state if isinstance(saved, Inert) else None
        if not isinstance(state, dict) or "obs_rms" not in state:
            raise BadAgentError("it holds no VecNormalize; only the vecnormalize.pkl of SB3 is allowed")
        scales_rewards = state.get("norm_reward") is not False
        return Statistics(_normaliser(state), scales_rewards, _reward_scale(state) if scales_rewards else 1.0)
    except UnusableFileError as error:
        raise BadAgentError(f"normaliser file '{path}': {error}; give normaliser=None to leave it out") from None
    except BadAgentError as error:
        raise BadAgentError(f"normaliser file '{path}': {error}") from None


def _normaliser(state: dict[Any, Any]) -> Normaliser | None:
    if state.get("norm_obs", True) is False:
        return None
    statistics = state["obs_rms"]
    if not isinstance(statistics, Inert) or not isinstance(statistics.state, dict):
        raise BadAgentError("it normalises dictionary observations; only one flat observation is supported")
    mean = _floats(statistics.state.get("mean"))
    var = _floats(statistics.state.get("var"))
    return Normaliser(mean, var, _number(state.get("epsilon", 1e-8)), _number(state.get("clip_obs", 10.0)))


def _reward_scale(state: dict[Any, Any]) -> float | None:
    """The spread of discounted returns, by which rewards are divided."""
    statistics = state.get("ret_rms")
    if not isinstance(statistics, Inert) or not isinstance(statistics.state, dict):
        return None
    var = statistics.state.get("var")
    is_array = isinstance(var, Inert) and not var.origin.endswith("multiarray.scalar")
    variance = _floats(var) if is_array else np.array(_number(var))
    epsilon = _number(state.get("epsilon", 1e-8))
    if variance.shape or not 0 <= variance < math.inf or not 0 < epsilon < math.inf:
        raise BadAgentError("the variance of its returns must be one finite number, not negative")
    return math.sqrt(float(variance) + epsilon)


def _number(value: Any) -> float:
    """A plain number or a numpy scalar."""
    if isinstance(value, Inert) and value.origin.endswith("multiarray.scalar") and len(value.args) == 2:
        return float(_from_bytes(value.args[1], value.args[0], (), "C"))
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= MAX_INTEGER):
        return float(value)
    raise BadAgentError(
        f"it has no usable epsilon, clip_obs or variance of returns: numbers up to {MAX_INTEGER:.0e} are allowed"
    )


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
    is_short = isinstance(shape, tuple) and len(shape) <= MAX_DIMENSIONS
    return is_short and all(isinstance(n, int) and 0 <= n <= MAX_BYTES for n in shape)


def _float_type(dtype: Any) -> tuple[str, str]:
    """The type code (f4 or f8) and the byte order of a pickled dtype."""
    is_dtype = isinstance(dtype, Inert) and dtype.origin == "numpy.dtype" and len(dtype.args) > 0
    type_code = dtype.args[0] if is_dtype else None
    has_byte_order = is_dtype and isinstance(dtype.state, tuple) and len(dtype.state) > 1
    byte_order = dtype.state[1] if has_byte_order else "<"
    if type_code not in ("f4", "f8") or byte_order not in ("<", ">", "="):
        raise BadAgentError("an array of floats was expected among its statistics")
    return type_code, byte_order
