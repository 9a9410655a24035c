"""Every figure: layout, formats, bad input, the command."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from matplotlib.image import imread

import nappingrl
from nappingrl.cli import main
from nappingrl.errors import BadRunError, BadSpecError, UnknownNameError
from nappingrl.report.figures import FIGURES, draw_figure
from nappingrl.report.figures.style import save
from nappingrl.trials.store import RunFolder
from report.figures.drawn import FROM_RUNS, Runs, check_layout, needed, texts


@pytest.mark.parametrize("name", FROM_RUNS)
def test_a_figure_has_its_printed_size_and_nothing_is_cut_small_or_covered(
    name: str, runs: Runs, tmp_path: Path
) -> None:
    canvas = FIGURES[name].plot(needed(name, runs))
    check_layout(canvas)
    pixels = imread(save(canvas, tmp_path / "new" / "figure.png"))
    height, width, _ = pixels.shape
    assert width in (1050, 2100)  # 3.5 or 7 inches at 300 dpi
    assert 500 < height < 3000
    assert pixels[..., :3].std() > 0.02  # not an empty page


def test_pdf_and_svg(runs: Runs, tmp_path: Path) -> None:
    assert draw_figure("overall", runs["cartpole"], tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in draw_figure("method", [], tmp_path / "a.svg").read_text(encoding="utf-8")


def test_drawing_leaves_no_settings_behind(runs: Runs) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    FIGURES["overall"].plot(runs["cartpole"])
    assert dict(matplotlib.rcParams) == before


def test_runs_that_do_not_fit(runs: Runs, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    with pytest.raises(UnknownNameError, match="Did you mean 'overall'"):
        draw_figure("overal", [], path)
    with pytest.raises(UnknownNameError, match="Did you mean 'median'"):
        draw_figure("overall", runs["cartpole"], path, "medain")
    with pytest.raises(BadSpecError, match="figure mountaincar-map needs at least one run of MountainCar"):
        draw_figure("mountaincar-map", [], path)
    with pytest.raises(BadRunError, match="needs runs of mountaincar; 'cartpole balance frozen' is another domain"):
        draw_figure("mountaincar-map", runs["cartpole"], path)
    with pytest.raises(BadRunError, match="runs of 2 domains together"):
        draw_figure("detection-delay", [runs["cartpole"][0], runs["mountaincar"][0]], path)
    run = runs["cartpole"][0]
    for none in (run.rows.clear(), run.rows.filter(pl.col("episode") < 0)):
        with pytest.raises(BadRunError, match="has no rows after the novelty"):
            draw_figure("detection-delay", [replace(run, rows=none)], path)
    with pytest.raises(BadRunError, match="a method with regions"):
        draw_figure("regions-over-time", runs["cartpole"][:1], path)
    with pytest.raises(BadSpecError, match="made without runs; 2 given"):
        draw_figure("method", runs["cartpole"], path)
    with pytest.raises(BadSpecError, match="draw_trial_map"):
        draw_figure("embedding-map", runs["cartpole"], path)
    with pytest.raises(BadSpecError, match="does not end in one of"):
        draw_figure("method", [], tmp_path / "a.bmp")
    assert not list(tmp_path.iterdir())


def test_few_trials_and_short_protocols(runs: Runs) -> None:
    run = runs["cartpole"][1]
    few = replace(run, rows=run.rows.filter((pl.col("number") < 1) & (pl.col("episode") >= 0)))
    for name in ("overall", "by-parameter", "detection-delay"):
        check_layout(FIGURES[name].plot([few]))


def test_command(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.create(Path("r"), runs["cartpole"][0].manifest)
    folder.write(0, runs["cartpole"][0].rows)
    RunFolder.create(Path("other"), runs["mountaincar"][0].manifest)
    main(["figure", "overall", "r", "--out", "f/overall.pdf"])
    assert Path("f/overall.pdf").exists()
    main(["figure", "method"])
    assert Path("method.png").exists()
    main(["figure", "domains"])
    assert imread("domains.png").shape[1] == 2100
    assert capsys.readouterr().err == ""
    for words, complaint in (
        (["figure", "methods"], "Did you mean 'method'?"),
        (["figure", "mountaincar-map", "r"], "needs runs of mountaincar"),
        (["figure", "domains", "r"], "made without runs"),
        (["figure", "embedding-map"], "needs one run and --trial; 0 runs given"),
        (["figure", "overall", "nowhere"], "holds no run"),
        (["figure", "detection-delay", "r", "other"], "runs of 2 domains together (cartpole: r; mountaincar: other)"),
    ):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
        err = capsys.readouterr().err
        assert complaint in err
        assert err.count("\n") == 1


def test_command_draws_the_principles_of_a_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    main(
        ["run", "cartpole", "--trials", "1", "--protocol", "1+2", "--detector", "given", "--workers", "1", "--out", "r"]
    )
    main(["figure", "embedding-map", "r", "--out", "map.png"])
    assert imread("map.png").shape[1] == 2100


def test_help_names_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["figure", "--help"])
    out = capsys.readouterr().out
    assert all(name in out for name in FIGURES)
    assert "Example: napping figure" in out


def test_docs_have_the_command_of_every_figure() -> None:
    page = (Path(__file__).parents[3] / "docs" / "figures.md").read_text(encoding="utf-8")
    assert all(f"napping figure {name}" in page for name in FIGURES)


@pytest.mark.parametrize("name", ["overall", "embedding-map"])
def test_unfinished_runs_are_refused_or_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    nappingrl.run("cartpole", "ppo", trials=130, protocol="0+2", detector="given", out="r")
    RunFolder.open(Path("r")).part(1).unlink()
    words = ["figure", name, "r", "--out", "a.png"]
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert "r is unfinished: part-00001.parquet missing; run the command" in capsys.readouterr().err
    assert not Path("a.png").exists()
    main([*words, "--partial"])
    told = "napping: r is unfinished: 128 of 130 trials; part-00001.parquet missing; the rest is used\n"
    assert capsys.readouterr().err == told
    assert Path("a.png").exists()


@pytest.mark.parametrize("name", [name for name in FROM_RUNS if name != "method"])
def test_one_trial_has_no_interval_and_says_so(name: str, runs: Runs) -> None:
    few = [run.where(run.novelties[0]) for run in needed(name, runs)]
    few = [replace(run, rows=run.rows.filter(pl.col("number") == 0)) for run in few]
    canvas = FIGURES[name].plot(few)
    check_layout(canvas)
    words = " ".join(texts(canvas))
    assert "95 % interval" not in words
    plain = ("mountaincar-map", "detection-delay", "by-value", "by-agent", "profiles", "architecture")
    assert "without interval" in words or name in plain
