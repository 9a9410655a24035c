"""`napping report`: the files it writes, and broken input."""

from collections.abc import Callable
from pathlib import Path

from cli.results import SUMMARY, assert_refused, last_json
from command_line import Done, Napping


def test_report_prints_a_table_and_writes_a_picture_and_a_page(
    napping: Napping, run_short: Callable[..., Done]
) -> None:
    run_short("--out", "a", "--method", "frozen")
    run_short("--out", "b", "--method", "napping")
    done = napping("report", "a", "b", "--out", "r")
    assert (done.status, done.err) == (0, "")
    assert "cartpole balance frozen" in done.out
    assert "cartpole balance napping" in done.out
    picture, page = Path("r/curves.png"), Path("r/report.html")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"picture: {picture}" in done.out
    assert f"open {page} in a browser" in done.out
    text = page.read_text()
    assert "cartpole balance napping" in text
    assert "Plotly" in text, "needs no network"
    assert "run again for this page: it gave the same rows as stored" in text
    assert len(text) < 10_000_000


def test_report_goes_into_the_first_run_by_default(napping: Napping, run_short: Callable[..., Done]) -> None:
    run_short("--out", "a")
    found = last_json(napping("report", "a", "--json", "--statistic", "mean"))
    assert set(found) == {"runs", "picture", "page", "verdict"}
    assert set(found["runs"]) == {"a"}
    assert set(found["runs"]["a"]) == SUMMARY | {"best_control"}
    assert Path(found["picture"]) == Path("a/curves.png")
    assert Path(found["page"]) == Path("a/report.html")
    assert Path("a/curves.png").exists()
    assert run_short("--out", "a").status == 0, "the run can still be continued"


def test_report_on_no_run(napping: Napping) -> None:
    Path("empty").mkdir()
    assert_refused(napping("report", "empty"), "empty holds no run", "manifest.json")
    assert_refused(napping("report", "nowhere"), "nowhere holds no run")
    assert_refused(napping("report"), "no run given")
    assert list(Path("empty").iterdir()) == []
    assert not Path("nowhere").exists()


def test_report_on_a_run_without_rows(napping: Napping, run_short: Callable[..., Done]) -> None:
    run_short("--out", "r")
    Path("r/part-00000.parquet").unlink()
    assert_refused(napping("report", "r"), "r has no rows yet")


def test_report_on_a_truncated_part(napping: Napping, run_short: Callable[..., Done]) -> None:
    run_short("--out", "r")
    part = Path("r/part-00000.parquet")
    part.write_bytes(part.read_bytes()[:1000])
    assert_refused(napping("report", "r"), "damaged", "part-00000.parquet", "again")


def test_report_with_an_unknown_statistic(napping: Napping, run_short: Callable[..., Done]) -> None:
    run_short("--out", "r")
    assert_refused(napping("report", "r", "--statistic", "meen"), "unknown statistic 'meen'", "Did you mean 'mean'?")


def test_report_out_is_a_file(napping: Napping, run_short: Callable[..., Done]) -> None:
    run_short("--out", "r")
    Path("file").write_text("x")
    assert_refused(napping("report", "r", "--out", "file"), "file")
