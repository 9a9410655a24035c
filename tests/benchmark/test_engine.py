"""The benchmark compares like with like: the user's loop plays the same trials to the same returns."""

import json

import pytest

from nappingrl.benchmark import engine as bench
from nappingrl.cli import main

KEYS = {"ppo_speedup", "dqn_speedup", "ppo_tick_over_forward", "dqn_tick_over_forward", "sites_4000_over_100"}


def test_small_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = {"_POOL": 6, "_ADAPT_EPISODES": 20, "_EPISODES": 2, "_USER_TRIALS": 1, "_REPEATS": 1}
    for name, value in small.items():
        monkeypatch.setattr(bench, name, value)
    main(["bench", "--regions", "100", "--json"])
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found.keys() >= KEYS
    assert all(found[key] > 0 for key in KEYS)
    # A float32 tie could flip an action between torch and numpy; then the loop would not be the same one.
    assert found["ppo_same_returns"] == found["dqn_same_returns"] == 1.0
