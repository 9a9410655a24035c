"""The page without a browser: what must be on it, what must not, and that nothing in it can run or be fetched."""

import base64
import hashlib
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from nappingrl.errors import BadRunError
from nappingrl.explain import ReadableRule
from nappingrl.report import page
from nappingrl.report.intervals import Interval, mean_interval, rate_interval
from nappingrl.report.page import curves as page_curves
from nappingrl.report.page.metrics import GROUPS, measure_runs
from nappingrl.report.page.rules import TrialRules, median_trial, read_table, stored_tables
from nappingrl.report.runs import Run, label_runs
from nappingrl.report.table import summarise_runs
from report.rows import make_run, steps

EVIL = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"
N = 24
_RNG = np.random.default_rng(0)
LEVELS = {
    "frozen": _RNG.integers(5, 60, N),
    "napping": _RNG.integers(100, 200, N),
    "random": _RNG.integers(10, 40, N),
    "oracle": np.full(N, 200),
    "controller": _RNG.integers(20, 90, N),
}
ROLES = {"frozen": "baseline", "random": "control", "controller": "control", "oracle": "oracle"}
GRAVITY = np.linspace(1, 30, N)


def make(method: str, label: str = "", n: int = N, **options: Any) -> Run:
    """A run of n trials, 2 episodes before the novelty and 12 after it."""
    returns = [steps((200, 2), (int(level), 12)) for level in LEVELS[method][:n]]
    params = {"gravity": GRAVITY[:n], "force": np.full(n, 3.0)}
    made = make_run("cartpole", "ppo", method, returns, role=ROLES.get(method, "method"), params=params, **options)
    manifest = replace(
        made.manifest, command=f"napping run cartpole --method {method}", agent_sha256="a" * 64, source_sha256="5" * 64,
        versions={"python": "3.11.9"}, notes=[f"{method} has a note"],
    )  # fmt: skip
    return Run(manifest, made.rows, Path(method), label)


def given(run: Run) -> Run:
    """The same with the detection given."""
    return replace(run, manifest=replace(run.manifest, spec=run.manifest.spec | {"detector": "given"}))


def write(path: Path, runs: list[Run], **options: Any) -> str:
    content = page.Content(runs, summarise_runs(runs), **options)
    return page.write_page(path / "r.html", content).read_text(encoding="utf-8")


class Reader(HTMLParser):
    """Elements, their attributes, and the text outside scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.style = ""
        self.words: list[str] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = tag
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside == "style":
            self.style += data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return [make("frozen"), make("napping"), given(make("random")), make("oracle"), make("controller")]


@pytest.fixture(scope="module")
def html(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> str:
    rules = [TrialRules("cartpole ppo napping", "t/1", "Run again", (
        ReadableRule("pole leaning left", "LEFT", ("RIGHT",), 3, 1234, 0.52),
        ReadableRule("pole leaning right", "RIGHT", ("RIGHT",), 1, 99, 0.41),
        ReadableRule("pole upright", "LEFT", ("LEFT", "RIGHT"), 1, 7, 0.3),
    ))]  # fmt: skip
    return write(tmp_path_factory.mktemp("page"), runs, command="napping report a b", rules=rules)


def span(interval: Interval | None, digits: int) -> str:
    assert interval is not None
    return f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"


# ---- what is there ------------------------------------------------------------------------------------------------


def test_every_run_has_its_numbers_and_intervals(html: str, runs: list[Run]) -> None:
    text = Reader(html).text
    for run in runs:
        levels = run.levels
        level, solved = mean_interval(levels["level"].to_numpy()), rate_interval(levels["solved"].to_numpy())
        assert level is not None
        assert solved is not None
        spread = span(level, 1) if level.low < level.high else "the same in all trials"
        shares = f"{solved.value:.0%} {solved.low:.0%} to {solved.high:.0%}"
        method = run.manifest.spec["method"]
        expected = f"cartpole ppo {method} {N} 200.0 {level.value:.1f} {level.value:.1f} {spread} {shares} "
        assert expected in text
        assert f"cartpole ppo {method}: {method} has a note" in text
    assert "better than controller" in text
    for fact in ("domain cartpole", "agent ppo", "method frozen, napping, random, oracle, controller",
                 f"trials {N}", "seed 0",
                 "protocol 2+12", "2 before, 12 after the novelty", "mean return of the last 10 episodes at least 200",
                 "cartpole: performance = (return - 1) / 199, 0 to 1"):  # fmt: skip
        assert fact in text


def test_every_metric_has_a_line_with_its_direction_and_interval(html: str, runs: list[Run]) -> None:
    text = Reader(html).text
    for group in GROUPS.values():
        for name, about in group.items():
            assert f"{about.name} {about.words} {name} " in text
    first, second = (one.metrics.by_name for one in measure_runs(runs)[:2])
    assert set(first) == {name for group in GROUPS.values() for name in group}, "every metric is explained"
    about = GROUPS["Reaction"]["nrp"]
    values = [mean_interval(found["nrp"].defined) for found in (first, second)]
    told = " ".join(f"{value.value:.3f} {span(value, 3)}" for value in values if value)
    assert f"{about.name} {about.words} nrp higher {told} " in text
    regret = mean_interval(second["oracle_regret"].defined)
    assert regret is not None
    assert f"{regret.value:.3f} {span(regret, 3)}" in text
    assert "window m = 1 of 14 episodes, novelty at 2" in text


def test_the_page_opens_with_the_verdict_and_marks_the_best(html: str) -> None:
    """Bold is the best of the methods and the frozen agent, not the oracle, which is higher."""
    read = Reader(html)
    assert read.text.index("of the oracle") < read.text.index("Summary")
    (best,) = [
        part.split("</strong>")[0] for part in html.split('<strong class="best">')[1:] if not part.startswith("do ")
    ]
    assert best == f"{LEVELS['napping'].mean():.1f}"


def test_metrics_are_folded_and_every_run_has_a_profile(html: str, runs: list[Run]) -> None:
    read = Reader(html)
    assert read.tags.count("details") == read.tags.count("summary") >= len(GROUPS) + 1
    assert ("details", "open", "") not in read.attributes
    profiles = read.data()["profiles"]
    assert len(profiles) == len(runs)
    for found, run in zip(profiles, runs, strict=True):
        levels = run.levels["level"].to_numpy()
        assert found["y"] == pytest.approx([(levels >= x - 1e-6).mean() for x in found["x"]], abs=1e-3)


def test_the_rules_read_as_a_list(html: str) -> None:
    text = Reader(html).text
    assert "in this situation the agent wants now visits share as said regions score" in text
    assert "pole leaning left LEFT do RIGHT 1,234 100% 100% 3 0.52" in text
    assert "pole leaning right RIGHT still RIGHT 99 100% 100% 1 0.41" in text
    assert "pole upright LEFT still trying LEFT or RIGHT 7 100% 100% 1 0.3" in text


def test_how_to_rerun(html: str, runs: list[Run]) -> None:
    text = Reader(html).text
    for run in runs:
        assert run.manifest.command in text
    for words in ("napping report a b", "python 3.11.9", "a" * 64, "5" * 64, "plotly"):
        assert words in text


def test_a_run_from_python_gets_a_command(tmp_path: Path) -> None:
    run = make("frozen")
    runs = [replace(run, manifest=replace(run.manifest, command=""))]
    text = Reader(
        write(tmp_path, runs, command_for=lambda spec, path: f"napping run {spec['domain']} from {path}")
    ).text
    assert f"napping run cartpole from {run.path}" in text
    assert "napping run" not in Reader(write(tmp_path, runs)).text


def test_tables_have_headers_and_controls_have_labels(html: str) -> None:
    read = Reader(html)
    assert read.tags.count("caption") == read.tags.count("table") > 5
    scopes = {value for tag, name, value in read.attributes if (tag, name) == ("th", "scope")}
    assert scopes == {"col", "row"}
    assert read.tags.count("th") == sum((tag, name) == ("th", "scope") for tag, name, _ in read.attributes)
    assert any((tag, name) == ("div", "aria-label") for tag, name, _ in read.attributes)
    assert read.tags.count("label") == read.tags.count("select") + read.tags.count("input")


# ---- what is not available ----------------------------------------------------------------------------------------


def test_what_needs_other_runs_is_not_available_and_says_why(tmp_path: Path) -> None:
    text = Reader(write(tmp_path, [make("napping")])).text
    assert "needs a run of --method frozen on the same draws with the same agent" in text
    assert "needs a run of --method oracle on the same draws" in text
    assert text.count("n/a") > 10
    assert "no control or frozen run beside it" in text


def test_a_random_run_that_waits_for_detection_is_not_random_actions(tmp_path: Path) -> None:
    text = Reader(write(tmp_path, [make("frozen"), make("random")])).text
    assert "acts as the agent until rolling-mean detects the novelty" in text


def test_a_baseline_that_lacks_trials_is_not_used() -> None:
    frozen = make("frozen")
    found = measure_runs([make("napping"), replace(frozen, rows=frozen.rows.filter(frozen.rows["number"] != 3))])
    assert found[0].metrics.by_name["nrp"].value is None
    assert "lacks trials" in found[0].lacking["frozen"]


def test_one_trial_has_no_interval(tmp_path: Path) -> None:
    read = Reader(write(tmp_path, [make("frozen", n=1), make("napping", n=1)]))
    assert "one trial: no interval" in read.text
    assert " to 0." not in read.text
    (split,) = read.data()["splits"]
    (run, _) = split["groups"][0]["runs"]
    assert run["n"] == 1
    assert run["mean_band"] is run["median_band"] is None
    assert len(run["level"]) == len(run["solved"]) == 1


def test_a_partial_run_is_named(tmp_path: Path) -> None:
    run = replace(make("frozen"), gap="24 of 48 trials; part-00001.parquet missing")
    text = Reader(write(tmp_path, [run])).text
    assert "Partial report: cartpole ppo frozen has 24 of 48 trials; part-00001.parquet missing" in text


def test_runs_of_other_source_are_named(tmp_path: Path) -> None:
    other = make("napping")
    other = replace(other, manifest=replace(other.manifest, source_sha256="6" * 64))
    assert "2 states of the source code" in Reader(write(tmp_path, [make("frozen"), other])).text


def test_without_rules_it_says_why(tmp_path: Path) -> None:
    assert "No rules: <b>" in Reader(write(tmp_path, [make("frozen")], why_no_rules=["<b>"])).text


# ---- nothing runs, nothing is fetched -----------------------------------------------------------------------------


def assert_tame(html: str) -> Reader:
    read = Reader(html)
    assert len(read.scripts) == 3, "the data, plotly, ours"
    assert not {"img", "iframe", "object", "embed", "link", "base"} & set(read.tags)
    for tag, name, value in read.attributes:
        assert not name.startswith("on"), (tag, name, value)
        if name in ("src", "href", "action", "data", "srcset", "poster", "formaction"):
            assert value.startswith("#"), (tag, name, value)
    assert "url(" not in read.style
    assert "@import" not in read.style
    return read


def test_nothing_is_fetched_and_the_page_is_small(html: str) -> None:
    assert_tame(html)
    assert len(html.encode()) < 10_000_000


def test_the_policy_lets_exactly_our_scripts_run(html: str) -> None:
    read = Reader(html)
    (policy,) = [v for _, name, v in read.attributes if name == "content" and v.startswith("default-src")]
    allowed = {
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in read.scripts[1:]
    }
    assert policy.startswith("default-src 'none'; ")
    (scripts,) = [part.split() for part in policy.split("; ") if part.startswith("script-src")]
    assert set(scripts[1:]) == allowed


def test_what_comes_from_files_is_text(tmp_path: Path) -> None:
    run = make("napping", label=f"run {EVIL}", novelties=[EVIL] * 12 + ["b"] * 12)
    spec = run.manifest.spec | {"agent": EVIL, "detector": EVIL, "novelty": EVIL, "protocol": EVIL}
    manifest = replace(
        run.manifest, spec=spec, command=EVIL, notes=[EVIL], version=EVIL, versions={EVIL: EVIL}, agent_sha256=EVIL,
        source_sha256=EVIL,
    )  # fmt: skip
    run = replace(run, manifest=manifest, gap=EVIL)
    rules = [TrialRules(EVIL, EVIL, EVIL, (ReadableRule(EVIL, EVIL, (EVIL, "x"), 1, 1, 0.0),))] * 2
    read = assert_tame(write(tmp_path, [run], rules=rules, command=EVIL, why_no_rules=[EVIL]))
    assert read.text.count("alert(1)") > 20
    assert read.data()["runs"][0]["name"] == f"run {EVIL}"
    assert read.data()["splits"][1]["groups"][0]["label"] == EVIL


def test_a_page_that_would_be_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_BYTES", 1_000_000)
    with pytest.raises(BadRunError, match="allowed: 1; give fewer runs"):
        write(tmp_path, [make("frozen")])
    assert list(tmp_path.iterdir()) == []


# ---- curves -------------------------------------------------------------------------------------------------------


def test_curves_of_too_few_trials_have_no_band() -> None:
    (group,) = page_curves.curve_data([make("frozen", n=1), make("frozen", n=5)], "mean")["splits"][0]["groups"]
    bands = [(run["mean_band"] is None, run["median_band"] is None) for run in group["runs"]]
    assert bands == [(True, True), (False, True)]


def test_the_slider_has_bins_of_the_parameters_that_vary(runs: list[Run]) -> None:
    data = page_curves.curve_data(runs, "mean")
    assert [split["name"] for split in data["splits"]] == ["all trials", "gravity (0.0025 before the novelty)"]
    everything, gravity = data["splits"]
    assert gravity["kind"] == "bins"
    assert len(gravity["groups"]) == 5
    for i, run in enumerate(runs):
        parts = [group["runs"][i] for group in gravity["groups"]]
        whole = everything["groups"][0]["runs"][i]
        assert sum(part["n"] for part in parts) == whole["n"] == N
        assert [round(x, 1) for x in whole["mean"]] == pytest.approx(
            run.rows.group_by("episode").agg(pl.col("return").mean()).sort("episode")["return"].round(1).to_list()
        )
        lowest = LEVELS[run.manifest.spec["method"]][np.quantile(GRAVITY, 0.2) > GRAVITY]
        assert parts[0]["median"][-1] == pytest.approx(np.median(lowest))
        assert data["runs"][i]["first"] == -2
    assert gravity["groups"][0]["label"].startswith("1 to ")


def test_several_novelties_are_chosen_by_name() -> None:
    data = page_curves.curve_data([make("napping", novelties=["a"] * 10 + ["b"] * 14)], "median")
    split = data["splits"][1]
    assert (split["name"], split["kind"]) == ("novelty", "names")
    assert [(group["label"], group["runs"][0]["n"]) for group in split["groups"]] == [("a", 10), ("b", 14)]


def test_splits_that_do_not_fit_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_curves, "MAX_BYTES", 1000)
    read = Reader(write(tmp_path, [make("frozen")]))
    assert len(read.data()["splits"]) == 1
    assert "Left out to keep the page small: split by gravity" in read.text


def test_the_novelties_have_a_table(tmp_path: Path) -> None:
    run = make("napping", novelties=["a"] * 10 + ["b"] * 14)
    first = mean_interval(LEVELS["napping"][:10])
    assert first is not None
    assert f"a {first.value:.1f} {span(first, 1)}" in Reader(write(tmp_path, [run])).text


# ---- labels and rules ---------------------------------------------------------------------------------------------


def test_runs_that_read_alike_say_in_what_they_differ() -> None:
    runs = [make("napping"), make("napping", seed=3), make("frozen"), make("frozen")]
    labelled = label_runs([replace(run, path=Path(f"r{i}")) for i, run in enumerate(runs)])
    assert [run.label for run in labelled] == [
        "cartpole ppo napping (seed 0)",
        "cartpole ppo napping (seed 3)",
        "cartpole ppo frozen (r2)",
        "cartpole ppo frozen (r3)",
    ]


def test_runs_that_differ_in_nothing_have_numbers() -> None:
    """A published run and the folder that it was in have the same name."""
    labelled = label_runs([replace(make("frozen"), path=Path(folder, "r")) for folder in "abc"])
    assert [run.label for run in labelled] == [
        "cartpole ppo frozen (r)", "cartpole ppo frozen (r) (2)", "cartpole ppo frozen (r) (3)",
    ]  # fmt: skip


def test_the_median_trial() -> None:
    run = make("napping", n=5)
    order = np.argsort(LEVELS["napping"][:5], kind="stable")
    ids = [run.rows["trial"].unique(maintain_order=True)[int(i)] for i in order]
    assert median_trial(run) == ids[2]
    learned = run.rows.with_columns(regions=pl.col("trial").is_in(ids[3:]).cast(pl.Int32))
    assert median_trial(replace(run, rows=learned)) == ids[3], "of those that have principles"


def test_stored_principles_are_found_by_their_trial_and_checked(tmp_path: Path) -> None:
    run = replace(make("napping"), path=tmp_path)
    folder = tmp_path / "principles"
    folder.mkdir()
    third, fourth = run.rows["trial"].unique(maintain_order=True)[3:5]
    good, bad = (folder / f"{trial.replace('/', '_')}.npz" for trial in (third, fourth))
    np.savez(good, x=np.zeros(2))
    bad.write_bytes(b"nothing")
    (folder / "of_another_run.npz").write_bytes(b"nothing")
    assert stored_tables(run) == {third: good, fourth: bad}
    with pytest.raises(BadRunError, match="holds no principles"):
        read_table(good)
    with pytest.raises(BadRunError, match="no zip, or a damaged one"):
        read_table(bad)
