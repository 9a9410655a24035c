"""The whole evaluation, made small: runs, figures, pages and claims from one command; and continued."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import make_agent
from nappingrl.agents.base import Agent
from nappingrl.cli import main
from nappingrl.domains.cartpole import CartPole
from nappingrl.errors import BadRunError, UnknownNameError
from nappingrl.registry import Registry, agents, domains, methods
from nappingrl.report.figures import FIGURES
from nappingrl.report.runs import read_run
from nappingrl.reproduction import evaluation
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.evaluation import PaperSetup, plan_evaluation
from nappingrl.reproduction.judging import FAILS, NOT_RUN, Claim, Finding
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
        f"{name}-{m}" for name in ("cartpole-ppo", "crossroad-dqn", "mountaincar-dqn") for m in ("frozen", "napping")
    ] + ["seconds.json"]
    assert sorted(found["seconds_by_run"]) == runs[:-1]
    assert [run["run"] for run in found["rates"]["angrybirds"]["runs"]] == ["Naive"]
    assert "| bone | Naive | 1 |" in (small / "angrybirds" / "rates.md").read_text("utf-8")
    drawn = {Path(file).stem for file in found["files"]}
    assert all(any(name in stem for stem in drawn) for name in FIGURES), "every figure is there"
    assert {"cartpole-overall", "cartpole-by-parameter", "crossroad-by-novelty", "mountaincar-map"} <= drawn
    assert all(Path(file).stat().st_size > 5000 for file in found["files"])
    assert {path.parent.name for path in small.glob("*/report.html")} == {
        "angrybirds", "cartpole", "crossroad", "mountaincar"
    }  # fmt: skip
    command = RunFolder.open(small / "runs" / "cartpole-ppo-frozen").manifest.command
    assert command.startswith("napping run cartpole --agent ppo --method frozen --novelty physics")
    assert "--trials 2 --out " in command
    judged = json.loads((small / "claims.json").read_text())
    assert judged == found["claims"]
    assert len(judged) == len(CLAIMS)
    assert NOT_RUN in {claim["status"] for claim in judged}
    before = {part: part.stat().st_mtime_ns for part in small.rglob("*.parquet")}
    left, mine = (small / "figures" / name for name in ("map.png.123-0123abcd.tmp", "mine.tmp"))
    left.touch()
    mine.touch()
    main(words)
    assert (left.exists(), mine.exists()) == (False, True), "what a killed process was writing is removed"
    main(command.split()[1:])
    assert {part: part.stat().st_mtime_ns for part in small.rglob("*.parquet")} == before, "nothing is run twice"


def test_claims_command_and_its_exit_status(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation.run_stages(plan_evaluation(small)[0][:2], workers=1)
    main(["claims", str(small), "--json"])
    assert FAILS not in capsys.readouterr().out, "two trials of one agent contradict nothing"
    claim = Claim("cartpole", "PPO stands for a thousand steps", "-", lambda evidence: Finding(FAILS, "200"))
    monkeypatch.setattr("nappingrl.reproduction.claims.CLAIMS", [*CLAIMS, claim])
    with pytest.raises(SystemExit) as caught:
        main(["claims", str(small)])
    assert caught.value.code == 1
    assert "PPO stands for a thousand steps" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["claims", str(small.parent / "nothing")])
    assert caught.value.code == 2
    assert "holds no run" in capsys.readouterr().err


@pytest.mark.parametrize("damaged", ["", '{"a": ', '{"a": "long"}', "[]"])
def test_damaged_times_are_one_line(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "seconds.json").write_text(damaged)
    with pytest.raises(BadRunError, match=r"seconds\.json cannot be read .*; delete it: only times are lost"):
        evaluation.read_seconds(tmp_path)


def test_times_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "seconds.json").write_text('{"before": 2.0}')

    def cut_off(*_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", cut_off)
    with pytest.raises(KeyboardInterrupt), evaluation._timed(tmp_path / "run"):
        pass
    assert evaluation.read_seconds(tmp_path) == {"before": 2.0}


def test_progress_adds_up_over_all_stages(small: Path) -> None:
    told: list[tuple[int, int, str]] = []
    evaluation.run_stages(plan_evaluation(small)[0][:2], 1, lambda *words: told.append(words))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]
    assert {label for _, _, label in told} == {"cartpole ppo frozen", "cartpole ppo napping"}


def test_some_domains_with_scripted_agents_and_without_what_cannot_run(tmp_path: Path) -> None:
    stages, left_out = plan_evaluation(tmp_path, "full", only=("angrybirds",))
    assert {stage.spec.domain for stage in stages} == {"angrybirds"}
    assert {stage.spec.trials for stage in stages} == {40}
    assert {stage.spec.novelty for stage in stages} == {"all"}
    by_agent: dict[str, set[str]] = {}
    for stage in stages:
        by_agent.setdefault(stage.spec.agent, set()).add(stage.spec.method)
    controls = {"random", "replay-success", "controller"}
    assert by_agent.pop("dqn") == by_agent.pop("dqn-rel") == {"frozen", "napping"} | controls
    assert by_agent == {name: {"frozen"} for name in ("naive", "naive-adaptation", "datalab", "replanner", "hydra")}
    reasons = {entry.method: entry.reason for entry in left_out}
    assert set(reasons) == {"online", "finetune", "oracle", "napping-no-memory"}
    assert "cannot be trained further" in reasons["online"]
    assert "to keep the time short" in reasons["napping-no-memory"]
    with pytest.raises(UnknownNameError, match="Did you mean 'angrybirds'"):
        plan_evaluation(tmp_path, only=("angribirds",))


def test_the_runs_of_the_paper(tmp_path: Path) -> None:
    stages, _ = plan_evaluation(tmp_path, only=("cartpole", "mountaincar", "crossroad"))
    paper = {"frozen", "online", "finetune", "napping", "controller", "replay-success", "napping-no-memory", "random"}
    agents_of = {
        "cartpole": {"ppo", "dqn"},
        "mountaincar": {"dqn", "ppo-strong", "ppo-weak"},
        "crossroad": {"ppo", "dqn"},
    }
    found = {(stage.spec.domain, stage.spec.agent, stage.spec.method) for stage in stages}
    assert found == {(d, a, m) for d, names in agents_of.items() for a in names for m in paper | {"oracle"}}


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
    assert [(run.method, run.n_trials) for run in runs] == [("frozen", 3), ("napping", 3)]
    assert "toy: Frozen, NAPPING" in (tmp_path / "toy" / "report.html").read_text("utf-8")


def test_unknown_scale(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'quick'"):
        plan_evaluation(tmp_path, "quik")
