"""Parts of a run: only those that the manifest demands are read, and each must be what the manifest demands."""

import hashlib
import io
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import nappingrl
from conftest import make_agent
from damaged_parquet import panicking, understated
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError
from nappingrl.report.runs import read_run
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder

SPEC = RunSpec("cartpole", "balance", "frozen", trials=300, protocol="0+1", detector="never")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two runs of three parts that differ in their seed."""
    path = tmp_path_factory.mktemp("runs")
    for seed in (0, 1):
        run_into(path / str(seed), replace(SPEC, seed=seed).complete(), make_agent("cartpole"))
    return path / "0", path / "1"


@pytest.fixture
def run(folders: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(folders[0], tmp_path / "run"))


def copy_part(source: Path, number: int, target: Path, as_number: int) -> None:
    for end in ("", ".sha256"):
        shutil.copy(source / f"part-{number:05d}.parquet{end}", target / f"part-{as_number:05d}.parquet{end}")


def replace_part(part: Path, content: bytes) -> None:
    part.write_bytes(content)
    part.with_name(f"{part.name}.sha256").write_text(hashlib.sha256(content).hexdigest())


def strip_identity(folder: Path, number: int) -> None:
    """Leave the rows as they are, as in a file that says nothing about its run."""
    part, content = folder / f"part-{number:05d}.parquet", io.BytesIO()
    pl.read_parquet(part).write_parquet(content)
    replace_part(part, content.getvalue())


def swap(folder: Path) -> None:
    source = Path(shutil.copytree(folder, folder.with_name("source")))
    copy_part(source, 0, folder, 1)
    copy_part(source, 1, folder, 0)


@pytest.mark.parametrize(
    ("tamper", "part", "fault"),
    [
        (lambda run, other: copy_part(other, 1, run, 1), 1, "of another run"),
        (lambda run, other: copy_part(run, 0, run, 1), 1, "misplaced (it was written as part 0)"),
        (lambda run, other: swap(run), 0, "misplaced (it was written as part 1)"),
        (lambda run, other: copy_part(run, 2, run, 3), 3, "extra (the run has 3 parts)"),
        (lambda run, other: copy_part(other, 0, run, 99), 99, "extra (the run has 3 parts)"),
        (lambda run, other: (copy_part(other, 1, run, 1), strip_identity(run, 1)), 1, "of other trials"),
        (lambda run, other: (copy_part(run, 0, run, 1), strip_identity(run, 1)), 1, "of other trials"),
        (lambda run, other: (copy_part(run, 0, run, 2), strip_identity(run, 2)), 2, "damaged (128 rows instead of 44)"),
    ],
    ids=["foreign", "duplicated", "swapped", "extra", "extra-foreign", "old-foreign", "old-duplicated", "old-longer"],
)
def test_a_part_that_does_not_belong_is_named(
    run: Path,
    folders: tuple[Path, Path],
    tamper: Callable[[Path, Path], None],
    part: int,
    fault: str,
    agent: Agent,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = RunFolder.open(run).read()
    tamper(run, folders[1])
    name = f"part-{part:05d}.parquet"
    with pytest.raises(BadRunError, match="delete these parts and run the command") as caught:
        read_run(run)
    assert f"{name} {fault}" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(BadRunError, match="delete it and run the command"):
        RunFolder.open(run).read()
    partial = read_run(run, partial=True)
    assert set(partial.rows["trial"]) <= set(before["trial"])
    assert partial.n_trials == len(partial.rows)
    run_into(run, SPEC.complete(), agent)
    said = capsys.readouterr().err
    assert f"{name} is {fault}" in said
    assert f"set aside as {name}.damaged" in said
    assert_frame_equal(RunFolder.open(run).read(), before)


def test_a_part_written_before_parts_carried_their_run_is_read(run: Path) -> None:
    before = RunFolder.open(run).read()
    strip_identity(run, 1)
    assert_frame_equal(read_run(run).rows, before)


def test_a_part_that_polars_panics_at_is_damaged(run: Path) -> None:
    part = run / "part-00001.parquet"
    replace_part(part, panicking(pl.read_parquet(part)))
    with pytest.raises(BadRunError, match=r"part-00001\.parquet damaged \(polars cannot unpack it\)"):
        read_run(run)


def test_no_more_rows_of_a_part_are_unpacked_than_its_footer_tells(run: Path) -> None:
    part, before = run / "part-00001.parquet", RunFolder.open(run).read()
    replace_part(part, understated(pl.concat([pl.read_parquet(part)] * 200), 128))
    assert_frame_equal(read_run(run).rows, before)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda rows: rows.drop("won"), "column won is None instead of Boolean"),
        (
            lambda rows: rows.with_columns(pl.col("return").cast(pl.String)),
            "column return is String instead",
        ),
        (lambda rows: rows.with_columns(pl.lit(None, pl.Boolean).alias("won")), "column won has empty cells"),
        (lambda rows: rows.with_columns(episode=pl.lit(3, pl.Int32)), "episodes are missing, doubled or out of order"),
        (lambda rows: rows.with_columns(number=pl.lit(3, pl.Int32)), "do not fit the ids"),
        (lambda rows: rows.with_columns(novelty=pl.lit("x")), "do not fit the ids"),
        (lambda rows: rows.reverse(), "of other trials"),
        (lambda rows: rows[[0] * len(rows)], "1 trials instead of 128"),
        (lambda rows: rows.with_columns(more=1), "other columns than the parts before it"),
    ],
)
def test_rows_that_no_engine_wrote_are_named(
    run: Path, change: Callable[[pl.DataFrame], pl.DataFrame], fault: str
) -> None:
    folder = RunFolder.open(run)
    folder.write(1, change(folder.read_chunk(1)))
    assert fault in folder.faults()[1]
    with pytest.raises(BadRunError, match=r"part-00001\.parquet"):
        nappingrl.read_run(run)


def test_half_a_trial_is_named(tmp_path: Path, agent: Agent) -> None:
    """A number of episodes that differs between trials hides no missing ones."""
    folder = run_into(tmp_path / "r", RunSpec("cartpole", "x", "frozen", trials=3, protocol="1..3+2").complete(), agent)
    rows = folder.read()
    folder.write(0, rows[:-1])
    assert "episodes are missing" in folder.faults()[0]
    folder.write(0, rows[1:].vstack(rows[:1]))
    assert "4 trials instead of 3" in folder.faults()[0]


def test_an_episode_before_the_first_one_is_named(tmp_path: Path, agent: Agent) -> None:
    folder = run_into(tmp_path / "r", RunSpec("cartpole", "x", "frozen", trials=3, protocol="1..3+2").complete(), agent)
    rows = folder.read()
    early = [rows[:1].with_columns(episode=pl.lit(number, pl.Int32)) for number in range(-4, rows["episode"][0])]
    folder.write(0, pl.concat([*early, rows]))
    assert "episodes are missing" in folder.faults()[0]
