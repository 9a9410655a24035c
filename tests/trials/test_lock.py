"""One process at a time writes to a folder."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import nappingrl
from nappingrl.agents.base import Agent
from nappingrl.errors import BadRunError
from nappingrl.trials.lock import locked

HOLD = """
import sys
from pathlib import Path
from nappingrl.trials.lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the lock of a folder until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_folder_that_another_process_writes_to_is_refused(tmp_path: Path, agent: Agent) -> None:
    out = tmp_path / "run"
    out.mkdir()
    with holder(out) as process:
        with pytest.raises(BadRunError, match=rf"is being written by process {process.pid} on .* since 20") as caught:
            nappingrl.run("cartpole", agent, "frozen", trials=1, protocol="0+1", out=out)
        assert "\n" not in str(caught.value)
        assert "use another --out" in str(caught.value)
        assert [file.name for file in out.iterdir()] == [".lock"]


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path, agent: Agent) -> None:
    with holder(tmp_path) as process:
        process.kill()
        process.wait()
    assert (tmp_path / ".lock").exists()
    (tmp_path / "manifest.json.1-ab09afa3.tmp").write_text("half")
    nappingrl.run("cartpole", agent, "frozen", trials=1, protocol="0+1", out=tmp_path)
    assert not (tmp_path / ".lock").exists()
    assert not list(tmp_path.glob("*.tmp")), "what a killed writer left is removed"


def test_a_finished_run_needs_no_lock(tmp_path: Path, agent: Agent) -> None:
    out = tmp_path / "run"
    first = nappingrl.run("cartpole", agent, "frozen", trials=1, protocol="0+1", out=out)
    with locked(out):
        again = nappingrl.run("cartpole", agent, "frozen", trials=1, protocol="0+1", out=out)
    assert again.rows.equals(first.rows)


def test_many_writers_of_one_run_never_mix_and_never_crash(tmp_path: Path, agent: Agent) -> None:
    ended: list[object] = []

    def write() -> None:
        try:
            ended.append(nappingrl.run("cartpole", agent, "frozen", trials=150, protocol="0+1", out=tmp_path / "run"))
        except Exception as error:
            ended.append(error)

    threads = [threading.Thread(target=write) for _ in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refused = [str(end) for end in ended if isinstance(end, BadRunError)]
    runs = [end for end in ended if isinstance(end, nappingrl.Run)]
    assert len(runs) >= 1
    assert len(runs) + len(refused) == 9, ended
    assert all("is being written by" in text for text in refused)
    assert nappingrl.read_run(tmp_path / "run").n_trials == 150


def test_only_one_of_many_holds_the_lock(tmp_path: Path) -> None:
    inside, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(200):
            try:
                with locked(tmp_path):
                    with lock:
                        inside += 1
                        most = max(most, inside)
                    with lock:
                        inside -= 1
            except BadRunError:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert not (tmp_path / ".lock").exists()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").symlink_to(tmp_path / "other")
    with pytest.raises(BadRunError, match="cannot be written"), locked(tmp_path / "run"):
        pass
    assert (tmp_path / "other").read_text() == "precious"
