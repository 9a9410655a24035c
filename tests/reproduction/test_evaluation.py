"""The whole evaluation, made small: runs, figures, pages and claims from one command; and continued."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from conftest import make_agent
from nappingrl.agents.base import Agent
from nappingrl.cli import main
from nappingrl.domains.cartpole import CartPole
from nappingrl.errors import BadRunError, BadSpecError, UnknownNameError
from nappingrl.registry import Registry, agents, domains, methods
from nappingrl.report.figures import FIGURES
from nappingrl.report.runs import read_run
from nappingrl.reproduction import evaluation
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.columns import COLUMNS, OURS, PRINTED, columns_of
from nappingrl.reproduction.evaluation import PaperSetup, Selection, estimate, plan_evaluation
from nappingrl.reproduction.judging import FAILS, NOT_JUDGED, Claim, mean_part
from nappingrl.reproduction.times import Times, read_times, timed
from nappingrl.trials.limits import MAX_MANIFEST_BYTES
from nappingrl.trials.store import RunFolder


class Toy(CartPole):
    """CartPole under another name."""

    name = "toy"
    title = "toy"


def Still() -> Agent:  # noqa: N802
    """An agent for it."""
    return make_agent("cartpole")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two trials of two methods with one agent of each domain, and a scripted agent."""
    setups = {"cartpole": (2, ""), "mountaincar": (2, ""), "crossroad": (1, "all"), "angrybirds": (1, "bone")}
    paper = {name: replace(evaluation.PAPER[name], quick=n, novelty=novelty) for name, (n, novelty) in setups.items()}
    monkeypatch.setattr(evaluation, "PAPER", paper)
    zoo = {"cartpole": ["ppo"], "mountaincar": ["dqn"], "crossroad": ["dqn"], "angrybirds": []}
    monkeypatch.setattr(evaluation, "zoo_names", lambda domain: zoo.get(domain, []))
    keep_only(monkeypatch, methods, "frozen", "napping")
    keep_only(monkeypatch, agents, "angrybirds-naive")
    return tmp_path / "paper"


def keep_only(monkeypatch: pytest.MonkeyPatch, registry: Registry, *names: str) -> None:
    """Leave only these entries in the paper's evaluation."""
    for entry in registry.entries():
        monkeypatch.setitem(registry._entries, entry.name, replace(entry, in_paper=entry.name in names))


def test_from_nothing_to_figures_pages_and_claims(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["paper", "--out", str(small), "--workers", "1", "--json"]
    main(words)
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    runs = sorted(path.name for path in (small / "runs").iterdir())
    assert runs == ["angrybirds-naive-frozen"] + [
        f"{name}-{m}"
        for name in ("cartpole-ppo", "crossroad-dqn", "mountaincar-dqn")
        for m in ("frozen", "napping", "napping-printed")
    ] + ["times.json"]
    assert sorted(found["seconds_by_run"]) == runs[:-1]
    assert [run["run"] for run in found["rates"]["angrybirds"]["runs"]] == ["Naive"]
    assert "| bone | Naive | 1 |" in (small / "angrybirds" / "rates.md").read_text("utf-8")
    drawn = {Path(file).stem for file in found["files"]}
    assert all(any(name in stem for stem in drawn) for name in FIGURES), "every figure is there"
    assert {"cartpole-overall", "cartpole-by-parameter", "crossroad-by-novelty", "mountaincar-map"} <= drawn
    assert all(Path(file).stat().st_size > 5000 for file in found["files"] if file.endswith((".png", ".html")))
    assert {path.parent.name for path in small.glob("*/report.html")} == {
        "angrybirds", "cartpole", "crossroad", "mountaincar"
    }  # fmt: skip
    command = RunFolder.open(small / "runs" / "cartpole-ppo-frozen").manifest.command
    assert command.startswith("napping run cartpole --agent ppo --method frozen --novelty physics")
    assert "--trials 2 --out " in command
    judged = json.loads((small / "claims.json").read_text())
    assert judged == found["claims"]
    assert len(judged) == sum(len(COLUMNS) if claim.by_column else 1 for claim in CLAIMS)
    assert NOT_JUDGED in {claim["status"] for claim in judged}
    table = (small / "claims.md").read_text("utf-8")
    assert "| column | holds | does not hold | undecided | not judged |" in table
    assert "### CartPole: NAPPING\n\n| claim | holds if | as printed | ours | beyond |" in table
    results = (small / "results.md").read_text("utf-8")
    head = "| agent | before | Frozen (2) | as printed: NAPPING (2) | ours: NAPPING (2) |"
    assert f"### CartPole\n\n{head}" in results
    assert "| cartpole ppo frozen | 2 |" in (small / "times.md").read_text("utf-8")
    published = pl.read_parquet(small / "rows" / "mountaincar.parquet").filter(run="mountaincar-dqn-napping-printed")
    rows = read_run(small / "runs" / "mountaincar-dqn-napping-printed").rows
    assert published["return"].to_list() == rows["return"].to_list()
    assert published["param_force"].to_list() == pytest.approx(rows["param_force"].to_list())
    printed = RunFolder.open(small / "runs" / "mountaincar-dqn-napping-printed").manifest.spec
    assert (printed["score"], printed["options"]) == ("reward", {"rule": "printed", "space": "embedding"})
    page = (small / "mountaincar" / "report.html").read_text("utf-8")
    assert "napping (score reward, rule=printed, space=embedding)" in page
    parts = list((small / "runs").rglob("*.parquet"))
    before = [part.stat().st_mtime_ns for part in parts]
    left, mine = (small / "figures" / name for name in ("map.png.123-0123abcd.tmp", "mine.tmp"))
    left.touch()
    mine.touch()
    main(words)
    assert (left.exists(), mine.exists()) == (False, True), "what a killed process was writing is removed"
    main(command.split()[1:])
    assert [part.stat().st_mtime_ns for part in parts] == before, "nothing is run twice"


def test_claims_command_and_its_exit_status(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation.run_stages(plan_evaluation(small)[0][:2], workers=1)
    main(["claims", str(small), "--json"])
    assert FAILS not in capsys.readouterr().out, "two trials of one agent contradict nothing"
    part = mean_part("steps", np.full(30, 200.0), low=999)
    claim = Claim("cartpole", "PPO stands for a thousand steps", "-", lambda evidence: [part])
    monkeypatch.setattr("nappingrl.reproduction.claims.CLAIMS", [*CLAIMS, claim])
    with pytest.raises(SystemExit) as caught:
        main(["claims", str(small)])
    assert caught.value.code == 1
    assert "PPO stands for a thousand steps" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["claims", str(small.parent / "nothing")])
    assert caught.value.code == 2
    assert "holds no run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "make",
    [
        lambda file: file.touch(),
        lambda file: file.write_text('{"a": '),
        lambda file: file.write_text('{"a": "long"}'),
        lambda file: file.write_text("[]"),
        lambda file: file.write_bytes(b'{"\xff": {}}'),
        lambda file: file.write_text('{"a": {"b": ' + "[" * 100_000),
        lambda file: file.mkdir(),
        os.mkfifo,
        lambda file: file.write_bytes(b"{}" + b" " * MAX_MANIFEST_BYTES),
    ],
    ids=["empty", "cut", "text", "list", "no-utf-8", "deep", "folder", "pipe", "huge"],
)
def test_damaged_times_are_one_line(tmp_path: Path, make: Callable[[Path], object]) -> None:
    make(tmp_path / "times.json")
    with pytest.raises(BadRunError, match=r"times\.json cannot be read .*; delete it: only times are lost") as error:
        read_times(tmp_path)
    assert "\n" not in str(error.value)


def test_times_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "times.json").write_text('{"before": {"wall": 2.0, "cpu": 3.0}}')

    def cut_off(*_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt), timed(tmp_path / "run"):
        pass
    assert read_times(tmp_path) == {"before": Times(2.0, 3.0)}


def test_stages_are_estimated_from_those_that_have_run(small: Path) -> None:
    stages = plan_evaluation(small, selection=Selection(("cartpole",)))[0]
    first = stages[0]
    times = {first.folder.name: Times(10.0, 20.0)}
    expected = estimate(stages, times, 2)
    assert expected[first.folder.name] == pytest.approx(10.0)
    costs = {stage.folder.name: stage.cost / first.cost for stage in stages}
    assert expected == pytest.approx({name: 10 * cost for name, cost in costs.items()})
    assert all(seconds > 0 for seconds in estimate(stages, {}, 2).values())


def test_a_part_of_the_evaluation(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["paper", "--out", str(small), "--workers", "1", "--domains", "cartpole", "--agents", "ppo"]
    main([*words, "--methods", "napping-printed"])
    assert [path.name for path in sorted((small / "runs").iterdir())] == ["cartpole-ppo-napping-printed", "times.json"]
    output = capsys.readouterr()
    assert "1 runs, about" in output.err
    assert "estimated seconds" in output.out
    main([*words, "--methods", "frozen", "napping-printed"])
    assert (small / "runs" / "cartpole-ppo-frozen").is_dir()
    for option, name, meant in (("--agents", "pppo", "ppo"), ("--methods", "naping", "napping")):
        with pytest.raises(SystemExit):
            main(["paper", "--out", str(small), option, name])
        assert f"Did you mean '{meant}'" in capsys.readouterr().err
    with pytest.raises(BadSpecError, match="no run has these"):
        plan_evaluation(small, selection=Selection(("cartpole",), ("ppo",), ("auto",)))


def test_tables_cover_finished_runs_of_earlier_calls(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And figures those of the domain; an unfinished run is in neither."""
    words = ["paper", "--out", str(small), "--workers", "1"]
    main([*words, "--domains", "cartpole", "--methods", "frozen"])
    main([*words, "--domains", "mountaincar", "--methods", "frozen", "napping"])
    next((small / "runs" / "mountaincar-dqn-napping").glob("*.parquet")).unlink()
    capsys.readouterr()
    main([*words, "--domains", "crossroad", "--methods", "napping", "--json"])
    output = capsys.readouterr()
    assert f"the tables include 2 runs of earlier calls in {small}\n" in output.err  # of the same version
    assert f"not in the tables: {small / 'runs' / 'mountaincar-dqn-napping'} " in output.err
    found = json.loads(output.out.splitlines()[-1])
    assert list(found["seconds_by_run"]) == ["crossroad-dqn-napping"]
    assert not any("cartpole" in Path(file).name for file in found["files"])
    results = (small / "results.md").read_text("utf-8")
    assert [line for line in results.splitlines() if line.startswith("#")] == [
        "### CartPole", "### MountainCar", "### CrossRoad"
    ]  # fmt: skip
    assert (small / "times.md").read_text("utf-8").count("| cartpole ") == 3
    main([*words, "--domains", "mountaincar", "--methods", "napping", "--json"])
    files = json.loads(capsys.readouterr().out.splitlines()[-1])["files"]
    assert pl.read_parquet(next(file for file in files if file.endswith("parquet")))["method"].n_unique() == 2


def test_progress_adds_up_over_all_stages(small: Path) -> None:
    told: list[tuple[int, int, str]] = []
    evaluation.run_stages(plan_evaluation(small)[0][:2], 1, lambda *words: told.append(words))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]
    assert {label for _, _, label in told} <= {f"cartpole ppo {m}" for m in ("frozen", "napping", "napping-printed")}
    assert len({label for _, _, label in told}) == 2


def test_some_domains_with_scripted_agents_and_without_what_cannot_run(tmp_path: Path) -> None:
    stages, left_out = plan_evaluation(tmp_path, "full", selection=Selection(("angrybirds",)))
    assert {stage.spec.domain for stage in stages} == {"angrybirds"}
    trials = {stage.folder.name: stage.spec.trials for stage in stages}
    larger = {f"angrybirds-{name}": n for name, n in evaluation.PAPER["angrybirds"].larger.items()}
    assert {name: n for name, n in trials.items() if n != 40} == larger
    assert {stage.spec.novelty for stage in stages} == {"all"}
    by_agent: dict[str, set[str]] = {}
    for stage in stages:
        by_agent.setdefault(stage.spec.agent, set()).add(stage.method)
    controls = {"random", "replay-success", "controller"}
    paper = {"frozen", "napping", "napping-goal", "auto"}
    scores = {stage.method: stage.spec.score for stage in stages if stage.spec.method == "napping"}
    assert scores == {"napping": "paper", "napping-goal": "goal"}
    assert by_agent.pop("dqn") == by_agent.pop("dqn-rel") == paper | controls
    assert by_agent.pop("dqn-raster") == (paper | controls) - {"auto"}
    assert by_agent == {name: {"frozen"} for name in ("naive", "naive-adaptation", "datalab", "replanner", "hydra")}
    reasons = {entry.method: entry.reason for entry in left_out}
    assert set(reasons) == {"online", "finetune", "oracle", "napping-no-memory", "auto"}
    assert "cannot be trained further" in reasons["online"]
    assert "to keep the time short" in reasons["napping-no-memory"]
    with pytest.raises(UnknownNameError, match="Did you mean 'angrybirds'"):
        plan_evaluation(tmp_path, selection=Selection(("angribirds",)))
    _, quick = plan_evaluation(tmp_path, "quick", selection=Selection(("angrybirds",), methods=("auto",)))
    assert [entry.reason for entry in quick] == ["to keep the time short, as trials here are slow"]


@pytest.mark.parametrize("names", [("napping",), ("napping-printed",), ("napping", "napping-printed")])
def test_columns_that_are_the_same_run_run_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    stages, _ = plan_evaluation(tmp_path, selection=Selection(("angrybirds",), ("dqn",), names))
    assert [stage.folder.name for stage in stages] == ["angrybirds-dqn-napping"]
    assert columns_of(msgspec.to_builtins(stages[0].spec)) == [PRINTED, OURS]


def test_the_runs_of_the_paper(tmp_path: Path) -> None:
    stages, _ = plan_evaluation(tmp_path, selection=Selection(("cartpole", "mountaincar", "crossroad")))
    paper = {"frozen", "online", "finetune", "napping", "napping-printed", "auto", "oracle"}
    paper |= {"controller", "replay-success", "napping-no-memory", "random"}
    agents_of = {
        "cartpole": {"ppo", "dqn", "zoo-ppo", "zoo-dqn"},
        "mountaincar": {"dqn", "ppo-strong", "ppo-unnormalised", "ppo-weak"},
        "crossroad": {"ppo", "dqn", "sb3-ppo", "sb3-dqn"},
    }
    found = {(stage.spec.domain, stage.spec.agent, stage.method) for stage in stages}
    assert found == {(d, a, m) for d, names in agents_of.items() for a in names for m in paper}


def test_only_baselines_that_train_the_network_have_few_trials(tmp_path: Path) -> None:
    stages, _ = plan_evaluation(tmp_path, "full", selection=Selection(("mountaincar",), ("dqn",)))
    trials = {stage.method: stage.spec.n_trials for stage in stages}
    assert {method for method, n in trials.items() if n < 2000} == {"online", "finetune"}


def test_costly_methods_have_a_third_of_the_trials_at_scale_quick(tmp_path: Path) -> None:
    stages, _ = plan_evaluation(tmp_path, selection=Selection(("cartpole",), ("ppo",)))
    trials = {stage.method: stage.spec.n_trials for stage in stages}
    assert {method for method, n in trials.items() if n == 14} == {"online", "finetune", "auto"}
    assert set(trials.values()) == {14, 40}


def test_a_domain_of_the_user_is_evaluated_like_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its agent is registered as toy-NAME; it has the default number of trials and every figure."""
    monkeypatch.setattr(evaluation, "PaperSetup", lambda: PaperSetup(quick=3))
    for registry, name, thing in ((domains, "toy", Toy), (agents, "toy-still", Still)):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
        monkeypatch.setattr(registry, "_added", list(registry._added))
        registry.add(name, thing)
    keep_only(monkeypatch, methods, "frozen", "napping", "online")
    main(["paper", "--domains", "toy", "--out", str(tmp_path), "--workers", "1", "--json"])
    output = capsys.readouterr()
    assert "toy is not run with online: " in output.err
    files = {Path(file).name for file in json.loads(output.out.splitlines()[-1])["files"]}
    assert {"toy-overall.png", "toy-by-parameter.png", "toy-detection-delay.png", "report.html"} <= files
    runs = [read_run(path) for path in sorted((tmp_path / "runs").glob("toy-*"))]
    assert [(run.method, run.n_trials) for run in runs] == [("frozen", 3), ("napping", 3), ("napping", 3)]
    assert "toy: Frozen, NAPPING" in (tmp_path / "toy" / "report.html").read_text("utf-8")


def test_unknown_scale(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'quick'"):
        plan_evaluation(tmp_path, "quik")
