"""A thread that accepts connections on one port."""

import errno
import socket
import threading
from collections.abc import Callable

from nappingrl.errors import BadSpecError

ACCEPT_SECONDS = 0.2
"""Interval at which a listener checks whether it must stop."""

Say = Callable[[str], None]
"""Shows one line to the user."""
OnConnection = Callable[[socket.socket, str], None]
"""Called with the socket and the address of each connection."""


class Listener:
    """Listens on a port; `start` begins to accept connections.

    Args:
        host: Address to listen on.
        port: Port to listen on; 0 takes a free one.
        on_connection: Called in the listener's thread.
        say: Shows one line to the user.

    Attributes:
        port: The port it listens on.
    """

    def __init__(self, host: str, port: int, on_connection: OnConnection, say: Say) -> None:
        self._socket = _listen(host, port)
        self._socket.settimeout(ACCEPT_SECONDS)
        self._on_connection = on_connection
        self._say = say
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.port: int = self._socket.getsockname()[1]

    def start(self) -> None:
        """Begin to accept connections."""
        self._thread = threading.Thread(target=self._run, daemon=True, name="birds-listener")
        self._thread.start()

    def close(self) -> None:
        """Stop listening. Safe to call twice."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                sock, address = self._socket.accept()
            except TimeoutError:
                continue
            except OSError as error:
                self._say(f"a connection was not accepted: {error.strerror}")
                self._stop.wait(ACCEPT_SECONDS)
            else:
                self._on_connection(sock, f"{address[0]}:{address[1]}")


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise BadSpecError(f"port {port}; allowed: 1 to 65535, or 0 for a free one")
    try:
        return socket.create_server((host, port))
    except OSError as error:
        hint = "another server runs there: " if error.errno == errno.EADDRINUSE else ""
        raise BadSpecError(f"cannot listen on {host}:{port} ({error.strerror}); {hint}use another --port") from error
