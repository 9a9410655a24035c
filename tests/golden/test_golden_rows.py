"""Small runs have the rows recorded in `rows.json`, bit by bit, on one type of CPU with each of its BLAS kernels."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest

from golden import golden_rows
from golden.golden_rows import CASES, FILE, blas_kernels, cpu_type, merge, origin, rows_sha256, run_case

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


@pytest.mark.parametrize(
    ("kept", "changes"),
    [(True, {}), (False, {"cpu": "another"}), (False, {"source_sha256": "other"}), (False, {"source_sha256": None})],
)
def test_hashes_of_other_kernels_stay_only_on_this_cpu_with_this_source(
    kept: bool, changes: dict[str, str | None]
) -> None:
    new, other = {"case": "new"}, {"another kernel": {"case": "old"}}
    stored = origin() | {"rows": other | {blas_kernels(): {"case": "old"}}} | changes
    merged = merge(stored, new)
    assert merged == origin() | {"rows": (other if kept else {}) | {blas_kernels(): new}}


def test_some_cases_are_not_recorded_into_a_file_of_other_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.json"
    file.write_text('{"cpu": "another", "rows": {}}')
    monkeypatch.setattr(golden_rows, "FILE", file)
    monkeypatch.setattr(sys, "argv", ["golden_rows.py", "--record", "--only", "no such case"])
    with pytest.raises(SystemExit, match="of another CPU type or of other source"):
        golden_rows.main()
    assert file.read_text() == '{"cpu": "another", "rows": {}}'


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
