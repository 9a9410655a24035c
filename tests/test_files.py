"""Files that are no files, that declare other sizes than they have, and that unpack to more than is allowed."""

import io
import os
import socket
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nappingrl.files import UnusableFileError, make_folder, read_arrays, read_file, read_zip

LIMIT = 1 << 20


def refused(path: Path | str, *words: str) -> None:
    """The file is refused in one line."""
    with pytest.raises(UnusableFileError) as caught:
        read_file(path, LIMIT)
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_regular_files_and_links_are_read(tmp_path: Path) -> None:
    """Up to the limit, also through a symbolic link."""
    (tmp_path / "file").write_bytes(b"x" * LIMIT)
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert len(read_file(tmp_path / "file", LIMIT)) == len(read_file(str(tmp_path / "link"), LIMIT)) == LIMIT
    (tmp_path / "file").write_bytes(b"")
    assert read_file(tmp_path / "file", LIMIT) == b""


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """Devices, pipes, sockets, folders and links to them: named, never opened for long."""
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        before = Path.cwd()
        os.chdir(tmp_path)  # the name of a socket is short
        server.bind("socket")
        os.chdir(before)
        refused(tmp_path / "socket", "a socket")
    (tmp_path / "link").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refused("/dev/zero", "a device")
    refused(tmp_path / "link", "a device")
    refused(tmp_path / "pipe", "a named pipe")
    refused(tmp_path, "a folder")
    refused(tmp_path / "missing", "does not exist")
    refused(tmp_path / "loop", "cannot be read")
    refused("a\0b", "cannot be read")
    refused("x" * 5000, "cannot be read")


def test_size_is_checked_before_and_while_reading(tmp_path: Path) -> None:
    """A sparse file of a terabyte costs nothing; a file without a true size is refused."""
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    refused(tmp_path / "sparse", f"1,099,511,627,776 bytes; at most {LIMIT:,}")
    if Path("/proc/self/maps").exists():
        refused("/proc/self/maps", "grows")


def packed(compression: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    """A zip."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return content.getvalue()


def test_zip(tmp_path: Path) -> None:
    """Members by name; too much, damage and other compressions are refused."""
    assert read_zip(packed(a=b"1", b=b"22"), 3) == {"a": b"1", "b": b"22"}
    with pytest.raises(UnusableFileError, match="has 3 bytes unpacked; at most 2"):
        read_zip(packed(a=b"1", b=b"22"), 2)
    with pytest.raises(UnusableFileError, match="neither stored nor deflated"):
        read_zip(packed(zipfile.ZIP_BZIP2, a=bytes(1000)), LIMIT)
    for content in (b"", b"PK", b"text", packed(a=bytes(1000))[:-30]):
        with pytest.raises(UnusableFileError, match="no zip, or a damaged one"):
            read_zip(content, LIMIT)


def lying_zip(size: int, declared: int) -> bytes:
    """A zip whose member unpacks to `size` zeros and declares fewer."""
    content = packed(a=bytes(size))
    return content.replace(struct.pack("<I", size), struct.pack("<I", declared))


def test_memory_of_a_lying_zip_is_bounded(tmp_path: Path) -> None:
    """A member that unpacks to 800 MB and declares 100 bytes is refused within 100 MB."""
    (tmp_path / "zip").write_bytes(lying_zip(800_000_000, 100))
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from nappingrl.files import UnusableFileError, read_zip\n"
        "content = Path(sys.argv[1]).read_bytes()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n    read_zip(content, 1 << 20)\n"
        "except UnusableFileError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "zip")]
    said, grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "damaged" in said
    assert int(grown) < 100_000  # kB


def npy(array: Any, **header: Any) -> bytes:
    """An array as a file, with another header."""
    content = io.BytesIO()
    usual = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(content, usual | header)
    return content.getvalue() + array.tobytes()


def test_arrays() -> None:
    """Equal to numpy's; native byte order."""
    arrays = {
        "matrix": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "scalar": np.float32(3),
        "empty": np.zeros((0, 3), np.int64),
        "words": np.array(["a", "bc"]),
        "flags": np.array([True, False]),
        "swapped": np.arange(3).astype(">i4"),
    }
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    found = read_arrays(content.getvalue(), LIMIT)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.writeable
        assert found[name].dtype == np.asarray(array).dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "data",
    [
        npy(np.zeros(3), shape=(10**12,)),
        npy(np.zeros(3), shape=(4,)),
        npy(np.zeros(3), shape=(-3,)),
        npy(np.zeros(3), shape=(True, 3)),
        npy(np.zeros(3), descr="|O"),
        npy(np.zeros(3), descr="<c16"),
        npy(np.zeros(3), descr="<U0", shape=(10**9,)),
        npy(np.full(3, 7, np.uint8), descr="|b1"),
        npy(np.full(3, 2**31, np.uint32), descr="<U1"),
        npy(np.zeros(3))[:-1],
        b"\x93NUMPY\x03\x00",
        b"",
    ],
)
def test_damaged_arrays_are_refused(data: bytes) -> None:
    """Headers that do not fit, other types and values outside their type."""
    with pytest.raises(UnusableFileError, match="is damaged"):
        read_arrays(packed(**{"a.npy": data}), LIMIT)


def test_folders_are_made_or_the_reason_is_given(tmp_path: Path) -> None:
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(UnusableFileError, match=r"^it is a file$"):
        make_folder(tmp_path / "file")
    with pytest.raises(UnusableFileError, match=r"^it cannot be made a folder \(Not a directory\)$"):
        make_folder(tmp_path / "file" / "a")
