"""A pane that shows the game of an agent that plays through `napping birds serve` or `napping birds external`."""

import time
from collections.abc import Callable, Mapping
from threading import Thread

import numpy as np

from nappingrl.domains.angrybirds.physics.scene import PIXELS
from nappingrl.domains.angrybirds.server.client import Client
from nappingrl.domains.angrybirds.server.protocol import ProtocolError
from nappingrl.domains.angrybirds.server.wire import Picture
from nappingrl.domains.canvas import Canvas, Sketch
from nappingrl.errors import BadSpecError, check_whole
from nappingrl.play.pane import Alarm, Episode
from nappingrl.trials.limits import MAX_PORT
from nappingrl.types import Actions, Decision

WATCHED_DOMAIN = "angrybirds"
LOOK_SECONDS, RETRY_SECONDS = 0.25, 1.0
REPLY_SECONDS = 60.0
"""A server answers after the shot that it simulates."""


class WatchedPane:
    """The newest game of a server, seen through its port for observers; it knows nothing but the picture."""

    is_overriding, action_words = False, ("", "")
    wanted: Decision | None = None
    executed: Actions | None = None

    def __init__(self, address: str) -> None:
        self._host, self._port = read_address(address)
        self.episode, self.step_number, self.total = 0, 0, 0.0
        self.episodes: list[Episode] = []
        self.alarms: list[Alarm] = []
        self.reel: list[Callable[[Canvas], None]] = []
        self.note = f"connecting to {self._host}:{self._port} …"
        """Where the picture comes from, or why there is none."""
        self._picture: Picture = np.full((*PIXELS[::-1], 3), 128, np.uint8)
        self._is_open = True
        Thread(target=self._look, daemon=True).start()

    def close(self) -> None:
        """Look no longer."""
        self._is_open = False

    def _look(self) -> None:
        while self._is_open:
            try:
                with Client(self._host, self._port, REPLY_SECONDS) as client:
                    while self._is_open:
                        self._picture = client.screenshot()
                        self.note = f"live from {self._host}:{self._port}"
                        time.sleep(LOOK_SECONDS)
            except ProtocolError as error:
                self.note = str(error)
                time.sleep(RETRY_SECONDS)

    def step(self) -> Episode | None:
        """Nothing: the agent plays at its own pace."""
        return None

    def change_world(self, changes: Mapping[str, float], number: int) -> None:
        """Nothing: the server decides on the novelty."""

    def keep_reels(self) -> None:
        """Nothing: a server shows what is left after a shot, with its trajectory."""

    def sketch(self) -> Sketch:
        """The latest picture."""
        sketch = Sketch()
        sketch.image(self._picture)
        return sketch


def read_address(text: str) -> tuple[str, int]:
    """Host and port of PORT or HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise BadSpecError(f"--watch {text!a} is no address; give the observer port of the server, or HOST:PORT")
    return host or "127.0.0.1", check_whole("--watch", int(port), 1, MAX_PORT)
