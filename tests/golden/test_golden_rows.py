"""Small runs have the rows recorded in `rows.json`, bit by bit, on one type of CPU with each of its BLAS kernels."""

import json

import polars as pl
import pytest

from golden.golden_rows import CASES, FILE, blas_kernels, cpu_type, rows_sha256, run_case

STORED = json.loads(FILE.read_text())


def test_every_case_is_recorded() -> None:
    for rows in STORED["rows"].values():
        assert set(CASES) == set(rows)


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_recorded(name: str) -> None:
    if STORED["cpu"] != cpu_type():
        pytest.skip(
            f"the golden rows were recorded on '{STORED['cpu']}'; this is '{cpu_type()}', whose floats may differ"
        )
    if blas_kernels() not in STORED["rows"]:
        pytest.skip(f"the golden rows were recorded with the BLAS kernels {' and '.join(STORED['rows'])} only")
    assert run_case(CASES[name]) == STORED["rows"][blas_kernels()][name], (
        "other rows than recorded; if that is intended, run `python tests/golden/golden_rows.py --record` and say why "
        "in CHANGELOG.md"
    )


def test_the_hash_sees_every_value_and_no_option_hash() -> None:
    rows = pl.DataFrame({"trial": ["a/0-00000000"], "phase": ["pre"], "return": [1.0], "detected_step": [None]})
    same = rows.with_columns(pl.lit("a/0-ffffffff").alias("trial"))
    assert rows_sha256(rows) == rows_sha256(same)
    others = [
        rows.with_columns(pl.lit("a/1-00000000").alias("trial")),
        rows.with_columns(pl.lit("novel").alias("phase")),
        rows.with_columns(pl.lit(1.0 + 1e-15).alias("return")),
        rows.with_columns(pl.lit(3).alias("detected_step")),
    ]
    assert len({rows_sha256(frame) for frame in [rows, *others]}) == 5
