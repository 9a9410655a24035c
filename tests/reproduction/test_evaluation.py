"""The whole evaluation, made small: runs, figures, pages and claims from one command; and continued."""

import json
from pathlib import Path

import pytest

from nappingrl.cli import main
from nappingrl.errors import UnknownNameError
from nappingrl.report.figures import FIGURES
from nappingrl.reproduction import evaluation as paper
from nappingrl.reproduction.claims import CLAIMS, FAILS, NOT_RUN, Claim, Finding
from nappingrl.trials.store import RunFolder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two trials of two methods with one agent of each domain, and a player."""
    monkeypatch.setattr(paper, "TRIALS", {"quick": {"cartpole": 2, "mountaincar": 2, "crossroad": 1, "angrybirds": 1}})
    monkeypatch.setattr(paper, "METHODS", ("frozen", "napping"))
    agents = {"cartpole": ["ppo"], "mountaincar": ["dqn"], "crossroad": ["dqn"], "angrybirds": []}
    monkeypatch.setattr(paper, "zoo_names", agents.__getitem__)
    monkeypatch.setattr(paper, "PLAYERS", {"angrybirds": ("naive",)})
    monkeypatch.setattr(paper, "NOVELTIES", {"crossroad": "all", "angrybirds": "bone"})
    return tmp_path / "paper"


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
    main(words)
    main(command.split()[1:])
    assert {part: part.stat().st_mtime_ns for part in small.rglob("*.parquet")} == before, "nothing is run twice"


def test_claims_command_and_its_exit_status(
    small: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stage in paper.stages(small)[:2]:
        paper.run_stages([stage], workers=1)
    main(["claims", str(small), "--json"])
    assert FAILS not in capsys.readouterr().out, "two trials of one agent contradict nothing"
    claim = Claim("cartpole", "PPO stands for a thousand steps", "-", lambda book: Finding(FAILS, "200"))
    monkeypatch.setattr("nappingrl.reproduction.claims.CLAIMS", [*CLAIMS, claim])
    with pytest.raises(SystemExit) as caught:
        main(["claims", str(small)])
    assert caught.value.code == 1
    assert "PPO stands for a thousand steps" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["claims", str(small.parent / "nothing")])
    assert caught.value.code == 2
    assert "holds no run" in capsys.readouterr().err


def test_progress_adds_up_over_all_stages(small: Path) -> None:
    told: list[tuple[int, int, str]] = []
    paper.run_stages(paper.stages(small)[:2], 1, lambda *words: told.append(words))
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][0] == told[-1][1]
    assert {label for _, _, label in told} == {"cartpole ppo frozen", "cartpole ppo napping"}


def test_a_subset_of_the_worlds_with_players_and_without_what_cannot_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paper, "zoo_names", lambda domain: ["dqn"])
    found = paper.stages(tmp_path, "full", domains=("angrybirds",))
    assert {stage.spec.domain for stage in found} == {"angrybirds"}
    assert {stage.spec.trials for stage in found} == {40}
    assert {stage.spec.novelty for stage in found} == {"all"}
    by_agent: dict[str, set[str]] = {}
    for stage in found:
        by_agent.setdefault(stage.spec.agent, set()).add(stage.spec.method)
    controls = {"random", "replay-success", "controller"}
    assert by_agent.pop("dqn") == {"frozen", "napping"} | controls
    assert by_agent == {name: {"frozen"} for name in ("naive", "naive-adaptation", "datalab", "replanner", "hydra")}
    with pytest.raises(UnknownNameError, match="Did you mean 'angrybirds'"):
        paper.stages(tmp_path, domains=("angribirds",))


def test_unknown_scale(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'quick'"):
        paper.stages(tmp_path, "quik")
