"""One writer per folder, or per agent in it: a lock that names the process that holds it."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import ModuleType

import msgspec

from nappingrl.errors import BadRunError

fcntl: ModuleType | None
try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None

LOCK = ".lock"
"""The name of the lock of a folder; that of an agent `NAME` in it is `.NAME.lock`."""


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock."""

    pid: int
    host: str
    since: datetime

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since:%Y-%m-%d %H:%M:%S}"


@contextmanager
def locked(folder: Path, name: str = "") -> Iterator[None]:
    """Keep other processes from writing to an existing folder; BadRunError names the process that does.

    With a name, only from writing the files of that name; others may be written at the same time.

    The kernel releases the lock of a process that dies, so that the next one takes over. On Windows, the lock is the
    file itself: that of a process that was killed must be deleted by hand.
    """
    path = folder / (f".{name}{LOCK}" if name else LOCK)
    descriptor = _acquire(path, folder / name) if fcntl else _create(path, folder / name)
    try:
        holder = Holder(os.getpid(), socket.gethostname(), datetime.now().astimezone())
        os.ftruncate(descriptor, 0)
        os.write(descriptor, msgspec.json.encode(holder))
        yield
    finally:
        if fcntl:
            path.unlink(missing_ok=True)  # while the lock is held: see _acquire
        os.close(descriptor)
        if not fcntl:
            path.unlink(missing_ok=True)  # Windows removes no open files


def _create(path: Path, written: Path) -> int:
    """The descriptor of a new file, which is the lock."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        by = _holder_in(path.read_bytes())
        raise BadRunError(
            f"{written} is being written by {by}; wait for it, or delete {path} if it has ended"
        ) from None
    except OSError as error:
        raise BadRunError(f"{path.parent} cannot be written ({error.strerror}); use another --out") from error


def _acquire(path: Path, written: Path) -> int:
    """The descriptor of a locked file, which is the one at `path`: its last holder may have removed the one opened."""
    assert fcntl is not None
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise BadRunError(f"{path.parent} cannot be written ({error.strerror}); use another --out") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                return descriptor
        except FileNotFoundError:
            pass
        except BlockingIOError:
            by = _holder_in(os.pread(descriptor, 1000, 0))
            os.close(descriptor)
            raise BadRunError(f"{written} is being written by {by}; wait for it, or use another --out") from None
        except OSError as error:
            os.close(descriptor)
            raise BadRunError(f"{path} cannot be locked ({error.strerror}); use another --out") from error
        os.close(descriptor)


def _holder_in(content: bytes) -> str:
    try:
        return str(msgspec.json.decode(content, type=Holder))
    except msgspec.MsgspecError:  # it has the lock, and has not written its name yet
        return "another process"
