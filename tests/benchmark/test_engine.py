"""The engine's benchmark: the user's loop gets the same returns in the same trials."""

import json
from math import isfinite

import pytest

from nappingrl import registry
from nappingrl.benchmark import engine
from nappingrl.cli import main

KEYS = {"ppo_speedup", "dqn_speedup", "ppo_tick_over_forward", "dqn_tick_over_forward", "sites_4000_over_100"}


def test_small_benchmark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = {"_POOL": 6, "_ADAPT_EPISODES": 20, "_EPISODES": 2, "_USER_TRIALS": 1, "_REPEATS": 1}
    for name, value in small.items():
        monkeypatch.setattr(engine, name, value)
    methods = registry.methods.names()
    main(["bench", "--part", "engine", "--regions", "100", "--json"])
    assert registry.methods.names() == methods
    assert not any("bench" in name for name in methods)
    measured = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert measured.keys() >= KEYS
    assert all(isfinite(measured[key]) for key in KEYS)  # on a busy machine a difference of times may be negative
    # A float32 tie could flip an action between torch and numpy; then the loop would not be the same one.
    assert measured["ppo_same_returns"] == measured["dqn_same_returns"] == 1.0
