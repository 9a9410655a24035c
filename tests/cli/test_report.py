"""`napping report`: what it refuses, what it says, and which trial's rules it shows."""

import html
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from nappingrl.cli import main
from nappingrl.trials.store import RunFolder
from report.rows import make_run, steps

RUN = ["run", "cartpole", "--trials", "3", "--protocol", "2+8", "--detector", "given", "--workers", "1", "--out"]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def store(path: str, domain: str = "cartpole", parts: tuple[int, ...] = (0, 1, 2), **options: Any) -> RunFolder:
    """A run of six trials in three parts, some of which may be missing."""
    high = {"cartpole": 200, "crossroad": 1}[domain]
    returns = [steps((high, 2), (level, 4)) for level in (1, high, high, 1, high, 1)]
    run = make_run(domain, "ppo", options.pop("method", "frozen"), returns, **options)
    folder = RunFolder.create(Path(path), replace(run.manifest, chunk=2))
    for part in parts:
        folder.write(part, run.rows[part * 12 : (part + 1) * 12])
    return folder


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a refused report says."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        main(["report", *arguments])
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("napping: ")
    return err


def test_an_unfinished_run_is_refused_with_its_missing_parts(capsys: pytest.CaptureFixture[str]) -> None:
    store("whole")
    store("one", parts=(0, 2))
    store("two", parts=(0,))
    said = refused(capsys, "whole", "one", "--out", "r")
    assert "one is unfinished: part-00001.parquet missing; run the command of its manifest.json again" in said
    assert "--partial" in said
    assert "part-00001.parquet to part-00002.parquet missing" in refused(capsys, "two")
    assert not Path("r").exists()


@pytest.mark.parametrize("words", [["claims", "a"], ["export", "a", "--out", "e"]])
def test_claims_and_export_take_unfinished_runs_only_when_asked(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    store("a", parts=(0, 2))
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "a is unfinished: part-00001.parquet missing" in capsys.readouterr().err
    assert not Path("e").exists()
    main([*words, "--partial"])
    assert "a is unfinished: 4 of 6 trials; part-00001.parquet missing; the rest is used" in capsys.readouterr().err


def test_a_damaged_part_is_named_and_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    part = store("r").part(1)
    part.write_bytes(b"nothing")
    assert "part-00001.parquet damaged (its checksum does not match)" in refused(capsys, "r")
    assert part.read_bytes() == b"nothing"
    main(["report", "r", "--partial"])
    assert part.read_bytes() == b"nothing"


def test_partial_reports_on_the_rest_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    store("a", parts=(0, 2))
    store("b", parts=(1,), method="random", role="control")
    main(["report", "a", "b", "--out", "r", "--partial"])
    out, err = capsys.readouterr()
    gap = "4 of 6 trials; part-00001.parquet missing"
    assert err.splitlines()[0] == f"napping: a is unfinished: {gap}; the rest is used"
    text = Path("r/report.html").read_text()
    assert f"Partial report: cartpole ppo frozen has {gap}." in text
    assert "cartpole ppo frozen" in out
    assert Path("r/curves.png").exists()


def test_partial_needs_some_rows(capsys: pytest.CaptureFixture[str]) -> None:
    store("a", parts=())
    assert "a has no rows yet" in refused(capsys, "a", "--partial")


def test_mixed_domains_are_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    store("a")
    store("b", "crossroad")
    said = refused(capsys, "a", "b", "--out", "r")
    assert "runs of 2 domains together (cartpole: a; crossroad: b); give runs of one domain" in said


def test_missing_plotly_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    store("a")
    monkeypatch.setitem(sys.modules, "plotly", None)
    assert 'the page needs plotly: pip install "nappingrl[report]"' in refused(capsys, "a", "--out", "r")
    assert not Path("r").exists()


def test_no_principles(capsys: pytest.CaptureFixture[str]) -> None:
    store("a")
    assert "--trial 1: no run here has rules (frozen: the frozen agent learns nothing)" in refused(
        capsys, "a", "--trial", "1"
    )
    main(["report", "a"])
    assert "No rules: frozen: the frozen agent learns nothing." in Path("a/report.html").read_text()


def test_an_agent_that_is_gone_costs_the_rules_only(capsys: pytest.CaptureFixture[str]) -> None:
    main([*RUN, "a"])
    folder, manifest = RunFolder.open(Path("a")), Path("a/manifest.json")
    rows = folder.read()
    manifest.write_text(manifest.read_text().replace(folder.manifest.agent_sha256, "0" * 64))
    RunFolder.open(Path("a")).write(0, rows)
    main(["report", "a"])
    assert "No rules: napping: a was run with other weights" in Path("a/report.html").read_text()
    assert "a was run with other weights" in refused(capsys, "a", "--trial", "0")


def test_the_rules_of_the_chosen_trial_are_those_of_replay(capsys: pytest.CaptureFixture[str]) -> None:
    main([*RUN, "a", "--method", "frozen"])
    main([*RUN, "b"])
    main(["report", "a", "b", "--out", "r", "--trial", "2"])
    text = Path("r/report.html").read_text()
    assert "Run again for this page: it gave the same rows as stored." in text
    assert not Path("b/principles").exists(), "a report leaves runs alone"
    assert refused(capsys, "a", "b", "--trial", "3").startswith("napping: no trial '3' in b; allowed: 0 to 2")
    main(["replay", "b", "2", "--json"])
    replayed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert replayed["trial"] in text
    for rule in replayed["rules"][:40]:
        situation, _, rest = rule.partition(": ")
        wanted = rest.removeprefix("wanted ").partition(",")[0] if rest.startswith("wanted ") else "several"
        assert f'<th scope="row">{html.escape(situation)}</th><td>{wanted}</td>' in text
    main(["report", "b", "--trial", "2", "--json"])
    assert "Read from principles/" in Path("b/report.html").read_text()


def test_without_trial_it_is_the_median_one_and_stored_ones_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    main([*RUN, "a"])
    rows = RunFolder.open(Path("a")).read()
    means = rows.filter(rows["episode"] >= 0).group_by("trial", maintain_order=True).agg(pl.col("return").mean())
    order = np.argsort(means["return"].to_numpy(), kind="stable")
    main(["replay", "a", str(order[0])])
    main(["report", "a"])
    text = Path("a/report.html").read_text()
    assert text.count("<article ") == 2
    first = text.index("The trial with the median final level of those with principles; run again for this page")
    assert means["trial"][int(order[1])] in text[:first]
    assert "Read from principles/" in text[first:]
    Path("a/principles").joinpath(means["trial"][int(order[0])].replace("/", "_") + ".npz").write_bytes(b"x")
    assert "it is no zip, or a damaged one" in refused(capsys, "a")
    main(["report", "a", "--trial", "none"])
    assert "No rules: not asked for (--trial none)." in Path("a/report.html").read_text()
