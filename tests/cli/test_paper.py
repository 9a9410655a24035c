"""`napping paper`: what it would run."""

import json
from pathlib import Path

from command_line import Napping


def test_an_estimate_names_every_stage_and_runs_nothing(napping: Napping, tmp_path: Path) -> None:
    words = ("--scale", "full", "--out", str(tmp_path / "p"), "--domains", "cartpole", "--methods", "frozen", "online")
    done = napping("paper", *words, "--workers", "2", "--estimate")
    assert done.status == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert ["cartpole", "ppo", "frozen", "5000"] in [line[:4] for line in lines]
    assert ["cartpole", "dqn", "online", "100"] in [line[:4] for line in lines]
    assert "hours on 2 workers" in done.out
    assert not (tmp_path / "p").exists()


def test_an_estimate_halves_with_twice_the_workers(napping: Napping, tmp_path: Path) -> None:
    words = ("--scale", "quick", "--out", str(tmp_path / "p"), "--domains", "crossroad", "--methods", "napping")
    one, two = (
        json.loads(napping("paper", *words, "--workers", n, "--estimate", "--json").out)["estimated_seconds"]
        for n in ("1", "2")
    )
    assert one
    assert all(abs(one[name] - 2 * two[name]) < 1e-9 for name in one)
