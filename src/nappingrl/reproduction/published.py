"""An evaluation as it is published: one parquet file per domain with the return of every episode, and what was run.

The file tells of each of its runs the manifest and how long it took, so that claims can be judged from it alone. A
checksum of each run reveals damage by accident, not forgery.
"""

import hashlib
import io
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta

from nappingrl.errors import BadRunError, check_name
from nappingrl.files import UnusableFileError, read_file
from nappingrl.registry import domains
from nappingrl.report.runs import Run, check_one_domain, label_runs, number_equal, read_run, read_runs
from nappingrl.reproduction.times import Times, read_times
from nappingrl.trials.limits import MAX_MANIFEST_BYTES, MAX_NAMES, MAX_PART_BYTES, MAX_PUBLISHED_CELLS
from nappingrl.trials.manifest_record import Manifest, ManifestError, parse_manifest
from nappingrl.trials.parts import UNREADABLE, BadPartError, check_length, check_trials, reason
from nappingrl.trials.protocol import phases
from nappingrl.trials.spec_record import CONTROL
from nappingrl.trials.store import RunFolder, make_folder, write_output

_RUNS = "nappingrl.runs"
"""Key of the file's metadata: a `_Record` of each run, by its name."""
_COLUMNS: dict[str, pl.DataType] = {
    "run": pl.Categorical(),
    "agent": pl.Categorical(),
    "method": pl.Categorical(),
    "novelty": pl.Categorical(),
    "number": pl.Int32(),
    "episode": pl.Int32(),
    "return": pl.Float32(),
}
_WON = "won"
"""A column of domains where it decides which trials are solved."""
_Name = Annotated[str, Meta(min_length=1, max_length=300, pattern=rf"^[^|{CONTROL}]*\Z")]


@dataclass(frozen=True, slots=True)
class _Record:
    """What the file tells of a run."""

    manifest: msgspec.Raw
    times: Times
    sha256: str = ""
    """Of all that is read of the run; empty in files that were published before there were checksums."""


@dataclass(frozen=True, eq=False, repr=False)
class PublishedRun(Run):
    """A run from a published file: its returns and draws, and no other columns."""

    published_as: str = ""
    """The name of its folder, when it was run."""
    times: Times = field(default_factory=Times)

    @property
    def name(self) -> str:
        """The name of its folder, when it was run."""
        return self.published_as

    @property
    def distrust(self) -> str:
        """Why no trial is run again."""
        return "its rows were published without the folder of the run"

    def _folder(self) -> RunFolder:
        raise BadRunError(f"a trial of '{self.label}' cannot be run again: {self.distrust}")


def times_of(run: Run) -> Times:
    """How long a run took; 0: unknown."""
    if isinstance(run, PublishedRun):
        return run.times
    return Times() if run.path is None else read_times(run.path.parent).get(run.path.name, Times())


# ------------------------------------------------------------------------------------------------------------- write


def publish(runs: Sequence[Run], file: Path) -> None:
    """Write the return of every episode of these runs, which are whole, with what was drawn."""
    make_folder(file.parent)
    named = dict(zip(_unique_names(runs), runs, strict=True))
    tables = {name: _rows(name, run) for name, run in named.items()}
    records = {name: _record(run, tables[name]) for name, run in named.items()}
    table = pl.concat(tables.values(), how="diagonal")
    if table["return"].equals(table["return"].cast(pl.Float32).cast(pl.Float64)):  # it loses nothing
        table = table.with_columns(pl.col("return").cast(pl.Float32))
    content = io.BytesIO()
    table.write_parquet(content, metadata={_RUNS: msgspec.json.encode(records).decode()})
    write_output(file, content.getvalue())


def _unique_names(runs: Sequence[Run]) -> list[str]:
    """The names of the runs' folders; one that comes again has a number."""
    return number_equal([re.sub(rf"[|{CONTROL}]", "-", run.name or run.manifest.label)[:280] for run in runs])


def _rows(name: str, run: Run) -> pl.DataFrame:
    texts = {"run": name, "agent": str(run.spec["agent"]), "method": run.method}
    won = [_WON] if run.manifest.solved_column == _WON and _WON in run.rows.columns else []
    return run.rows.select(
        *(pl.lit(value, pl.Categorical).alias(column) for column, value in texts.items()),
        pl.col("novelty").cast(pl.Categorical), "number", "episode", "return", *won,
        pl.col("^param_.*$").cast(pl.Float32),
    )  # fmt: skip


def _record(run: Run, rows: pl.DataFrame) -> _Record:
    record = _Record(msgspec.Raw(msgspec.json.encode(run.manifest)), times_of(run))
    return replace(record, sha256=_sha256(record, _own_rows(rows)))


def _sha256(record: _Record, rows: pl.DataFrame) -> str:
    """Checksum of a run's manifest, times and rows, however the file stores them."""
    digest = hashlib.sha256(bytes(record.manifest))
    digest.update(np.array([record.times.wall, record.times.cpu], "<f8").tobytes())
    for name in sorted(rows.columns):
        column = rows[name]
        if column.dtype == pl.String:
            texts = column.unique(maintain_order=True)
            digest.update(msgspec.json.encode(texts.to_list()))
            column = column.cast(pl.Enum(texts)).to_physical()
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(column.cast(pl.Float64).fill_null(np.nan).to_numpy(), "<f8").data)
    return digest.hexdigest()


def _own_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of one run without what its manifest says, and without columns that only other runs have."""
    rows = rows.drop("run", "agent", "method").with_columns(
        pl.col("novelty").cast(pl.String), pl.col("return", "^param_.*$").cast(pl.Float64)
    )
    return rows.select(column for column in rows.columns if not rows[column].is_null().all())


# -------------------------------------------------------------------------------------------------------------- read


def read_evidence(paths: Sequence[Path], partial: bool = False) -> list[Run]:
    """The runs in each folder and those below it; of a folder without any, the runs of its published files.

    In the order of the registry's domains.
    """
    runs = [run for path in paths for run in _read_below(path, partial)]
    known = domains.names()
    return sorted(runs, key=lambda run: known.index(run.domain) if run.domain in known else len(known))


def _read_below(path: Path, partial: bool) -> Iterator[Run]:
    if os.path.isfile(path):  # Path.is_file() raises where a folder must not be read
        yield from read_published(path)
        return
    try:
        files = [] if RunFolder.any_below(path) else sorted(path.rglob("*.parquet"))
    except OSError as error:
        raise BadRunError(f"{path} cannot be read ({error.strerror}); give a folder with runs") from error
    for file in files:
        yield from read_published(file)
    if not files:
        for folder in RunFolder.below(path):
            yield read_run(folder.path, partial)


def read_named(paths: Sequence[Path], partial: bool = False, env: Sequence[str] = ()) -> list[Run]:
    """Runs of one domain with different labels: of folders, of published files, and single ones as FILE/RUN."""
    if not any(os.path.isfile(path) or os.path.isfile(path.parent) for path in paths):
        return read_runs(paths, partial, env)
    read = cache(read_published)
    found: list[Run] = []
    for path in paths:
        if os.path.isfile(path):
            found += read(path)
        elif os.path.isfile(path.parent):
            by_name = {run.name: run for run in read(path.parent)}
            found.append(by_name[check_name("run", path.name, by_name)])
        else:
            found.append(read_run(path, partial, env))
    check_one_domain(found)
    return label_runs(found)


def read_published(file: Path) -> list[PublishedRun]:
    """The runs of a published file; BadRunError says in one line what is wrong with it."""
    try:
        content = read_file(file, MAX_PART_BYTES)
        records = _read_records(content)
        most = sum(manifest.n_trials * manifest.n_episodes for _, manifest in records.values())
        table = _read_table(content, most)
        parts = {str(key[0]): part for key, part in table.partition_by("run", as_dict=True).items()}
        if set(parts) != set(records):
            raise BadRunError("its rows are of other runs than those that it tells of")
        return [_run(name, *records[name], parts[name]) for name in records]
    except (BadRunError, ManifestError, msgspec.MsgspecError, *UNREADABLE, UnusableFileError) as error:
        raise BadRunError(f"{file} cannot be read: {reason(error)}") from error
    except RecursionError as error:
        raise BadRunError(f"{file} cannot be read: what it tells of its runs is nested too deeply") from error


def _read_records(content: bytes) -> dict[str, tuple[_Record, Manifest]]:
    """What the file tells of each run, and its manifest, by its name."""
    text = pl.read_parquet_metadata(io.BytesIO(content)).get(_RUNS, "")
    if not text:
        raise BadRunError("it tells nothing of its runs; give a file that `napping paper` or `napping claims` wrote")
    if len(text) > MAX_MANIFEST_BYTES:
        raise BadRunError(f"it tells {len(text):,} characters of its runs; at most {MAX_MANIFEST_BYTES:,} are read")
    records = msgspec.json.decode(text, type=Annotated[dict[_Name, _Record], Meta(min_length=1, max_length=MAX_NAMES)])
    return {name: (record, parse_manifest(bytes(record.manifest))) for name, record in records.items()}


def _read_table(content: bytes, most: int) -> pl.DataFrame:
    """The known columns, of at most `most` rows, checked before they are unpacked."""
    n_rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
    if n_rows > most:
        raise BadRunError(f"it has {n_rows:,} rows; its runs have {most:,} episodes")
    schema = pl.read_parquet_schema(io.BytesIO(content))
    if len(schema) > MAX_NAMES:
        raise BadRunError(f"it has {len(schema):,} columns; at most {MAX_NAMES:,} are read")
    expected = _COLUMNS | {name: pl.Float32() for name in schema if name.startswith("param_")}
    if _WON in schema:
        expected[_WON] = pl.Boolean()
    if schema.get("return") == pl.Float64():
        expected["return"] = pl.Float64()
    if (n_cells := n_rows * len(expected)) > MAX_PUBLISHED_CELLS:
        raise BadRunError(f"it has {n_cells:,} cells; at most {MAX_PUBLISHED_CELLS:,} are read")
    for name, kind in expected.items():
        if schema.get(name) != kind:
            raise BadRunError(f"its column {name} is {schema.get(name)} instead of {kind}")
    # `n_rows`: a forged file may hold more rows than its footer tells
    table = pl.read_parquet(io.BytesIO(content), columns=list(expected), n_rows=n_rows)
    for name in _COLUMNS:
        if table[name].has_nulls():
            raise BadRunError(f"its column {name} has empty cells")
    for name in expected:
        if expected[name].is_float() and not table[name].is_finite().all():
            raise BadRunError(f"its column {name} has numbers that are not finite")
    return table


def _run(name: str, record: _Record, manifest: Manifest, rows: pl.DataFrame) -> PublishedRun:
    """A run, if its rows are whole and those that the manifest demands."""
    spec = manifest.record
    for column, expected in (("agent", spec.agent), ("method", spec.method)):
        if rows[column].unique().to_list() != [expected]:
            raise BadRunError(f"rows of {name} are of another {column} than {expected}")
    rows = own_rows = _own_rows(rows)
    if _WON in rows.columns and rows[_WON].has_nulls():
        raise BadRunError(f"column {_WON} of {name} has empty cells")
    draws = rows.select("novelty", "number").unique(maintain_order=True)
    draws = draws.with_columns(pl.Series("trial", spec.trial_ids(draws.rows()), pl.String))
    rows = rows.join(draws, on=["novelty", "number"], maintain_order="left")
    whole = replace(manifest, chunk=manifest.n_trials)
    try:
        check_length(len(rows), whole, 0)
        check_trials(rows, whole, 0)
    except BadPartError as error:
        raise BadRunError(f"rows of {name} are {error}") from error
    if len(draws) != manifest.n_trials:
        raise BadRunError(f"rows of {name} are of {len(draws)} draws instead of {manifest.n_trials}")
    if record.sha256 and record.sha256 != _sha256(record, own_rows):
        raise BadRunError(f"what it holds of {name} is damaged (its checksum does not match)")
    names = [phase for phase, count in phases(spec.protocol) for _ in range(count)]
    rows = rows.with_columns(
        pl.lit(pl.Series([names], dtype=pl.List(pl.String))).list.get(pl.col("episode") + spec.n_before).alias("phase")
    )
    if manifest.solved_column not in rows.columns:
        manifest = replace(manifest, solved_column=None, solved_level=None)
    return PublishedRun(manifest, rows, published_as=name, times=record.times)
