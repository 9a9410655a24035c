"""The process behind one tab: runs a session at its pace, within a pipe."""

import signal
import tempfile
import time
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from nappingrl.errors import NappingError
from nappingrl.play import commands
from nappingrl.play.choices import Choices
from nappingrl.play.session import Session

FRAME, FILE, OTHER = b"F", b"D", b"M"
"""First byte of a message: a frame, which the server passes on unread, a file to download, or anything else."""
PREPARING = "Preparing: the agent plays in the unchanged world, and what is new to this machine is compiled …"
WRITING = "Writing the film …"
MAX_UNSHOWN = 3
"""Frames that may be on their way to the tab; a hidden tab shows none, and the match waits."""
FRAME_SECONDS = 1 / 50
FAST_SECONDS = 0.012
"""Computing time per frame where the match runs as fast as it goes."""


def work(connection: Connection, choices: Choices, folder: str) -> None:
    """Serve one tab until the pipe is closed; temporary files go to `folder`."""
    tempfile.tempdir = folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the server ends this process
    try:
        _Worker(connection, choices).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


class _Worker:
    """A session with a clock."""

    def __init__(self, connection: Connection, choices: Choices) -> None:
        self._connection, self._session = connection, Session(choices, self._note)
        self._n_unshown = 0
        self._next = time.monotonic()
        self._told: dict[str, Any] = {}
        """The state of which the server was last told."""

    def run(self) -> None:
        while True:
            while self._connection.poll(self._wait()):
                self._do(self._connection.recv())
            if self._is_running:
                self._turn()

    @property
    def _has_begun(self) -> bool:
        return self._session.n_matches > 0

    @property
    def _is_running(self) -> bool:
        return self._has_begun and not self._session.is_paused and self._n_unshown < MAX_UNSHOWN

    def _wait(self) -> float | None:
        """Seconds until the next step; None: until something is said."""
        return max(0.0, self._next - time.monotonic()) if self._is_running else None

    def _turn(self) -> None:
        """The steps of one frame, and the frame."""
        now, session = time.monotonic(), self._session
        if session.speed == 0:
            while time.monotonic() - now < FAST_SECONDS:
                session.advance()
            seconds = FRAME_SECONDS
        else:
            step_seconds = 1 / (session.match.frames_per_second * session.speed)
            n_steps = max(1, round(FRAME_SECONDS / step_seconds))
            session.advance(n_steps)
            seconds = n_steps * step_seconds
        self._show()
        if session.recording is not None and session.recording.is_full:
            self._do(commands.Film())
        self._next = max(self._next + seconds, time.monotonic() - seconds)

    def _do(self, command: commands.AnyCommand) -> None:
        if isinstance(command, commands.Ack):
            self._n_unshown = max(0, self._n_unshown - 1)
            return
        if isinstance(command, commands.Begin | commands.Method | commands.Restart):
            self._note(PREPARING)
        elif isinstance(command, commands.Film) and not command.format:
            self._note(WRITING)
        try:
            if not self._has_begun and not isinstance(command, commands.Begin):
                return
            answer = self._session.do(command)
        except NappingError as error:
            self._say({"kind": "problem", "text": str(error)})
            return
        if answer is not None:
            self._say(answer)
        if isinstance(command, commands.Film):
            self._note("")
        self._next = time.monotonic()
        if not isinstance(command, commands.Act):
            self._show()

    def _show(self) -> None:
        frame = self._session.frame()
        self._n_unshown += 1
        self._connection.send_bytes(FRAME + msgspec.json.encode(frame))
        self._tell()

    def _tell(self) -> None:
        """The server's controls, where they differ from what it was last told."""
        session, match = self._session, self._session.match
        state = {
            "match": session.n_matches, "paused": session.is_paused, "speed": session.speed, "changes": match.changes,
            "n_worlds": len(match.worlds), "films": session.recording is not None,
        }  # fmt: skip
        if state != self._told:
            self._told = state | {"changes": dict(match.changes)}
            worlds, at = list(map(match.describe_world, range(len(match.worlds)))), match.worlds.index(match.changes)
            said = {"words": worlds[at], "worlds": worlds, "at": at}
            self._say({"kind": "state", **state, **said, **session.frames.copies()})

    def _note(self, text: str) -> None:
        """What takes a while; empty: nothing does any more."""
        self._say({"kind": "note", "text": text})

    def _say(self, message: dict[str, Any]) -> None:
        kind = FILE if message["kind"] == "file" else OTHER
        self._connection.send_bytes(kind + msgspec.json.encode(message))
