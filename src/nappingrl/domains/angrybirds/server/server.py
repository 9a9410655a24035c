"""The server: one game per connected agent, one thread per connection, so that no agent waits for another."""

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
from nappingrl.domains.angrybirds.server.listener import Listener, Say
from nappingrl.domains.angrybirds.server.observer import OBSERVE_CODES, Observer
from nappingrl.domains.angrybirds.server.protocol import AGENT_PORT, Code, ProtocolError, Request
from nappingrl.domains.angrybirds.server.results import Episode, Results
from nappingrl.domains.angrybirds.server.trial_plan import Plan, one_trial
from nappingrl.domains.angrybirds.server.wire import encode_numbers, parse_request, run_parser
from nappingrl.errors import BadSpecError, check_name

LOOPBACK = "127.0.0.1"
OBSERVER_SEED = 2**32
"""Added to the seeds of observers, so that they differ from those of agents."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of the server."""

    is_dev: bool = False
    """Developer mode: labels tell what objects are, and codes 61 and 62 are exact instead of noisy."""
    has_noisy_batches: bool = False
    """Batches of ground truths are noisy, too."""
    seed: int = 0
    """Seed of the noise."""
    tails: str = "auto"
    """Arguments that only some client versions send: auto, short (never) or long (always)."""
    max_connections: int = 128
    """Agents and observers at a time. One more closes the oldest that has sent no request, or else is turned away."""
    first_seconds: float = 30.0
    """Longest time from the connection to the end of the first request."""
    idle_seconds: float = 3600.0
    """Longest time between two requests of an agent."""
    message_seconds: float = 10.0
    """Longest time to receive a whole request, or to send a reply."""

    def __post_init__(self) -> None:
        check_name("tails", self.tails, ("auto", "short", "long"))
        if self.max_connections < 1 or min(self.first_seconds, self.idle_seconds, self.message_seconds) <= 0:
            raise BadSpecError("max_connections, first_seconds, idle_seconds and message_seconds must be positive")


@dataclass(slots=True)
class _Session:
    """One agent's game, and the lock that keeps observers out while it changes."""

    number: int
    game: Game
    lock: threading.Lock = field(default_factory=threading.Lock)


class Server:
    """Serves one plan to any number of agents, each from its beginning.

    Use it as a context, or call `start` and `close`.

    Args:
        plan: The trials to play.
        make_world: Makes the world of a level when it is loaded.
        host: Address to listen on.
        port: Port for agents; 0 takes a free one, see the attribute.
        observer_port: Port for observers, who may only look; None: no observers.
        out: Folder for the results; None: nothing is written.
        settings: Further options.
        on_trial: Called with the episodes of each finished trial, in the thread of its agent, one at a time.
        say: Shows one line to the user.
        clock: Wall clock for the time limits.

    Attributes:
        port: Port for agents.
        observer_port: Port for observers.
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
        self._plan = plan
        self._make_world = make_world
        self._clock = clock
        self._settings = settings or Settings()
        self._say: Say = say or (lambda _: None)
        self._on_trial = on_trial
        self._results = Results(out)
        self._lock = threading.Lock()
        """Guards everything below, and calls of `on_trial`."""
        self._sessions: list[_Session] = []
        self._connections: dict[Connection, str] = {}
        """Open connections and their addresses, oldest first."""
        self._threads: list[threading.Thread] = []
        self._episodes: list[Episode] = []
        self._n_games = self._n_observers = self._n_terminated = 0
        self._stop = threading.Event()
        self._ended = threading.Condition(self._lock)
        self._listeners = [self._listen(host, port, self._serve_agent)]
        self.port = self._listeners[0].port
        self.observer_port: int | None = None
        if observer_port is not None:
            try:
                self._listeners.append(self._listen(host, observer_port, self._serve_observer))
            except BadSpecError:
                self.close()
                raise
            self.observer_port = self._listeners[1].port

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """The episodes of ended games, and of the finished trials of running games."""
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
        """Begin to accept connections, in background threads."""
        for listener in self._listeners:
            listener.start()

    def wait(self, n_terminated: int = 0) -> None:
        """Wait until this many agents have played to the end and left; 0: until interrupted."""
        with self._ended:
            while not self._stop.is_set() and not 0 < n_terminated <= self._n_terminated:
                self._ended.wait(1.0)

    def close(self) -> None:
        """Close all connections and write the remaining results. Safe to call twice."""
        self._stop.set()
        for listener in self._listeners:
            listener.close()
        with self._lock:
            connections, threads = list(self._connections), list(self._threads)
        for connection in connections:
            connection.hang_up()
        deadline = time.monotonic() + self._settings.message_seconds
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    # Connections -----------------------------------------------------------------------------------------------------

    def _listen(self, host: str, port: int, serve: Callable[[Connection, str], None]) -> Listener:
        return Listener(host, port, lambda sock, address: self._receive(sock, address, serve), self._say)

    def _receive(self, sock: socket.socket, address: str, serve: Callable[[Connection, str], None]) -> None:
        settings = self._settings
        connection = Connection(
            sock, settings.idle_seconds, settings.message_seconds, settings.first_seconds, settings.tails
        )
        thread = threading.Thread(
            target=self._converse, args=(serve, connection, address), daemon=True, name="birds-server"
        )
        with self._lock:
            is_accepted = not self._stop.is_set() and self._has_room()
            if is_accepted:
                self._connections[connection] = address
                self._threads = [old for old in self._threads if old.is_alive()]
                self._threads.append(thread)
                thread.start()
        if not is_accepted:
            connection.close()
            self._say(f"{address} was turned away: {settings.max_connections} connections are open")

    def _has_room(self) -> bool:
        """Whether one more connection may be served; if need be, the oldest silent one makes room."""
        if len(self._connections) < self._settings.max_connections:
            return True
        n_open = len(self._connections)
        silent = next((connection for connection in self._connections if connection.is_silent), None)
        if silent is None:
            return False
        address = self._connections.pop(silent)
        silent.hang_up()
        self._say(f"{address} was closed before its first request, as the oldest such of {n_open} connections")
        return True

    def _converse(self, serve: Callable[[Connection, str], None], connection: Connection, address: str) -> None:
        """Serve one connection until it ends; no failure may affect the others."""
        try:
            serve(connection, address)
        except HungUpError:
            pass
        except (ProtocolError, OSError) as error:
            if connection in self._connections and not self._stop.is_set():
                self._say(f"{address}: {error}; hung up")
        except Exception as error:
            self._say(f"{address}: internal error, please report: {error!r}; hung up")
            raise
        finally:
            with self._lock:
                self._connections.pop(connection, None)
            connection.close()

    # Agents ----------------------------------------------------------------------------------------------------------

    def _serve_agent(self, connection: Connection, address: str) -> None:
        request = _next_request(connection)  # a game begins with it: connections without one leave no results
        session = self._new_session()
        self._say(f"{address} plays game {session.number}")
        try:
            while True:
                with session.lock:
                    reply = session.game.handle(request)
                connection.send(reply)
                request = _next_request(connection)
        finally:
            self._end_session(session)

    def _new_session(self) -> _Session:
        harness, journal = Harness(self._plan, self._clock), self._results.journal()
        with self._lock:
            self._n_games += 1
            number = self._n_games
            game = Game(number, harness, self._make_world, self._observer(number), journal, self._end_trial)
            self._sessions.append(_Session(number, game))
            return self._sessions[-1]

    def _end_trial(self, episodes: tuple[Episode, ...]) -> None:
        with self._lock:
            self._episodes += episodes
            if self._on_trial is not None:
                self._on_trial(episodes)

    def _end_session(self, session: _Session) -> None:
        with session.lock:
            remaining = session.game.close()
        with self._ended:
            self._sessions.remove(session)
            self._episodes += remaining
            self._n_terminated += session.game.is_terminated
            self._ended.notify_all()

    # Observers -------------------------------------------------------------------------------------------------------

    def _serve_observer(self, connection: Connection, address: str) -> None:
        """Show the newest game, or that of the agent whose id the observer gives."""
        self._say(f"{address} observes")
        with self._lock:
            self._n_observers += 1
            observer = self._observer(OBSERVER_SEED + self._n_observers)
        agent_id: int | None = None
        while True:
            request = _next_request(connection)
            if request.code is Code.CONFIGURE:
                agent_id = request.numbers[0]
                connection.send(encode_numbers(request.code, 0, 0, 0))
            elif request.code in OBSERVE_CODES:
                connection.send(observer.reply(request.code, self._scene(agent_id)))
            else:
                raise ProtocolError(f"code {request.code} of an observer; allowed: 1, 11, 61 to 64")

    def _scene(self, agent_id: int | None) -> Scene | None:
        """The scene of the newest game of an agent, or else of the newest game."""
        with self._lock:
            of_agent = [session for session in self._sessions if session.game.agent_id == agent_id]
            sessions = (of_agent or self._sessions)[-1:]
        for session in sessions:
            with session.lock:
                return session.game.scene()
        return None

    def _observer(self, seed: int) -> Observer:
        noise = np.random.default_rng([self._settings.seed, seed])
        return Observer(self._settings.is_dev, self._settings.has_noisy_batches, noise)


def _next_request(connection: Connection) -> Request:
    connection.begin_message()
    request = run_parser(parse_request(), connection.read)
    connection.end_message()
    return request


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
    """Serve until Ctrl-C, or until `n_agents` have played to the end; a list of levels is played as one trial.

    Returns:
        The episodes that were played.
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
