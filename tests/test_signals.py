"""Ctrl-C, SIGTERM and closed pipes at any moment: one line or none, the right exit status, no process left."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FunctionType

import pytest

from nappingrl.signals import LOSES_EXCEPTIONS, StoppedError, raising, signals_later
from patience import PATIENCE, wait_for
from processes import catches, has_loaded, members, started

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
LONG = ("run", "cartpole", "--trials", "100000", "--workers", "1", "--out", "run")
HINT = (
    r"(napping: (up to|about) .*\n)?(nappingrl: compiling kernels.*\n)?"
    r"(napping: stopped; finished parts are safe\. Continue with: napping run cartpole .*\n)?"
)

CACHED_KERNEL = """
import numba

@numba.njit(cache=True)
def double(x):
    return 2 * x
"""
STOPPED_IN_CALLBACKS = """
import signal
from llvmlite.binding import ExecutionEngine
from nappingrl import signals

signals.RETRY_SECONDS = 1e6  # none is sent again
set_object_cache, n_stops = ExecutionEngine.set_object_cache, 0

def stopping(callback):
    def stop_and_call(*arguments):
        global n_stops
        n_stops += 1
        signal.raise_signal(signal.SIGTERM)
        return callback(*arguments)
    return stop_and_call

ExecutionEngine.set_object_cache = lambda engine, *callbacks: set_object_cache(engine, *map(stopping, callbacks))
with signals.raising() as stop:
    from kernel import double
    assert double(2) == 4
assert n_stops > 0
print(stop.number)
"""
FINISHED_COMMAND = """
import signal, sys
sys.argv[0] = "napping"
from nappingrl import cli, signals
from nappingrl.cli import argv

signals.RETRY_SECONDS = 1e6
names = {"__name__": "llvmlite.binding.executionengine", "signal": signal}
exec("def _raw_object_cache_stopped(number): signal.raise_signal(number)", names)

def command():
    names["_raw_object_cache_stopped"](int(sys.argv[1]))
    print("result")

argv.parse = lambda words: command
cli.main([])
"""


def stop(process: subprocess.Popen[str], number: int) -> tuple[int, str, str]:
    """Send a signal; status and output."""
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@LINUX
@pytest.mark.parametrize(
    ("library", "number"),
    [
        ("", signal.SIGINT), ("_multiarray_umath", signal.SIGINT), ("llvmlite", signal.SIGINT),
        ("polars", signal.SIGINT), ("llvmlite", signal.SIGTERM),
    ],
)  # fmt: skip
def test_a_signal_while_it_starts_is_no_traceback(library: str, number: int, tmp_path: Path) -> None:
    with started(*LONG, cwd=tmp_path) as process:
        wait_for(lambda: catches(process.pid, signal.SIGTERM) and has_loaded(process.pid, library), process)
        status, out, err = stop(process, number)
        assert (status, out) == (128 + number, "")
        assert re.fullmatch(HINT, err)
        assert not members(process.pid)


@LINUX
def test_ctrl_c_while_kernels_are_compiled_is_no_traceback(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    with started(*LONG, cwd=tmp_path, env=os.environ | {"NUMBA_CACHE_DIR": str(cache)}) as process:
        wait_for(lambda: list(cache.rglob("*.nbc")), process)  # the first is ready, others are to come
        status, out, err = stop(process, signal.SIGINT)
    assert (status, out) == (130, "")
    assert re.fullmatch(HINT, err)


@LINUX
def test_sigterm_stops_a_training_that_writes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    with started("train", "cartpole", "ppo", "--tensorboard", "curves", cwd=tmp_path) as process:
        wait_for(lambda: list(tmp_path.glob("curves/**/*tfevents*")), process)  # it has begun
        status, out, err = stop(process, signal.SIGTERM)
    assert (status, out) == (143, "")
    assert re.fullmatch(r"napping: stopped.* Start again with: napping train cartpole ppo --tensorboard curves\n", err)
    assert not list(tmp_path.rglob("*.npz"))


@LINUX
def test_a_command_started_with_nohup_stays(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with started(*LONG, cwd=tmp_path, preexec_fn=ignore) as process:
        wait_for((tmp_path / "run").exists, process)
        assert not catches(process.pid, signal.SIGHUP)
        assert catches(process.pid, signal.SIGTERM)


def test_a_stop_that_gets_lost_in_a_destructor_comes_again() -> None:
    class Deaf:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGTERM)

    deaf, lost = [Deaf()], []

    def wait_in_vain() -> None:
        deaf.clear()
        lost.append(bool(stop))
        time.sleep(PATIENCE)

    with pytest.raises(StoppedError) as stopped, raising() as stop:
        wait_in_vain()
    assert lost == [True]
    assert stopped.value.number == stop.number == signal.SIGTERM
    assert stop.exit_status == 143


def test_a_stop_while_llvm_calls_back_waits(tmp_path: Path) -> None:
    """In a callback LLVM gets the machine code of a cached kernel; without it LLVM crashes."""
    (tmp_path / "kernel.py").write_text(CACHED_KERNEL)
    (tmp_path / "stopped.py").write_text(STOPPED_IN_CALLBACKS)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    finished("-c", "import kernel; kernel.double(2)", cwd=tmp_path, env=environment)
    assert list(tmp_path.rglob("*.nbc"))
    done = finished("stopped.py", cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{int(signal.SIGTERM)}\n", "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_a_command_that_ends_while_a_stop_waits_keeps_its_output(number: int, status: int, tmp_path: Path) -> None:
    """Ctrl-C is the regular end of some commands: it does not fail one that has finished."""
    (tmp_path / "command.py").write_text(FINISHED_COMMAND)
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = finished("command.py", str(int(number)), cwd=tmp_path, env=buffered)
    assert (done.returncode, done.stdout, done.stderr) == (status, "result\n", "")


def finished(*words: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """A Python process that has ended."""
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)


def _raw_object_cache_stopped(number: int) -> None:
    signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_waits_is_remembered_when_the_block_is_left(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nappingrl.signals.RETRY_SECONDS", 10 * PATIENCE)
    came = []
    callback = FunctionType(_raw_object_cache_stopped.__code__, {"__name__": LOSES_EXCEPTIONS[0], "signal": signal})
    before = signal.signal(number, lambda came_now, _: came.append(came_now))
    try:
        with raising() as stop:
            callback(number)
        assert (stop.number, came) == (number, [])
    finally:
        signal.signal(number, before)


def test_handlers_are_as_before() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], sys.unraisablehook
    with raising():
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] != before[0]
    assert ([signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], sys.unraisablehook) == before


def test_signals_wait_until_a_process_is_known() -> None:
    known, came = [], []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append((number, list(known))))
    try:
        with signals_later():
            os.kill(os.getpid(), signal.SIGTERM)
            known.append("worker")
        assert came == [(signal.SIGTERM, ["worker"])]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("words", ["--help", "list", "list --json", "run --help", "replay {} 0", "report {}"])
def test_a_pipe_without_a_reader_is_no_traceback(words: str, tmp_path: Path, run_folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "nappingrl", *words.format(run_folder).split()]
    try:
        done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory, agent_zip: Path) -> Path:
    """A finished run."""
    from nappingrl.cli import main

    out = tmp_path_factory.mktemp("runs") / "run"
    main(["run", "cartpole", "--agent", str(agent_zip), "--trials", "2", "--protocol", "1+2", "--workers", "1",
          "--out", str(out)])  # fmt: skip
    return out
