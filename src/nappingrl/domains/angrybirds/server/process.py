"""An external agent's process: started in a folder and a group of its own, its output kept, ended with all of it."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from nappingrl.errors import BadSpecError

MOST_OUTPUT = 64 * 2**20
"""Bytes of output that are kept; the rest is read and dropped, so that the agent does not wait."""
TERM_SECONDS = 2.0
"""From the request to end until it is ended."""
CHUNK, TICK = 2**16, 0.02


class AgentProcess:
    """A running command; everything it starts belongs to its group and ends with it.

    What leaves the group on purpose (a session of its own) is not found.

    Args:
        words: Program and arguments.
        folder: Where it runs.
        log: File for what it prints.
    """

    def __init__(self, words: Sequence[str], folder: Path, log: Path) -> None:
        try:
            self._process = subprocess.Popen(
                words, bufsize=0, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
            raise BadSpecError(f"'{words[0]}' of --command cannot be started ({reason}); is it installed?") from error
        self._reader = threading.Thread(target=self._keep_output, args=(log,), daemon=True, name="agent-output")
        self._reader.start()

    @property
    def has_ended(self) -> bool:
        """Whether the command itself has ended; what it started may go on."""
        if self._process.returncode is not None:
            return True
        # Not reaped yet: until then nobody else can get the number of the group.
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int:
        """End the whole group, politely at first.

        Returns:
            The exit status of the command; -9 if signal 9 ended it.
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
