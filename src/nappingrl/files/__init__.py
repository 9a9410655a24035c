"""Read files that may be hostile: only regular ones, of bounded size, with bounded memory; write files whole.

Every function that reads, and `make_folder`, raises `UnusableFileError`; its text is the reason ("it is a device, not a
file"). The caller adds the path and what to do.
"""

import glob
import io
import math
import os
import secrets
import stat
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TEMPORARY = ".tmp"
"""The end of the name of a file that is being written."""
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_DAMAGED = (OSError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, ValueError)
"""Of a zip. RuntimeError: encrypted; NotImplementedError: a newer version of zip."""
_NPY_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class UnusableFileError(OSError):
    """Raised when a file cannot be read or holds more than is allowed, or a folder cannot be written to."""


def read_file(path: str | Path, max_bytes: int) -> bytes:
    """The content of a regular file of at most `max_bytes`; symbolic links are followed."""
    try:
        check_file(path, max_bytes)  # before it is opened: that alone blocks or has effects for some devices
        with open(os.open(path, _FLAGS), "rb") as file:  # Path.open takes no flags
            size = _check_kind(os.fstat(file.fileno()), max_bytes)
            content = file.read(size + 1)
    except UnusableFileError:
        raise
    except OSError as error:
        raise UnusableFileError(f"it cannot be read ({error.strerror})") from error
    if len(content) > size:
        raise UnusableFileError("it grows while it is read")
    return content


def check_file(path: str | Path, max_bytes: int) -> None:
    """Raise unless the path is a regular file of at most `max_bytes`; symbolic links are followed."""
    try:
        _check_kind(os.stat(path), max_bytes)
    except UnusableFileError:
        raise
    except FileNotFoundError:
        raise UnusableFileError("it does not exist") from None
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise UnusableFileError(f"it cannot be read ({getattr(error, 'strerror', None) or error})") from error


def check_stored(path: str | Path, max_bytes: int) -> None:
    """Raise unless the path is a zip of at most `max_bytes` whose members are not compressed: it holds no more."""
    check_file(path, max_bytes)
    try:
        with zipfile.ZipFile(path) as archive:
            is_stored = all(member.compress_type == zipfile.ZIP_STORED for member in archive.infolist())
    except _DAMAGED as error:
        raise _no_zip(error) from error
    if not is_stored:
        raise UnusableFileError("its members are compressed, so that it may hold much more than its size")


def _check_kind(status: os.stat_result, max_bytes: int) -> int:
    """The size of a regular file."""
    if not stat.S_ISREG(status.st_mode):
        kind = next((kind for is_kind, kind in _KINDS if is_kind(status.st_mode)), "something else")
        raise UnusableFileError(f"it is {kind}, not a file")
    _check_size(status.st_size, max_bytes)
    return status.st_size


def _check_size(size: int, max_bytes: int, state: str = "") -> None:
    if size > max_bytes:
        raise UnusableFileError(f"it has {size:,} bytes{state}; at most {max_bytes:,} are read")


def read_zip(content: bytes, max_bytes: int) -> dict[str, bytes]:
    """The members of a zip, by name, of at most `max_bytes` together, whatever sizes the zip declares."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if len(set(archive.namelist())) < len(archive.namelist()):
                raise UnusableFileError("a member of the zip occurs twice")
            _check_size(sum(member.file_size for member in archive.infolist()), max_bytes, " unpacked")
            return {member.filename: _read_member(archive, member) for member in archive.infolist()}
    except UnusableFileError:
        raise
    except _DAMAGED as error:
        raise _no_zip(error) from error


def _no_zip(error: Exception) -> UnusableFileError:
    reason = " ".join(str(error).split())[:80]
    return UnusableFileError(f"it is no zip, or a damaged one ({reason or type(error).__name__})")


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # zipfile unpacks other kinds in steps of unbounded size
        raise UnusableFileError(f"its member '{member.filename:.40}' is neither stored nor deflated")
    with archive.open(member) as stream:
        return stream.read(member.file_size + 1)  # read() without a size unpacks up to 2 GiB before it compares


def read_arrays(content: bytes, max_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of an npz, of at most `max_bytes` together: numbers, booleans and text in native byte order."""
    return {name.removesuffix(".npy"): _read_array(name, data) for name, data in read_zip(content, max_bytes).items()}


def _read_array(name: str, data: bytes) -> NDArray[Any]:
    stream = io.BytesIO(data)
    try:
        shape, is_fortran, dtype = _NPY_HEADERS[np.lib.format.read_magic(stream)](stream)
        start = stream.tell()
        # before numpy allocates what the header declares
        if dtype.kind not in "biufU" or math.prod(shape) * dtype.itemsize != len(data) - start:
            raise ValueError("its header does not fit its content")
        flat = np.frombuffer(data, dtype, offset=start) if len(data) > start else np.empty(0, dtype)
        if dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
            raise ValueError("a boolean is neither 0 nor 1")
        if dtype.kind == "U":
            flat.tolist()  # raises where a character is none of Unicode
        return flat.reshape(shape, order="F" if is_fortran else "C").astype(dtype.newbyteorder("="))
    except Exception as error:  # numpy evaluates the header as a literal, which can raise anything
        raise UnusableFileError(f"its array '{name:.40}' is damaged ({' '.join(str(error).split())[:80]})") from error


def make_folder(path: Path) -> None:
    """Make a folder to write to, unless it exists."""
    if path.is_file():
        raise UnusableFileError("it is a file")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnusableFileError(f"it cannot be made a folder ({error.strerror})") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UnusableFileError("it is read-only")


def write_whole(path: Path, data: bytes) -> None:
    """Write under a name that no other process uses, then rename: a file is whole or absent."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def remove_temporaries(folder: Path, stem: str = "") -> None:
    """Remove what killed processes were writing into a folder; only for the one process that writes there.

    With a stem, only what was to become STEM.suffix.
    """
    for file in folder.glob(f"{glob.escape(stem) or '*'}.*-????????{TEMPORARY}"):
        file.unlink(missing_ok=True)


def defuse(cell: str) -> str:
    """A text cell of a CSV that no spreadsheet takes for a formula; numbers such as "-99.3" or "-1 -2" stay."""
    if not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        [float(word) for word in cell.split(" ")]
    except ValueError:
        return f"'{cell}"
    return cell
