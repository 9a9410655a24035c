"""Signals that stop a command: Ctrl-C, SIGTERM and SIGHUP. It imports little, as it comes before all other modules."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

STOPPING = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
RETRY_SECONDS = 0.02
LOSES_EXCEPTIONS = ("llvmlite.binding.executionengine", "_raw_object_cache_")
"""Module and start of the name of functions that LLVM calls: without their result it goes on with a null pointer."""


class StoppedError(KeyboardInterrupt):
    """Raised in a running command by a signal."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Stop:
    """The signal that a command has received.

    Attributes:
        number: Its number; 0: none.
    """

    def __init__(self) -> None:
        self.number = 0

    def __bool__(self) -> bool:
        return self.number != 0

    @property
    def exit_status(self) -> int:
        """The exit status of a process that this signal stopped, as a shell counts."""
        return 128 + self.number


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


def exit_stopped(stop: Stop) -> NoReturn:
    """Exit with the status of a stopped command; the command line at once, as torch takes seconds to be unloaded."""
    if is_command_line():
        for stream in filter(None, (sys.stdout, sys.stderr)):
            with suppress(OSError):  # a pipe without a reader
                stream.flush()
        os._exit(stop.exit_status)
    sys.exit(stop.exit_status)


@contextmanager
def raising() -> Iterator[Stop]:
    """Raise StoppedError where a signal interrupts the block, or a moment later if it must wait.

    A signal that still waits when the block is left is remembered, but stops nothing any more: the work is done, the
    caller decides. Outside the main thread nothing is changed.
    """
    stop, again = Stop(), _Again()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        stop.number = number
        if _is_called_by_llvm(frame):
            again.send(number)
        else:
            raise StoppedError(number)

    def retry(lost: "sys.UnraisableHookArgs") -> None:
        """An exception within a callback of C code or a destructor is lost: send the signal again."""
        if isinstance(lost.exc_value, StoppedError):
            again.send(lost.exc_value.number)
        else:
            before_hook(lost)

    before_hook, sys.unraisablehook = sys.unraisablehook, retry
    before = _handle_by(interrupt)
    try:
        yield stop
    finally:
        again.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
        sys.unraisablehook = before_hook


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


def _is_called_by_llvm(frame: FrameType | None) -> bool:
    """Whether this frame belongs to a callback of LLVM, which crashes where an exception ends it."""
    module, start = LOSES_EXCEPTIONS
    while frame is not None:
        if frame.f_code.co_name.startswith(start) and frame.f_globals.get("__name__") == module:
            return True
        frame = frame.f_back
    return False


class _Again:
    """A signal that this process sends to itself, a moment later."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def send(self, number: int) -> None:
        """Send it in a moment, in place of one that waits."""
        self.cancel()
        self._timer = threading.Timer(RETRY_SECONDS, os.kill, (os.getpid(), number))
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Do not send the signal that waits."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()


def _handle_by(handler: Callable[[int, FrameType | None], Any]) -> dict[int, Any]:
    """Set the handler of the signals that stop a command; returns the handlers before.

    Signals that the caller ignores, as nohup does, stay ignored.
    """
    numbers = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handler) for number in numbers}


exit_quietly_while_importing()
