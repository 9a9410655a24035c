"""Signals that stop a command: Ctrl-C, SIGTERM and SIGHUP. It imports little, as it comes before all other modules."""

import _thread
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn, Self

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
RETRY_SECONDS = 0.02
LLVM = "llvmlite.binding."
"""Modules that a signal must not interrupt: they would free memory of LLVM twice, or return a null pointer to it."""


class StoppedError(KeyboardInterrupt):
    """Raised in a running command by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stoppable:
    """A block that signals stop: StoppedError is raised where one interrupts it, or a moment later if it must wait.

    A signal that still waits when the block is left is remembered, but stops nothing any more: the work is done, the
    caller decides. Outside the main thread nothing is changed.

    Attributes:
        number: The signal that has come; 0: none.
    """

    def __init__(self) -> None:
        self.number = 0
        self._again = _Again()
        self._before: dict[int, Any] = {}
        self._before_hook = sys.unraisablehook
        self._is_main = threading.current_thread() is threading.main_thread()

    def __bool__(self) -> bool:
        return self.number != 0

    # With @contextmanager a signal could interrupt contextlib before the generator goes on; handlers would stay.
    def __enter__(self) -> Self:
        if self._is_main:
            sys.unraisablehook = self._retry
            self._before = _handle_by(self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            self._again.close()  # first: what it sends must find our handlers
            for number, handler in self._before.items():
                signal.signal(number, handler)
            sys.unraisablehook = self._before_hook

    @property
    def exit_status(self) -> int:
        """The exit status of a process that this signal stopped, as a shell counts."""
        return 128 + self.number

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self.number = number
        if _must_wait(frame):
            self._again.send(number)
        else:
            self._again.cancel()  # one stop is enough, and another would interrupt the clean-up
            raise StoppedError(number)

    def _retry(self, lost: "sys.UnraisableHookArgs") -> None:
        """An exception within a callback of C code or a destructor is lost: send the signal again."""
        if isinstance(lost.exc_value, StoppedError):
            self._again.send(lost.exc_value.number)
        else:
            self._before_hook(lost)


def exit_quietly_while_importing() -> None:
    """In a process of the command line, let signals end it at once: the next seconds are imports, nothing is lost.

    An exception would be printed as a traceback, or caught by one of the imported packages.
    """
    if is_command_line():
        _handle_by(lambda number, _: os._exit(128 + number))


def is_command_line() -> bool:
    """Whether this process was started as `napping` or `python -m nappingrl`."""
    arguments = getattr(sys, "argv", None) or [""]
    is_module = any(pair == ("-m", "nappingrl") for pair in zip(sys.orig_argv, sys.orig_argv[1:], strict=False))
    return is_module or os.path.basename(arguments[0]) in ("napping", "napping.exe")


def exit_stopped(stop: Stoppable) -> NoReturn:
    """Exit with the status of a stopped command; the command line at once, as torch takes seconds to be unloaded."""
    if is_command_line():
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(OSError):  # a pipe without a reader
                stream.flush()
        os._exit(stop.exit_status)
    sys.exit(stop.exit_status)


@contextmanager
def signals_later() -> Iterator[None]:
    """Let signals that stop a run wait until the block is left.

    Else they could come between the start of a process and the moment that we know it. That process blocks them, too,
    until it is ready: Ctrl-C, which reaches all processes, would be a traceback of its imports.
    """
    came: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in STOPPING if is_main and signal.getsignal(number) is not None]
    handlers = {number: signal.signal(number, lambda came_now, _: came.append(came_now)) for number in numbers}
    if sys.platform != "win32":
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        yield
    finally:
        if sys.platform != "win32":
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for late in came:
        signal.raise_signal(late)


def take_signals() -> None:
    """Begin to take signals, in a worker that was started within `signals_later`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


def _must_wait(frame: FrameType | None) -> bool:
    """Whether this frame belongs to a call that an exception must not end.

    Besides those of LLVM it is ours: handlers would be set only in part, or the signal be lost for good.
    """
    while frame is not None:
        module, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
        if module.startswith(LLVM) or (module == __name__ and name in ("__enter__", "__exit__", "_retry")):
            return True
        frame = frame.f_back
    return False


class _Again:
    """Sends a signal to the thread that made this, a moment later.

    A second signal can interrupt the handler of the first anywhere. So nothing that handlers call may wait for a lock:
    not even `threading.Thread.start`, which waits for locks of `threading`.
    """

    def __init__(self) -> None:
        self._number = 0  # of the signal that waits; 0: none
        self._under_way = threading.Lock()  # held while a thread sleeps that will send it
        self._sending = threading.Lock()
        self._is_open = True
        self._receiver = threading.get_ident()

    def send(self, number: int) -> None:
        """Send it in a moment, in place of one that waits."""
        self._number = number
        if self._under_way.acquire(blocking=False):
            _thread.start_new_thread(self._send_later, ())

    def cancel(self) -> None:
        """Do not send the signal that waits."""
        self._number = 0

    def close(self) -> None:
        """Send nothing from now on; one that is being sent has arrived when this returns."""
        self._is_open = False
        with self._sending:
            pass

    def _send_later(self) -> None:
        time.sleep(RETRY_SECONDS)
        self._under_way.release()  # before the number is taken: one that comes in between has a new thread
        with self._sending:
            number, self._number = self._number, 0
            if not (number and self._is_open):
                return
            if sys.platform == "win32":
                signal.raise_signal(number)  # os.kill would end the process
            else:
                signal.pthread_kill(self._receiver, number)  # os.kill could wake another thread instead


def _handle_by(handler: Callable[[int, FrameType | None], Any]) -> dict[int, Any]:
    """Set the handler of the signals that stop a command; returns the handlers before.

    Signals that the caller ignores, as nohup does, stay ignored.
    """
    numbers = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in numbers}


exit_quietly_while_importing()
