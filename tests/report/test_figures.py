"""Each figure from a tiny run: the file, its words, and that it shows the numbers that the rows hold."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex
from matplotlib.image import imread
from matplotlib.text import Text
from scipy import stats

import nappingrl
from conftest import make_agent
from nappingrl.cli import main
from nappingrl.domains import find_domain
from nappingrl.errors import BadRunError, BadSpecError, UnknownNameError
from nappingrl.report import figures
from nappingrl.report.best_control import Run
from nappingrl.report.figures import FIGURES, draw_figure
from nappingrl.report.figures.curves import detection_delays
from nappingrl.report.figures.method import draw_map, draw_strip, nearest_raster, plot_embedding, plot_strip, project
from nappingrl.report.figures.style import FAILED, looks, save, settle, style
from nappingrl.report.figures.values import binned
from nappingrl.report.intervals import over_trials, rate_wilson
from nappingrl.trials.runner import run_into
from nappingrl.trials.spec import RunSpec
from nappingrl.trials.store import RunFolder
from report.rows import make_run

Runs = dict[str, list[Run]]
FROM_RUNS = [name for name, figure in FIGURES.items() if figure.needs not in ("pictures", "principles")]
TRIALS = {"cartpole": 8, "mountaincar": 8, "crossroad": 2}
PRE, POST = 6, 8


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """A frozen and an adapting run of every domain; those of Angry Birds are made by hand."""
    folder = tmp_path_factory.mktemp("runs")
    found: Runs = {"nothing": []}
    for domain, trials in TRIALS.items():
        agent, found[domain] = make_agent(domain), []
        for method in ("frozen", "napping"):
            novelty = "all" if domain == "crossroad" else ""
            spec = RunSpec(domain, agent.name, method, novelty, trials, 3, protocol=f"{PRE}+{POST}").complete()
            run = run_into(folder / f"{domain}-{method}", spec, agent)
            found[domain].append((run.manifest, run.read()))
    passed = np.random.default_rng(0).integers(0, 2, (14, PRE + POST))
    names = [name for name in find_domain("angrybirds").novelties for _ in range(2)]
    players = [("dqn", "frozen"), ("dqn", "napping"), ("naive", "frozen")]
    found["angrybirds"] = [make_run("angrybirds", *who, passed, PRE, novelties=names) for who in players]
    found["one domain"] = found["cartpole"]
    return found


def needed(name: str, runs: Runs) -> list[Run]:
    return runs[FIGURES[name].needs]


def returns_of(rows: pl.DataFrame) -> Any:
    return rows["return"].to_numpy().reshape(-1, PRE + POST)


def texts(canvas: Any) -> list[str]:
    return [text.get_text() for text in canvas.findobj(Text) if text.get_visible() and text.get_text()]


def line(axes: Any, label: str) -> Any:
    """(x, y) of the line with this label, without the gap at the novelty."""
    (found,) = [one for one in axes.get_lines() if one.get_label() == label]
    data = found.get_xydata()
    return data[~np.isnan(data[:, 1])].T


# ---- every figure -------------------------------------------------------------------------------------------------


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


def check_layout(canvas: Any) -> None:
    """Text of 8 pt or more, all of it on the page, no legend over a panel, no tick label over another."""
    settle(canvas)
    page = canvas.bbox.padded(1)
    with style():  # the number of ticks depends on it
        panels = [axes.get_tightbbox() for axes in canvas.axes]
        legends = [legend.get_window_extent() for legend in canvas.legends]
        for axes in canvas.axes:
            ticks = [tick.get_window_extent() for tick in axes.get_xticklabels() if tick.get_text()]
            assert all(a.x1 < b.x0 for a, b in pairwise(ticks) if a.width > 1)
    for box in panels + legends:
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert not any(legend.padded(-1).overlaps(panel) for legend in legends for panel in panels)
    assert min(text.get_fontsize() for text in canvas.findobj(Text) if text.get_text()) >= 8


def test_pdf_and_svg(runs: Runs, tmp_path: Path) -> None:
    assert draw_figure("cartpole-overall", runs["cartpole"], tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert "<svg" in draw_figure("method", [], tmp_path / "a.svg").read_text(encoding="utf-8")


def test_drawing_leaves_no_settings_behind(runs: Runs) -> None:
    import matplotlib

    before = dict(matplotlib.rcParams)
    FIGURES["cartpole-overall"].plot(runs["cartpole"])
    assert dict(matplotlib.rcParams) == before


# ---- curves -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "statistic", "reduce"),
    [("cartpole", "median", np.median), ("mountaincar", "mean", np.mean), ("crossroad", "mean", np.mean)],
)
def test_overall_shows_the_statistic_over_trials(
    runs: Runs, domain: str, statistic: str, reduce: Callable[..., Any]
) -> None:
    canvas = FIGURES[f"{domain}-overall"].plot(runs[domain])
    axes = canvas.axes[0]
    for (_, rows), look in zip(runs[domain], looks(runs[domain]), strict=True):
        x, y = line(axes, look.label)
        assert x.tolist() == list(range(-PRE, POST))
        np.testing.assert_allclose(y, reduce(returns_of(rows), axis=0))
    assert statistic in axes.get_ylabel()
    assert "95 % interval" in axes.get_ylabel()
    n_trials = runs[domain][0][1]["trial"].n_unique()
    assert f"{n_trials} trials" in axes.get_ylabel()
    agent = make_agent(domain).name
    assert {f"{agent} frozen", f"{agent} napping"} <= set(texts(canvas))
    assert "novelty" in [text.strip() for text in texts(canvas)]
    (at,) = {round(one.get_xdata()[0], 3) for one in axes.get_lines() if one.get_linewidth() == 0.9}
    assert at == -0.5


def test_overall_bands_are_the_intervals(runs: Runs) -> None:
    axes = FIGURES["cartpole-overall"].plot(runs["cartpole"][:1]).axes[0]
    returns = returns_of(runs["cartpole"][0][1])
    post = axes.collections[1].get_paths()[0].vertices
    for episode in range(POST):
        ends = stats.quantile_test(returns[:, PRE + episode], p=0.5).confidence_interval(0.95)
        here = post[post[:, 0] == episode][:, 1]
        assert (here.min(), here.max()) == pytest.approx((ends.low, ends.high))


def test_by_novelty_has_a_panel_for_each(runs: Runs) -> None:
    canvas = FIGURES["crossroad-by-novelty"].plot(runs["crossroad"])
    rows = runs["crossroad"][1][1]
    names = rows["novelty"].unique(maintain_order=True).to_list()
    assert [axes.get_title() for axes in canvas.axes] == names
    for axes, name in zip(canvas.axes, names, strict=True):
        returns = returns_of(rows.filter(pl.col("novelty") == name))
        np.testing.assert_allclose(line(axes, "random napping")[1], returns.mean(axis=0))


def test_regions_over_time(runs: Runs) -> None:
    canvas = FIGURES["regions-over-time"].plot(runs["cartpole"])
    rows = runs["cartpole"][1][1]
    regions = rows["regions"].to_numpy().reshape(-1, PRE + POST)[:, PRE:]
    assert regions.max() > 0
    np.testing.assert_allclose(line(canvas.axes[0], "balance napping")[1], np.median(regions, axis=0))
    assert "balance frozen" not in texts(canvas)


def test_detection_delay_is_cumulative(runs: Runs) -> None:
    canvas = FIGURES["detection-delay"].plot(runs["cartpole"])
    detected = runs["cartpole"][0][1]["detected"].to_numpy().reshape(-1, PRE + POST)[:, PRE:]
    assert detected[:, -1].mean() > 0
    np.testing.assert_allclose(line(canvas.axes[0], "balance: frozen, napping")[1], detected.mean(axis=0))


def test_false_alarms_are_no_detections(runs: Runs) -> None:
    manifest, rows = runs["cartpole"][0]
    first = rows["trial"][0]
    rows = rows.with_columns(pl.col("detected") | (pl.col("trial") == first))
    delays = detection_delays(rows)
    assert np.isnan(delays[0])
    assert not np.isnan(delays[1:]).any()
    assert any("1 false alarms left out" in text for text in texts(FIGURES["detection-delay"].plot([(manifest, rows)])))


# ---- values -------------------------------------------------------------------------------------------------------


def test_by_parameter_has_five_panels_with_their_defaults(runs: Runs) -> None:
    canvas = FIGURES["cartpole-by-parameter"].plot(runs["cartpole"])
    panels = canvas.axes[:5]
    for axes, name in zip(panels, ("length", "gravity", "mass of the cart", "mass of the pole", "force"), strict=True):
        assert name in axes.get_xlabel()
    defaults = [next(one for one in axes.get_lines() if one.get_linestyle() == ":").get_xdata()[0] for axes in panels]
    assert defaults == list(runs["cartpole"][0][0].parameters.values())
    assert texts(canvas).count("default") == 5
    _, rows = runs["cartpole"][1]
    levels = returns_of(rows)[:, -POST:].mean(axis=1)  # fewer than ten episodes: all of them
    assert line(panels[0], "balance napping")[1] == pytest.approx([np.median(levels)])


def test_a_parameter_that_was_not_drawn_is_refused(runs: Runs) -> None:
    manifest, rows = runs["cartpole"][0]
    kept = rows.with_columns(pl.lit(value).alias(f"param_{name}") for name, value in manifest.parameters.items())
    with pytest.raises(BadRunError, match="no trial of these runs drew a value of length"):
        FIGURES["cartpole-by-parameter"].plot([(manifest, kept)])


def test_bins_hold_equally_many_trials() -> None:
    values = np.random.default_rng(0).permutation(60).astype(float)
    centres, found = binned(values, 2 * values, "median")
    assert centres.tolist() == [7.0, 22.0, 37.0, 52.0]
    assert found.centre.tolist() == [14.0, 44.0, 74.0, 104.0]


def test_map_shows_failed_tasks_in_red_where_they_are(runs: Runs) -> None:
    (manifest, rows), *_ = runs["mountaincar"]
    lost = rows["trial"].unique(maintain_order=True)[:3].to_list()
    minimum = manifest.return_range[0]
    is_lost = pl.col("trial").is_in(lost) & (pl.col("episode") >= 0)
    rows = rows.with_columns(
        pl.when(is_lost).then(minimum).otherwise(pl.max_horizontal("return", minimum + 1)).alias("return")
    )
    canvas = FIGURES["mountaincar-map"].plot([(manifest, rows)] * 2)
    assert len(canvas.axes) == 3  # two panels and the colour bar
    axes = canvas.axes[0]
    fine, failed = (found for found in axes.collections if isinstance(found, PathCollection))
    assert to_hex(failed.get_edgecolor()[0]) == FAILED
    drawn = rows.filter(is_lost & (pl.col("episode") == 0)).select("param_force", "param_gravity").to_numpy()
    np.testing.assert_allclose(np.asarray(failed.get_offsets()), drawn)
    assert len(fine.get_offsets()) == TRIALS["mountaincar"] - 3
    np.testing.assert_allclose(np.sort(fine.get_array()), np.sort(returns_of(rows)[3:, -POST:].mean(axis=1)))
    assert "3 of 8 trials failed" in axes.get_title()
    (star,) = [one for one in axes.get_lines() if one.get_marker() == "*"]
    assert star.get_xydata().tolist() == [list(manifest.parameters.values())]


# ---- method, worlds, embedding ------------------------------------------------------------------------------------


def test_the_worked_example_has_three_steps() -> None:
    canvas = FIGURES["method"].plot([])
    assert len(canvas.axes) == 3
    words = " ".join(texts(canvas))
    for part in ("step t:", "step t + 1:", "step t + 2:", "1 → 2 or 3", "1 → 3", "split"):
        assert part in words


def test_strip_of_pictures(tmp_path: Path) -> None:
    pictures = {
        name: np.full((40, 60, 3), i * 80, np.uint8) for i, name in enumerate(("cartpole", "other", "crossroad"))
    }
    canvas = plot_strip(pictures)
    assert [axes.get_title() for axes in canvas.axes] == ["a) CartPole", "b) other", "c) CrossRoad"]
    assert imread(draw_strip(pictures, tmp_path / "a.png")).shape[1] == 2100
    with pytest.raises(BadSpecError, match="at least one picture"):
        draw_strip({}, tmp_path / "b.png")


def make_table(n: int, dim: int) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    candidates = np.zeros((n, 2), np.bool_)
    candidates[np.arange(n), np.arange(n) % 2] = True
    candidates[0] = True  # open
    return {"site": rng.normal(size=(n, dim)), "wanted": np.zeros(n, np.int64), "candidates": candidates}


def test_embedding_map(runs: Runs, tmp_path: Path) -> None:
    manifest = runs["cartpole"][1][0]
    canvas = plot_embedding(manifest, make_table(30, 8), "physics 4")
    words = texts(canvas)
    assert {"LEFT", "RIGHT", "open", "site"} <= set(words)
    caption = canvas.get_supxlabel()
    assert "Trial physics 4: 30 regions, 1 open, 15 closed on another action" in caption
    assert "in this projection, not in all 8 dimensions" in caption
    check_layout(canvas)
    assert imread(draw_map(manifest, make_table(30, 8), tmp_path / "a.png")).shape[1] == 2100
    flat = plot_embedding(manifest, make_table(5, 2)).get_supxlabel()
    assert "projection" not in flat


def test_embedding_map_of_many_actions_names_the_most_frequent(runs: Runs) -> None:
    names = [f"object {i} low" for i in range(40)]
    manifest = replace(runs["cartpole"][1][0], action_names=names)
    candidates = np.zeros((12, 40), np.bool_)
    closed_on = [30, 30, 30, 31, 31, 1, 2, 3, 4, 5, 6]
    candidates[np.arange(11), closed_on] = True
    candidates[11] = True  # open
    table = make_table(12, 4) | {"candidates": candidates, "wanted": np.full(12, 30)}
    with style():
        canvas = plot_embedding(manifest, table)
    check_layout(canvas)
    shown = [text.get_text() for text in canvas.legends[0].get_texts()]
    assert shown == [*(names[i] for i in (30, 31, 1, 2, 3, 4)), "another action", "open", "site"]
    few = plot_embedding(manifest, table | {"candidates": candidates[[0, 0, 3] * 4]})
    assert [text.get_text() for text in few.legends[0].get_texts()][:3] == [names[30], names[31], "open"]


def test_projection_of_two_dimensions_keeps_distances() -> None:
    sites = np.random.default_rng(0).normal(size=(20, 2))
    flat, shares = project(sites)
    np.testing.assert_allclose(
        np.linalg.norm(flat[:, None] - flat, axis=2), np.linalg.norm(sites[:, None] - sites, axis=2), atol=1e-12
    )
    assert shares.sum() == pytest.approx(1)
    assert shares[0] >= shares[1]
    x, y, owner = nearest_raster(flat)
    at = int(np.abs(y - flat[3, 1]).argmin()), int(np.abs(x - flat[3, 0]).argmin())
    assert owner[at] == 3


@pytest.mark.parametrize("sites", [np.zeros((1, 4)), np.ones((3, 4)), np.arange(3.0)[:, None]])
def test_sites_without_a_plane(runs: Runs, sites: Any) -> None:
    plot_embedding(runs["cartpole"][1][0], make_table(len(sites), 4) | {"site": sites})


def test_a_trial_without_principles_is_refused(runs: Runs, tmp_path: Path) -> None:
    with pytest.raises(BadRunError, match="has no principles"):
        draw_map(runs["cartpole"][0][0], {}, tmp_path / "a.png")


# ---- looks --------------------------------------------------------------------------------------------------------


def with_spec(run: Run, **changes: Any) -> Run:
    return replace(run[0], spec=run[0].spec | changes), run[1]


def test_a_method_has_one_colour_and_an_agent_one_dash(runs: Runs) -> None:
    frozen, napping = runs["cartpole"]
    a, b, c, d = looks(
        [with_spec(run, agent=agent) for agent in ("dqn", "zoo/cartpole-ppo.zip") for run in (frozen, napping)]
    )
    assert [look.label for look in (a, b, c, d)] == ["DQN frozen", "DQN napping", "PPO frozen", "PPO napping"]
    assert (a.colour, b.colour, a.dash, c.dash) == (c.colour, d.colour, b.dash, d.dash)
    assert a.colour != b.colour
    assert a.marker != b.marker
    assert a.dash != c.dash
    alone = looks([with_spec(napping, agent="ppo")])
    assert (alone[0].colour, alone[0].dash) == (d.colour, d.dash)


def test_what_differs_is_named(runs: Runs) -> None:
    frozen, napping = runs["cartpole"]
    found = looks([frozen, napping, with_spec(napping, rule="printed")])
    assert [look.label for look in found[:2]] == ["balance frozen", f"balance napping ({napping[0].spec['rule']})"]
    assert found[2].label == "balance napping (printed)"
    assert found[1].dash != found[2].dash
    assert [look.label for look in looks([frozen, with_spec(napping, seed=9)])] == [
        "balance frozen (seed 3)", "balance napping (seed 9)",
    ]  # fmt: skip


def test_intervals() -> None:
    values = np.random.default_rng(0).normal(size=(200, 3))
    found = over_trials(values, "mean")
    np.testing.assert_allclose(found.centre, values.mean(axis=0))
    half = 1.96 * values.std(axis=0) / np.sqrt(200)
    np.testing.assert_allclose(found.upper - found.centre, half, rtol=0.15)
    np.testing.assert_allclose(found.centre - found.lower, half, rtol=0.15)
    assert np.isnan(over_trials(values[:5], "median").lower).all()
    assert np.isnan(over_trials(values[:1], "mean").upper).all()
    share = rate_wilson(np.array([3]), 20)
    ends = stats.binomtest(3, 20).proportion_ci(method="wilson")
    assert (share.lower[0], share.upper[0]) == pytest.approx((ends.low, ends.high))


# ---- bad input ----------------------------------------------------------------------------------------------------


def test_runs_that_do_not_fit(runs: Runs, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    with pytest.raises(UnknownNameError, match="Did you mean 'cartpole-overall'"):
        draw_figure("cartpole-overal", [], path)
    with pytest.raises(BadSpecError, match="figure cartpole-overall needs at least one run of CartPole"):
        draw_figure("cartpole-overall", [], path)
    with pytest.raises(BadRunError, match="needs runs of cartpole; 'mountaincar pump frozen' is another domain"):
        draw_figure("cartpole-overall", [runs["cartpole"][0], runs["mountaincar"][0]], path)
    with pytest.raises(BadRunError, match="needs runs of one domain; these are of cartpole, mountaincar"):
        draw_figure("detection-delay", [runs["cartpole"][0], runs["mountaincar"][0]], path)
    manifest, rows = runs["cartpole"][0]
    for none in (rows.clear(), rows.filter(pl.col("episode") < 0)):
        with pytest.raises(BadRunError, match="has no rows after the novelty"):
            draw_figure("cartpole-overall", [(manifest, none)], path)
    with pytest.raises(BadRunError, match="a method with regions"):
        draw_figure("regions-over-time", runs["cartpole"][:1], path)
    with pytest.raises(BadSpecError, match="made without runs; 2 given"):
        draw_figure("method", runs["cartpole"], path)
    with pytest.raises(BadSpecError, match="draw_map"):
        draw_figure("embedding-map", runs["cartpole"], path)
    with pytest.raises(BadSpecError, match="does not end in one of"):
        draw_figure("method", [], tmp_path / "a.bmp")
    assert not list(tmp_path.iterdir())


def test_few_trials_and_short_protocols(runs: Runs) -> None:
    manifest, rows = runs["cartpole"][1]
    few = rows.filter((pl.col("number") < 1) & (pl.col("episode") >= 0))
    for name in ("cartpole-overall", "cartpole-by-parameter", "detection-delay"):
        check_layout(FIGURES[name].plot([(manifest, few)]))


# ---- command line -------------------------------------------------------------------------------------------------


def test_command(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.create(Path("r"), runs["cartpole"][0][0])
    folder.write(0, runs["cartpole"][0][1])
    RunFolder.create(Path("other"), runs["mountaincar"][0][0])
    main(["figure", "cartpole-overall", "r", "--out", "f/overall.pdf"])
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
        (["figure", "cartpole-overall", "nowhere"], "holds no run"),
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
    page = (Path(__file__).parents[2] / "docs" / "figures.md").read_text(encoding="utf-8")
    assert all(f"napping figure {name}" in page for name in FIGURES)


@pytest.mark.parametrize("name", ["cartpole-overall", "embedding-map"])
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
    few = [(m, rows.filter(pl.col("number") == 0)) for m, rows in needed(name, runs)]
    few = [(m, rows.filter(pl.col("novelty") == rows["novelty"][0])) for m, rows in few]
    canvas = FIGURES[name].plot(few)
    check_layout(canvas)
    words = " ".join(texts(canvas))
    assert "95 % interval" not in words
    assert "without interval" in words or name in ("mountaincar-map", "detection-delay")


# ---- many runs ----------------------------------------------------------------------------------------------------


def many(runs: list[Run], agents: int = 5) -> list[Run]:
    """The runs again for each of some agents: too many lines for one panel."""
    return [with_spec(run, agent=f"agent-{i}") for run in runs for i in range(agents)]


@pytest.mark.parametrize(("domain", "pre"), [("cartpole", PRE), ("mountaincar", 0)])
def test_overall_of_many_runs_has_a_panel_per_agent(runs: Runs, domain: str, pre: int) -> None:
    shown = runs[domain]
    if domain == "mountaincar":  # a level before the novelty that is far from all that comes after it
        level = pl.when(pl.col("episode") < 0).then(-500.0).otherwise(-50.0 + pl.col("number"))
        shown = [(m, rows.with_columns(level.alias("return"))) for m, rows in shown]
    canvas = FIGURES[f"{domain}-overall"].plot(many(shown))
    check_layout(canvas)
    assert [axes.get_title().partition("\n")[0] for axes in canvas.axes] == [f"agent-{i}" for i in range(5)]
    for axes in canvas.axes:
        for (_, rows), method in zip(shown, ("frozen", "napping"), strict=True):
            reduce = np.median if domain == "cartpole" else np.mean
            found = line(axes, method)
            assert found[0].tolist() == list(range(-pre, POST))
            np.testing.assert_allclose(found[1], reduce(returns_of(rows)[:, PRE - pre :], axis=0))
        if not pre:
            assert "before the novelty: −500 (frozen)" in axes.get_title()  # noqa: RUF001
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()] == ["frozen", "napping"]


def test_by_value_of_many_runs_has_a_column_per_agent(runs: Runs) -> None:
    canvas = FIGURES["mountaincar-by-value"].plot(many(runs["mountaincar"], 3))
    check_layout(canvas)
    assert [axes.get_title() for axes in canvas.axes] == ["agent-0", "agent-1", "agent-2", "", "", ""]
    assert ["force" in axes.get_xlabel() for axes in canvas.axes] == [True] * 3 + [False] * 3
    assert all(len(axes.get_legend_handles_labels()[1]) == 2 for axes in canvas.axes)


def test_map_sets_the_methods_of_an_agent_side_by_side(runs: Runs) -> None:
    canvas = FIGURES["mountaincar-map"].plot(many(runs["mountaincar"], 2))
    titles = [axes.get_title().partition(":")[0] for axes in canvas.axes[:4]]
    assert titles == ["agent-0 frozen", "agent-0 napping", "agent-1 frozen", "agent-1 napping"]


def test_report_curves_still_work(runs: Runs, tmp_path: Path) -> None:
    frozen, napping = runs["cartpole"]
    for i, shown in enumerate(([frozen, napping], many([frozen, napping]))):
        path = figures.curves(shown, tmp_path / f"curves-{i}.png", "mean")
        assert imread(path).shape[:2] == (720, 1080)
