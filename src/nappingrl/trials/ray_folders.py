"""Temporary folders of Ray: each is removed when its run ends, or else at the start of the next one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "napping-ray-"
LOCK_FILE = "napping.lock"
"""Locked as long as the process that made the folder lives; the kernel unlocks it, however that process ends."""


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A new folder, removed at the end; those of processes that are gone are removed at the beginning."""
    import fcntl  # not on Windows, where this module must still be importable

    remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        with (folder / LOCK_FILE).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned() -> None:
    """Remove the folders of our own whose process is gone."""
    import fcntl

    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / LOCK_FILE).open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # not a folder, no lock file, or locked: not ours, or in use
            continue
