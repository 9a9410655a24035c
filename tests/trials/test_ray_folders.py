"""Temporary folders of Ray: abandoned ones are removed, those in use and those of others are not."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from nappingrl.trials.ray_folders import LOCK_FILE, PREFIX, temporary_folder

HOLD = """
import sys, tempfile
from nappingrl.trials.ray_folders import temporary_folder
tempfile.tempdir = sys.argv[1]
with temporary_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_folders_of_dead_processes_are_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    foreign, file, other = tmp_path / f"{PREFIX}foreign", tmp_path / f"{PREFIX}file", tmp_path / "other"
    for folder in (foreign, other):
        folder.mkdir()
    file.touch()
    (other / LOCK_FILE).touch()
    link = tmp_path / f"{PREFIX}link"
    link.symlink_to(other)
    kept = {foreign, file, other, link}
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        (held / "session").mkdir()
        with temporary_folder() as folder:
            assert set(tmp_path.iterdir()) == kept | {held, Path(folder)}, "in use"
        assert set(tmp_path.iterdir()) == kept | {held}
        holder.kill()
        holder.wait()
        assert held.exists()
        with temporary_folder() as folder:
            assert set(tmp_path.iterdir()) == kept | {Path(folder)}
    assert set(tmp_path.iterdir()) == kept
    assert list(other.iterdir())
