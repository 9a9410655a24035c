"""The process of an external agent: runs in its own folder and process group, which ends as a whole."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nappingrl.errors import BadSpecError

MOST_OUTPUT = 64 * 2**20
"""Bytes of output that are kept; the rest is read and dropped, so that the agent does not block."""
TERM_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""
CHUNK, TICK = 2**16, 0.02


class AgentProcess:
    """A running command; every process that it starts ends with it, unless it leaves the process group.

    Args:
        command: Program and arguments.
        folder: Working directory.
        log: File for its output.
    """

    def __init__(self, command: Sequence[str], folder: Path, log: Path) -> None:
        if missing := [name for name in ("killpg", "waitid") if not hasattr(os, name)]:
            raise BadSpecError(
                f"external agents need os.{missing[0]}, which Python {sys.version_info[0]}.{sys.version_info[1]} on "
                f"{sys.platform} does not have; use Linux, or macOS with Python 3.13"
            )
        try:
            self._process = subprocess.Popen(
                command, bufsize=0, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise BadSpecError(f"'{command[0]}' of --command cannot be started ({reason}); is it installed?") from error
        self._reader = threading.Thread(target=self._keep_output, args=(log,), daemon=True, name="agent-output")
        self._reader.start()

    @property
    def has_ended(self) -> bool:
        """Whether the command itself has ended; its children may still run."""
        if self._process.returncode is not None:
            return True
        # WNOWAIT does not reap it: the number of the group cannot be reused until then.
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int:
        """End the whole group, first with SIGTERM, then with SIGKILL.

        Returns:
            The exit status of the command, or the negative number of the signal that ended it.
        """
        try:
            self._signal(signal.SIGTERM)
            deadline = time.monotonic() + TERM_SECONDS
            while not self.has_ended and time.monotonic() < deadline:
                time.sleep(TICK)
        finally:
            self._signal(signal.SIGKILL)
            status = self._process.wait()
            self._reader.join(TERM_SECONDS)
        return status

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _keep_output(self, log: Path) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        n_left = MOST_OUTPUT
        with pipe, log.open("wb", buffering=0) as file:
            while data := pipe.read(CHUNK):
                file.write(data[:n_left])
                if 0 < n_left <= len(data):
                    file.write(b"\n[more output was left out]\n")
                n_left = max(0, n_left - len(data))
