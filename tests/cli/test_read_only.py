"""Folders that cannot be written to: one line, before any work."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REMOUNT = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def run_with_read_only(folder: Path, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command that cannot write to the folder; root can write anywhere but to a read-only mount."""
    if os.geteuid() == 0:
        command = ["unshare", "--mount", "sh", "-c", REMOUNT, str(folder), *command]
        probe = subprocess.run([*command[:6], "true"], capture_output=True, text=True, check=False)
        if probe.returncode:
            pytest.skip(f"root, and nothing can be mounted here: {probe.stderr}")
    else:
        folder.chmod(0o555)
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words",
    [
        "run cartpole --trials 1 --protocol 1+1 --out",
        "paper --out",
        "train cartpole ppo --steps 64 --out",
        "train --env CartPole-v1 --steps 64 --out",
    ],
)
def test_a_read_only_folder_is_named_before_any_work(words: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    done = run_with_read_only(folder, [sys.executable, "-m", "nappingrl", *shlex.split(words), str(folder)])
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1
    assert "cannot be written to" in done.stderr
    assert list(folder.iterdir()) == []
