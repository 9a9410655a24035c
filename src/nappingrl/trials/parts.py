"""Parts of a run: parquet files that carry the identity of their run, checked when they are read."""

import hashlib
import io
import re
from pathlib import Path

import polars as pl

from nappingrl.errors import BadRunError
from nappingrl.files import UnusableFileError, read_file, write_whole
from nappingrl.trials.limits import MAX_PART_BYTES
from nappingrl.trials.manifest_record import Manifest
from nappingrl.trials.spec_record import CONTROL, GAME

_RUN, _PART = "nappingrl.run", "nappingrl.part"
COLUMNS: dict[str, type[pl.DataType]] = {
    "trial": pl.String,
    "novelty": pl.String,
    "number": pl.Int32,
    "episode": pl.Int32,
    "return": pl.Float64,
    "length": pl.Int32,
    "won": pl.Boolean,
    "detected": pl.Boolean,
    "regions": pl.Int32,
    "status": pl.String,
}
"""Columns that reports rely on; a part may have others."""
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What polars raises for a damaged file; the second is no Exception."""


class BadPartError(BadRunError):
    """Raised for a part that cannot be used; its text is the fault, without the name of the part."""


def write_part(path: Path, rows: pl.DataFrame, manifest: Manifest, chunk: int) -> None:
    """Store the rows of a chunk, and beside them their checksum."""
    content = io.BytesIO()
    rows.write_parquet(content, compression="zstd", metadata={_RUN: manifest.identity, _PART: str(chunk)})
    write_whole(_checksum(path), hashlib.sha256(content.getvalue()).hexdigest().encode())
    write_whole(path, content.getvalue())


def read_part(path: Path, manifest: Manifest, chunk: int) -> pl.DataFrame:
    """The rows of a chunk, if they are whole and those that the manifest demands."""
    try:
        content = read_file(path, MAX_PART_BYTES)
        if hashlib.sha256(content).hexdigest().encode() != read_file(_checksum(path), 100):
            raise BadPartError("damaged (its checksum does not match)")
        _check_origin(pl.read_parquet_metadata(io.BytesIO(content)), manifest, chunk)
        n_rows = pl.scan_parquet(io.BytesIO(content)).select(pl.len()).collect().item()
        check_length(n_rows, manifest, chunk)
        rows = pl.read_parquet(io.BytesIO(content), n_rows=n_rows)  # a forged file may hold more than it tells
        _check_columns(rows, manifest)
        check_trials(rows, manifest, chunk)
    except (*UNREADABLE, UnusableFileError) as error:
        raise BadPartError(f"damaged ({reason(error)})") from error
    return rows


def reason(error: BaseException) -> str:
    """Why a file is refused, in one line."""
    if isinstance(error, pl.exceptions.PanicException):  # its text is about the source of polars
        return "polars cannot unpack it"
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _check_origin(metadata: dict[str, str], manifest: Manifest, chunk: int) -> None:
    if metadata.get(_RUN, manifest.identity) not in manifest.identities:
        raise BadPartError("of another run")
    if (number := metadata.get(_PART, str(chunk))) != str(chunk):
        raise BadPartError(f"misplaced (it was written as part {number:.20})")


def _n_trials(manifest: Manifest, chunk: int) -> int:
    return min(manifest.chunk, manifest.n_trials - chunk * manifest.chunk)


def check_length(length: int, manifest: Manifest, chunk: int) -> None:
    """Check the number of rows, which a file's footer tells before they are unpacked."""
    most = _n_trials(manifest, chunk) * manifest.n_episodes
    is_ragged = ".." in manifest.spec["protocol"]
    if length > most or (length < most and not is_ragged):
        raise BadPartError(f"damaged ({length} rows instead of {most})")


def _check_columns(rows: pl.DataFrame, manifest: Manifest) -> None:
    for name, kind in COLUMNS.items():
        if rows.schema.get(name) != kind:
            raise BadPartError(f"damaged (column {name} is {rows.schema.get(name)} instead of {kind.__name__})")
        if rows[name].has_nulls():
            raise BadPartError(f"damaged (column {name} has empty cells)")
    if manifest.solved_column is not None and manifest.solved_column not in rows.columns:
        raise BadPartError(f"damaged (it has no column {manifest.solved_column})")


def check_trials(rows: pl.DataFrame, manifest: Manifest, chunk: int) -> None:
    """Check that the rows are those of the trials that the spec demands, whole and in order."""
    spec, start, n_trials = manifest.record, chunk * manifest.chunk, _n_trials(manifest, chunk)
    found = rows.group_by(pl.col("trial").rle_id().alias("place"), maintain_order=True).agg(
        pl.col("trial", "novelty", "number").first(),
        pl.struct("novelty", "number").n_unique().alias("draws"),
        pl.col("episode").first().alias("first"),
        pl.col("episode").last().alias("last"),
        (pl.col("episode").diff().drop_nulls() == 1).all().alias("in_order"),
    )
    if len(found) != n_trials:
        raise BadPartError(f"damaged ({len(found)} trials instead of {n_trials})")
    last = manifest.n_episodes - 1 - spec.n_before
    is_whole = (pl.col("first") >= -spec.n_before) & (pl.col("last") == last) & pl.col("in_order")
    if not found.select((pl.col("draws") == 1) & is_whole).to_series().all():
        raise BadPartError("damaged (episodes are missing, doubled or out of order)")
    numbers = [(start + i) % spec.trials for i in range(n_trials)]
    novelties = found["novelty"].to_list() if spec.novelty == "all" else [spec.novelty] * n_trials
    if any(re.search(f"[{CONTROL}]", name) for name in set(novelties)):  # they are shown in terminals
        raise BadPartError("damaged (the name of a novelty has control characters)")
    expected = spec.trial_ids(zip(novelties, numbers, strict=True))
    for trial, demanded in zip(found["trial"].to_list(), expected, strict=True):
        stem, dash, _ = demanded.rpartition("-")
        if trial != demanded and not trial.startswith(stem + dash + GAME):
            raise BadPartError(f"of other trials ({trial:.120} instead of {demanded:.120})")
    if found["number"].to_list() != numbers or found["novelty"].to_list() != novelties:
        raise BadPartError("damaged (novelties or numbers do not fit the ids of the trials)")


def _checksum(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")
