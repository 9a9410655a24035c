"""Parquet files that are not what they seem."""

import io

import polars as pl

_DICTIONARY, _PLAIN = b"\x15\x10", b"\x15\x00"
"""How the header of a page says which encoding its values have."""


def panicking(rows: pl.DataFrame, metadata: dict[str, str] | None = None) -> bytes:
    """The rows in a file with one wrong byte that makes polars panic."""
    written = io.BytesIO()
    rows.write_parquet(written, compression="uncompressed", metadata=metadata)
    content, at = written.getvalue(), -1
    while (at := content.find(_DICTIONARY, at + 1)) >= 0:
        damaged = content[:at] + _PLAIN + content[at + 2 :]
        try:
            pl.read_parquet(io.BytesIO(damaged), n_rows=len(rows))
        except pl.exceptions.PanicException:
            return damaged
        except pl.exceptions.PolarsError:
            continue
    raise AssertionError("polars does not panic any more: this needs another damage")


def understated(rows: pl.DataFrame, n_rows: int, metadata: dict[str, str] | None = None) -> bytes:
    """The rows in a file whose footer tells another number of them, while its row groups tell the right one."""
    written = io.BytesIO()
    rows.write_parquet(written, row_group_size=len(rows) // 2, metadata=metadata)
    content = written.getvalue()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    real = _number(len(rows))
    footer = content[start:].replace(real, _number(n_rows, len(real) - 1), 1)
    return content[:start] + footer


def _number(value: int, width: int = 1) -> bytes:
    """A whole number in a footer after the mark of its type: seven bits per byte, in at least `width` bytes."""
    value *= 2  # the lowest bit is the sign
    groups = [value >> shift & 127 for shift in range(0, max(value.bit_length(), 7 * width), 7)]
    return bytes([0x16, *(group | 128 for group in groups[:-1]), groups[-1]])
