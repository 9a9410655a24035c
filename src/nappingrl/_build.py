"""The package's own source: its hash, and compiled kernels that must belong to it."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parent


def source_sha256() -> str:
    """Hash of all modules of the package."""
    digest = hashlib.sha256()
    for file in sorted(ROOT.rglob("*.py")):
        digest.update(file.relative_to(ROOT).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def drop_stale_kernels(root: Path = ROOT) -> None:
    """Delete numba's cached kernels if they were compiled from other source.

    numba notices a change in a kernel's own file, not in the kernels of other files that it calls: rows of old code
    would be stored under the hash of the new.
    """
    stamp, now = root / "__pycache__" / "kernels.sha256", source_sha256()
    try:
        if stamp.exists() and stamp.read_text() == now:
            return
        for file in root.rglob("__pycache__/*.nb[ic]"):
            file.unlink(missing_ok=True)
        stamp.parent.mkdir(exist_ok=True)
        stamp.write_text(now)
    except OSError:  # a read-only installation: its source does not change, and numba caches elsewhere
        return
