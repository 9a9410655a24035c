"""Which of several trainings is shipped."""

import json
import sys
from pathlib import Path

import pytest

from benchmark_scripts import load_benchmark


def write_agent(folder: Path, seed: int, held_out: float) -> Path:
    folder.mkdir()
    rates = {"episodes": 700, "training levels": 0.99, "held-out levels": held_out}
    about = {"domain": "angrybirds", "name": "dqn", "seed": seed, "weights": "angrybirds-dqn.npz", "pass_rate": rates}
    (folder / "angrybirds-dqn.json").write_text(json.dumps(about | {"command": f"... --seed {seed}"}))
    (folder / "angrybirds-dqn.npz").write_bytes(bytes([seed]))
    return folder


def test_the_median_on_held_out_levels_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {2: 0.9, 0: 0.95, 1: 0.93}
    folders = [str(write_agent(tmp_path / str(seed), seed, rate)) for seed, rate in rates.items()]
    monkeypatch.setattr(sys, "argv", ["birds_seeds.py", "dqn", *folders, "--out", str(tmp_path / "zoo")])
    load_benchmark("birds_seeds").main()
    card = json.loads((tmp_path / "zoo" / "angrybirds-dqn.json").read_text())
    assert (card["seed"], card["command"]) == (1, "napping train angrybirds dqn")
    assert [(one["seed"], one["held-out levels"]) for one in card["seeds"]] == [(0, 0.95), (1, 0.93), (2, 0.9)]
    assert (tmp_path / "zoo" / "angrybirds-dqn.npz").read_bytes() == bytes([1])
