"""The published rows of an evaluation: read back as runs, judged, and refused where they are damaged."""

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import nappingrl
from damaged_parquet import panicking, understated
from nappingrl.cli import main
from nappingrl.errors import BadRunError
from nappingrl.report.page.metrics import measure_runs
from nappingrl.report.runs import Run
from nappingrl.reproduction.evaluation import PAPER, Selection, plan_evaluation
from nappingrl.reproduction.outputs import write_rows
from nappingrl.reproduction.published import PublishedRun, publish, read_evidence, read_named, read_published, times_of
from nappingrl.reproduction.tables import costs_markdown
from nappingrl.reproduction.times import Times

DOCS = Path(__file__).parents[2] / "docs"
KEY = "nappingrl.runs"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    runs = []
    for method in ("frozen", "napping"):
        out = folder / f"mountaincar-dqn-{method}"
        runs.append(nappingrl.run("mountaincar", "dqn", method, trials=3, protocol="2+12", out=out))
    times = {run.name: {"wall": 2.5, "cpu": 1.5 + number} for number, run in enumerate(runs)}
    (folder / "times.json").write_text(json.dumps(times))
    return runs


@pytest.fixture
def file(stored: list[Run], tmp_path: Path) -> Path:
    publish(stored, tmp_path / "rows" / "mountaincar.parquet")
    return tmp_path / "rows" / "mountaincar.parquet"


def rewrite(file: Path, rows: pl.DataFrame, metadata: dict[str, str] | None = None) -> None:
    """The file with other rows or another text about its runs."""
    metadata = {KEY: pl.read_parquet_metadata(file)[KEY]} if metadata is None else metadata
    content = io.BytesIO()
    rows.write_parquet(content, metadata=metadata)
    file.write_bytes(content.getvalue())


def test_runs_come_back_with_their_levels_settings_and_times(stored: list[Run], file: Path) -> None:
    found = read_published(file)
    assert [run.name for run in found] == ["mountaincar-dqn-frozen", "mountaincar-dqn-napping"]
    assert [times_of(run) for run in found] == [Times(2.5, 1.5), Times(2.5, 2.5)]
    for run, before in zip(found, stored, strict=True):
        assert run.spec == before.spec
        assert run.levels.drop("trial").equals(before.levels.drop("trial"))
        assert run.draws.to_numpy() == pytest.approx(before.draws.to_numpy())
        assert run.n_trials == 3
        assert times_of(run) == times_of(before)
        assert run.compare(run).difference == 0


def test_a_summary_leaves_out_what_the_rows_do_not_tell(stored: list[Run], file: Path) -> None:
    mine, full = read_published(file)[1].summary(), stored[1].summary()
    assert (mine.last10_mean, mine.pre_mean, mine.failed, mine.solved) == (
        full.last10_mean, full.pre_mean, full.failed, full.solved,
    )  # fmt: skip
    assert (mine.steps, mine.diverged, mine.regions_mean, mine.false_alarms) == (None, None, None, None)


def test_a_published_run_is_published_again(file: Path, tmp_path: Path) -> None:
    publish(read_published(file), tmp_path / "again.parquet")
    again = read_published(tmp_path / "again.parquet")
    assert [run.name for run in again] == ["mountaincar-dqn-frozen", "mountaincar-dqn-napping"]
    assert times_of(again[0]) == times_of(read_published(file)[0])


def test_a_trial_is_not_run_again(file: Path) -> None:
    run = read_published(file)[1]
    assert "without the folder" in run.distrust
    with pytest.raises(BadRunError, match="published without the folder"):
        run.replay("0")


@pytest.mark.usefixtures("file")
def test_run_folders_come_before_published_files(stored: list[Run], tmp_path: Path) -> None:
    assert stored[0].path is not None
    assert [type(run) for run in read_evidence([tmp_path])] == [PublishedRun, PublishedRun]
    shutil.copytree(stored[0].path, tmp_path / "runs" / "frozen")
    assert [run.path for run in read_evidence([tmp_path])] == [tmp_path / "runs" / "frozen"]


def test_several_folders_are_judged_and_written_together(
    stored: list[Run], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The larger of two runs with the same settings takes the place of the smaller one."""
    larger = tmp_path / "more" / "mountaincar-dqn-frozen"
    nappingrl.run("mountaincar", "dqn", "frozen", trials=5, protocol="2+12", out=larger)
    out = tmp_path / "out"
    main(["claims", str(file), str(tmp_path / "more"), "--out", str(out), "--json"])
    judged = json.loads(capsys.readouterr().out)["claims"]
    assert json.loads((out / "claims.json").read_text()) == judged
    sizes = {run.name: run.n_trials for run in read_published(out / "rows" / "mountaincar.parquet")}
    assert list(sizes.items()) == [("mountaincar-dqn-frozen", 5), ("mountaincar-dqn-napping", 3)]
    assert "| dqn | " in (out / "results.md").read_text("utf-8")
    costs = (out / "costs.md").read_text("utf-8")
    assert costs.startswith("| method | mountaincar (dqn) |\n| --- | --- |\n| `frozen` |  |\n"), "unknown"
    assert "\n| `napping` | " in costs
    page = (out / "mountaincar" / "report.html").read_text("utf-8")
    assert "published without the folder" in page
    assert "the rows have no column" in page


def test_a_report_on_a_published_file(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", str(file), "--out", str(tmp_path / "report"), "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert sorted(found["runs"]) == ["mountaincar dqn frozen", "mountaincar dqn napping"]
    assert (tmp_path / "report" / "curves.png").stat().st_size > 5000
    with pytest.raises(SystemExit):
        main(["report", str(file)])
    assert "--out is missing" in capsys.readouterr().err


def test_a_run_that_was_published_twice_is_reported_twice(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    again = shutil.copy(file, tmp_path / "again.parquet")
    main(["report", *(f"{path}/mountaincar-dqn-frozen" for path in (file, again)), "--out", str(tmp_path), "--json"])
    name = "mountaincar dqn frozen (mountaincar-dqn-frozen)"
    assert list(json.loads(capsys.readouterr().out.splitlines()[-1])["runs"]) == [name, f"{name} (2)"]


def test_a_figure_of_published_runs(
    stored: list[Run], file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "overall.png"
    main(["figure", "overall", str(file / "mountaincar-dqn-frozen"), str(stored[1].path), "--out", str(out)])
    assert out.stat().st_size > 5000
    for words, message in (
        (["overall", str(file / "mountaincar-dqn-frozn")], "mountaincar-dqn-frozen"),
        (["regions-over-time", str(file)], "have no column 'regions'; give the folder of the run"),
        (["detection-delay", str(file)], "have no column 'detected'; give the folder of the run"),
    ):
        with pytest.raises(SystemExit):
            main(["figure", *words, "--out", str(out)])
        assert message in capsys.readouterr().err


def column(name: str, value: object, kind: pl.DataType | None = None) -> Callable[[pl.DataFrame], pl.DataFrame]:
    return lambda rows: rows.with_columns(pl.lit(value, kind).alias(name))


DAMAGE: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "38 rows instead of 42": lambda rows: rows.filter((pl.col("episode") < 8) | (pl.col("number") != 1)),
    "41 rows instead of 42": lambda rows: rows.filter((pl.col("episode") > -2) | (pl.col("number") != 1)),
    "episodes are missing, doubled": lambda rows: pl.concat([rows[:5], rows[4:13], rows[14:]]),
    "28 rows instead of 42": lambda rows: rows.filter(pl.col("number") > 0),
    "it has 168 rows; its runs have 84 episodes": lambda rows: pl.concat([rows, rows]),
    "42 trials instead of 3": lambda rows: rows.sort("run", "episode", "number"),
    "physics/0/1-": lambda rows: rows.with_columns(pl.col("number") + 1),
    "of other runs": lambda rows: rows.filter(pl.col("method") == "frozen"),
    "of other runs than those": lambda rows: rows.clear(),
    "of another agent than dqn": column("agent", "ppo", pl.Categorical()),
    "of another method than frozen": column("method", "auto", pl.Categorical()),
    "of other trials": column("novelty", "calm", pl.Categorical()),
    "column return has empty cells": column("return", None, pl.Float32()),
    "column return has numbers that are not finite": column("return", np.nan, pl.Float32()),
    "column param_force has numbers that are not finite": column("param_force", np.inf, pl.Float32()),
    "column return is String instead of Float32": column("return", "1"),
    "column param_force is List": lambda rows: rows.with_columns(pl.concat_list("episode").alias("param_force")),
    "column won is String instead of Boolean": column("won", "yes"),
    "column number is None instead of Int32": lambda rows: rows.drop("number"),
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_damaged_rows_are_refused(file: Path, fault: str) -> None:
    rewrite(file, DAMAGE[fault](pl.read_parquet(file)))
    with pytest.raises(BadRunError, match=rf"mountaincar\.parquet cannot be read: .*{fault}") as error:
        read_published(file)
    assert "\n" not in str(error.value)


def test_no_more_rows_are_unpacked_than_the_runs_have(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, metadata = pl.read_parquet(file), {KEY: pl.read_parquet_metadata(file)[KEY]}
    unpacked: list[int] = []
    read = pl.read_parquet

    def count(*words: Any, **options: Any) -> pl.DataFrame:
        table = read(*words, **options)
        unpacked.append(len(table))
        return table

    monkeypatch.setattr(pl, "read_parquet", count)
    file.write_bytes(understated(pl.concat([rows] * 200), len(rows), metadata))
    assert sum(run.n_trials for run in read_published(file)) == 6
    assert unpacked == [84]


@pytest.mark.parametrize(
    ("limit", "most", "fault"),
    [
        ("MAX_PUBLISHED_CELLS", 839, "it has 840 cells; at most 839 are read"),
        ("MAX_NAMES", 9, "it has 10 columns; at most 9 are read"),
    ],
)
def test_many_cells_and_columns_are_refused(
    file: Path, limit: str, most: int, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(read_published(file)) == 2
    monkeypatch.setattr(f"nappingrl.reproduction.published.{limit}", most)
    with pytest.raises(BadRunError, match=fault):
        read_published(file)


def test_a_file_that_polars_panics_at_is_refused(file: Path) -> None:
    file.write_bytes(panicking(pl.read_parquet(file), {KEY: pl.read_parquet_metadata(file)[KEY]}))
    with pytest.raises(BadRunError, match=r"mountaincar\.parquet cannot be read: polars cannot unpack it"):
        read_published(file)


def test_unknown_columns_are_not_read(file: Path) -> None:
    rewrite(file, pl.read_parquet(file).with_columns(pl.lit("x" * 1000).alias("detected")))
    assert "detected" not in read_published(file)[0].rows.columns


def told(cpu: float = 1.0, spec: dict[str, int] | None = None, **changes: int) -> Callable[[str], str]:
    """What the file tells of its runs, with other values in the frozen run's times, spec and manifest."""

    def change(text: str) -> str:
        content = json.loads(text)
        record = content["mountaincar-dqn-frozen"]
        record["times"]["cpu"] = cpu
        record["manifest"] |= changes | {"spec": record["manifest"]["spec"] | (spec or {})}
        return json.dumps(content)

    return change


LIES: dict[str, Callable[[str], str]] = {
    "tells nothing of its runs": lambda text: "",
    "Input data was truncated": lambda text: "{",
    "Expected `object`": lambda text: "[]",
    "length >= 1": lambda text: "{}",
    "missing required field": lambda text: '{"mountaincar-dqn-frozen": {"manifest": {}, "times": {}}}',
    "nested too deeply": lambda text: '{"a": {"times": {}, "manifest": ' + "[" * 20_000 + "]" * 20_000 + "}}",
    "matching regex": lambda text: text.replace("mountaincar-dqn-napping", "a|b"),
    ">= 0.0": told(cpu=-1.0),
    "<= 1000000000000": told(cpu=1e300),
    "n_episodes is 9": told(n_episodes=9),
    "rows instead of": told(n_trials=5, spec={"trials": 5}),
}


@pytest.mark.parametrize("fault", LIES)
def test_a_file_that_tells_wrong_things_of_its_runs_is_refused(file: Path, fault: str) -> None:
    lie = LIES[fault](pl.read_parquet_metadata(file)[KEY])
    rewrite(file, pl.read_parquet(file), {KEY: lie})
    with pytest.raises(BadRunError, match=rf"mountaincar\.parquet cannot be read: .*{fault}"):
        read_published(file)


SLIPS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "another return": lambda rows: rows.with_columns(pl.col("return").replace(rows["return"][3], -1.0)),
    "another draw": lambda rows: rows.with_columns(pl.col("param_force").replace(rows["param_force"][3], 1e-3)),
    "a column more": column("param_mass", 1.0, pl.Float32()),
    "a column less": lambda rows: rows.drop("param_gravity"),
    "returns of other episodes": lambda rows: rows.with_columns(pl.col("return").reverse()),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_rows_that_changed_by_accident_are_refused(file: Path, slip: str) -> None:
    rewrite(file, SLIPS[slip](pl.read_parquet(file)))
    with pytest.raises(BadRunError, match=r"of mountaincar-dqn-\w+ is damaged \(its checksum does not match\)"):
        read_published(file)


@pytest.mark.parametrize("change", [told(cpu=2.0), told(spec={"seed": 1})], ids=["times", "manifest"])
def test_what_the_file_tells_of_a_run_is_in_its_checksum(file: Path, change: Callable[[str], str]) -> None:
    rewrite(file, pl.read_parquet(file), {KEY: change(pl.read_parquet_metadata(file)[KEY])})
    with pytest.raises(BadRunError, match="frozen is damaged"):
        read_published(file)


def test_a_file_from_before_there_were_checksums_is_read(file: Path) -> None:
    before = read_published(file)
    records = json.loads(pl.read_parquet_metadata(file)[KEY])
    for record in records.values():
        assert len(record.pop("sha256")) == 64
    rewrite(file, pl.read_parquet(file), {KEY: json.dumps(records)})
    assert [run.rows.to_dicts() for run in read_published(file)] == [run.rows.to_dicts() for run in before]


def test_decimal_returns_are_stored_as_they_are(stored: list[Run], tmp_path: Path) -> None:
    """A level of .7 is solved at .7; whole returns take half the space."""
    run = stored[0]
    level = replace(run.manifest, solved_column="return", solved_level=0.7)
    decimal = replace(run, manifest=level, rows=run.rows.with_columns(pl.lit(0.7).alias("return")))
    for runs, kind in (([decimal, stored[1]], pl.Float64()), (stored, pl.Float32())):
        publish(runs, tmp_path / "a.parquet")
        assert pl.read_parquet_schema(tmp_path / "a.parquet")["return"] == kind
        for again, before in zip(read_published(tmp_path / "a.parquet"), runs, strict=True):
            assert again.rows["return"].to_list() == before.rows["return"].to_list()
            assert again.levels["solved"].to_list() == before.levels["solved"].to_list()


def test_a_published_run_is_compared_with_its_folder(stored: list[Run], file: Path) -> None:
    of_folder, again = stored[1], read_published(file)[0]
    assert again.in_order_of(of_folder).rows["return"].to_list() == stored[0].rows["return"].to_list()


def test_costs_of_variants_add_up(stored: list[Run], tmp_path: Path) -> None:
    """A folder's name tells variants apart if it is one of `napping paper`; else the method stands for them all."""
    names = ["mountaincar-dqn-napping", "mountaincar-dqn-napping-goal", "a", "b"]
    runs = [
        PublishedRun(stored[1].manifest, stored[1].rows, published_as=name, times=Times(cpu=10.0 * number))
        for number, name in enumerate(names, 1)
    ]
    assert costs_markdown(runs).splitlines()[2:] == [
        "| `napping` | 80 |",
        "| `napping-goal` | 20 |",
        "| **all: 100** | 100 |",
    ]


def test_a_novelty_that_comes_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "crossroad.parquet"
    publish([nappingrl.run("crossroad", "dqn", "frozen", novelty="all", trials=1, protocol="1+2")], file)
    first, *_, last = read_published(file)[0].novelties
    rewrite(file, pl.read_parquet(file).with_columns(pl.col("novelty").replace(last, first)))
    with pytest.raises(BadRunError, match="are of 8 draws instead of 9"):
        read_published(file)


def test_a_novelty_with_control_characters_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "crossroad.parquet"
    publish([nappingrl.run("crossroad", "dqn", "frozen", novelty="all", trials=1, protocol="1+2")], file)
    name = read_published(file)[0].novelties[0]
    rewrite(file, pl.read_parquet(file).with_columns(pl.col("novelty").replace(name, f"{name}\x9b31m")))
    with pytest.raises(BadRunError, match="the name of a novelty has control characters"):
        read_published(file)


def test_episodes_of_unknown_end_are_refused(file: Path) -> None:
    rows = pl.read_parquet(file).with_columns(won=pl.when(pl.col("episode") > 0).then(pl.lit(True)))
    rewrite(file, rows)
    with pytest.raises(BadRunError, match="column won of mountaincar-dqn-frozen has empty cells"):
        read_published(file)


def test_outputs_stay_in_their_folder(stored: list[Run], tmp_path: Path) -> None:
    """Also where a manifest names a path as its domain."""
    far = replace(stored[0].manifest, spec=stored[0].spec | {"domain": f"{tmp_path}/far/away"})
    out = tmp_path / "a" / "out"
    (written,) = write_rows([replace(stored[0], manifest=far)], out)
    assert written.parent == out
    up = replace(far, spec=far.spec | {"domain": "../.."})
    assert write_rows([replace(stored[0], manifest=up)], out) == [out / "domain.parquet"]


def test_domains_of_like_names_have_files_of_their_own(stored: list[Run], tmp_path: Path) -> None:
    runs = [
        replace(stored[0], manifest=replace(stored[0].manifest, spec=stored[0].spec | {"domain": domain}))
        for domain in ("a/b-v0", "a-b-v0")
    ]
    files = write_rows(runs, tmp_path)
    assert [file.name for file in files] == ["a-b-v0.parquet", "a-b-v0-2.parquet"]
    assert [read_published(file)[0].domain for file in files] == ["a/b-v0", "a-b-v0"]


@pytest.mark.parametrize("letter", ["|", "\n", "\x7f", "\x9b", "\u2028"])
def test_names_have_no_control_characters(stored: list[Run], file: Path, tmp_path: Path, letter: str) -> None:
    """Neither in the file, nor from a folder's name, nor at their end."""
    rows = pl.read_parquet(file).with_columns(pl.col("run").cast(pl.String) + letter)
    text = pl.read_parquet_metadata(file)[KEY]
    for run in stored:
        text = text.replace(f'"{run.name}":', f"{json.dumps(run.name + letter)}:")
    rewrite(file, rows.with_columns(pl.col("run").cast(pl.Categorical)), {KEY: text})
    with pytest.raises(BadRunError, match="matching regex") as error:
        read_published(file)
    assert letter == "|" or letter not in str(error.value)
    publish([replace(stored[0], path=Path(f"a{letter}"))], tmp_path / "a.parquet")
    assert [run.name for run in read_published(tmp_path / "a.parquet")] == ["a-"]


def test_runs_with_the_same_name_are_told_apart(stored: list[Run], tmp_path: Path) -> None:
    publish([stored[0], stored[0]], tmp_path / "a.parquet")
    assert [run.name for run in read_published(tmp_path / "a.parquet")] == [
        "mountaincar-dqn-frozen", "mountaincar-dqn-frozen-2",
    ]  # fmt: skip


def test_phases_come_back(tmp_path: Path) -> None:
    run = nappingrl.run("cartpole", "ppo", "napping", trials=2, protocol="1+11+2+11")
    publish([run], tmp_path / "a.parquet")
    (again,) = read_published(tmp_path / "a.parquet")
    assert again.rows["phase"].to_list() == run.rows["phase"].to_list()
    assert again.levels["level"].to_list() == run.levels["level"].to_list()


def test_part_of_a_run_is_not_published(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["claims", str(file), "--partial", "--out", str(tmp_path / "out")])
    assert "leave --partial out" in capsys.readouterr().err


def test_metrics_of_a_larger_run_are_those_on_the_draws_of_the_frozen_agent(stored: list[Run], tmp_path: Path) -> None:
    larger = nappingrl.run("mountaincar", "dqn", "napping", trials=5, protocol="2+12", out=tmp_path / "larger")
    few, many = (measure_runs([stored[0], run])[1].metrics for run in (stored[1], larger))
    assert many.by_name["nrp"].value == few.by_name["nrp"].value is not None
    assert many.notes == (*few.notes, "mountaincar dqn napping: the 3 of its 5 trials whose draws the frozen agent met")


def test_a_path_that_is_too_long_is_one_line() -> None:
    for read in (read_evidence, read_named):
        with pytest.raises(BadRunError):
            read([Path("a" * 300)])


def test_every_larger_run_is_planned(tmp_path: Path) -> None:
    for domain, setup in PAPER.items():
        stages, _ = plan_evaluation(tmp_path, "full", selection=Selection(domains=(domain,)))
        trials = {stage.folder.name: stage.spec.trials for stage in stages}
        assert {name: trials[f"{domain}-{name}"] for name in setup.larger} == setup.larger


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing more")
    with pytest.raises(BadRunError, match=r"a\.parquet cannot be read"):
        read_evidence([tmp_path / "a.parquet"])
    with pytest.raises(BadRunError, match="cannot be read: it does not exist"):
        read_published(tmp_path / "b.parquet")
