"""Ctrl-C, SIGTERM and closed pipes at any moment: one line or none, the right exit status, no process left."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType, FunctionType

import pytest
from llvmlite.binding import ModuleRef, parse_assembly

from nappingrl.signals import Stoppable, StoppedError, signals_later
from patience import PATIENCE, wait_for
from processes import catches, has_loaded, members, started

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="signals of threads")
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
with signals.Stoppable() as stop:
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


def test_a_stop_while_llvm_calls_back_waits(tmp_path: Path) -> None:
    """In a callback LLVM gets the machine code of a cached kernel; without it LLVM crashes."""
    (tmp_path / "kernel.py").write_text(CACHED_KERNEL)
    (tmp_path / "stopped.py").write_text(STOPPED_IN_CALLBACKS)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    finished("-c", "import kernel; kernel.double(2)", cwd=tmp_path, env=environment)
    assert list(tmp_path.rglob("*.nbc"))
    done = finished("stopped.py", cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{int(signal.SIGTERM)}\n", "")


def test_a_stop_while_llvmlite_frees_memory_waits(waiting: list[Callable[[], None]]) -> None:
    """An exception after a call of LLVM would hide that it was made: the memory would be freed again."""
    for moment in moments():
        module = parse_assembly("")

        def free(moment: SignalAt = moment, module: ModuleRef = module) -> None:
            sys.settrace(moment)
            module.close()
            sys.settrace(None)

        with Stoppable() as stop:
            assert not is_stopped(free)
        assert stop or moment.to_go > 0


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


def _raw_object_cache_called(call: Callable[[], None]) -> None:
    call()


in_callback = FunctionType(_raw_object_cache_called.__code__, {"__name__": "llvmlite.binding.executionengine"})


def signal_in_callback(number: int) -> None:
    in_callback(lambda: signal.raise_signal(number))


def signal_in_destructor(number: int) -> None:
    class Deaf:
        def __del__(self) -> None:
            signal.raise_signal(number)

    Deaf()


@pytest.fixture
def late() -> Iterator[list[int]]:
    """SIGINT and SIGTERM that nothing but the handlers around a block received."""
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda came_now, _: came.append(came_now))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    yield came
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What threads that send a signal again would do, instead of these threads."""
    calls: list[Callable[[], None]] = []
    monkeypatch.setattr("nappingrl.signals._thread.start_new_thread", lambda call, _: calls.append(call))
    monkeypatch.setattr("nappingrl.signals.RETRY_SECONDS", 0)
    return calls


@pytest.mark.parametrize("signal_there", [signal_in_callback, signal_in_destructor])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_waits_comes_in_a_moment(signal_there: Callable[[int], None], number: int, late: list[int]) -> None:
    returned = []

    def wait_in_vain() -> None:
        signal_there(number)
        returned.append(bool(stop))
        time.sleep(PATIENCE)

    with pytest.raises(StoppedError) as stopped, Stoppable() as stop:
        wait_in_vain()
    assert returned == [True]
    assert stopped.value.number == stop.number == number
    assert not late


def test_a_stop_that_comes_in_another_callback_waits_again(waiting: list[Callable[[], None]]) -> None:
    with Stoppable():
        signal_in_callback(signal.SIGTERM)
        in_callback(waiting[0])
        _, send = waiting
        with pytest.raises(StoppedError):
            send()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_that_waits_is_remembered_when_the_block_is_left(
    number: int, late: list[int], waiting: list[Callable[[], None]]
) -> None:
    with Stoppable() as stop:
        signal_in_callback(number)
    (send,) = waiting
    send()
    assert (stop.number, stop.exit_status, late) == (number, 128 + number, [])


def test_a_stop_cancels_one_that_waits(late: list[int], waiting: list[Callable[[], None]]) -> None:
    """Two would interrupt the clean-up after the first."""
    with Stoppable() as stop:
        signal_in_callback(signal.SIGTERM)
        with pytest.raises(StoppedError):
            signal.raise_signal(signal.SIGINT)
        (send,) = waiting
        assert not is_stopped(send)
    assert (stop.number, late) == (signal.SIGINT, [])


@POSIX
def test_a_stop_is_sent_again_to_the_main_thread(waiting: list[Callable[[], None]]) -> None:
    """One to the process could go to another thread, and the main thread would sleep on."""
    pending = []

    def send() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])  # this thread would take it
        waiting[0]()

    def take_later() -> None:
        signal_in_callback(signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            sender = threading.Thread(target=send)
            sender.start()
            sender.join()
            pending.extend(signal.sigpending())
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    with pytest.raises(StoppedError), Stoppable():
        take_later()
    assert pending == [signal.SIGTERM]


@POSIX
def test_a_stop_that_is_being_sent_comes_before_the_block_is_left(
    late: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handlers from outside would end the process at once, without its output."""
    sending, left, sent = threading.Event(), threading.Event(), threading.Event()
    main_thread, kill = threading.get_ident(), signal.pthread_kill

    def wait_and_kill(thread: int, number: int) -> None:
        sending.set()
        wait_for(lambda: left.is_set() or sys._current_frames()[main_thread].f_code.co_name == "close")
        kill(thread, number)
        sent.set()

    monkeypatch.setattr("nappingrl.signals.RETRY_SECONDS", 0)
    monkeypatch.setattr(signal, "pthread_kill", wait_and_kill)
    stop = Stoppable()

    def leave() -> None:
        with stop:
            signal_in_callback(signal.SIGTERM)
            assert sending.wait(PATIENCE)
        left.set()
        assert sent.wait(PATIENCE)

    assert not is_stopped(leave)
    assert (stop.number, late) == (signal.SIGTERM, [])


class SignalAt:
    """A trace function that sends SIGTERM at the nth step of Python in functions that are called."""

    def __init__(self, nth: int) -> None:
        self.to_go = nth

    def __call__(self, frame: FrameType, event: str, argument: object) -> "SignalAt":
        frame.f_trace_opcodes = True
        self.to_go -= 1
        if self.to_go == 0:
            signal.raise_signal(signal.SIGTERM)
        return self


def moments() -> Iterator[SignalAt]:
    """Signals at each step in turn, until there are no more steps."""
    before = sys.gettrace()
    for nth in count(1):
        moment = SignalAt(nth)
        yield moment
        sys.settrace(before)
        if moment.to_go > 0:
            assert nth > 1
            return


def handlers() -> list[object]:
    return [sys.unraisablehook, *map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))]


def test_handlers_are_as_before_whenever_a_signal_comes(late: list[int], waiting: list[Callable[[], None]]) -> None:
    before = handlers()
    for moment in moments():
        late.clear()
        waiting.clear()
        stop = Stoppable()
        sys.settrace(moment)
        try:
            with stop:
                sys.settrace(None)
                assert len(waiting) == bool(stop)  # one that comes on entering stops the block
                assert not set(before) & set(handlers())
                sys.settrace(moment)
        except StoppedError:
            pytest.fail("stopped outside of the block")
        sys.settrace(None)
        assert handlers() == before
        assert moment.to_go > 0 or [signal.SIGTERM] in (late, [stop.number])


@pytest.mark.parametrize("signal_there", [signal_in_callback, signal_in_destructor])
def test_a_stop_is_not_lost_whenever_a_second_signal_comes(
    signal_there: Callable[[int], None], late: list[int], waiting: list[Callable[[], None]]
) -> None:
    for moment in moments():
        waiting.clear()

        def signal_twice(moment: SignalAt = moment) -> None:
            sys.settrace(moment)
            signal_there(signal.SIGINT)
            sys.settrace(None)

        with Stoppable():
            stops = [is_stopped(signal_twice)]
            stops += map(is_stopped, waiting)
        assert any(stops)
        assert len(waiting) <= 1
    assert not late


def is_stopped(call: Callable[[], None]) -> bool:
    try:
        call()
    except StoppedError:
        return True
    return False


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
