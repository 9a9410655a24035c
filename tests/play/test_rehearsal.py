"""Kernels are compiled before a match begins, in another process."""

import subprocess
import sys
from pathlib import Path

import pytest

from nappingrl.play.match import MatchSpec
from nappingrl.play.rehearsal import rehearse_once

PLAY = """
import gc
from numba.core.dispatcher import Dispatcher
from nappingrl.play.match import Match, MatchSpec
match = Match(MatchSpec("cartpole", method="auto"))
match.change_world({"action-remap[0]": 1.0, "action-remap[1]": 0.0})
for _ in range(500):
    match.step()
assert match.adapting.alarms
print(sum(sum(kernel.stats.cache_misses.values()) for kernel in gc.get_objects() if isinstance(kernel, Dispatcher)))
"""


def test_a_rehearsed_match_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.play.rehearsal.kernel_folder", lambda: tmp_path)  # where the mark is put
    spec = MatchSpec("cartpole", method="auto")
    told: list[str] = []
    rehearse_once(spec, told.append)
    assert told[0].startswith("Compiling the kernels of auto for cartpole, once on this machine")
    assert [mark.name for mark in tmp_path.iterdir()] == ["rehearsed-cartpole-auto"]
    played = subprocess.run([sys.executable, "-c", PLAY], capture_output=True, text=True, check=True)
    assert played.stdout.strip() == "0"
    monkeypatch.setattr("subprocess.Popen", pytest.fail)
    rehearse_once(spec, pytest.fail)


@pytest.mark.parametrize("spec", [MatchSpec("cartpole", method="you"), MatchSpec("angrybirds", "naive", "napping")])
def test_what_needs_no_rehearsal_gets_none(spec: MatchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.play.rehearsal.kernel_folder", lambda: tmp_path)
    monkeypatch.setattr("subprocess.Popen", pytest.fail)
    rehearse_once(spec, pytest.fail)
    assert not list(tmp_path.iterdir())
