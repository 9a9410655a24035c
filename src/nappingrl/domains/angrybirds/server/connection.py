"""Exact reads and whole writes on one socket, with timeouts."""

import math
import socket
import time
from contextlib import suppress

from nappingrl.domains.angrybirds.server.protocol import ProtocolError
from nappingrl.domains.angrybirds.server.wire import Need

CHUNK = 65536


class HungUpError(ConnectionError):
    """Raised when the other side hangs up between two messages."""


class Connection:
    """One side of a connection.

    Args:
        sock: A connected socket; closed by `close`.
        idle_seconds: Longest wait for the first byte of a message.
        message_seconds: Longest time from the first to the last byte of a message, and to send one.
        first_seconds: Longest time until the first message is complete, however slowly its bytes come.
        tails: Whether arguments that only some client versions send are expected: auto (wait a moment for them),
            short (never) or long (always).

    Attributes:
        is_silent: Whether no message is complete yet.
        began: When the connection was made.
    """

    TAIL_SECONDS = 0.01
    """Wait for a tail; all known clients send a request in one piece, so it follows at once."""

    def __init__(
        self,
        sock: socket.socket,
        idle_seconds: float,
        message_seconds: float,
        first_seconds: float = math.inf,
        tails: str = "auto",
    ) -> None:
        self._sock = sock
        self.is_silent, self.began = True, time.monotonic()
        self._first_seconds = first_seconds
        self._idle_seconds, self._message_seconds, self._tails = idle_seconds, message_seconds, tails
        self._buffer = bytearray()
        self._deadline: float | None = None
        """When the message that has begun must be complete."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def begin_message(self) -> None:
        """The next byte is the first of a message."""
        self._deadline = None

    def end_message(self) -> None:
        """The message is complete."""
        self.is_silent = False

    def read(self, need: Need) -> bytes:
        """Read the bytes that a parser needs; b"" if they are optional and do not come."""
        if need.is_optional and not self._has_tail():
            return b""
        while len(self._buffer) < need.n_bytes:
            self._receive(need.n_bytes - len(self._buffer))
        data = bytes(self._buffer[: need.n_bytes])
        del self._buffer[: need.n_bytes]
        if self._deadline is None:
            self._deadline = time.monotonic() + self._message_seconds
        return data

    def send(self, data: bytes) -> None:
        """Send a whole message."""
        self._sock.settimeout(self._message_seconds)
        try:
            self._sock.sendall(data)
        except TimeoutError as error:
            raise ProtocolError(
                f"a message of {len(data)} bytes was not taken in {self._message_seconds:g} s"
            ) from error

    def hang_up(self) -> None:
        """Shut the connection down, also from another thread: a waiting read or send there ends."""
        with suppress(OSError):  # the other side may have been faster
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Hang up and close the socket; only for the thread that uses it."""
        self.hang_up()
        self._sock.close()

    def _has_tail(self) -> bool:
        if self._tails != "auto" or self._buffer:
            return self._tails != "short"
        self._sock.settimeout(self.TAIL_SECONDS)
        try:
            self._buffer += self._sock.recv(CHUNK)
        except TimeoutError:
            return False
        return bool(self._buffer)

    def _receive(self, n_missing: int) -> None:
        is_first = self._deadline is None and not self._buffer
        seconds, what = self._limit(is_first)
        if seconds <= 0:
            raise ProtocolError(what)
        self._sock.settimeout(seconds)
        try:
            data = self._sock.recv(max(CHUNK, min(n_missing, 1 << 20)))
        except TimeoutError as error:
            raise ProtocolError(what) from error
        if not data:
            raise HungUpError if is_first else ProtocolError(f"hung up within a message, {n_missing} bytes missing")
        self._buffer += data

    def _limit(self, is_first: bool) -> tuple[float, str]:
        """How many seconds to wait for the next bytes, and what to say if they do not come."""
        now = time.monotonic()
        if is_first:
            limit = self._idle_seconds, f"no message in {self._idle_seconds:g} s"
        else:
            deadline = now + self._message_seconds if self._deadline is None else self._deadline
            limit = deadline - now, f"no whole message in {self._message_seconds:g} s"
        if self.is_silent:
            first = self.began + self._first_seconds - now, f"no whole message in the first {self._first_seconds:g} s"
            return min(limit, first)
        return limit
