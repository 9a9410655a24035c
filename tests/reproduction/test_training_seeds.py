"""benchmarks/training_seeds.py: claims about the order of agents, judged for each training seed."""

import json
import shutil
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from benchmark_scripts import load_benchmark
from nappingrl.reproduction.claims import CLAIMS
from nappingrl.reproduction.columns import OURS
from nappingrl.reproduction.judging import Evidence
from report.rows import make_run, steps

ROAD_AGENTS = ("sb3-dqn", "sb3-ppo")


@pytest.fixture(scope="module")
def benchmark() -> Any:
    return load_benchmark("training_seeds")


def copy_agent(folder: Path, domain: str, name: str, seed: int) -> None:
    """The shipped agent as one of another training seed."""
    folder.mkdir(exist_ok=True)
    with resources.as_file(resources.files("nappingrl.agents.zoo")) as zoo:
        shutil.copy(zoo / f"{domain}-{name}.npz", folder)
        card = json.loads((zoo / f"{domain}-{name}.json").read_text("utf-8"))
    (folder / f"{domain}-{name}.json").write_text(json.dumps(card | {"seed": seed}), "utf-8")


def run_script(benchmark: Any, monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["training_seeds.py", *map(str, words)])
    benchmark.main()


def test_every_claim_of_the_order_is_one_of_the_papers(benchmark: Any) -> None:
    assert {claim.text for claim in CLAIMS if claim.domain in benchmark.AGENTS} >= set(benchmark.ORDER)


def test_trained_agents_beside_the_shipped_ones(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for name in ROAD_AGENTS:
        copy_agent(folders[0], "crossroad", name, 1)
    copy_agent(folders[1], "crossroad", "sb3-ppo", 2)
    words = ("--agents", *folders, "--trials", 10, "--out", tmp_path / "runs")
    run_script(benchmark, monkeypatch, *words)
    output = capsys.readouterr()
    _, _, *lines = output.out.splitlines()
    assert len(lines) == 11, "one claim about frozen agents, five about NAPPING in two columns"
    for line in lines:
        cells = line.strip("| ").split(" | ")
        assert cells[2] == "0, 1", "seed 2 has only one of the two agents"
        assert sum(int(count) for count in cells[3:6]) == 2
        for estimate in cells[6].split("; "):
            first, second = estimate.rpartition(": ")[2].split(", ")
            assert first == second, "the same weights on the same draws"
    assert "not judged for seed 2: crossroad sb3-dqn frozen was not run" in output.err
    runs = {path.name for path in (tmp_path / "runs").iterdir()}
    assert len(runs) == (2 + 2 + 1) * 3
    parts = {part: part.stat().st_mtime_ns for part in tmp_path.rglob("*.parquet")}
    run_script(benchmark, monkeypatch, *words)
    assert capsys.readouterr().out.splitlines()[2:] == lines
    assert {part: part.stat().st_mtime_ns for part in tmp_path.rglob("*.parquet")} == parts, "nothing is run twice"


def test_folders_without_another_seed_are_refused(
    benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_script(benchmark, monkeypatch, "--agents", tmp_path)
    assert "no agent of another seed" in capsys.readouterr().err
    copy_agent(tmp_path, "crossroad", "sb3-ppo", 0)
    with pytest.raises(SystemExit, match="two agents crossroad sb3-ppo of seed 0"):
        run_script(benchmark, monkeypatch, "--agents", tmp_path)


def test_each_seed_has_its_own_verdict(benchmark: Any) -> None:
    """With seed 0 DQN ends higher, with seed 1 PPO does, with seed 2 it cannot be told."""
    levels = {0: (0.9, 0.5), 1: (0.1, 0.5), 2: (0.5, 0.5)}
    evidence = {}
    for seed, both in levels.items():
        runs = {}
        for agent, level in zip(ROAD_AGENTS, both, strict=True):
            sign = 1 if agent == "sb3-dqn" else -1
            returns = [steps((level + sign * shift, 40)) for shift in (-0.05, 0.05) * 10]
            runs["crossroad", agent, OURS] = make_run("crossroad", agent, "napping", returns, pre=0)
        evidence[seed] = Evidence(runs)
    (claim,) = [claim for claim in CLAIMS if claim.text == "DQN ends slightly higher"]
    _, ours = benchmark.rows([claim], evidence)
    assert ours[2:6] == ("0, 1, 2", "1", "1", "1")
    assert ours[6] == "sb3-dqn minus sb3-ppo: 0.40, -0.40, 0.00"
