"""Runs on disk: a folder with manifest.json and one parquet part per chunk of trials."""

import io
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from nappingrl import files
from nappingrl.errors import BadRunError, BadSpecError
from nappingrl.files import TEMPORARY, remove_temporaries, write_whole
from nappingrl.files.lock import LOCK, locked
from nappingrl.trials.manifest_record import IDENTITY, MANIFEST, Manifest, ManifestError, parse_manifest, read_manifest
from nappingrl.trials.parts import BadPartError, read_part, write_part

MISSING = "missing"
"""The fault of a part that does not exist."""
AGAIN = f"run the command of its {MANIFEST} again"
_PART = re.compile(r"part-([0-9]{5,9})\.parquet")


class RunFolder:
    """A run's folder. A part is complete or absent: it is written under another name and renamed."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest

    @classmethod
    def create(cls, path: Path, manifest: Manifest) -> "RunFolder":
        """Begin a run, or continue the same one; a folder of another experiment is refused."""
        if not (path / MANIFEST).exists():
            make_folder(path)
            with locked(path):
                if not (path / MANIFEST).exists():
                    if any(file.name != LOCK and not file.name.endswith(TEMPORARY) for file in path.iterdir()):
                        raise BadRunError(f"{path} is not empty and holds no run; use another --out")
                    return cls._begin(path, manifest)
        old = cls.open(path)
        for name in IDENTITY:
            before, now = getattr(old.manifest, name), getattr(manifest, name)
            if before != now:
                raise BadRunError(f"{path} holds another run: {_difference(name, before, now)}; use another --out")
        return old

    @classmethod
    def grow(cls, path: Path, manifest: Manifest, run: Callable[[int, int], pl.DataFrame]) -> None:
        """Let the same run with fewer trials, if a folder holds one, have as many as the manifest says.

        `run` gives the rows of the trials from a place to another: they complete the last part. Other parts stay.
        """
        if not cls.holds(path) or not cls.open(path).manifest.is_smaller_than(manifest):
            return
        with locked(path):
            old = cls.open(path)
            n_trials, size = old.manifest.n_trials, old.manifest.chunk
            last = n_trials // size
            before = dict(old.parts()).get(last)
            rows = None
            if n_trials % size and isinstance(before, pl.DataFrame):
                rows = pl.concat([before, run(n_trials, min(manifest.n_trials, (last + 1) * size))])
            new = cls._begin(path, manifest)
            if rows is not None:
                new.write(last, rows)

    @classmethod
    def _begin(cls, path: Path, manifest: Manifest) -> "RunFolder":
        """Store the manifest."""
        content = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        try:
            parse_manifest(content)
        except ManifestError as error:
            raise BadSpecError(f"this run cannot be stored: {error}") from error
        write_output(path / MANIFEST, content)
        return cls(path, manifest)

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Open a run that exists."""
        return cls(path, read_manifest(path))

    @staticmethod
    def holds(path: Path) -> bool:
        """Whether a folder holds a run."""
        return (path / MANIFEST).exists()

    @staticmethod
    def any_below(path: Path) -> bool:
        """Whether there is a run in a folder or a folder below it."""
        return next(path.rglob(MANIFEST), None) is not None

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

    def parts(self) -> Iterator[tuple[int, pl.DataFrame | str]]:
        """Every part that the manifest demands, and every extra one, with its rows or its fault."""
        numbers, schema = self._numbers(), None
        for chunk in range(self.manifest.n_chunks):
            if chunk not in numbers:
                yield chunk, MISSING
                continue
            try:
                rows = read_part(self.part(chunk), self.manifest, chunk)
            except BadPartError as fault:
                yield chunk, str(fault)
                continue
            schema = schema or rows.schema
            yield chunk, rows if rows.schema == schema else "damaged (it has other columns than the parts before it)"
        for chunk in sorted(numbers - set(range(self.manifest.n_chunks))):
            yield chunk, f"extra (the run has {self.manifest.n_chunks} parts)"

    def _numbers(self) -> set[int]:
        """The numbers of the parts on disk."""
        try:
            found = [match[1] for file in self.path.iterdir() if (match := _PART.fullmatch(file.name))]
        except OSError as error:
            raise BadRunError(f"{self.path} cannot be read ({error.strerror}); give the folder of a run") from error
        return {int(number) for number in found if self.part(int(number)).name == f"part-{number}.parquet"}

    def faults(self) -> dict[int, str]:
        """Parts that are missing or cannot be used, each with what is wrong. Changes nothing on disk."""
        return {chunk: found for chunk, found in self.parts() if isinstance(found, str)}

    def pending(self) -> list[int]:
        """Chunks that still have to be run. A part that cannot be used is named, set aside, and counts as missing."""
        remove_temporaries(self.path)
        faults = self.faults()
        for chunk, fault in faults.items():
            if fault != MISSING:
                part = self.part(chunk)
                aside = part.with_suffix(".parquet.damaged")
                part.replace(aside)
                again = ", recomputing" if chunk < self.manifest.n_chunks else ""
                print(f"napping: {part} is {fault}; set aside as {aside.name}{again}", file=sys.stderr)
        return [chunk for chunk in faults if chunk < self.manifest.n_chunks]

    def write(self, chunk: int, rows: pl.DataFrame) -> None:
        """Store the rows of a chunk."""
        try:
            write_part(self.part(chunk), rows, self.manifest, chunk)
        except OSError as error:
            part = self.part(chunk)
            raise BadRunError(f"{part} cannot be written ({error.strerror}); finished parts are safe") from error

    def read(self) -> pl.DataFrame:
        """All rows there are, in the order of the trials."""
        tables = []
        for chunk, found in self.parts():
            if isinstance(found, pl.DataFrame):
                tables.append(found)
            elif found != MISSING:
                raise BadRunError(f"{self.part(chunk)} is {found}; delete it and {AGAIN}")
        if not tables:
            raise BadRunError(f"{self.path} has no rows yet; {AGAIN}")
        return pl.concat(tables)

    def read_chunk(self, chunk: int) -> pl.DataFrame:
        """The rows of one chunk."""
        part = self.part(chunk)
        if not part.exists():
            raise BadRunError(f"{part} is missing; {AGAIN}")
        try:
            return read_part(part, self.manifest, chunk)
        except BadPartError as fault:
            raise BadRunError(f"{part} is {fault}; delete it and {AGAIN}") from fault

    def write_principles(self, trial: str, table: dict[str, NDArray[Any]]) -> Path:
        """Store the principles of a trial; empty if its method has none."""
        make_folder(self.path / "principles")
        file = self.path / "principles" / f"{trial.replace('/', '_')}.npz"
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **table)
        write_output(file, content.getvalue())
        return file


def _difference(name: str, before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        keys: Iterable[str] = [key for key in now if before.get(key) != now[key]]
        text = ", ".join(f"{key} is {before.get(key)!r} there and {now[key]!r} here" for key in keys)
        limit = "only a run of one novelty can grow" if now.get("novelty") == "all" else "a run can only grow"
        return f"{text}, and {limit}" if keys == ["trials"] else text
    if name.endswith("sha256"):
        return f"{name.removesuffix('_sha256')} has changed since"
    return f"{name} is {before!r} there and {now!r} here"


def make_folder(path: Path) -> None:
    """Make a folder for output, or say in one line why not."""
    try:
        files.make_folder(path)
    except files.UnusableFileError as error:
        raise BadRunError(f"{path} cannot be written to: {error}; --out takes a folder") from error


def write_output(path: Path, data: bytes) -> None:
    """Write a file, which is then whole or absent, or say in one line why not."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise BadRunError(f"{path} cannot be written ({error.strerror}); use another --out") from error
