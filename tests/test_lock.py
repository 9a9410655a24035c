"""One process at a time writes to a folder."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import nappingrl
from command_line import Napping
from nappingrl.agents.base import Agent
from nappingrl.agents.training import sb3
from nappingrl.errors import BadRunError
from nappingrl.files.lock import LOCK, locked

HOLD = """
import sys
from pathlib import Path
from nappingrl.files.lock import locked
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


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("birds serve --out o --levels 1", ""),
        ("birds external --out o --levels 1 --command true", ""),
        ("birds levels o", ""),
        ("train cartpole ppo --out o --steps 64", "cartpole-ppo"),
        ("train --env CartPole-v1 --out o/a.zip --steps 64", "a"),
    ],
)
def test_every_command_that_writes_keeps_others_out(words: str, name: str, napping: Napping) -> None:
    out = Path("o")
    out.mkdir()
    with locked(out, name):
        done = napping(*words.split())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"napping: {out / name} is being written by process")
    assert not list(out.iterdir())


def test_agents_in_one_folder_are_trained_at_the_same_time(tmp_path: Path) -> None:
    again = pytest.raises(BadRunError, match=f"{tmp_path}/a is being written by")
    with locked(tmp_path, "a"), locked(tmp_path, "b"), again, locked(tmp_path, "a"):
        pass


def test_training_removes_what_a_killed_one_was_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same agent: another one may be written at this moment."""
    mine, other = (tmp_path / f"cartpole-{name}.npz.1-ab09afa3.tmp" for name in ("ppo", "dqn"))
    mine.touch()
    other.touch()
    monkeypatch.setattr(sb3, "_train", lambda *_: {})
    sb3.train("cartpole", "ppo", tmp_path)
    assert list(tmp_path.iterdir()) == [other]


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


@pytest.mark.usefixtures("_without_fcntl")
def test_without_fcntl_the_file_itself_is_the_lock(tmp_path: Path) -> None:
    with locked(tmp_path):
        expected = rf"process {os.getpid()} on .*delete .*{LOCK} if it has ended"
        with pytest.raises(BadRunError, match=expected), locked(tmp_path):
            pass
        assert (tmp_path / LOCK).exists()
    assert not (tmp_path / LOCK).exists()
    with locked(tmp_path, "agent"):
        assert (tmp_path / f".agent{LOCK}").exists()


@pytest.fixture
def _without_fcntl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.files.lock.fcntl", None)


WINDOWS = ("killpg", "waitid", "pread", "pwrite", "O_NOFOLLOW", "getuid", "setsid", "sched_getaffinity")
MACOS = ("waitid", "sched_getaffinity")
"""What `os` has not there, on macOS before Python 3.13."""


@pytest.mark.parametrize(("absent", "is_windows"), [(WINDOWS, True), (MACOS, False)], ids=["Windows", "macOS"])
def test_modules_can_be_imported_where_there_is_less_of_posix(absent: tuple[str, ...], is_windows: bool) -> None:
    """What needs more refuses in one line when it is used."""
    code = f"""
import os, pkgutil, signal, sys
if {is_windows}:
    sys.modules["fcntl"] = sys.modules["resource"] = None
    del signal.SIGKILL, signal.SIGHUP
for name in {absent}:
    delattr(os, name)
from importlib import import_module
from pathlib import Path
import nappingrl.cli.birds.external, nappingrl.cli.run
from nappingrl import files, trials
from nappingrl.domains.angrybirds import server
for package in (files, trials, server):
    for module in pkgutil.iter_modules(package.__path__):
        import_module(package.__name__ + "." + module.name)
from nappingrl.domains.angrybirds.server.process import AgentProcess
from nappingrl.errors import BadSpecError
try:
    AgentProcess(["x"], Path(), Path("log"))
except BadSpecError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"external agents need os.{absent[0]}, which " in done.stdout
