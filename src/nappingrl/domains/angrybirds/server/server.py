"""The server: one game per connected agent, one thread per connection, so that none waits for another."""

import errno
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import numpy as np

from nappingrl.domains.angrybirds.physics.scene import Level, Scene
from nappingrl.domains.angrybirds.server.connection import Connection, HungUpError
from nappingrl.domains.angrybirds.server.game import Game, MakeWorld, OnTrial
from nappingrl.domains.angrybirds.server.harness import Clock, Harness
from nappingrl.domains.angrybirds.server.observer import LOOKS, Sight
from nappingrl.domains.angrybirds.server.protocol import (
    AGENT_PORT,
    Code,
    ProtocolError,
    Request,
    encode_numbers,
    parse_request,
    run_parser,
)
from nappingrl.domains.angrybirds.server.results import Episode, Results
from nappingrl.domains.angrybirds.server.trial_plan import Plan, one_trial
from nappingrl.errors import BadSpecError, check_name

LOOPBACK = "127.0.0.1"
ACCEPT_SECONDS = 0.2
"""How often the listener looks whether it is to stop."""
OBSERVER_SEED = 2**32
"""Observers draw their noise from elsewhere than agents, whose numbers are smaller."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the server behaves."""

    is_dev: bool = False
    """Labels say what things are, and codes 61 and 62 are exact instead of noisy."""
    has_noisy_batches: bool = False
    """Batches of ground truths are noisy, too."""
    seed: int = 0
    """Of the noise."""
    tails: str = "auto"
    """Arguments that only some client versions send: auto, short (never) or long (always)."""
    max_connections: int = 32
    """Agents and observers beyond it are turned away."""
    idle_seconds: float = 3600.0
    """An agent may think so long between two requests."""
    message_seconds: float = 10.0
    """A request must be whole, and a reply taken, in this time."""

    def __post_init__(self) -> None:
        check_name("tails", self.tails, ("auto", "short", "long"))
        if self.max_connections < 1 or self.idle_seconds <= 0 or self.message_seconds <= 0:
            raise BadSpecError("max_connections, idle_seconds and message_seconds must be positive")


@dataclass(slots=True)
class _Player:
    """A game and the lock that keeps observers out while it changes."""

    number: int
    game: Game
    lock: threading.Lock = field(default_factory=threading.Lock)


class Server:
    """Serves one plan to any number of agents, each from its beginning.

    Use it as a context, or call `start` and `close`.

    Args:
        plan: What is played.
        make_world: Makes the world of a level when it is loaded.
        host: Where to listen; loopback unless there is a reason.
        port: For agents; 0 takes a free one, see `port`.
        observer_port: For observers, who may only look; None: nowhere.
        out: Folder for the results; None: nothing is written.
        settings: How to behave.
        on_trial: Is told the episodes of each trial that is over, in the thread of its agent, one at a time.
        say: Gets one line for what a person may want to know.
        clock: Wall clock for the limits of time.

    Attributes:
        port: Where agents connect.
        observer_port: Where observers connect.
    """

    def __init__(
        self,
        plan: Plan,
        make_world: MakeWorld,
        host: str = LOOPBACK,
        port: int = AGENT_PORT,
        observer_port: int | None = None,
        out: Path | None = None,
        settings: Settings | None = None,
        on_trial: OnTrial | None = None,
        say: Say | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._plan, self._make_world, self._clock = plan, make_world, clock
        self._settings = settings or Settings()
        self._say: Say = say or (lambda _: None)
        self._told_trial = on_trial
        self._results = Results(out)
        self._lock = threading.Lock()
        """Guards all that follows, and `on_trial`."""
        self._players: list[_Player] = []
        self._connections: set[Connection] = set()
        self._threads: list[threading.Thread] = []
        self._episodes: list[Episode] = []
        self._n_games = self._n_observers = self._n_terminated = 0
        self._stop, self._ended = threading.Event(), threading.Condition(self._lock)
        self._listener = _listen(host, port)
        self._observer_listener: socket.socket | None = None
        self.port: int = self._listener.getsockname()[1]
        self.observer_port: int | None = None
        if observer_port is not None:
            try:
                self._observer_listener = _listen(host, observer_port)
            except BadSpecError:
                self._listener.close()
                raise
            self.observer_port = self._observer_listener.getsockname()[1]

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """What the games that have ended came to, and the finished trials of those that have not."""
        with self._lock:
            return tuple(self._episodes)

    def __enter__(self) -> "Server":
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Begin to listen, in threads of its own."""
        self._begin(self._accept, self._listener, self._serve_agent)
        if self._observer_listener is not None:
            self._begin(self._accept, self._observer_listener, self._serve_observer)

    def wait(self, n_terminated: int = 0) -> None:
        """Until so many agents have played to the end and left; 0: until interrupted."""
        with self._ended:
            while not self._stop.is_set() and not 0 < n_terminated <= self._n_terminated:
                self._ended.wait(1.0)

    def close(self) -> None:
        """Hang up on everyone and write what is left to write. May be called twice."""
        self._stop.set()
        with self._lock:
            connections, threads = list(self._connections), list(self._threads)
        for connection in connections:
            connection.hang_up()
        for thread in threads:
            thread.join(self._settings.message_seconds)
        for listener in (self._listener, self._observer_listener):
            if listener is not None:
                listener.close()

    # Listening -------------------------------------------------------------------------------------------------------

    def _begin(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True, name="birds-server")
        with self._lock:
            self._threads = [old for old in self._threads if old.is_alive() or old.ident is None]
            self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket, serve: Callable[[Connection, str], None]) -> None:
        listener.settimeout(ACCEPT_SECONDS)
        while not self._stop.is_set():
            try:
                sock, address = listener.accept()
            except TimeoutError:
                continue
            except OSError as error:
                self._say(f"a connection was not accepted: {error.strerror}")
                self._stop.wait(ACCEPT_SECONDS)
            else:
                self._receive(sock, f"{address[0]}:{address[1]}", serve)

    def _receive(self, sock: socket.socket, who: str, serve: Callable[[Connection, str], None]) -> None:
        settings = self._settings
        connection = Connection(sock, settings.idle_seconds, settings.message_seconds, settings.tails)
        with self._lock:
            is_welcome = len(self._connections) < settings.max_connections and not self._stop.is_set()
            if is_welcome:
                self._connections.add(connection)
        if is_welcome:
            self._begin(self._converse, serve, connection, who)
        else:
            connection.close()
            self._say(f"{who} was turned away: {settings.max_connections} connections are open")

    def _converse(self, serve: Callable[[Connection, str], None], connection: Connection, who: str) -> None:
        """Serve one connection until it ends, for whatever reason: none may harm the others."""
        try:
            serve(connection, who)
        except HungUpError:
            pass
        except (ProtocolError, OSError) as error:
            if not self._stop.is_set():
                self._say(f"{who}: {error}; hung up")
        except Exception as error:
            self._say(f"{who}: internal error, please report: {error!r}; hung up")
            raise
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    # Serving ---------------------------------------------------------------------------------------------------------

    def _serve_agent(self, connection: Connection, who: str) -> None:
        player = self._new_player()
        self._say(f"{who} plays game {player.number}")
        try:
            while True:
                request = _next_request(connection)
                with player.lock:
                    reply = player.game.handle(request)
                connection.send(reply)
        finally:
            self._end_game(player)

    def _new_player(self) -> _Player:
        harness, journal = Harness(self._plan, self._clock), self._results.journal()
        with self._lock:
            self._n_games += 1
            number = self._n_games
            game = Game(number, harness, self._make_world, self._sight(number), journal, self._on_trial)
            self._players.append(_Player(number, game))
            return self._players[-1]

    def _on_trial(self, episodes: tuple[Episode, ...]) -> None:
        with self._lock:
            self._episodes += episodes
            if self._told_trial is not None:
                self._told_trial(episodes)

    def _end_game(self, player: _Player) -> None:
        with player.lock:
            left = player.game.close()
        with self._ended:
            self._players.remove(player)
            self._episodes += left
            self._n_terminated += player.game.is_terminated
            self._ended.notify_all()

    def _serve_observer(self, connection: Connection, who: str) -> None:
        """Show the newest game, or that of the agent whose id the observer gives."""
        self._say(f"{who} observes")
        with self._lock:
            self._n_observers += 1
            sight = self._sight(OBSERVER_SEED + self._n_observers)
        agent_id: int | None = None
        while True:
            request = _next_request(connection)
            if request.code is Code.CONFIGURE:
                agent_id = request.numbers[0]
                connection.send(encode_numbers(request.code, 0, 0, 0))
            elif request.code in LOOKS:
                connection.send(sight.look(request.code, self._scene(agent_id)))
            else:
                raise ProtocolError(f"code {request.code} of an observer; allowed: 1, 11, 61 to 64")

    def _scene(self, agent_id: int | None) -> Scene | None:
        """What is to be seen in the newest game of that agent, else in the newest game."""
        with self._lock:
            of_agent = [player for player in self._players if player.game.agent_id == agent_id]
            players = (of_agent or self._players)[-1:]
        for player in players:
            with player.lock:
                return player.game.scene()
        return None

    def _sight(self, seed: int) -> Sight:
        noise = np.random.default_rng([self._settings.seed, seed])
        return Sight(self._settings.is_dev, self._settings.has_noisy_batches, noise)


def _next_request(connection: Connection) -> Request:
    connection.begin_message()
    return run_parser(parse_request(), connection.read)


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port < 2**16:
        raise BadSpecError(f"port {port}; allowed: 1 to 65535, or 0 for a free one")
    try:
        return socket.create_server((host, port))
    except OSError as error:
        hint = "another server runs there: " if error.errno == errno.EADDRINUSE else ""
        raise BadSpecError(f"cannot listen on {host}:{port} ({error.strerror}); {hint}use another --port") from error


def serve(
    played: Plan | Sequence[Level],
    make_world: MakeWorld,
    host: str = LOOPBACK,
    port: int = AGENT_PORT,
    out: Path | None = None,
    *,
    observer_port: int | None = None,
    settings: Settings | None = None,
    on_trial: OnTrial | None = None,
    say: Say | None = None,
    n_agents: int = 0,
) -> tuple[Episode, ...]:
    """Serve until Ctrl-C, or until `n_agents` have played to the end; levels alone are played as one trial.

    Returns:
        What was played.
    """
    plan = played if isinstance(played, Plan) else one_trial(played)
    server = Server(plan, make_world, host, port, observer_port, out, settings, on_trial, say)
    with server:
        if say is not None:
            say(f"agents connect to {host}:{server.port}; Ctrl-C stops")
        try:
            server.wait(n_agents)
        except KeyboardInterrupt:
            if say is not None:
                say("stopping")
    return server.episodes
