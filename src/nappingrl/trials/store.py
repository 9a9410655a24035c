"""Runs on disk: a folder with manifest.json and one parquet part per chunk of trials."""

import hashlib
import io
import os
import sys
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl.errors import BadRunError

MANIFEST = "manifest.json"
MISSING = "missing"
"""The defect of a part that does not exist."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a run is: rows of two different manifests are never mixed."""

    spec: dict[str, Any]
    """The completed RunSpec."""
    version: str
    source_sha256: str
    """Hash of the package's source: other code may give other rows."""
    agent_sha256: str
    chunk: int
    """Trials per part."""
    n_trials: int
    n_episodes: int
    return_range: tuple[float, float] | None
    """The least and the greatest return; None: unknown."""
    solved_column: str | None
    solved_level: float | None
    command: str = ""
    """How the run was started first; not part of its identity."""
    versions: dict[str, str] = field(default_factory=dict)
    """Python and libraries that it was started with; not part of its identity."""
    parameters: dict[str, float] = field(default_factory=dict)
    """The domain's parameters before the novelty."""
    action_names: list[str] = field(default_factory=list)
    role: str = "method"
    """Of the method: method, baseline, control or oracle."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know, one line each."""

    @property
    def label(self) -> str:
        """A short name for tables and legends."""
        spec = self.spec
        agent = Path(str(spec["agent"])).stem
        return f"{spec['domain']} {agent} {spec['method']}"

    @property
    def n_chunks(self) -> int:
        """Number of parts of the finished run."""
        return -(-self.n_trials // self.chunk)


_IDENTITY = ("spec", "version", "source_sha256", "agent_sha256", "chunk", "n_trials", "n_episodes")


class RunFolder:
    """A run's folder. A part is complete or absent: it is written under another name and renamed."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> "RunFolder":
        """Begin a run, or continue the same one; a folder of another experiment is refused."""
        if (path / MANIFEST).exists():
            old = cls.open(path)
            for name in _IDENTITY:
                before, now = getattr(old.manifest, name), getattr(manifest, name)
                if before != now:
                    raise BadRunError(f"{path} holds another run: {_difference(name, before, now)}; use another --out")
            return old
        make_folder(path)
        if any(file.name != MANIFEST + ".tmp" for file in path.iterdir()):
            raise BadRunError(f"{path} is not empty and holds no run; use another --out")
        _write_whole(path / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=2))
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open a run that exists."""
        try:
            text = (path / MANIFEST).read_bytes()
        except OSError as error:
            raise BadRunError(f"{path} holds no run: {MANIFEST} is missing; give the --out folder of a run") from error
        try:
            return cls(path, msgspec.json.decode(text, type=Manifest))
        except msgspec.MsgspecError as error:
            raise BadRunError(f"{path / MANIFEST} cannot be read: {error}") from error

    @classmethod
    def below(cls, path: Path) -> list["RunFolder"]:
        """All runs in a folder and the folders below it."""
        found = [cls.open(manifest.parent) for manifest in sorted(path.rglob(MANIFEST))]
        if not found:
            raise BadRunError(f"{path} holds no run, nor does any folder below it; give the --out folder of a run")
        return found

    def part(self, chunk: int) -> Path:
        """Where the rows of a chunk are."""
        return self.path / f"part-{chunk:05d}.parquet"

    def damaged_or_missing(self) -> dict[int, str]:
        """Chunks without whole rows, each with what is wrong. Changes nothing on disk."""
        found = {}
        for chunk in range(self.manifest.n_chunks):
            if not self.part(chunk).exists():
                found[chunk] = MISSING
            elif (fault := self._defect(chunk)) is not None:
                found[chunk] = f"damaged ({fault})"
        return found

    def pending(self) -> list[int]:
        """Chunks that still have to be run. A damaged part is named, set aside, and counts as missing."""
        lacking = self.damaged_or_missing()
        for chunk, fault in lacking.items():
            if fault != MISSING:
                part = self.part(chunk)
                aside = part.with_suffix(".parquet.damaged")
                part.replace(aside)
                print(f"napping: {part} is {fault}; set aside as {aside.name}, recomputing", file=sys.stderr)
        return list(lacking)

    def write(self, chunk: int, rows: pl.DataFrame) -> None:
        """Store the rows of a chunk."""
        content = io.BytesIO()
        rows.write_parquet(content, compression="zstd")
        part = self.part(chunk)
        _write_whole(_checksum(part), hashlib.sha256(content.getvalue()).hexdigest().encode())
        _write_whole(part, content.getvalue())

    def read(self, skip: Collection[int] = ()) -> pl.DataFrame:
        """All rows there are, in the order of the trials; `skip`: chunks to leave out."""
        without = {self.part(chunk) for chunk in skip}
        parts = [part for part in sorted(self.path.glob("part-*.parquet")) if part not in without]
        if not parts:
            raise BadRunError(f"{self.path} has no rows yet; run the command of its {MANIFEST} again to continue")
        return pl.concat([_read_part(part) for part in parts])

    def write_principles(self, trial: str, table: dict[str, NDArray[Any]]) -> Path:
        """Store the principles of a trial; empty if its method has none."""
        make_folder(self.path / "principles")
        file = self.path / "principles" / f"{trial.replace('/', '_')}.npz"
        np.savez_compressed(file, allow_pickle=False, **table)
        return file

    def _defect(self, chunk: int) -> str | None:
        expected = min(self.manifest.chunk, self.manifest.n_trials - chunk * self.manifest.chunk)
        try:
            rows = _read_part(self.part(chunk))
        except BadRunError as error:
            return str(error.__cause__).strip().partition("\n")[0]
        most = expected * self.manifest.n_episodes
        is_ragged = ".." in self.manifest.spec.get("protocol", "")
        if len(rows) > most or (len(rows) < most and not is_ragged):
            return f"{len(rows)} rows instead of {most}"
        if rows["trial"].n_unique() != expected:
            return f"{rows['trial'].n_unique()} trials instead of {expected}"
        return None


def _difference(name: str, before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        keys: Iterable[str] = [key for key in now if before.get(key) != now[key]]
        return ", ".join(f"{key} is {before.get(key)!r} there and {now[key]!r} here" for key in keys)
    if name.endswith("sha256"):
        return f"{name.removesuffix('_sha256')} has changed since"
    return f"{name} is {before!r} there and {now!r} here"


def _read_part(part: Path) -> pl.DataFrame:
    """The rows of a part, if it is what was written."""
    try:
        content = part.read_bytes()
        if hashlib.sha256(content).hexdigest() != _checksum(part).read_text():
            raise ValueError("its checksum does not match")
        return pl.read_parquet(io.BytesIO(content))
    except (pl.exceptions.PolarsError, OSError, ValueError) as error:
        raise BadRunError(f"{part} is damaged; run the command of its {MANIFEST} again to recompute it") from error


def _checksum(part: Path) -> Path:
    return part.with_name(part.name + ".sha256")


def make_folder(path: Path) -> None:
    """Make a folder for output, or say in one line why not."""
    if path.is_file():
        raise BadRunError(f"{path} is a file; --out takes a folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRunError(f"{path} cannot be made a folder ({error.strerror}); use another --out") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadRunError(f"{path} cannot be written to; use another --out")


def _write_whole(path: Path, data: bytes) -> None:
    """Write under another name, then rename: a file is whole or absent."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise BadRunError(f"{path} cannot be written ({error.strerror}); finished parts are safe") from error
